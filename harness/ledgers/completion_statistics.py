"""Counts over a completion ledger (R05 7), by domain, by condition and by both: numerators with their denominators.

A function of the protocol and ledger.json alone. Each group must have exactly the rows that the protocol's grid plans.
No interval and no percentage: four sources a domain are no benchmark. Figures over completed cells only are diagnostics
and stand apart from the others (R05 4.4).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar, get_args

from harness.ledgers.accounts import require_accounts
from harness.ledgers.counts import count, edge_summary, require_size, total
from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import planned_domains, require_protocol, units_per_domain
from harness.records.completion import (
    CodeAccount,
    CodeSummary,
    CompletionEdgeGroup,
    CompletionGroup,
    CompletionLedger,
    CompletionRow,
    CompletionStatistics,
    CompletionSummary,
    Counted,
    Diagnostics,
    Executed,
    Gain,
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
from harness.records.protocol import CompletionProtocol

CLASSES: tuple[CompletionClass, ...] = get_args(CompletionClass)
NO_JUDGE = NotObserved(reason="no domain of the group has a terminal judge")
NO_NUMERIC = NotObserved(reason="no domain of the group registers a gold answer")
NO_CODE = NotObserved(reason="no domain of the group registers tests")
NOT_RUN = NotObserved(reason="this tier executes no program")
LABEL: Literal["diagnostic: selection bias, not an accuracy"] = "diagnostic: selection bias, not an accuracy"
ALL = ""

Rows = Sequence[CompletionRow]


def completion_statistics(protocol: CompletionProtocol, ledger: CompletionLedger) -> CompletionStatistics:
    """Counts by group; JournalError where a group of the ledger isn't as large as the protocol's grid says."""
    require_protocol(protocol, ledger.protocol, where="ledger")
    planned = planned_domains(protocol, ledger.domains)
    domains = [domain.name for domain in planned]
    units = units_per_domain(protocol, ledger.grid)
    cells = {(row.source_id, row.replicate, row.condition) for row in ledger.cells}
    edges = {(row.source_id, row.replicate, row.edge) for row in ledger.edges}
    require_size("ledger: different cells", cells, planned=len(domains) * units * len(protocol.conditions))
    require_size("ledger: different edges", edges, planned=len(domains) * units * len(protocol.edges))
    kinds = {domain.name: domain for domain in planned}
    for row in (row for row in ledger.cells if row.domain in kinds):  # a strange domain shows in its group's size
        require_accounts(kinds[row.domain], row)
    return CompletionStatistics(
        **statistics_head(ledger),
        groups=tuple(_groups(protocol, ledger, domains, units)),
        edges=tuple(_edge_groups(protocol, ledger, domains, units)),
    )


def _groups(
    protocol: CompletionProtocol, ledger: CompletionLedger, domains: list[str], units: int
) -> Iterator[CompletionGroup]:
    conditions = [condition.id for condition in protocol.conditions]
    for domain in (ALL, *domains):
        for condition in (ALL, *conditions):
            rows = [row for row in ledger.cells if domain in (ALL, row.domain) and condition in (ALL, row.condition)]
            planned = units * (len(domains) if domain == ALL else 1) * (len(conditions) if condition == ALL else 1)
            require_size(f"ledger: cells of {domain or 'all'}, {condition or 'all'}", rows, planned=planned)
            yield CompletionGroup(domain=domain, condition=condition, cells=completion_summary(rows))


def _edge_groups(
    protocol: CompletionProtocol, ledger: CompletionLedger, domains: list[str], units: int
) -> Iterator[CompletionEdgeGroup]:
    for edge in protocol.edges:
        for domain in (ALL, *domains):
            rows = [row for row in ledger.edges if row.edge == edge.id and domain in (ALL, row.domain)]
            planned = units * (len(domains) if domain == ALL else 1)
            require_size(f"ledger: edges {edge.id} of {domain or 'all'}", rows, planned=planned)
            pairs = [f"{row.left_completion} | {row.right_completion}" for row in rows]
            yield CompletionEdgeGroup(
                edge=edge.id,
                kind=edge.kind,
                domain=domain,
                units=edge_summary([row.comparison for row in rows]),
                classes=tally(pairs, sorted(set(pairs))),
            )


def completion_summary(rows: Rows) -> CompletionSummary:
    """Counts over any group of cells; every count is of all of them, or of those whose domain has the judge."""
    terminals = _states(rows, lambda row: row.terminal, Terminal)
    return CompletionSummary(
        natural_eos=count(row.stop == "natural_eos" for row in rows),
        budget_truncated=count(row.stop == "budget_truncated" for row in rows),
        other_stop=count(row.stop == "other_stop" for row in rows),
        explicit_terminal=counted(terminal.explicit for terminal in terminals) if terminals else NO_JUDGE,
        evaluable=_evaluables(rows),
        classes=tally([row.completion for row in rows], CLASSES),
        length=total(row.length for row in rows),
        numeric=_numeric(rows),
        code=_code(rows),
        diagnostics=_diagnostics(rows),
        gain=_gain(rows),
    )


def counted(flags: Iterable[bool]) -> Counted:
    """How many are true, of how many, where there is something to count."""
    found = count(flags)
    return Counted(count=found.count, of=found.of)


Key = TypeVar("Key", bound=str)


def tally(found: Sequence[str], keys: Iterable[Key]) -> dict[Key, Count]:
    """How often each key is found, of all that were found."""
    return {key: count(one == key for one in found) for key in keys}


State = TypeVar("State")


def _states(rows: Rows, state: Callable[[CompletionRow], object], kind: type[State]) -> list[State]:
    return [found for row in rows if isinstance(found := state(row), kind)]


def _evaluables(rows: Rows) -> Counted | NotObserved:
    """Evaluator coverage over the cells whose domain has an evaluator; undecided where programs weren't executed."""
    judged = [row for row in rows if not (isinstance(row.numeric, NotObserved) and isinstance(row.code, NotObserved))]
    if not judged:
        return NO_JUDGE
    return (
        NOT_RUN if _unexecuted(_states(rows, lambda row: row.code, CodeAccount)) else counted(map(_evaluable, judged))
    )


def _evaluable(row: CompletionRow) -> bool:
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
    if _unexecuted(accounts):
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


def _unexecuted(accounts: Iterable[CodeAccount]) -> bool:
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
    if _unexecuted(accounts):
        return NOT_RUN
    ended = _states(completed, lambda row: row.code, CodeAccount)
    return counted(isinstance(one.verdict, Executed) and one.verdict.fixed_budget_pass for one in ended)


def _gain(rows: Rows) -> Gain:
    cut = [row for row in rows if row.baseline.stop == "budget_truncated"]
    return Gain(
        baseline_natural_eos=count(row.baseline.stop == "natural_eos" for row in rows),
        natural_eos=count(row.stop == "natural_eos" for row in rows),
        newly_ended=count(row.stop == "natural_eos" for row in cut),
        prefix_exact=count(row.baseline.prefix_exact for row in rows),
    )
