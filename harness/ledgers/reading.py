"""A judged run's cells as accounts read them: the text, the program and the verdict, each of the cell's own.

Shared by every family whose outputs are judged; which accounts a cell has, and in which words, is the family's own.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from harness.canon import text_sha256
from harness.compare import TODO
from harness.errors import JournalError
from harness.evaluate.completion import stop_state
from harness.evaluate.numeric import NUMERIC_RULES, parse_gold, same_number
from harness.ledgers.executions import TODO as EVIDENCE
from harness.ledgers.executions import CodeCell, code_cells, task_of
from harness.ledgers.text import observed_text
from harness.protocols.grids import executed_grid
from harness.records.completion import ProgramTaken, StoppedRow
from harness.records.evaluation import CodeFound, CodeMissing, NumericExtraction, NumericFound
from harness.records.kinds import JudgedRun
from harness.records.ledger import NotObserved
from harness.records.protocol import AnyJudged
from harness.records.run import CellRecord, UnitEvidence
from harness.records.sandbox import Execution
from harness.records.sources import Domain

NO_NUMBER = NotObserved(reason="the domain registers no gold answer")
NO_PROGRAM = NotObserved(reason="the domain registers no tests")

Executions = Mapping[str, Execution]
Registered_co = TypeVar("Registered_co", bound=AnyJudged, covariant=True)
Made_co = TypeVar("Made_co", bound=JudgedRun, covariant=True)


def verdicts_of(protocol: AnyJudged, run: JudgedRun, executions: Executions) -> Executions | None:
    """The executions, one for each program and of that program; None where this grid's programs aren't executed."""
    executed = executed_grid(protocol, run.grid)
    cells = {cell.key: cell for cell in code_cells(protocol, run) if isinstance(cell.extraction, CodeFound)}
    for key in sorted({*cells, *executions} if executed else executions):
        where = f"sandbox/{key}.json"
        if not executed or key not in cells:
            raise JournalError(where, expected="no execution: the run has no such program", found="one", todo=EVIDENCE)
        if key not in executions:
            raise JournalError(
                where,
                expected="the verdict on this cell's program",
                found="none",
                todo="Restore it; only a run without a ledger is judged further (--run, with a container engine).",
            )
        _require_own(where, run, cells[key], executions[key])
    return executions if executed else None


def _require_own(where: str, run: JudgedRun, cell: CodeCell, execution: Execution) -> None:
    """The execution is of the cell's program and of its source's tests; JournalError names the digest that isn't."""
    program = cell.extraction.program if isinstance(cell.extraction, CodeFound) else ""
    pairs = (
        ("candidate_sha256", text_sha256(program), execution.evidence.candidate_sha256),
        ("tests_sha256", task_of(run, cell.source_id).tests_sha256, execution.evidence.tests_sha256),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise JournalError(f"{where}: {name}", expected=expected, found=found, todo=EVIDENCE)


class Reading(Generic[Registered_co, Made_co]):
    """A unit as its cells are read: the protocol, the run and the domain that they belong to."""

    def __init__(self, protocol: Registered_co, run: Made_co, domain: Domain, unit: UnitEvidence) -> None:
        self.protocol, self.run, self.domain, self.unit = protocol, run, domain, unit

    def where(self, cell: CellRecord) -> str:
        """The cell's identity, for messages."""
        return f"cell {self.unit.source_id}, {self.unit.replicate}, {cell.condition}"

    def text(self, cell: CellRecord) -> str:
        """The cell's text as evaluators read it."""
        return observed_text(self.protocol, cell, where=self.where(cell))


def stopped_at(at: Reading[AnyJudged, JudgedRun], cell: CellRecord) -> dict[str, Any]:
    """The fields of StoppedRow for a cell, by name; JournalError for one that ended in two ways."""
    unit = at.unit
    require_one_end(at.where(cell), eos=cell.eos, truncated=cell.truncated)
    row = StoppedRow(
        domain=unit.domain,
        index=unit.index,
        source_id=unit.source_id,
        replicate=unit.replicate,
        condition=cell.condition,
        generated_sha256=cell.generated_sha256,
        length=cell.length,
        stop=stop_state(eos=cell.eos, truncated=cell.truncated),
    )
    return msgspec.structs.asdict(row)


def require_one_end(where: str, *, eos: bool, truncated: bool) -> None:
    """JournalError for a cell that ended in two ways."""
    if eos and truncated:
        raise JournalError(where, expected="EOS or the budget's end", found="both", todo=TODO)


def program_taken(own: CodeCell) -> ProgramTaken | CodeMissing:
    """What was taken from a cell's text, the program by its digest; or that there was nothing to take."""
    found = own.extraction
    if isinstance(found, CodeMissing):
        return found
    return ProgramTaken(
        rule=found.rule,
        method=found.method,
        program_sha256=text_sha256(found.program),
        start=found.start,
        end=found.end,
    )


def number_read(at: Reading[AnyJudged, JudgedRun], text: str) -> tuple[NumericExtraction, str | None]:
    """What the registered rule takes from a text, and the source's gold number in plain form; None without gold.

    InputError where the run's gold number is none.
    """
    extraction = NUMERIC_RULES[at.protocol.evaluators.numeric](text)
    recorded = at.run.gold.get(at.unit.source_id)
    return extraction, None if recorded is None else parse_gold(
        recorded, where=f"run record: gold of {at.unit.source_id}"
    )


def is_exact(extraction: NumericExtraction, gold: str) -> bool:
    """A number was taken and it is the gold one, as decimal values."""
    return isinstance(extraction, NumericFound) and same_number(extraction.value, gold)
