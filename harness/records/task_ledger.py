"""What is read off tasks under tapes (R08 6 and 7): a row a cell and a pair of cells, and the registered statistics.

A task is a source. The primary block has every task under one tape, the diagnostic block a few tasks under the others:
no number is over both blocks, over two domains, or over tasks x tapes. A band is a description of the fixed tasks.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.completion import NotExecuted, NumericWithoutGold, ProgramTaken, StoppedRow
from harness.records.evaluation import CodeMissing, NumericExtraction
from harness.records.ledger import Comparison, Count, LedgerHead, Mean, NotObserved, StatisticsHead, Total, Undefined
from harness.records.sandbox import Outcome
from harness.records.taped import BootstrapRule, TaskEvaluators
from harness.records.tapes import EdgeDistance, NoEdge

BlockRole = Literal["primary", "diagnostic", "check"]
FailureType = Literal["extract_failed", "syntax_error", "timeout", "runtime_error", "assertion_failed", "passed"]
NumericResult = Literal["exact", "wrong_numeric_answer", "no_numeric_answer"]
TaskOutcome = Literal["success", "natural_eos", "length"]
Direction = Literal["positive", "zero", "negative"]
Pairing = Literal["shared uniform numbers"]


class TapeFacts(Record):
    """What a cell's row consumed and drew under its tape: `consumed` values, gaps and ties counted in draws."""

    tape: str
    tape_sha256: str
    consumed: int
    consumed_sha256: str
    gaps: int
    boundary_ties: int
    nearest_edge: EdgeDistance | NoEdge


class TaskNumeric(Record, tag_field="state", tag="judged"):
    """A mathematics cell (R08 6.2), against a gold number in plain form.

    `final_marker`: the text has a final marker of Round 05. `strict_complete_exact`: exact and (EOS or that marker).
    """

    extraction: NumericExtraction
    gold: str
    result: NumericResult
    final_marker: bool
    fixed_budget_exact: bool
    strict_complete_exact: bool


class TaskExecution(Record, tag_field="state", tag="executed"):
    """The sandbox's own word for a program, and the execution that it is from."""

    outcome: Outcome
    execution_sha256: str


class TaskVerdict(Record, tag_field="state", tag="judged"):
    """What came of a code cell (R08 6.1), in the document's one word for it, and the accounts after extraction.

    `executed`: the program was really run, so it parses. `passed` within the budget; `strict_complete_pass`: passed and
    (EOS or a closed Python fence).
    """

    failure_type: FailureType
    ast_parses: bool
    executed: bool
    passed: bool
    strict_complete_pass: bool


class NoVerdict(Record, tag_field="state", tag="no_verdict"):
    """Nothing is judged: this grid's programs aren't executed, or the container engine failed the cell."""

    reason: Literal["tier", "infrastructure"]


class TaskCode(Record, tag_field="state", tag="judged"):
    """A code cell: what was taken from the text, how it was executed, and what came of it."""

    program: ProgramTaken | CodeMissing
    execution: TaskExecution | NotExecuted
    verdict: TaskVerdict | NoVerdict


class TaskRow(StoppedRow):
    """One cell with its accounts and its tape. `replicate` is the tape that it was made under, `role` its block's."""

    role: BlockRole
    numeric: TaskNumeric | NumericWithoutGold | NotObserved
    code: TaskCode | NotObserved
    tape: TapeFacts


class Diverged(Record, tag_field="state", tag="diverged"):
    """The first step, from 0, in which the two rows have other tokens."""

    step: int


class NotDiverged(Record, tag_field="state", tag="not_diverged"):
    """The two rows have the same tokens throughout."""


class SharedUniforms(Record, tag_field="state", tag="shared"):
    """Both rows consumed z_0, z_1, ... of one tape and source (R08 4.2): the same value in each of their common steps.

    `before`: common steps before the first divergence. `steps`: common steps in all; `sha256` over their z, 8 bytes
    each, big-endian, made again from the tape's identity.
    """

    before: int
    steps: int
    sha256: str


class NotShared(Record, tag_field="state", tag="not_shared"):
    """A row's account isn't what tape, source and length say. No statistic is made of such a run."""

    differences: tuple[str, ...]


class TaskPairRow(Record):
    """The two cells of a contrast within a unit: where they part, and what they shared before that."""

    domain: str
    index: int
    source_id: str
    replicate: str
    role: BlockRole
    contrast: str
    left: str
    right: str
    comparison: Comparison
    divergence: Diverged | NotDiverged
    uniforms: SharedUniforms | NotShared


class TaskLedger(LedgerHead):
    """ledger.json of a task run: rows in the protocol's order (domain, index, tape, then condition or contrast)."""

    pairing: Pairing
    evaluators: TaskEvaluators
    cells: tuple[TaskRow, ...]
    pairs: tuple[TaskPairRow, ...]


class Resampling(Record):
    """Which tasks a domain's resamples took: the matrix behind all its bands.

    `indices_sha256` over its `resamples` rows in order, each of one index a task, int64 little-endian.
    """

    domain: str
    tasks: tuple[str, ...]
    resamples: int
    indices_sha256: str


class Band(Record):
    """Percentiles of the resampled means. `name` says what it is, and all that it is."""

    name: str
    percentiles: tuple[float, ...]
    values: tuple[float, ...]


class TaskContrastSummary(Record):
    """One primary contrast of one outcome in a domain (R08 7.1), right minus left, a value a task.

    Success and EOS: -1, 0 or 1; length: tokens. The mean is `sum` / `n`.
    """

    domain: str
    contrast: str
    left: str
    right: str
    outcome: TaskOutcome
    tasks: tuple[str, ...]
    values: tuple[int, ...]
    sum: int
    n: int
    mean: float
    positive: Count
    zero: Count
    negative: Count
    band: Band


class SecondaryContrastSummary(Record):
    """A main effect or the interaction, within each task: descriptive, so without a band (R08 7.1)."""

    domain: str
    contrast: str
    outcome: TaskOutcome
    tasks: tuple[str, ...]
    values: tuple[float, ...]
    n: int
    mean: float
    minimum: float
    maximum: float
    positive: Count
    zero: Count
    negative: Count


class TaskNumericSummary(Record, tag_field="state", tag="counted"):
    """Mathematics cells by their result."""

    results: dict[NumericResult, Count]


class TaskCodeSummary(Record, tag_field="state", tag="counted"):
    """Code cells: the four accounts, and the one word for each cell."""

    extracted: Count
    ast_parses: Count
    executed: Count
    passed: Count
    failure_types: dict[FailureType, Count]


class TaskConditionSummary(Record):
    """The primary block's cells of one condition in a domain; every count is of its tasks.

    `success` within the budget; `strict_complete` apart from it. `gaps`: draws of a filtered ID, summed over the cells.
    """

    domain: str
    condition: str
    tape: str
    success: Count
    strict_complete: Count
    natural_eos: Count
    budget_truncated: Count
    other_stop: Count
    length: Total
    gaps: Total
    numeric: TaskNumericSummary | NotObserved
    code: TaskCodeSummary | NotObserved


class Transitions(Record):
    """Success on the left -> on the right, in tasks, each of all tasks of the domain."""

    zero_to_zero: Count
    zero_to_one: Count
    one_to_zero: Count
    one_to_one: Count


class TaskPairSummary(Record):
    """The primary block's pairs of one contrast in a domain, a task each.

    `first_divergence`: the step, null where the rows never part. `shared_before`: steps before it, or all of them.
    """

    domain: str
    contrast: str
    left: str
    right: str
    tasks: tuple[str, ...]
    transitions: Transitions
    diverged: Count
    first_divergence: tuple[int | None, ...]
    shared_before: Total
    similarity: Mean | Undefined


class Spread(Record):
    """A few integers, their sum, and how far apart they are: `range` = `maximum` - `minimum`."""

    values: tuple[int, ...]
    sum: int
    n: int
    minimum: int
    maximum: int
    range: int


class SelectedTape(Record):
    """One tape and condition over the diagnostic tasks: values in the order of the tasks (R08 7.3)."""

    tape: str
    condition: str
    success: Spread
    natural_eos: Spread
    length: Spread


class SelectedTask(Record):
    """One diagnostic task and condition over the tapes: values in the order of the tapes (R08 7.3)."""

    source_id: str
    condition: str
    success: Spread
    natural_eos: Spread
    length: Spread


class TapeContrast(Record):
    """A primary contrast under one tape over the diagnostic tasks. `direction`: the sign of `sum`."""

    contrast: str
    outcome: TaskOutcome
    tape: str
    values: tuple[int, ...]
    sum: int
    n: int
    direction: Direction
    positive: Count
    zero: Count
    negative: Count


class TapeDirections(Record):
    """The directions of a contrast in the order of the tapes, and whether all are one."""

    contrast: str
    outcome: TaskOutcome
    directions: tuple[Direction, ...]
    agree: bool


class TapeDiagnostics(Record):
    """A domain's diagnostic tasks under every tape (R08 7.3). Each `n` is of tasks or of tapes, never of both."""

    domain: str
    tasks: tuple[str, ...]
    tapes: tuple[str, ...]
    by_tape: tuple[SelectedTape, ...]
    by_task: tuple[SelectedTask, ...]
    contrasts: tuple[TapeContrast, ...]
    directions: tuple[TapeDirections, ...]


class TaskStatistics(StatisticsHead):
    """statistics.json of a complete formal run. `diagnostics` alone is over other cells than the primary block's."""

    pairing: Pairing
    bootstrap: BootstrapRule
    primary_tape: str
    resampling: tuple[Resampling, ...]
    contrasts: tuple[TaskContrastSummary, ...]
    conditions: tuple[TaskConditionSummary, ...]
    pairs: tuple[TaskPairSummary, ...]
    secondary: tuple[SecondaryContrastSummary, ...]
    diagnostics: tuple[TapeDiagnostics, ...]


class NoTaskStatistics(StatisticsHead):
    """statistics.json of a run that has none: another grid than the formal one, or a program without a verdict."""

    reason: Literal["only a complete formal run has statistics", "the sandbox failed: a program has no verdict"]
