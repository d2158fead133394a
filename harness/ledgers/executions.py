"""Which programs a run gives to the sandbox, and the executions that are on disk. Executes nothing.

A program follows from the cell's text, the task and the registered rule, so it can be taken again by anybody.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.canon import digest, text_sha256
from harness.compare import cells_by_condition
from harness.errors import JournalError
from harness.evaluate.code import CODE_RULES
from harness.journal.folder import RunFolder, read_record
from harness.ledgers.plan import units_in_order
from harness.ledgers.text import observed_text
from harness.protocols.grids import UnitKey, is_executed
from harness.records.evaluation import CodeExtraction, CodeFound
from harness.records.kinds import JudgedRun
from harness.records.protocol import AnyJudged
from harness.records.run import CellRecord, CodeTask, UnitEvidence
from harness.records.sandbox import Execution

SANDBOX, SHARED = "sandbox", "shared"
TODO = "Executions are evidence and aren't edited: restore the file, or start a new run."


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A cell whose output is taken for a program, and what was taken. `key` names its execution."""

    key: str
    source_id: str
    condition: str
    extraction: CodeExtraction


def code_cells(protocol: AnyJudged, run: JudgedRun) -> Iterator[CodeCell]:
    """Every code cell of a run in the protocol's order; JournalError where the run lacks a source's task."""
    for domain, unit in units_in_order(protocol, run, run.units):
        if is_executed(domain):
            for cell in cells_by_condition(protocol, unit).values():
                yield code_cell(protocol, run, unit, cell)


def code_cell(protocol: AnyJudged, run: JudgedRun, unit: UnitEvidence, cell: CellRecord) -> CodeCell:
    """What the registered rule takes from a cell's text (R05 6), and which execution is that program's.

    Each cell has its own. Where the protocol registers a cache, cells with the same program for the same task and tests
    share one (R07 8): harness, image and limits are one for the whole run, and the gates hold each execution to them.
    """
    task = task_of(run, unit.source_id)
    text = observed_text(protocol, cell, where=f"cell {unit.source_id}, {unit.replicate}, {cell.condition}")
    found = CODE_RULES[protocol.evaluators.code](text, task.prompt, task.entry_point)
    key = own_key(unit, cell.condition)
    if protocol.execution_cache and isinstance(found, CodeFound):
        shared = digest({"candidate_sha256": text_sha256(found.program), "task_sha256": digest(task)})
        key = f"{shared_prefix(unit)}{shared[:32]}"
    return CodeCell(key, unit.source_id, cell.condition, found)


def own_key(unit: UnitEvidence, condition: str) -> str:
    """The key of an execution that is one cell's alone."""
    return f"{UnitKey(unit.domain, unit.index, unit.source_id, unit.replicate).name}-{condition}"


def shared_prefix(unit: UnitEvidence) -> str:
    """What the keys of executions that cells of the unit's source share begin with."""
    return f"{UnitKey(unit.domain, unit.index, unit.source_id, SHARED).name}-"


def execution_of(
    unit: UnitEvidence, condition: str, executions: Mapping[str, Execution], *, said: str
) -> Execution | None:
    """A cell's own execution, whatever its digest; else the one that it shares, by the digest that its row says.

    Executions of two cells can have one digest, so a digest alone would take another cell's for one that was changed.
    """
    own = executions.get(own_key(unit, condition))
    if own is not None:
        return own
    shared = [one for key, one in executions.items() if key.startswith(shared_prefix(unit))]
    return next((one for one in shared if one.evidence_sha256 == said), None)


def task_of(run: JudgedRun, source_id: str) -> CodeTask:
    """The code task of a source; JournalError where the run has none."""
    if source_id not in run.tasks:
        raise JournalError(
            f"run record: task of {source_id}",
            expected="prompt, entry point and tests' digest",
            found="none",
            todo=TODO,
        )
    return run.tasks[source_id]


def read_executions(folder: RunFolder) -> dict[str, Execution]:
    """The executions of a run by key, each held against its own digests."""
    return {path.stem: read_execution(folder, path.stem) for path in sorted((folder.path / SANDBOX).glob("*.json"))}


def read_execution(folder: RunFolder, key: str) -> Execution:
    """sandbox/<key>.json; JournalError where its evidence or its limits don't have the digest that it says."""
    path = folder.path / SANDBOX / f"{key}.json"
    execution = read_record(path, Execution, what="execution")
    pairs = (
        ("evidence_sha256", execution.evidence_sha256, digest(execution.evidence)),
        ("evidence.limits_sha256", execution.evidence.limits_sha256, digest(execution.limits)),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise JournalError(f"{path}: {name}", expected=expected, found=found, todo=TODO)
    return execution
