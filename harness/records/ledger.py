"""What is read off a run: a ledger with a row for each cell and each edge, and the counts over it.

Everything here can be made again, byte for byte, from run.json and the protocol. No field is an accuracy, an interval
or a percentage: every count stands beside what it is a count of, every sum beside its number of terms.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.protocol import BehaviorEvaluators


class NumberFound(Record, tag_field="state", tag="found"):
    """The last number of a text: plain normalised form, and where it was read, `text[start:end]` in code points."""

    value: str
    start: int
    end: int


class NoNumber(Record, tag_field="state", tag="no_number"):
    """The text holds no number."""


LastNumber = NumberFound | NoNumber


class GoldCompared(Record, tag_field="state", tag="compared"):
    """The run has a gold number, in plain normalised form; `last_number_match`: the two are the same decimal value."""

    gold: str
    last_number_match: bool


class GoldAbsent(Record, tag_field="state", tag="gold_absent"):
    """The run has no gold number for this source: nothing was compared and nothing is made up."""


class NumberObservation(Record, tag_field="state", tag="observed"):
    """The last number of a cell's text, and its comparison with the gold number (R04 5)."""

    last_number: LastNumber
    comparison: GoldCompared | GoldAbsent


class Parses(Record, tag_field="state", tag="parses"):
    """`ast.parse` took it. That says nothing of what it does or whether it is an answer."""


class DoesNotParse(Record, tag_field="state", tag="does_not_parse"):
    """`ast.parse` refused it; the class name of its error and nothing of its message."""

    error: str


class TooDeep(Record, tag_field="state", tag="too_deep"):
    """Nested deeper than the evaluator's bound: neither parsed nor refused, and never counted as parsing."""


class SyntaxObservation(Record, tag_field="state", tag="observed"):
    """Whether a part of a text is Python (R04 5). `part`: the first fenced block, or all of it; never executed."""

    part: Literal["fence", "whole_text"]
    outcome: Parses | DoesNotParse | TooDeep

    @property
    def ast_parses(self) -> bool:
        """True only for Parses."""
        return isinstance(self.outcome, Parses)


class NotObserved(Record, tag_field="state", tag="not_observed"):
    """The evaluator has nothing to say about the domain; `reason` says why."""

    reason: str


class Comparison(Record):
    """Two sequences of generated IDs (R04 5). `similarity` = 1 - distance / longest in binary64, 1.0 if both are empty.

    `common_prefix_tokens`, `distance` (token Levenshtein) and `longest` (the longer sequence) are in tokens.
    """

    ids_exact: bool
    common_prefix_tokens: int
    distance: int
    longest: int
    similarity: float


class CellRow(Record):
    """One cell by its identity: source (domain, index, ID), replicate, condition. `length` in tokens, EOS counted."""

    domain: str
    index: int
    source_id: str
    replicate: str
    condition: str
    generated_sha256: str
    natural_eos: bool
    truncated: bool
    length: int
    number: NumberObservation | NotObserved
    syntax: SyntaxObservation | NotObserved


class EdgeRow(Record):
    """One registered comparison within a unit, by its identity: source, replicate and edge."""

    domain: str
    index: int
    source_id: str
    replicate: str
    edge: str
    kind: Literal["system", "direct"]
    left: str
    right: str
    comparison: Comparison


class BookHead(Record):
    """What everything that is read off a run begins with: the protocol's and the run's identity."""

    schema: Literal[1]
    protocol: str
    registered_id: str
    protocol_digest: str
    run_sha256: str
    result_name: str
    grid: str
    port: bool


class LedgerHead(BookHead):
    """What every ledger begins with. `domains`: those that ran, in the protocol's order."""

    domains: tuple[str, ...]


class StatisticsHead(BookHead):
    """What every statistics record begins with; `ledger_sha256` names the ledger that it is computed from."""

    ledger_sha256: str


class Ledger(LedgerHead):
    """ledger.json: rows in the protocol's order (domain, index, replicate, then condition or edge)."""

    evaluators: BehaviorEvaluators
    cells: tuple[CellRow, ...]
    edges: tuple[EdgeRow, ...]


class Count(Record):
    """`count` of `of` rows."""

    count: int
    of: int


class Total(Record):
    """A sum of integers over `n` rows; the mean is sum / n."""

    sum: int
    n: int


class Mean(Record, tag_field="state", tag="mean"):
    """Mean of a list of `n` binary64 numbers: their correctly rounded sum (math.fsum), divided by n."""

    mean: float
    n: int


class Undefined(Record, tag_field="state", tag="undefined"):
    """No row, no mean."""

    reason: str


class NumberSummary(Record, tag_field="state", tag="observed"):
    """Over all cells of the group: a cell without a number or without gold counts in `of` and not as a match."""

    last_number_found: Count
    last_number_match: Count
    gold_absent: Count


class SyntaxSummary(Record, tag_field="state", tag="observed"):
    """Over all cells of the group: what parses, what was read from a fence, what was nested too deep to say."""

    ast_parses: Count
    fenced: Count
    too_deep: Count


class CellSummary(Record):
    """Counts over a group of cells."""

    natural_eos: Count
    truncated: Count
    length: Total
    number: NumberSummary | NotObserved
    syntax: SyntaxSummary | NotObserved


class EdgeSummary(Record):
    """Counts over one edge in a group of units; prefix and distance in tokens."""

    ids_exact: Count
    common_prefix_tokens: Total
    distance: Total
    similarity: Mean | Undefined


class DomainStatistics(Record):
    """All cells of a domain."""

    domain: str
    cells: CellSummary


class ConditionStatistics(Record):
    """The cells of one condition in a domain."""

    domain: str
    condition: str
    cells: CellSummary


class EdgeStatistics(Record):
    """One edge over all units of the run."""

    edge: str
    kind: Literal["system", "direct"]
    units: EdgeSummary


class EdgeDomainStatistics(Record):
    """One edge over a domain's units."""

    edge: str
    kind: Literal["system", "direct"]
    domain: str
    units: EdgeSummary


class Statistics(StatisticsHead):
    """statistics.json: counts over one ledger, in the protocol's order of domains, conditions and edges."""

    by_domain: tuple[DomainStatistics, ...]
    by_condition: tuple[ConditionStatistics, ...]
    by_edge: tuple[EdgeStatistics, ...]
    by_edge_and_domain: tuple[EdgeDomainStatistics, ...]
