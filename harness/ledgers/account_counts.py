"""Counts over accounted cells, whatever family they are of: stopping, terminals, numbers, programs, diagnostics.

Every count is of all cells of the group, or of those whose domain has the judge. Figures over completed cells only are
diagnostics and stand apart from the others (R05 4.4).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, get_args

from harness.ledgers.counts import count, total
from harness.records.completion import (
    AccountedRow,
    CodeAccount,
    CodeSummary,
    Counted,
    Diagnostics,
    Executed,
    NotExecuted,
    NumericJudged,
    NumericSummary,
    NumericWithoutGold,
    ProgramTaken,
    Terminal,
    VerdictSummary,
)
from harness.records.evaluation import CompletionClass, NumericFound
from harness.records.ledger import Count, NotObserved

CLASSES: tuple[CompletionClass, ...] = get_args(CompletionClass)
NO_JUDGE = NotObserved(reason="no domain of the group has a terminal judge")
NO_NUMERIC = NotObserved(reason="no domain of the group registers a gold answer")
NO_CODE = NotObserved(reason="no domain of the group registers tests")
NOT_RUN = NotObserved(reason="this tier executes no program")
LABEL: Literal["diagnostic: selection bias, not an accuracy"] = "diagnostic: selection bias, not an accuracy"

Rows = Sequence[AccountedRow]


def account_counts(rows: Rows) -> dict[str, Any]:
    """The counts that every summary of accounted cells has, by field."""
    terminals = _states(rows, lambda row: row.terminal, Terminal)
    return {
        "natural_eos": count(row.stop == "natural_eos" for row in rows),
        "budget_truncated": count(row.stop == "budget_truncated" for row in rows),
        "other_stop": count(row.stop == "other_stop" for row in rows),
        "explicit_terminal": counted(terminal.explicit for terminal in terminals) if terminals else NO_JUDGE,
        "evaluable": _evaluables(rows),
        "classes": tally([row.completion for row in rows], CLASSES),
        "length": total(row.length for row in rows),
        "numeric": _numeric(rows),
        "code": _code(rows),
        "diagnostics": _diagnostics(rows),
    }


def counted(flags: Iterable[bool]) -> Counted:
    """How many are true, of how many, where there is something to count."""
    found = count(flags)
    return Counted(count=found.count, of=found.of)


Key = TypeVar("Key", bound=str)


def tally(found: Sequence[str], keys: Iterable[Key]) -> dict[Key, Count]:
    """How often each key is found, of all that were found."""
    return {key: count(one == key for one in found) for key in keys}


State = TypeVar("State")


def _states(rows: Rows, state: Callable[[AccountedRow], object], kind: type[State]) -> list[State]:
    return [found for row in rows if isinstance(found := state(row), kind)]


def _evaluables(rows: Rows) -> Counted | NotObserved:
    """Evaluator coverage over the cells whose domain has an evaluator; undecided where programs weren't executed."""
    judged = [row for row in rows if not (isinstance(row.numeric, NotObserved) and isinstance(row.code, NotObserved))]
    if not judged:
        return NO_JUDGE
    return NOT_RUN if unexecuted(_states(rows, lambda row: row.code, CodeAccount)) else counted(map(_evaluable, judged))


def _evaluable(row: AccountedRow) -> bool:
    """R05 4.3: a number that counts, or a program that parses and was run."""
    if isinstance(row.numeric, NumericJudged):
        return row.numeric.evaluable
    return isinstance(row.code, CodeAccount) and isinstance(row.code.verdict, Executed) and row.code.verdict.ran


def _numeric(rows: Rows) -> NumericSummary | NotObserved:
    accounts = [row.numeric for row in rows if not isinstance(row.numeric, NotObserved)]
    if not accounts:
        return NO_NUMERIC
    judged = [account if isinstance(account, NumericJudged) else None for account in accounts]
    methods = [_method(account) for account in accounts]
    return NumericSummary(
        methods=tally(methods, sorted(set(methods))),
        gold_absent=count(one is None for one in judged),
        fixed_budget_exact=count(one is not None and one.fixed_budget_exact for one in judged),
        strict_complete_exact=count(one is not None and one.strict_complete_exact for one in judged),
        strict_marker_only_exact=count(one is not None and one.strict_marker_only_exact for one in judged),
    )


def _method(account: NumericJudged | NumericWithoutGold) -> str:
    return account.extraction.method if isinstance(account.extraction, NumericFound) else "missing"


def _code(rows: Rows) -> CodeSummary | NotObserved:
    accounts = _states(rows, lambda row: row.code, CodeAccount)
    if not accounts:
        return NO_CODE
    methods = [one.program.method if isinstance(one.program, ProgramTaken) else "missing" for one in accounts]
    return CodeSummary(methods=tally(methods, sorted(set(methods))), verdicts=_verdicts(accounts))


def _verdicts(accounts: Sequence[CodeAccount]) -> VerdictSummary | NotObserved:
    if unexecuted(accounts):
        return NOT_RUN
    verdicts = [one.verdict for one in accounts]
    outcomes = [one.published if isinstance(one, Executed) else one.reason for one in verdicts]
    return VerdictSummary(
        outcomes=tally(outcomes, sorted(set(outcomes))),
        ast_parses=count(isinstance(one, Executed) and one.ast_parses for one in verdicts),
        executed=count(isinstance(one, Executed) and one.ran for one in verdicts),
        fixed_budget_passed=count(isinstance(one, Executed) and one.fixed_budget_pass for one in verdicts),
        strict_complete_passed=count(isinstance(one, Executed) and one.strict_complete_pass for one in verdicts),
    )


def unexecuted(accounts: Iterable[CodeAccount]) -> bool:
    """Whether the run's tier left programs unexecuted: then nothing is counted, not even as zero."""
    return any(isinstance(one.verdict, NotExecuted) and one.verdict.reason == "tier" for one in accounts)


def _diagnostics(rows: Rows) -> Diagnostics:
    completed = [row for row in rows if row.completion in ("NATURAL_EOS", "TASK_TERMINAL_BEFORE_EOS")]
    numeric = _states(completed, lambda row: row.numeric, NumericJudged)
    fallback = [
        account
        for account in _states(rows, lambda row: row.numeric, NumericJudged)
        if isinstance(account.extraction, NumericFound) and not account.extraction.marker
    ]
    has_numbers = any(not isinstance(row.numeric, NotObserved) for row in rows)
    return Diagnostics(
        label=LABEL,
        completion_conditioned_numeric_exact=(
            counted(one.fixed_budget_exact for one in numeric) if has_numbers else NO_NUMERIC
        ),
        completion_conditioned_code_passed=_code_passed(rows, completed),
        fallback_exact=counted(one.fallback_exact for one in fallback) if has_numbers else NO_NUMERIC,
    )


def _code_passed(rows: Rows, completed: Rows) -> Counted | NotObserved:
    accounts = _states(rows, lambda row: row.code, CodeAccount)
    if not accounts:
        return NO_CODE
    if unexecuted(accounts):
        return NOT_RUN
    ended = _states(completed, lambda row: row.code, CodeAccount)
    return counted(isinstance(one.verdict, Executed) and one.verdict.fixed_budget_pass for one in ended)
