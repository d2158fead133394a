"""Counts over a study's ledger, by domain, by condition and by both; edges with the success of both sides.

A function of the protocol and ledger.json alone. Each group must have exactly the rows that the protocol's grid plans.
No interval and no percentage: which design a study has, its author says; what was counted, and of how many, is here.
"""

from collections.abc import Iterator, Mapping, Sequence

from harness.compare import TODO
from harness.errors import JournalError
from harness.ledgers.account_counts import NOT_RUN, account_counts, counted, tally, unexecuted
from harness.ledgers.accounts import require_accounts
from harness.ledgers.counts import count, edge_summary, require_size
from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import planned_domains, require_protocol, units_per_domain
from harness.protocols.check_study import judge_of
from harness.records.completion import CodeAccount, CompletionEdgeRow, Counted, Executed, NumericJudged
from harness.records.ledger import NotObserved
from harness.records.protocol import StudyProtocol
from harness.records.study import ExactJudge, FunctionJudge, PatternJudge
from harness.records.study_ledger import (
    AnswerJudged,
    AnswerSummary,
    PairedOutcomes,
    StudyEdgeGroup,
    StudyGroup,
    StudyLedger,
    StudyRow,
    StudyStatistics,
    StudySummary,
)

ALL = ""
NO_ANSWER = NotObserved(reason="no domain of the group has a text judge or a function")
NO_SUCCESS = NotObserved(reason="no domain of the group has a judge")

Rows = Sequence[StudyRow]
Identity = tuple[str, str, str]


def study_statistics(protocol: StudyProtocol, ledger: StudyLedger) -> StudyStatistics:
    """Counts by group; JournalError where a group of the ledger isn't as large as the protocol's grid says."""
    require_protocol(protocol, ledger.protocol, where="ledger")
    planned = {domain.name: domain for domain in planned_domains(protocol, ledger.domains)}
    units = units_per_domain(protocol, ledger.grid)
    cells = {(row.source_id, row.replicate, row.condition) for row in ledger.cells}
    edges = {(row.source_id, row.replicate, row.edge) for row in ledger.edges}
    require_size("ledger: different cells", cells, planned=len(planned) * units * len(protocol.conditions))
    require_size("ledger: different edges", edges, planned=len(planned) * units * len(protocol.edges))
    for row in (row for row in ledger.cells if row.domain in planned):  # a strange domain shows in its group's size
        require_accounts(protocol, planned[row.domain], row)
        _require_answer(protocol, row)
    return StudyStatistics(
        **statistics_head(ledger),
        groups=tuple(_groups(protocol, ledger, [*planned], units)),
        edges=tuple(_edge_groups(protocol, ledger, [*planned], units)),
    )


def _require_answer(protocol: StudyProtocol, row: StudyRow) -> None:
    owed = isinstance(judge_of(protocol, row.domain), ExactJudge | PatternJudge | FunctionJudge)
    if owed != isinstance(row.answer, AnswerJudged):
        words = ("what the domain's judge said", "nothing") if owed else ("nothing", "an answer")
        where = f"ledger: cell {row.source_id}, {row.replicate}, {row.condition}: answer"
        raise JournalError(where, expected=words[0], found=words[1], todo=TODO)


def _groups(protocol: StudyProtocol, ledger: StudyLedger, domains: list[str], units: int) -> Iterator[StudyGroup]:
    conditions = [condition.id for condition in protocol.conditions]
    for domain in (ALL, *domains):
        for condition in (ALL, *conditions):
            rows = [row for row in ledger.cells if domain in (ALL, row.domain) and condition in (ALL, row.condition)]
            planned = units * (len(domains) if domain == ALL else 1) * (len(conditions) if condition == ALL else 1)
            require_size(f"ledger: cells of {domain or 'all'}, {condition or 'all'}", rows, planned=planned)
            yield StudyGroup(domain=domain, condition=condition, cells=study_summary(rows))


def study_summary(rows: Rows) -> StudySummary:
    """Counts over any group of cells; every count is of all of them, or of those whose domain has the judge."""
    answers = [row.answer for row in rows if isinstance(row.answer, AnswerJudged)]
    outcomes = [answer.outcome for answer in answers]
    summary = AnswerSummary(
        outcomes=tally(outcomes, sorted(set(outcomes))), succeeded=count(answer.success for answer in answers)
    )
    return StudySummary(**account_counts(rows), answer=summary if answers else NO_ANSWER, succeeded=_succeeded(rows))


def _succeeded(rows: Rows) -> Counted | NotObserved:
    judged = [found for row in rows if (found := success(row)) is not None]
    if unexecuted(row.code for row in rows if isinstance(row.code, CodeAccount)):
        return NOT_RUN
    return counted(judged) if judged else NO_SUCCESS


def success(row: StudyRow) -> bool | None:
    """Whether a cell is right within the budget, by whichever judge its domain has; None where it has none."""
    if isinstance(row.answer, AnswerJudged):
        return row.answer.success
    if not isinstance(row.numeric, NotObserved):
        return isinstance(row.numeric, NumericJudged) and row.numeric.fixed_budget_exact
    if isinstance(row.code, CodeAccount):
        return isinstance(row.code.verdict, Executed) and row.code.verdict.fixed_budget_pass
    return None


def _edge_groups(
    protocol: StudyProtocol, ledger: StudyLedger, domains: list[str], units: int
) -> Iterator[StudyEdgeGroup]:
    cells = {(row.source_id, row.replicate, row.condition): row for row in ledger.cells}
    for edge in protocol.edges:
        for domain in (ALL, *domains):
            rows = [row for row in ledger.edges if row.edge == edge.id and domain in (ALL, row.domain)]
            planned = units * (len(domains) if domain == ALL else 1)
            require_size(f"ledger: edges {edge.id} of {domain or 'all'}", rows, planned=planned)
            pairs = [f"{row.left_completion} | {row.right_completion}" for row in rows]
            yield StudyEdgeGroup(
                edge=edge.id,
                kind=edge.kind,
                domain=domain,
                units=edge_summary([row.comparison for row in rows]),
                classes=tally(pairs, sorted(set(pairs))),
                succeeded=_paired(rows, cells),
            )


def _paired(rows: Sequence[CompletionEdgeRow], cells: Mapping[Identity, StudyRow]) -> PairedOutcomes | NotObserved:
    sides = [
        (cells[row.source_id, row.replicate, row.left], cells[row.source_id, row.replicate, row.right]) for row in rows
    ]
    if unexecuted(one.code for pair in sides for one in pair if isinstance(one.code, CodeAccount)):
        return NOT_RUN
    pairs = [
        (one, other) for left, right in sides for one, other in ((success(left), success(right)),) if one is not None
    ]
    if not pairs:
        return NO_SUCCESS
    return PairedOutcomes(
        both=count(bool(one and other) for one, other in pairs),
        left_only=count(bool(one and not other) for one, other in pairs),
        right_only=count(bool(other and not one) for one, other in pairs),
        neither=count(not one and not other for one, other in pairs),
    )
