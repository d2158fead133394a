"""What claims are read from: one judged run folder, unaltered since its audit record was written."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import JournalError, SnapshotError
from harness.files import file_sha256, read_bytes
from harness.journal.assemble import read_environment, read_run, read_spec
from harness.journal.folder import RunFolder, read_record
from harness.ledgers.book import AnyLedger, AnyStatistics, ledger_type, statistics_of
from harness.places import Places, places_of_run
from harness.protocols.grids import denominators
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.audit import Audit, GateAccount
from harness.records.kinds import AnyRun
from harness.records.manifest import Denominators
from harness.records.run import Environment, RunSpec
from harness.snapshots.store import altered_files, links, read_audit

TODO = "Restore the files from where the run was judged (`verify` says which), or start a new run."


@dataclass(frozen=True)
class RunView:
    """A run and what a session said of it. Properties raise the HarnessError that says why a part can't be had."""

    loaded: LoadedProtocol
    folder: RunFolder
    audit: Audit

    @cached_property
    def spec(self) -> RunSpec:
        """What was asked for."""
        return read_spec(self.folder)

    @cached_property
    def environment(self) -> Environment:
        """Where it ran."""
        return read_environment(self.folder)

    @cached_property
    def run(self) -> AnyRun:
        """The assembled run."""
        return read_run(self.folder, self.loaded.protocol)

    @cached_property
    def ledger(self) -> AnyLedger:
        """ledger.json; JournalError where it is of another run."""
        book: AnyLedger = read_record(self.folder.file("ledger.json"), ledger_type(self.loaded.protocol), what="ledger")
        named = file_sha256(self.folder.file("run.json"), what="assembled run")
        if book.run_sha256 != named:
            where = f"{self.folder.file('ledger.json')}: run_sha256"
            raise JournalError(where, expected=named, found=book.run_sha256, todo=TODO)
        return book

    @cached_property
    def statistics(self) -> AnyStatistics:
        """The statistics that follow from the ledger; JournalError where statistics.json holds other bytes."""
        made, path = statistics_of(self.loaded.protocol, self.ledger), self.folder.file("statistics.json")
        stored = read_bytes(path, what="statistics")
        if stored != canonical_bytes(made):
            expected, found = sha256_hex(canonical_bytes(made)), sha256_hex(stored)
            raise JournalError(str(path), expected=expected, found=found, todo=TODO)
        return made

    @cached_property
    def replay(self) -> AnyRun:
        """The independent replay's run."""
        return read_run(self.folder.part("replay"), self.loaded.protocol)

    @cached_property
    def gates(self) -> dict[str, GateAccount]:
        """The audit's accounts by gate."""
        return {gate.id: gate for gate in self.audit.gates}

    @property
    def sizes(self) -> Denominators:
        """What the run's grid has over its domains."""
        return denominators(self.loaded.protocol, self.spec.grid, len(self.spec.domains))


def judged_view(path: Path, tree: Places | None = None) -> RunView:
    """A run folder whose audit record speaks for the files in it; SnapshotError where it doesn't."""
    folder = RunFolder(path)
    audit = read_audit(folder)
    loaded = load_protocol(audit.protocol, places_of_run(path, tree), audit.protocol_digest)
    require_judged(folder, audit, loaded)
    return RunView(loaded, folder, audit)


def require_judged(folder: RunFolder, audit: Audit, loaded: LoadedProtocol) -> None:
    """SnapshotError where the protocol is another by now, or files were altered after the audit record."""
    pairs: Sequence[tuple[str, object, object]] = (
        ("protocol digest", loaded.digest, audit.protocol_digest),
        ("files altered after the audit", [], altered_files(folder, audit)),
        ("links", (), links(folder)),
    )
    for name, expected, found in pairs:
        if expected != found:
            where = f"{folder.path}: {name}"
            raise SnapshotError(where, expected=str(expected), found=str(found), todo=TODO)
