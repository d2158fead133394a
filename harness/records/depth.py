"""The full-depth trace of a source (R05 depth 7-9): hidden stages, gates, and the registered edges between conditions.

No activation and no token's route is in any record: digests, counts and statistics. Every digest is SHA-256 over the
header `dtype|rows,columns` and the tensor's little-endian bytes in C order (rows are tokens, in the prompt's order).
"""

from typing import Literal

from harness.records.base import Record
from harness.records.run import AssembledRun, Baseline, BatchEvidence, PromptRow, UnitObservation

Scope = Literal["target", "full"]


class TargetTokens(Record):
    """Where the source text stands in a cell's prompt, in unpadded token positions [start, end).

    Only tokens wholly inside the text's characters count. `crossing`: tokens that the text's ends cut, left out.
    """

    start: int
    end: int
    crossing: int


class TensorStatistics(Record):
    """Over all numbers of a tensor, computed in float64 from its own values."""

    mean: float
    standard_deviation: float
    root_mean_square: float
    minimum: float
    maximum: float


class TensorFacts(Record):
    """One tensor [rows, columns] of one cell in one scope, by digest and statistics."""

    shape: tuple[int, int]
    dtype: str
    sha256: str
    statistics: TensorStatistics


class HiddenStage(Record):
    """A stage of the hidden line in one cell. `stage`: `embedding`, `layer_00`..., `final_norm`."""

    stage: str
    target: TensorFacts
    full: TensorFacts


class RouteFacts(Record):
    """A gate's routes over the tokens of a scope: [tokens, top_k], by weight descending, ties to the lower expert ID.

    `routes_sha256` over int16 expert IDs, `weights_sha256` over float32 weights in that order. `load`: tokens that
    chose each expert, over all top_k places; `weighted_load`: sum of their weights in float64. `load_entropy` in nats.
    """

    tokens: int
    top_k: int
    routes_sha256: str
    weights_sha256: str
    load: tuple[int, ...]
    weighted_load: tuple[float, ...]
    experts_used: int
    load_entropy: float
    weight_statistics: TensorStatistics


class Gate(Record):
    """A gate in one cell. `gate`: `layer_01`..."""

    gate: str
    target: RouteFacts
    full: RouteFacts


class TraceCell(PromptRow):
    """A row, its target tokens, and its two lines."""

    target: TargetTokens
    hidden: tuple[HiddenStage, ...]
    gates: tuple[Gate, ...]


class StageEdge(Record):
    """A stage on an edge, over the target tokens. Cosine: mean over rows in float64; relative L2: |B - A| / |A|.

    `cosine_sum` over the rows, and the squared Frobenius norms |B - A|^2 and |A|^2, so that sources can be pooled.
    """

    stage: str
    rows: int
    exact_rows: int
    cosine: float
    relative_l2: float
    cosine_sum: float
    difference_squared: float
    left_squared: float


class GateEdge(Record):
    """A gate on an edge, over the target tokens. Total variation: half the sum of |p - q| over the experts."""

    gate: str
    tokens: int
    ordered_exact: int
    set_exact: int
    load_total_variation: float
    weighted_load_total_variation: float


class EdgeTrace(Record):
    """A registered comparison of two cells of the source, `left` being A."""

    edge: str
    left: str
    right: str
    stages: tuple[StageEdge, ...]
    gates: tuple[GateEdge, ...]


class HookCheck(Record):
    """The same forward without and with the trace's hooks, each run on its own: SHA-256 of their logits.

    `logits_without`, `logits_with`: [tokens, columns] that each digest was really taken over.
    """

    logits_sha256_without: str
    logits_sha256_with: str
    logits_without: tuple[int, int]
    logits_with: tuple[int, int]


class TraceEvidence(BatchEvidence):
    """One forward over a source's cells, prompt only, no cache.

    `content_token_ids_sha256`: over the canonical list of the target's token IDs, which are the same in every cell;
    taken right after that was checked for this source. `crossing_tokens`: over all cells; `crossing_cells`: cells that
    have any. `cache_returned`: whether the forward gave a cache back.
    """

    content_token_ids_sha256: str
    target_tokens: int
    crossing_tokens: int
    crossing_cells: int
    cache_returned: bool
    cells: tuple[TraceCell, ...]
    edges: tuple[EdgeTrace, ...]
    hooks: HookCheck


class TraceJournal(Record):
    """journal/<unit>.json of a trace: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: TraceEvidence
    evidence_sha256: str
    observation: UnitObservation


class TraceBaseline(Baseline):
    """baseline.json of a trace: the generation run it is joined to, with its checkpoint files and source texts.

    `checkpoint`: SHA-256 by file name; `source_texts`: SHA-256 of the UTF-8 text by source ID.
    """

    checkpoint: dict[str, str]
    source_texts: dict[str, str]


class DepthRun(AssembledRun):
    """run.json of a depth protocol: the baseline's cells are part of it; units are in the grid's order."""

    baseline: TraceBaseline
    units: tuple[TraceEvidence, ...]
