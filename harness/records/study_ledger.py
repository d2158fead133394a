"""The ledger of a study: the four accounts of a judged cell, the author's own judge beside them, counts over both."""

from typing import Literal

from harness.records.base import Record
from harness.records.completion import (
    AccountedRow,
    CodeSummary,
    CompletionEdgeRow,
    Counted,
    Diagnostics,
    NumericSummary,
)
from harness.records.evaluation import CompletionClass
from harness.records.ledger import Count, EdgeSummary, LedgerHead, NotObserved, StatisticsHead, Total
from harness.records.study import StudyEvaluators

AnswerJudgeName = Literal["exact", "regex", "function"]
AnswerOutcome = Literal["success", "failure", "missing", "raised", "timeout", "ended"]


class AnswerJudged(Record, tag_field="state", tag="judged"):
    """What a text judge or an author's function said of a cell. `success` is the judge's own word for it.

    `outcome`: of a text judge `success` or `failure`, of a pattern that isn't there `missing`; of a function also
    `raised`, `timeout`, `ended`. `value`: what was compared, escaped, or the canonical JSON of what was returned.
    """

    judge: AnswerJudgeName
    outcome: AnswerOutcome
    success: bool
    value: str


class StudyRow(AccountedRow):
    """A cell of a study: its accounts, and what its domain's own judge said."""

    answer: AnswerJudged | NotObserved


class StudyLedger(LedgerHead):
    """ledger.json of a study: rows in the protocol's order (domain, index, replicate, condition or edge)."""

    evaluators: StudyEvaluators
    cells: tuple[StudyRow, ...]
    edges: tuple[CompletionEdgeRow, ...]


class AnswerSummary(Record, tag_field="state", tag="counted"):
    """Over all cells of the group whose domain has such a judge: a cell without an answer counts in `of` alone."""

    outcomes: dict[str, Count]
    succeeded: Count


class StudySummary(Record):
    """Counts over a group of cells. `succeeded`: right within the budget, by whichever judge the cell's domain has."""

    natural_eos: Count
    budget_truncated: Count
    other_stop: Count
    explicit_terminal: Counted | NotObserved
    evaluable: Counted | NotObserved
    classes: dict[CompletionClass, Count]
    length: Total
    numeric: NumericSummary | NotObserved
    code: CodeSummary | NotObserved
    answer: AnswerSummary | NotObserved
    succeeded: Counted | NotObserved
    diagnostics: Diagnostics


class StudyGroup(Record):
    """A group of cells: all of a domain, of a condition, or of both; empty means all."""

    domain: str
    condition: str
    cells: StudySummary


class PairedOutcomes(Record, tag_field="state", tag="counted"):
    """Units of one edge by success on its left and its right side; each is of all units that have both."""

    both: Count
    left_only: Count
    right_only: Count
    neither: Count


class StudyEdgeGroup(Record):
    """One edge over a domain's units; an empty domain means all. `classes`: pairs as `LEFT | RIGHT`."""

    edge: str
    kind: Literal["system", "direct"]
    domain: str
    units: EdgeSummary
    classes: dict[str, Count]
    succeeded: PairedOutcomes | NotObserved


class StudyStatistics(StatisticsHead):
    """statistics.json of a study: counts over one ledger, each with its denominator, no interval."""

    groups: tuple[StudyGroup, ...]
    edges: tuple[StudyEdgeGroup, ...]
