"""One source traced: the same forward without hooks and with them, and records joined by condition and edge.

Knows conditions and edges; what a stage or a gate is, `harness.trace` knows.
"""

import time
from dataclasses import dataclass

from harness.model.load import LoadedModel
from harness.model.rng import rng_states, seed_generators
from harness.prompts.build import padded
from harness.prompts.records import PromptBatch
from harness.prompts.targets import SourceTargets
from harness.records.depth import EdgeTrace, HookCheck, TraceCell
from harness.records.protocol import DepthProtocol
from harness.records.run import RngStates
from harness.trace.batch import EdgeRows
from harness.trace.forward import Traced, plain_forward, trace_batch


@dataclass(frozen=True, slots=True)
class TracedSource:
    """What a source's two forwards gave. `wall_ns` is the traced one's; `tokens` are the prompts' of all cells."""

    cells: tuple[TraceCell, ...]
    edges: tuple[EdgeTrace, ...]
    hooks: HookCheck
    cache_returned: bool
    rng_before: RngStates
    rng_after: RngStates
    wall_ns: int
    tokens: int


def trace_source(
    protocol: DepthProtocol, model: LoadedModel, batch: PromptBatch, targets: SourceTargets, *, pad_id: int
) -> TracedSource:
    """Both forwards over a source's rows, in the batch's order, never split (R05 depth 7.1).

    DecodeError and ModelError as `trace_batch` raises them.
    """
    ids, mask = padded(batch, pad_id)
    rows = {cell.condition: row for row, cell in enumerate(batch.cells)}
    edges = [EdgeRows(edge.id, rows[edge.left], rows[edge.right]) for edge in protocol.edges]
    seed_generators(protocol.forward.generator_seed)
    before = rng_states()
    plain = plain_forward(model, ids, mask)
    started = time.perf_counter_ns()
    traced = trace_batch(model, ids, mask, targets=targets.cells, edges=edges)
    wall_ns, after = time.perf_counter_ns() - started, rng_states()
    return TracedSource(
        cells=_cells(batch, targets, traced),
        edges=_edges(protocol, traced),
        hooks=HookCheck(
            logits_sha256_without=plain.logits_sha256,
            logits_sha256_with=traced.logits_sha256,
            logits_without=plain.logits_shape,
            logits_with=traced.logits_shape,
        ),
        cache_returned=plain.cache_returned or traced.cache_returned,
        rng_before=before,
        rng_after=after,
        wall_ns=wall_ns,
        tokens=sum(cell.length for cell in batch.cells),
    )


def _cells(batch: PromptBatch, targets: SourceTargets, traced: Traced) -> tuple[TraceCell, ...]:
    rows = zip(batch.cells, batch.padding, targets.cells, traced.hidden, traced.gates, strict=True)
    return tuple(
        TraceCell(
            condition=cell.condition,
            prompt_ids=cell.ids,
            prompt_sha256=cell.sha256,
            left_padding=padding,
            edits=cell.edits,
            target=target,
            hidden=hidden,
            gates=gates,
        )
        for cell, padding, target, hidden, gates in rows
    )


def _edges(protocol: DepthProtocol, traced: Traced) -> tuple[EdgeTrace, ...]:
    found = {edge.edge: edge for edge in traced.edges}
    return tuple(
        EdgeTrace(
            edge=edge.id,
            left=edge.left,
            right=edge.right,
            stages=found[edge.id].stages,
            gates=found[edge.id].gates,
        )
        for edge in protocol.edges
    )
