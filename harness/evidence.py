"""What checks read: a run, a pair of runs, a smoke record, each loaded from files alone.

A part that can't be read is kept as the error that says why, so that every row that needs it fails with that reason.
The registered tokenizer and the registered gold numbers are read here, anew, where a check holds the run against them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from harness.canon import sha256_hex
from harness.embedding import Embedding, read_embedding
from harness.errors import HarnessError, JournalError
from harness.files import read_bytes
from harness.gold import registered_answers, registered_gold, registered_tasks
from harness.journal.assemble import read_environment, read_placement, read_run, read_spec, units_by_key
from harness.journal.folder import RunFolder, failures, journals, read_journal, read_record
from harness.ledgers.book import AnyLedger, ledger_type
from harness.places import places
from harness.prompts.records import PromptBatch
from harness.prompts.registered import registered_batches, rendered_batches
from harness.prompts.targets import SourceTargets
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.folders import beside
from harness.protocols.grids import RowKey, UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.depth import TraceCell, TraceEvidence
from harness.records.kinds import AnyRun, AnyUnit, journal_type
from harness.records.protocol import ApartRule, Variant
from harness.records.run import (
    Baseline,
    CellRecord,
    Environment,
    Failure,
    PlacementFacts,
    ProcessIdentity,
    PromptRow,
    RunSpec,
    UnitEvidence,
    UnitObservation,
)
from harness.records.sandbox import Task
from harness.sandbox.bundle import harness_sha256

Kind = TypeVar("Kind")
Differences = tuple[str, ...]
Check = Callable[[Any, RowKey], Differences]


def differs(where: str, expected: object, found: object) -> str:
    """One difference as an ASCII line."""
    line = f"{where}: expected {expected}, found {found}"
    return line.encode("ascii", "backslashreplace").decode("ascii")


def cell_name(row: RowKey) -> str:
    """Source and condition (or edge) of a row, for messages."""
    if row.unit is None:
        return row.item
    return " ".join(part for part in (row.variant, row.unit.source_id, row.unit.replicate, row.item) if part)


@dataclass(frozen=True)
class RunEvidence:
    """One run folder. Properties raise the HarnessError that says why a part can't be had.

    `stopped` is what ended generation, if anything did; `unjudged` what ended the execution of its programs.
    `baseline_source` reads the baseline's cells of given units anew. `checkpoint` and `inputs` are where the session
    looks for the registered tokenizer and inputs; without them the embedded ones are meant. `verified`: whoever made
    this has held every journal against its digests already, so that they needn't be encoded once more.
    """

    loaded: LoadedProtocol
    folder: RunFolder
    stopped: HarnessError | None = None
    checkpoint: Path | None = None
    inputs: tuple[Path, ...] = ()
    unjudged: HarnessError | None = None
    baseline_source: Callable[[tuple[UnitKey, ...]], Baseline] | None = None
    verified: bool = False

    @cached_property
    def spec(self) -> RunSpec:
        """What was asked for."""
        return read_spec(self.folder)

    @cached_property
    def environment(self) -> Environment:
        """Where it ran."""
        return read_environment(self.folder)

    @cached_property
    def placement(self) -> PlacementFacts:
        """Where the parameters were."""
        return read_placement(self.folder)

    @cached_property
    def run(self) -> AnyRun:
        """The assembled run; where generation was stopped, what stopped it."""
        if self.stopped is not None:
            raise self.stopped
        return read_run(self.folder, self.loaded.protocol)

    @cached_property
    def run_sha256(self) -> str:
        """The run's name: SHA-256 of the bytes of run.json."""
        return sha256_hex(read_bytes(self.folder.file("run.json"), what="assembled run"))

    @cached_property
    def ledger(self) -> AnyLedger:
        """The ledger as it lies on disk; where programs couldn't be judged, what stopped that."""
        if self.unjudged is not None and not self.folder.file("ledger.json").exists():
            raise self.unjudged
        return read_record(self.folder.file("ledger.json"), ledger_type(self.loaded.protocol), what="ledger")

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """Units that didn't return."""
        return failures(self.folder)

    @cached_property
    def keys(self) -> tuple[UnitKey, ...]:
        """The units that the run must have."""
        return self.loaded.units(self.spec.grid, self.spec.domains)

    @cached_property
    def units(self) -> dict[tuple[str, str], AnyUnit]:
        """Units by source ID and replicate."""
        return units_by_key(self.run.units)

    @cached_property
    def processes(self) -> tuple[ProcessIdentity, ...]:
        """Who made the units, one entry a unit."""
        return tuple(one.process for one in self._observations.values())

    @cached_property
    def _observations(self) -> dict[Path, UnitObservation]:
        """How each unit was made, by its journal's path; every journal is verified on the way."""
        kind = journal_type(self.loaded.protocol)
        if self.verified:
            return {path: read_record(path, kind, what="journal").observation for path in journals(self.folder)}
        return {path: read_journal(path, kind).observation for path in journals(self.folder)}

    @cached_property
    def found(self) -> dict[RowKey, Differences]:
        """What a check found of rows that many others ask about, kept by it."""
        return {}

    @cached_property
    def tokenizer(self) -> PromptTokenizer:
        """The registered tokenizer, from hash-checked files."""
        return locate_tokenizer(self.loaded, self.checkpoint, places())

    @cached_property
    def registered_targets(self) -> dict[str, SourceTargets]:
        """Target tokens by source ID as the registered inputs and the registered tokenizer give them now."""
        per_domain = self.loaded.protocol.grids[self.spec.grid].per_domain
        batches = registered_batches(
            self.loaded, self.tokenizer, self.inputs, domains=self.spec.domains, per_domain=per_domain
        )
        return {source_id: batch.targets for source_id, batch in batches.items() if batch.targets is not None}

    def registered_prompts(self, domain: str) -> dict[str, PromptBatch]:
        """A domain's prompts by source ID as registered inputs and tokenizer give them now, whatever the manifest says.

        Of all sources that any grid takes.
        """
        made: dict[str, dict[str, PromptBatch]] = self.__dict__.setdefault("_prompts", {})
        if domain not in made:
            made[domain] = rendered_batches(self.loaded, self.tokenizer, self.inputs, domain=domain)
        return made[domain]

    @cached_property
    def registered_embedding(self) -> Embedding:
        """The checkpoint's embedding, from its files' bytes."""
        profile = self.loaded.profile
        own = next(iter(beside(self.loaded.folder, "checkpoint")), places().models / profile.id / "checkpoint")
        return read_embedding(profile, self.checkpoint or own)

    @cached_property
    def registered_gold(self) -> dict[str, str]:
        """Final numbers by source ID as the registered inputs hold them now."""
        return registered_gold(self.loaded, self.inputs, self.keys)

    @cached_property
    def registered_answers(self) -> dict[str, str]:
        """Expected texts by source ID as the registered inputs hold them now."""
        return registered_answers(self.loaded, self.inputs, self.keys)

    @cached_property
    def registered_baseline(self) -> Baseline:
        """The baseline's cells of this run's units, read anew from what is frozen or from the port's own run."""
        if self.baseline_source is None:
            raise RuntimeError(f"{self.loaded.protocol.id}: no baseline was named")
        return self.baseline_source(self.keys)

    @cached_property
    def checker_sha256(self) -> str:
        """SHA-256 of this tree's checker, the program that judges inside the container."""
        return harness_sha256()

    @cached_property
    def registered_tasks(self) -> dict[str, Task]:
        """Code tasks by source ID as the registered inputs hold them now. They hold tests: never shown."""
        return registered_tasks(self.loaded, self.inputs, self.keys)

    def observation(self, row: RowKey) -> UnitObservation:
        """How the row's unit was made."""
        found = self._observations.get(self.folder.journal(_unit_key(row)))
        if found is None:
            raise self._lacks(row, "a journal", "none")
        return found

    def batch(self, row: RowKey) -> AnyUnit:
        """The row's unit, whatever was done with it; JournalError where the run has none."""
        key = _unit_key(row)
        unit = self.units.get((key.source_id, key.replicate))
        if unit is None:
            raise self._lacks(row, "a unit", "none")
        return unit

    def unit(self, row: RowKey) -> UnitEvidence:
        """The row's unit in a run that generates."""
        return _of_kind(self.batch(row), UnitEvidence)

    def trace(self, row: RowKey) -> TraceEvidence:
        """The row's unit in a run that traces."""
        return _of_kind(self.batch(row), TraceEvidence)

    def cell(self, row: RowKey) -> CellRecord:
        """The row's cell, by its condition, in a run that generates; JournalError where it isn't there exactly once."""
        return self.condition(row, row.item)

    def condition(self, row: RowKey, name: str) -> CellRecord:
        """The cell of a condition in the row's unit, in a run that generates."""
        return _of_kind(self.prompt(row, name), CellRecord)

    def traced(self, row: RowKey, name: str) -> TraceCell:
        """The cell of a condition in the row's unit, in a run that traces."""
        return _of_kind(self.prompt(row, name), TraceCell)

    def prompt(self, row: RowKey, name: str) -> PromptRow:
        """The cell of a condition in the row's unit; JournalError where it isn't there exactly once."""
        cells = [cell for cell in self.batch(row).cells if cell.condition == name]
        if len(cells) != 1:
            raise self._lacks(row, f"one cell {name}", str(len(cells)))
        return cells[0]

    def _lacks(self, row: RowKey, expected: str, found: str) -> JournalError:
        where = f"{self.folder.path}: {cell_name(row)}"
        return JournalError(where, expected=expected, found=found, todo="Start a new run.")


def _of_kind(record: object, kind: type[Kind]) -> Kind:
    if not isinstance(record, kind):
        raise RuntimeError(f"a check of {kind.__name__} on {type(record).__name__}")
    return record


def _unit_key(row: RowKey) -> UnitKey:
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    return row.unit


@dataclass(frozen=True)
class PairEvidence:
    """Two runs that were made apart, over the cells of `rule.grid`. `pids`: the children that the parent started.

    `part_of`: the run that made the second, by its ID, where that isn't the first: several runs may share a first side.
    """

    first: RunEvidence
    second: RunEvidence
    rule: ApartRule
    pids: tuple[int, ...]
    part_of: str | None = None

    @property
    def part_id(self) -> str:
        """The ID that the second run must have: of the run that made it, and its folder's name within that."""
        whole = self.part_of if self.part_of is not None else self.first.spec.run_id
        return f"{whole}/{self.second.folder.path.name}"

    @cached_property
    def folders(self) -> int:
        """How many folders the two runs lie in."""
        return len({self.first.folder.path.resolve(), self.second.folder.path.resolve()})

    @cached_property
    def second_failures(self) -> list[str]:
        """Failures of the second run, also in attempts that were moved aside."""
        path = self.second.folder.path
        aside = path.parent.glob(f"{path.name}.incomplete-*/failures/*.json")
        return [*(one.kind for one in self.second.failures), *(one.name for one in sorted(aside))]


@dataclass(frozen=True)
class VariantEvidence:
    """The run and its determinism variants, by variant ID."""

    pairs: dict[str, PairEvidence]
    variants: dict[str, Variant]


def guarded(check: Check, evidence: Any, row: RowKey) -> Differences:
    """A check's differences; evidence that can't be read is a difference of every row that needs it."""
    try:
        return check(evidence, row)
    except HarnessError as error:
        return (f"{cell_name(row)}: {error}",)
