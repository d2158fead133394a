"""What is read off a trace: a row for each cell and edge, and the counts over them (R05 depth 7-9).

Made again, byte for byte, from run.json and the protocol. An edge's row stands beside the outputs of the generation run
that the trace is joined to; nothing here says that one explains the other.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.depth import GateEdge, StageEdge
from harness.records.ledger import Comparison, Count, LedgerHead, Mean, StatisticsHead, Total, Undefined


class At(Record, tag_field="state", tag="at"):
    """A stage or gate, by name."""

    name: str


class Nowhere(Record, tag_field="state", tag="nowhere"):
    """No stage or gate is like that."""

    reason: str


class DepthCellRow(Record):
    """One cell by its identity. Tokens of the prompt, of the target, and cut by the target's ends.

    `route_decisions`: places of experts over the target, all gates together.
    """

    domain: str
    index: int
    source_id: str
    replicate: str
    condition: str
    prompt_tokens: int
    target_tokens: int
    crossing_tokens: int
    route_decisions: int


class DepthEdgeRow(Record):
    """One registered comparison within a source, along the depth, over the target tokens.

    `output`: the generated IDs of the same two cells in the baseline run. `first_differing_stage`, `..._gate`: by
    depth, where not every row (not every token's ordered route) is exact.
    """

    domain: str
    index: int
    source_id: str
    replicate: str
    edge: str
    kind: Literal["system", "direct"]
    left: str
    right: str
    first_differing_stage: At | Nowhere
    first_differing_gate: At | Nowhere
    stages: tuple[StageEdge, ...]
    gates: tuple[GateEdge, ...]
    output: Comparison


class DepthLedger(LedgerHead):
    """ledger.json of a depth run: rows in the protocol's order (domain, index, then condition or edge)."""

    baseline_run_sha256: str
    cells: tuple[DepthCellRow, ...]
    edges: tuple[DepthEdgeRow, ...]


class ScaleIdentity(Record):
    """target tokens x conditions x gates x top-k = route decisions, each counted on its own (R05 depth 7.3)."""

    target_tokens: Total
    conditions: int
    gates: int
    top_k: int
    route_decisions: int


class BoundarySummary(Record):
    """Tokens that the target's ends cut, over all cells, and how many cells (variants) have any (R05 depth 7.2)."""

    crossing_tokens: Total
    crossing_cells: Count


class StageSummary(Record):
    """One stage of an edge over several sources: rows pooled, in float64 and in the order of the units.

    `cosine`: mean over all rows; `relative_l2`: |B - A| / |A| of all rows together.
    """

    stage: str
    exact_rows: Count
    cosine: float
    relative_l2: float


class GateSummary(Record):
    """One gate of an edge over several sources: tokens pooled; total variations as the mean over sources."""

    gate: str
    ordered_exact: Count
    set_exact: Count
    load_total_variation: Mean | Undefined
    weighted_load_total_variation: Mean | Undefined


class DepthEdgeSummary(Record):
    """An edge over a group of sources. Lowest: the first by depth where several are equal."""

    embedding_exact_rows: Count
    output_ids_exact: Count
    lowest_cosine: At | Nowhere
    lowest_ordered_exact: At | Nowhere
    stages: tuple[StageSummary, ...]
    gates: tuple[GateSummary, ...]


class DepthEdgeStatistics(Record):
    """One edge over all sources of the run."""

    edge: str
    kind: Literal["system", "direct"]
    units: DepthEdgeSummary


class DepthEdgeDomainStatistics(Record):
    """One edge over a domain's sources."""

    edge: str
    kind: Literal["system", "direct"]
    domain: str
    units: DepthEdgeSummary


class DepthStatistics(StatisticsHead):
    """statistics.json of a depth run."""

    hidden_stages: int
    gates: int
    scale: ScaleIdentity
    boundary: BoundarySummary
    embedding_exact_rows: Count
    by_edge: tuple[DepthEdgeStatistics, ...]
    by_edge_and_domain: tuple[DepthEdgeDomainStatistics, ...]
