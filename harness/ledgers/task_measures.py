"""What a task's cell comes to (success, EOS, length), and the primary block's cells counted by condition (R08 6, 7)."""

from collections.abc import Iterator, Sequence
from typing import get_args

from harness.ledgers.counts import count, total
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.task_groups import Primary
from harness.ledgers.task_rows import FAILURE_TYPES
from harness.records.completion import ProgramTaken
from harness.records.ledger import NotObserved
from harness.records.protocol import TaskCrnProtocol
from harness.records.task_ledger import (
    NumericResult,
    TaskCode,
    TaskCodeSummary,
    TaskConditionSummary,
    TaskNumeric,
    TaskNumericSummary,
    TaskOutcome,
    TaskRow,
    TaskVerdict,
)

OUTCOMES: tuple[TaskOutcome, ...] = get_args(TaskOutcome)
RESULTS: tuple[NumericResult, ...] = get_args(NumericResult)

Rows = Sequence[TaskRow]


def value_of(outcome: TaskOutcome, row: TaskRow) -> int:
    """One cell: success within the budget and EOS 0 or 1, length in tokens. A cell that isn't judged is misuse."""
    match outcome:
        case "success":
            return int(succeeded(row))
        case "natural_eos":
            return int(row.stop == "natural_eos")
        case "length":
            return row.length


def succeeded(row: TaskRow) -> bool:
    """R08 6: tests passed, or the last number is the gold one."""
    if isinstance(row.numeric, TaskNumeric):
        return row.numeric.fixed_budget_exact
    return verdict_of(row).passed


def strictly(row: TaskRow) -> bool:
    """R08 6: success of an output that also ended."""
    if isinstance(row.numeric, TaskNumeric):
        return row.numeric.strict_complete_exact
    return verdict_of(row).strict_complete_pass


def verdict_of(row: TaskRow) -> TaskVerdict:
    """The verdict on a code cell; a cell without one is misuse: groups hold none."""
    if isinstance(row.code, TaskCode) and isinstance(row.code.verdict, TaskVerdict):
        return row.code.verdict
    raise RuntimeError(f"cell {row.source_id}, {row.replicate}, {row.condition} isn't judged")


def condition_summaries(protocol: TaskCrnProtocol, block: Primary) -> Iterator[TaskConditionSummary]:
    """The block's cells of each condition, in the protocol's order."""
    for condition in protocol.conditions:
        rows = [block.rows[task, condition.id] for task in block.tasks]
        yield TaskConditionSummary(
            domain=block.domain.name,
            condition=condition.id,
            tape=block.tape,
            success=count(succeeded(row) for row in rows),
            strict_complete=count(strictly(row) for row in rows),
            natural_eos=count(row.stop == "natural_eos" for row in rows),
            budget_truncated=count(row.stop == "budget_truncated" for row in rows),
            other_stop=count(row.stop == "other_stop" for row in rows),
            length=total(row.length for row in rows),
            gaps=total(row.tape.gaps for row in rows),
            numeric=_numeric(rows),
            code=_code(rows),
        )


def _numeric(rows: Rows) -> TaskNumericSummary | NotObserved:
    found = [row.numeric.result for row in rows if isinstance(row.numeric, TaskNumeric)]
    if not found:
        return NO_NUMBER
    return TaskNumericSummary(results={result: count(one == result for one in found) for result in RESULTS})


def _code(rows: Rows) -> TaskCodeSummary | NotObserved:
    accounts = [row.code for row in rows if isinstance(row.code, TaskCode)]
    if not accounts:
        return NO_PROGRAM
    verdicts = [verdict_of(row) for row in rows]
    return TaskCodeSummary(
        extracted=count(isinstance(account.program, ProgramTaken) for account in accounts),
        ast_parses=count(one.ast_parses for one in verdicts),
        executed=count(one.executed for one in verdicts),
        passed=count(one.passed for one in verdicts),
        failure_types={word: count(one.failure_type == word for one in verdicts) for word in FAILURE_TYPES},
    )
