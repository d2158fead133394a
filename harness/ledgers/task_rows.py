"""The accounts of a task's cell (R08 6): program and number in the document's words, and what its row drew of its tape.

There is no terminal and no completion class in Round 08. What the container engine lost is no failure of the program.
"""

from typing import get_args

from harness.evaluate.numeric import final_marker_r05
from harness.evaluate.strict import strict_number_r08, strict_program_r08
from harness.ledgers.drawn import tape_facts
from harness.ledgers.executions import code_cell
from harness.ledgers.reading import (
    NO_NUMBER,
    NO_PROGRAM,
    Executions,
    Reading,
    is_exact,
    number_read,
    program_taken,
    stopped_at,
)
from harness.protocols.grids import is_executed
from harness.records.completion import NotExecuted, NumericWithoutGold
from harness.records.evaluation import CodeMissing, NumericFound
from harness.records.protocol import TaskCrnProtocol
from harness.records.run import CellRecord
from harness.records.sandbox import Outcome
from harness.records.taped import TapedRun
from harness.records.tapes import RowTape
from harness.records.task_ledger import (
    BlockRole,
    FailureType,
    NoVerdict,
    NumericResult,
    TaskCode,
    TaskExecution,
    TaskNumeric,
    TaskRow,
    TaskVerdict,
)

TaskReading = Reading[TaskCrnProtocol, TapedRun]
FAILURE_TYPES: tuple[FailureType, ...] = get_args(FailureType)

# The document's words (R08 6.1). It has none for a failure of the container engine: that is no verdict.
PUBLISHED_R08: dict[Outcome, FailureType] = {
    "passed": "passed",
    "assertion_failed": "assertion_failed",
    "runtime_error": "runtime_error",
    "timeout": "timeout",
    "out_of_memory": "runtime_error",
    "syntax_error": "syntax_error",
    "extract_failed": "extract_failed",
}


def task_row(
    at: TaskReading, cell: CellRecord, drawn: RowTape, verdicts: Executions | None, *, role: BlockRole
) -> TaskRow:
    """A cell's row. `verdicts` None: this grid's programs aren't executed."""
    stopped, text = stopped_at(at, cell), at.text(cell)
    return TaskRow(
        **stopped,
        role=role,
        numeric=_numeric(at, cell, text) if "answer" in at.domain.gold else NO_NUMBER,
        code=_code(at, cell, text, verdicts) if is_executed(at.domain) else NO_PROGRAM,
        tape=tape_facts(drawn),
    )


def _numeric(at: TaskReading, cell: CellRecord, text: str) -> TaskNumeric | NumericWithoutGold:
    extraction, gold = number_read(at, text)
    if gold is None:
        return NumericWithoutGold(extraction=extraction)
    exact, marker = is_exact(extraction, gold), final_marker_r05(text)
    wrong: NumericResult = "wrong_numeric_answer" if isinstance(extraction, NumericFound) else "no_numeric_answer"
    return TaskNumeric(
        extraction=extraction,
        gold=gold,
        result="exact" if exact else wrong,
        final_marker=marker,
        fixed_budget_exact=exact,
        strict_complete_exact=strict_number_r08(exact=exact, natural_eos=cell.eos, final_marker=marker),
    )


def _code(at: TaskReading, cell: CellRecord, text: str, verdicts: Executions | None) -> TaskCode:
    own = code_cell(at.protocol, at.run, at.unit, cell)
    program = program_taken(own)
    if verdicts is None:
        return TaskCode(program=program, execution=NotExecuted(reason="tier"), verdict=NoVerdict(reason="tier"))
    if isinstance(program, CodeMissing):
        verdict = _verdict("extract_failed", text, natural_eos=cell.eos)
        return TaskCode(program=program, execution=NotExecuted(reason="extract_failed"), verdict=verdict)
    evidence = verdicts[own.key].evidence
    return TaskCode(
        program=program,
        execution=TaskExecution(outcome=evidence.outcome, execution_sha256=verdicts[own.key].evidence_sha256),
        verdict=_verdict(evidence.outcome, text, natural_eos=cell.eos),
    )


def _verdict(outcome: Outcome, text: str, *, natural_eos: bool) -> TaskVerdict | NoVerdict:
    """R08 6.1: what was extracted may parse, what parses was run, what was run may pass."""
    if outcome == "infrastructure":
        return NoVerdict(reason="infrastructure")
    ran, passed = outcome not in ("extract_failed", "syntax_error"), outcome == "passed"
    return TaskVerdict(
        failure_type=PUBLISHED_R08[outcome],
        ast_parses=ran,
        executed=ran,
        passed=passed,
        strict_complete_pass=strict_program_r08(text, passed=passed, natural_eos=natural_eos),
    )
