"""What every step of a verification stands on, and how it says what it found."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from harness.errors import words
from harness.evidence import RunEvidence
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.audit import Audit
from harness.records.protocol import Gate, Tier
from harness.records.run import Baseline
from harness.records.verification import State, VerifiedLine
from harness.snapshots.baseline import frozen_baseline

Lines = Iterator[VerifiedLine]
RESTORE = "Restore the file from where the run was made, or don't rely on this copy."
AGAIN = "Judge the run again with `pytest gates/ -m TIER --run DIR`; what it finds is in its own record."
FROZEN_FILE = "Take the frozen file back from version control."


@dataclass(frozen=True)
class Ground:
    """A run folder with its audit record, under the protocol of the tree in use.

    `authority`: certificates (PEM) of a time-stamp authority that somebody trusts; None: those beside the token.
    """

    loaded: LoadedProtocol
    folder: RunFolder
    audit: Audit
    tree: Places
    authority: bytes | None = None

    @property
    def tier(self) -> Tier:
        """The tier that was judged; a record that names another one fails earlier."""
        return next(name for name in self.loaded.protocol.tier_grids if name == self.audit.tier)

    @cached_property
    def evidence(self) -> RunEvidence:
        """The run's records as they lie here."""
        return self.evidence_at(self.folder)

    def evidence_at(self, folder: RunFolder) -> RunEvidence:
        """The records of a part, or of the smoke run. Steps of their own hold the journals against their digests."""

        def baseline(keys: tuple[UnitKey, ...]) -> Baseline:
            return frozen_baseline(self.loaded, keys, self.tree)

        return RunEvidence(self.loaded, folder, baseline_source=baseline, verified=True)

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The domains that ran."""
        return self.evidence.spec.domains

    @cached_property
    def judged_gates(self) -> tuple[Gate, ...]:
        """The registered gates of the tier that were judged: those over frozen results may be left out, said so."""
        left_out = {line.partition(":")[0] for line in self.audit.not_compared}
        frozen = ("snapshots", "tensors")
        return tuple(
            gate
            for gate in self.loaded.protocol.gates
            if self.tier in gate.tiers and not (gate.reach in frozen and (not self.audit.frozen or gate.id in left_out))
        )


def holds(step: str, where: object, expected: object, found: object) -> VerifiedLine:
    """Something that holds, with how much of it there is."""
    return _line(step, "holds", [words(one) for one in (where, expected, found)], "")


def nothing(step: str, where: object, expected: object, found: object) -> VerifiedLine:
    """Something that this run has none of, with the reason as found."""
    return _line(step, "none", [words(one) for one in (where, expected, found)], "")


def fails(step: str, where: object, expected: object, found: object, todo: str) -> VerifiedLine:
    """Something that doesn't hold."""
    return _line(step, "fails", [words(one) for one in (where, expected, found)], todo)


def uncheckable(step: str, where: object, expected: object, found: object, todo: str) -> VerifiedLine:
    """Something that can't be checked here."""
    return _line(step, "not checkable", [words(one) for one in (where, expected, found)], todo)


def _line(step: str, state: State, said: list[str], todo: str) -> VerifiedLine:
    return VerifiedLine(step=step, state=state, where=said[0], expected=said[1], found=said[2], todo=todo)


def compared(step: str, pairs: Iterable[tuple[object, object, object]], todo: str) -> Lines:
    """A failing line for each (where, expected, found) that differs."""
    for where, expected, found in pairs:
        if expected != found:
            yield fails(step, where, expected, found, todo)
