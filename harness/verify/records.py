"""Journals to run, run to ledger, ledger to statistics, and claims: made again, and compared byte for byte."""

from collections.abc import Callable, Mapping

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.claims.judge import claims_of
from harness.claims.load import NAME as RULES
from harness.claims.load import load_claims
from harness.claims.view import RunView
from harness.files import file_sha256, read_bytes
from harness.journal.assemble import assemble
from harness.journal.folder import RunFolder, difference
from harness.ledgers.book import ledger_of, statistics_of
from harness.ledgers.executions import SANDBOX, code_cells, read_executions
from harness.protocols.load import LoadedProtocol
from harness.records.evaluation import CodeFound
from harness.records.kinds import AnyRun, JudgedRun
from harness.records.protocol import BaselinedProtocol, JudgedProtocol
from harness.records.run import Baseline
from harness.snapshots.baseline import frozen_baseline
from harness.verify.ground import FROZEN_FILE, RESTORE, Ground, Lines, compared, fails, holds, nothing
from harness.verify.page import report_holds

STEP = "records"
MADE_AGAIN = "The records follow from journals and executions: one of them was altered."


def records_hold(ground: Ground) -> Lines:
    """run.json, ledger.json and statistics.json of the run, its executions and its prompts."""
    run = assemble(ground.folder, ground.loaded)
    found = [*made_again(ground.loaded, ground.folder, run), *_executions(ground, run), *_prompts(ground, run)]
    cells = sum(len(unit.cells) for unit in run.units)
    units = len(ground.loaded.units(run.grid, run.domains))
    yield from found or [holds(STEP, "run.json, ledger.json, statistics.json", f"{units} journals", f"{cells} cells")]


def made_again(loaded: LoadedProtocol, folder: RunFolder, run: AnyRun, prefix: str = "") -> Lines:
    """A failing line for each of the three records whose stored bytes aren't those that follow.

    A ledger names the digest of its run's canonical bytes, and statistics that of their ledger's: equal digests are
    equal bytes, and only records that differ are encoded once more.
    """
    book = ledger_of(loaded.protocol, run, read_executions(folder))
    numbers = statistics_of(loaded.protocol, book)
    made = (
        ("run.json", run, book.run_sha256),
        ("ledger.json", book, numbers.ledger_sha256),
        ("statistics.json", numbers, digest(numbers)),
    )
    for name, record, sha256 in made:
        if file_sha256(folder.file(name), what=name) != sha256:
            yield from same_bytes(folder, name, canonical_bytes(record), prefix)


def same_bytes(folder: RunFolder, name: str, made: bytes, prefix: str = "") -> Lines:
    """A failing line where a stored record isn't what follows from others."""
    stored = read_bytes(folder.file(name), what=name)
    if stored != made:
        expected, found = difference(stored, made)
        where = f"{prefix}{name}"
        yield fails(STEP, where, f"{sha256_hex(made)}, {expected}", f"{sha256_hex(stored)}, {found}", MADE_AGAIN)


def _executions(ground: Ground, run: AnyRun) -> Lines:
    """Exactly the executions that the run's programs need."""
    protocol = ground.loaded.protocol
    if not isinstance(protocol, JudgedProtocol) or not isinstance(run, JudgedRun):
        return
    there = read_executions(ground.folder)
    needed = {cell.key for cell in code_cells(protocol, run) if isinstance(cell.extraction, CodeFound)}
    executes = any(gate.rows == "executed_cells" and gate.id for gate in ground.judged_gates)
    wanted = needed if executes else set()
    for key in sorted(wanted ^ {*there}):
        expected, found = ("an execution", "none") if key in wanted else ("no such file", "an execution")
        yield fails(STEP, f"{SANDBOX}/{key}.json", expected, found, RESTORE)


def _prompts(ground: Ground, run: AnyRun) -> Lines:
    """Every cell's prompt is the manifest's."""
    for unit in run.units:
        source = ground.loaded.source(unit.source_id)
        for cell in unit.cells:
            where = f"run.json: {unit.source_id} {unit.replicate} {cell.condition} prompt_sha256"
            expected = source.prompts[cell.condition].sha256
            yield from compared(STEP, [(where, expected, cell.prompt_sha256)], RESTORE)


def baseline_holds(ground: Ground) -> Lines:
    """The baseline's cells in the run are those of the frozen results that the protocol names by digest."""
    protocol, run = ground.loaded.protocol, ground.evidence.run
    baseline = getattr(run, "baseline", None)
    if not isinstance(protocol, BaselinedProtocol) or not isinstance(baseline, Baseline):
        yield nothing("baseline", "baseline.json", "none", "the protocol registers no baseline")
        return
    if run.port:
        found = f"a port's own run {baseline.run_sha256}, which isn't part of this folder"
        yield nothing("baseline", "baseline.json", "none", found)
        return
    wanted = frozen_baseline(ground.loaded, ground.evidence.keys, ground.tree)
    where = f"baseline.json and snapshots/{baseline.protocol}"
    expected, there = difference(canonical_bytes(baseline), canonical_bytes(wanted)) if baseline != wanted else ("", "")
    if baseline != wanted:
        yield fails("baseline", where, expected, there, FROZEN_FILE)
    else:
        yield holds("baseline", where, f"{len(wanted.cells)} cells", f"{len(baseline.cells)} cells")


def _claims(ground: Ground) -> bytes:
    return canonical_bytes(claims_of(RunView(ground.loaded, ground.folder, ground.audit), load_claims(ground.loaded)))


# What follows from the run and its audit record: file name -> how its bytes are made.
DERIVED: Mapping[str, Callable[[Ground], bytes]] = {"claims.json": _claims}


def derived_hold(ground: Ground) -> Lines:
    """Each derived file, where it was written, has the bytes that are made again; where it wasn't, they can be made."""
    for name, make in DERIVED.items():
        if not (ground.loaded.folder / RULES).is_file():
            yield nothing("derived", name, "none", f"{ground.loaded.protocol.id} has no {RULES}")
        elif not ground.folder.file(name).is_file():
            yield nothing("derived", name, "written by a session, or none", "not written: it can be made")
        else:
            found = list(same_bytes(ground.folder, name, make(ground)))
            stored = ground.folder.file(name).stat().st_size
            yield from found or [holds("derived", name, f"{stored} bytes", f"{stored} bytes")]
    yield from report_holds(ground)
