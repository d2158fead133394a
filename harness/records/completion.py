"""The completion ledger (R05 4): four accounts of a cell that never stand in for one another, and counts over them.

Stopping says how the output ended; the task terminal whether the answer says that it is one; evaluable whether a number
or a program could be judged; correct what the judgement was. Every count stands beside what it is a count of.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.evaluation import CodeMissing, CodeRule, CompletionClass, NumericExtraction
from harness.records.ledger import Comparison, Count, EdgeSummary, LedgerHead, NotObserved, StatisticsHead, Total
from harness.records.protocol import CompletionEvaluators
from harness.records.sandbox import Outcome

Stop = Literal["natural_eos", "budget_truncated", "other_stop"]
PublishedOutcome = Literal[
    "passed", "assertion_failed", "runtime_error", "timeout", "ast_error", "sandbox_error", "extract_failed"
]


class Terminal(Record, tag_field="state", tag="judged"):
    """The task terminal of a domain that has a judge (R05 4.2); `closed_fence` or `marker`, and EOS for code."""

    explicit: bool
    reached: bool


class NumericJudged(Record, tag_field="state", tag="judged"):
    """A mathematics cell (R05 4.3, 4.4, 5), against a gold number in plain form.

    `evaluable`: a number found by a marker, or any number of a text that ended by EOS. `strict_complete_exact`: exact
    and (EOS or found by an explicit marker), clause 5; the last number of a cut text is never strict, whatever marker
    stands elsewhere in it (4.3). `strict_marker_only_exact`: exact and found by a marker, the audit's reading (its
    5.1), which clause 5 doesn't give. `fallback_exact`: exact by the last number alone, a diagnostic.
    """

    extraction: NumericExtraction
    gold: str
    evaluable: bool
    fixed_budget_exact: bool
    strict_complete_exact: bool
    strict_marker_only_exact: bool
    fallback_exact: bool


class NumericWithoutGold(Record, tag_field="state", tag="gold_absent"):
    """The run has no gold number for this source: the extraction is kept, nothing is judged."""

    extraction: NumericExtraction


class ProgramTaken(Record, tag_field="state", tag="found"):
    """The program that a rule took from the text, by its digest; `start` and `end` as in the extraction."""

    rule: CodeRule
    method: str
    program_sha256: str
    start: int
    end: int


class Executed(Record, tag_field="state", tag="executed"):
    """What the sandbox said (R05 6): its own word, the document's word, and what follows.

    `ast_parses`: false only for a syntax error. `ran`: the program was run, so it parses. `fixed_budget_pass`: passed;
    `strict_complete_pass`: passed and (EOS or a closed fence).
    """

    outcome: Outcome
    published: PublishedOutcome
    execution_sha256: str
    ast_parses: bool
    ran: bool
    fixed_budget_pass: bool
    strict_complete_pass: bool


class NotExecuted(Record, tag_field="state", tag="not_executed"):
    """No verdict, and why: programs of this grid aren't executed, or of one that are, there was nothing to execute."""

    reason: Literal["tier", "extract_failed"]


class CodeAccount(Record, tag_field="state", tag="judged"):
    """A code cell: what was taken from the text, and the sandbox's verdict."""

    program: ProgramTaken | CodeMissing
    verdict: Executed | NotExecuted


class BaselineCompared(Record):
    """The same cell at the baseline's budget (R05 2, 7). `compared` tokens: min(baseline budget, baseline length)."""

    stop: Stop
    length: int
    compared: int
    prefix_exact: bool


class StoppedRow(Record):
    """One cell by its identity and how it stopped: what every row of a judged cell begins with. `length` in tokens."""

    domain: str
    index: int
    source_id: str
    replicate: str
    condition: str
    generated_sha256: str
    length: int
    stop: Stop


class AccountedRow(StoppedRow):
    """One cell with its four accounts, of which `stop` is the first."""

    completion: CompletionClass
    terminal: Terminal | NotObserved
    numeric: NumericJudged | NumericWithoutGold | NotObserved
    code: CodeAccount | NotObserved


class CompletionRow(AccountedRow):
    """A cell of a completion run, beside the same cell at the baseline's budget."""

    baseline: BaselineCompared


class CompletionEdgeRow(Record):
    """One registered comparison, with the completion class of each side, so that one cut side can't hide (R05 7)."""

    domain: str
    index: int
    source_id: str
    replicate: str
    edge: str
    kind: Literal["system", "direct"]
    left: str
    right: str
    left_completion: CompletionClass
    right_completion: CompletionClass
    comparison: Comparison


class CompletionLedger(LedgerHead):
    """ledger.json of a completion run: rows in the protocol's order (domain, index, replicate, condition or edge)."""

    baseline_run_sha256: str
    evaluators: CompletionEvaluators
    cells: tuple[CompletionRow, ...]
    edges: tuple[CompletionEdgeRow, ...]


class NumericSummary(Record, tag_field="state", tag="counted"):
    """Over all mathematics cells of the group: a cell without a number counts in `of` and as no hit.

    `methods`: cells by the step that found their number, `missing` for none.
    """

    methods: dict[str, Count]
    gold_absent: Count
    fixed_budget_exact: Count
    strict_complete_exact: Count
    strict_marker_only_exact: Count


class VerdictSummary(Record, tag_field="state", tag="counted"):
    """Over all code cells of the group. `outcomes` are the document's words, `extract_failed` among them.

    `ast_parses`, `executed` and the passes are what the sandbox said; a cell without a program counts in `of` alone.
    """

    outcomes: dict[str, Count]
    ast_parses: Count
    executed: Count
    fixed_budget_passed: Count
    strict_complete_passed: Count


class CodeSummary(Record, tag_field="state", tag="counted"):
    """Over all code cells of the group: how programs were found; and the verdicts, where the tier executes any.

    `methods`: cells by the step that found their program, `missing` for none.
    """

    methods: dict[str, Count]
    verdicts: VerdictSummary | NotObserved


class Counted(Count, tag_field="state", tag="counted"):
    """A count of a group in which there is something to count. It has the fields of Count."""


class Diagnostics(Record):
    """Diagnostics, never accuracies (R05 4.4): the group of completed or evaluable cells selects itself.

    `completion_conditioned_*`: correct ones of the cells that reached EOS or a task terminal. `fallback_exact`: exact
    by the last number alone, of the cells that have nothing else.
    """

    label: Literal["diagnostic: selection bias, not an accuracy"]
    completion_conditioned_numeric_exact: Counted | NotObserved
    completion_conditioned_code_passed: Counted | NotObserved
    fallback_exact: Counted | NotObserved


class Gain(Record):
    """128 -> 512 completion gain (R05 7): the same cells at the baseline's budget and at this one.

    `newly_ended`: cells that end by EOS now, of those that the baseline cut. `prefix_exact`: cells that begin with the
    baseline's tokens.
    """

    baseline_natural_eos: Count
    natural_eos: Count
    newly_ended: Count
    prefix_exact: Count


class CompletionSummary(Record):
    """Counts over a group of cells (R05 7). `explicit_terminal` and `evaluable` only of domains that have a judge."""

    natural_eos: Count
    budget_truncated: Count
    other_stop: Count
    explicit_terminal: Counted | NotObserved
    evaluable: Counted | NotObserved
    classes: dict[CompletionClass, Count]
    length: Total
    numeric: NumericSummary | NotObserved
    code: CodeSummary | NotObserved
    diagnostics: Diagnostics
    gain: Gain


class CompletionGroup(Record):
    """A group of cells: all of a domain, of a condition, or of both; empty means all."""

    domain: str
    condition: str
    cells: CompletionSummary


class CompletionEdgeGroup(Record):
    """One edge over a domain's units; an empty domain means all. `classes`: pairs as `LEFT | RIGHT`."""

    edge: str
    kind: Literal["system", "direct"]
    domain: str
    units: EdgeSummary
    classes: dict[str, Count]


class CompletionStatistics(StatisticsHead):
    """statistics.json of a completion run: counts over one ledger, each with its denominator, no interval."""

    groups: tuple[CompletionGroup, ...]
    edges: tuple[CompletionEdgeGroup, ...]
