"""What is read off sampled outputs: a row for each cell, and the registered statistics over a complete grid (R07 9).

Every count stands beside what it is a count of. There is no p-value, no interval and no pooled figure: a few sources
are no benchmark, several seeds of one task are no several tasks.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.completion import AccountedRow, CompletionEdgeRow
from harness.records.ledger import Comparison, Count, LedgerHead, NotObserved, StatisticsHead
from harness.records.sampling import SamplingEvaluators

Measure = Literal["natural_eos_rate", "generated_length", "fixed_budget_success", "strict_complete_success"]


class SeedPairRow(Record):
    """Two seeds of one source and condition, by their generated IDs; `left` and `right` are replicates."""

    domain: str
    index: int
    source_id: str
    condition: str
    left: str
    right: str
    comparison: Comparison


class SampledLedger(LedgerHead):
    """ledger.json of a sampled run: rows in the protocol's order (domain, index, replicate, condition or edge).

    `pairs`: every two seeds of a source and condition, none where a grid has one replicate.
    """

    baseline_run_sha256: str
    evaluators: SamplingEvaluators
    cells: tuple[AccountedRow, ...]
    edges: tuple[CompletionEdgeRow, ...]
    pairs: tuple[SeedPairRow, ...]


class Majority(Record, tag_field="state", tag="majority"):
    """The one extracted answer that more than half of the seeds gave, missing answers counted among all (R07 9.1)."""

    value: str
    count: Count


class NoMajority(Record, tag_field="state", tag="no_majority"):
    """No answer has more than half. `most`: how often the most frequent one was given, 0 where none was extracted."""

    most: Count


class LengthSummary(Record):
    """Generated lengths in tokens over the seeds of one source and condition."""

    sum: int
    n: int
    minimum: int
    maximum: int


class PairSimilarity(Record):
    """Two seeds of one source and condition: 1 - token Levenshtein distance / longer length."""

    left: str
    right: str
    similarity: float


class MathSeeds(Record, tag_field="state", tag="counted"):
    """Mathematics over the seeds of one source and condition. `answers`: in the order of the seeds, null for none."""

    answers: tuple[str | None, ...]
    gold_absent: Count
    fixed_budget_exact: Count
    strict_complete_exact: Count
    majority: Majority | NoMajority


class CodeSeeds(Record, tag_field="state", tag="counted"):
    """Programs over the seeds of one source and condition.

    `observed_any_pass`: at least one of these draws passed; it is no estimate of pass@k (R07 9.1, 11).
    """

    extracted: Count
    ast_parses: Count
    executed: Count
    passed: Count
    strict_complete_passed: Count
    observed_any_pass: bool


class SourceCondition(Record):
    """One source under one condition over its seeds (R07 9.1)."""

    domain: str
    index: int
    source_id: str
    condition: str
    natural_eos: Count
    truncated: Count
    other_stop: Count
    length: LengthSummary
    unique_trajectories: Count
    similarities: tuple[PairSimilarity, ...]
    math: MathSeeds | NotObserved
    code: CodeSeeds | NotObserved


class MeasureSummary(Record):
    """One measure in a domain under one condition (R07 9.2): summed over outputs, and sources of equal weight, apart.

    `micro_sum` over `micro_n` outputs (a count for a rate, tokens for a length). `source_means` in the order of the
    sources; `macro` is their mean; `minimum` and `maximum` their range. `seed_ranges`: within each source, largest
    minus smallest over its seeds; `between_range`: largest minus smallest source mean (R07 9.4).
    """

    measure: Measure
    micro_sum: int
    micro_n: int
    sources: tuple[str, ...]
    source_means: tuple[float, ...]
    macro: float
    minimum: float
    maximum: float
    seed_ranges: tuple[int, ...]
    between_range: float


class DomainCondition(Record):
    """All sources of a domain under one condition; measures that the domain has no judge for aren't there."""

    domain: str
    condition: str
    measures: tuple[MeasureSummary, ...]


class SourceMatrix(Record):
    """Cell means of one measure, a row a source and a column a condition, in the protocol's order (R07 9.2)."""

    domain: str
    measure: Measure
    sources: tuple[str, ...]
    conditions: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]


class ContrastSummary(Record):
    """One contrast of one measure in a domain (R07 9.3): a dot a source, in their order; no inference over sources.

    `median` of an even number of dots: mean of the middle two.
    """

    domain: str
    contrast: str
    measure: Measure
    sources: tuple[str, ...]
    dots: tuple[float, ...]
    median: float
    minimum: float
    maximum: float
    positive: Count
    zero: Count
    negative: Count


class CarriedOver(Record):
    """A direction of an earlier round, by source: whether its dot has the registered sign (R07 9.5)."""

    id: str
    domain: str
    sources: tuple[str, ...]
    holds: tuple[bool, ...]
    count: Count


class SampledStatistics(StatisticsHead):
    """statistics.json of a complete formal run; of any other grid, `NoSampledStatistics` says that there are none."""

    pairing: Literal["batch-seed aligned"]
    by_source: tuple[SourceCondition, ...]
    by_domain: tuple[DomainCondition, ...]
    matrices: tuple[SourceMatrix, ...]
    contrasts: tuple[ContrastSummary, ...]
    carried_over: tuple[CarriedOver, ...]


class NoSampledStatistics(StatisticsHead):
    """statistics.json of a grid that isn't the formal one: its outputs enter no statistic (R07 7.1)."""

    reason: Literal["only a complete formal run has statistics"]
