"""Trace checks (R05 depth 7-9): target tokens, stages and gates, hooks, embedding, edges, scale, the join.

Each holds what is recorded against something made apart from it: the registered tokenizer and inputs, the profile's
shape, the other forward, the two cells of an edge, the generation run.
"""

import json
from collections.abc import Iterable

from harness.canon import ids_sha256
from harness.checks.depth_sums import gate_pairs, route_pairs, scope_pairs, stage_pairs, statistics_pairs
from harness.checks.generation import execution
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.protocols.grids import RowKey
from harness.protocols.stages import EMBEDDING, expected_gates, expected_route_decisions, expected_stages
from harness.records.depth import DepthRun, EdgeTrace, RouteFacts, TensorFacts, TraceCell
from harness.records.protocol import DepthProtocol

Pair = tuple[str, object, object]
Pairs = Iterable[Pair]
# What the forward's settings read back as, besides the registered cache.
FORWARD = {"output_attentions": False, "output_hidden_states": False, "training": False}


def forward_contract(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 7.1: no cache was asked for and none came back; settings, kernels and weights as read back."""
    wanted = FORWARD | {"use_cache": _protocol(evidence).forward.use_cache}
    read_back = evidence.environment.generation_config
    cached = [unit.source_id for unit in _run(evidence).units if unit.cache_returned]
    pairs: Pairs = (
        ("forward settings", {name: json.dumps(value) for name, value in wanted.items()}, dict(read_back)),
        ("sources whose forward gave a cache back", [], cached),
    )
    return (*_differing(row, pairs), *execution(evidence, row))


def target_tokens(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 7.2: the tokens wholly inside the source's characters, the same IDs in every cell, ends counted.

    Where they stand is found again from the registered input, texts and tokenizer.
    """
    unit, cell = evidence.trace(row), evidence.traced(row, row.item)
    registered = evidence.registered_targets.get(unit.source_id)
    if registered is None:
        return (differs(cell_name(row), "registered target tokens", "none"),)
    order = [condition.id for condition in _protocol(evidence).conditions]
    content = cell.prompt_ids[cell.target.start : cell.target.end]
    crossing = [one.crossing for one in registered.cells]
    pairs = (
        ("target", registered.cells[order.index(row.item)], cell.target),
        ("target token IDs", registered.content_token_ids_sha256, ids_sha256(content)),
        ("content_token_ids_sha256 of its source", registered.content_token_ids_sha256, unit.content_token_ids_sha256),
        ("target tokens of its source", registered.tokens, unit.target_tokens),
        ("crossing tokens of its source", sum(crossing), unit.crossing_tokens),
        ("crossing cells of its source", sum(1 for tokens in crossing if tokens), unit.crossing_cells),
    )
    return _differing(row, pairs)


def stages_and_gates(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 7.1: layers + 2 stages and one gate a MoE layer, each over target and full input, padding left out.

    What is recorded of one tensor or gate in two ways agrees (`harness.checks.depth_sums`).
    """
    shape, cell = evidence.loaded.profile.shape, evidence.traced(row, row.item)
    sizes = {"target": cell.target.end - cell.target.start, "full": len(cell.prompt_ids)}
    pairs: list[Pair] = [
        ("stages", expected_stages(shape), tuple(one.stage for one in cell.hidden)),
        ("gates", expected_gates(shape), tuple(one.gate for one in cell.gates)),
    ]
    for stage in cell.hidden:
        for scope, tokens in sizes.items():
            facts: TensorFacts = getattr(stage, scope)
            wanted = (tokens, shape.hidden_size), evidence.loaded.protocol.execution.dtype
            pairs.append((f"{stage.stage} {scope} shape and dtype", wanted, (facts.shape, facts.dtype)))
        pairs += _under(stage.stage, statistics_pairs(stage.target.statistics, stage.full.statistics))
    for gate in cell.gates:
        for scope, tokens in sizes.items():
            found = route_pairs(
                getattr(gate, scope), tokens, experts=shape.routed_experts, top_k=shape.experts_per_token
            )
            pairs += _under(f"{gate.gate} {scope}", found)
        pairs += _under(gate.gate, scope_pairs(gate.target, gate.full))
    return _differing(row, pairs)


def _under(name: str, pairs: Pairs) -> list[Pair]:
    return [(f"{name} {what}", one, other) for what, one, other in pairs]


def hooks_change_nothing(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 7.1: the logits of every token are byte-equal in two forwards, one without and one with the hooks."""
    unit, columns = evidence.trace(row), evidence.loaded.profile.shape.vocabulary_columns
    hooks, tokens = unit.hooks, sum(len(cell.prompt_ids) for cell in unit.cells)
    pairs = (
        ("logits with hooks", hooks.logits_sha256_without, hooks.logits_sha256_with),
        ("logits hashed without hooks", (tokens, columns), hooks.logits_without),
        ("logits hashed with hooks", (tokens, columns), hooks.logits_with),
    )
    return _differing(row, pairs)


def embedding_identity(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 8: every target row of the embedding is byte-exact on every edge, since the token IDs are the same.

    Each side's digests are those of the checkpoint's own rows, so that the model was fed the IDs that are recorded.
    """
    unit, edge = evidence.trace(row), _edge(evidence, row)
    found = [one for one in edge.stages if one.stage == EMBEDDING]
    if len(found) != 1:
        return (differs(f"{cell_name(row)} embedding", "one stage", len(found)),)
    left, right = (_stage(evidence.traced(row, side), EMBEDDING) for side in (edge.left, edge.right))
    pairs = (
        ("rows of the embedding", unit.target_tokens, found[0].rows),
        ("exact rows of the embedding", unit.target_tokens, found[0].exact_rows),
        ("difference of the embedding", 0.0, found[0].difference_squared),
        ("digest of the embedding over the target", left.sha256 if left else "none", right.sha256 if right else "none"),
        *(pair for side in (edge.left, edge.right) for pair in _looked_up(evidence, row, side)),
    )
    return _differing(row, pairs)


def _looked_up(evidence: RunEvidence, row: RowKey, side: str) -> Pairs:
    """The embedding's digests of a cell are those of the checkpoint's own rows for its token IDs."""
    cell, dtype = evidence.traced(row, side), evidence.loaded.protocol.execution.dtype
    stage = next((one for one in cell.hidden if one.stage == EMBEDDING), None)
    scopes = {"target": cell.prompt_ids[cell.target.start : cell.target.end], "full": cell.prompt_ids}
    for scope, ids in scopes.items():
        found = getattr(stage, scope).sha256 if stage else "none"
        yield f"{side} embedding of the token IDs, {scope}", evidence.registered_embedding.sha256(ids, dtype), found


def edge_trace(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 8 and 9: the edge's stages and gates agree with the two cells' digests, and are possible at all."""
    unit, edge, shape = evidence.trace(row), _edge(evidence, row), evidence.loaded.profile.shape
    left, right = (evidence.traced(row, side) for side in (edge.left, edge.right))
    pairs: list[Pair] = [
        ("stages", expected_stages(shape), tuple(one.stage for one in edge.stages)),
        ("gates", expected_gates(shape), tuple(one.gate for one in edge.gates)),
    ]
    for one in edge.stages:
        sides = _stage(left, one.stage), _stage(right, one.stage)
        pairs += _under(one.stage, stage_pairs(one, unit.target_tokens, sides))
    for gate in edge.gates:
        routes = _target_routes(left, gate.gate), _target_routes(right, gate.gate)
        pairs += _under(gate.gate, gate_pairs(gate, unit.target_tokens, routes))
    return _differing(row, pairs)


def scale_identity(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth 7.3: target tokens x conditions x gates x top-k are the route decisions that were counted."""
    unit, shape = evidence.trace(row), evidence.loaded.profile.shape
    conditions = len(evidence.loaded.protocol.conditions)
    expected = expected_route_decisions(shape, target_tokens=unit.target_tokens, cells=conditions)
    counted = sum(sum(gate.target.load) for cell in unit.cells for gate in cell.gates)
    return _differing(row, [("route decisions over the target", expected, counted)])


def generation_join(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 depth: the trace and its generation run have checkpoint, source text, condition and prompt in common.

    A port's own baseline must be a port's; its run is another one than this in any case.
    """
    recorded, registered = _run(evidence).baseline, evidence.registered_baseline
    unit, cell = evidence.trace(row), evidence.traced(row, row.item)
    joined = [one for one in recorded.cells if (one.source_id, one.condition) == (unit.source_id, row.item)]
    pairs = (
        ("baseline as recorded", True, recorded == registered),
        ("baseline run", registered.run_sha256, recorded.run_sha256),
        ("baseline made apart", True, recorded.protocol_digest != evidence.run.protocol_digest),
        ("baseline is a port's", evidence.spec.port, recorded.port),
        ("checkpoint", recorded.checkpoint, evidence.environment.checkpoint),
        ("source_text_sha256", recorded.source_texts.get(unit.source_id, "none"), unit.source_text_sha256),
        ("cells of the baseline", 1, len(joined)),
        ("prompt_sha256", [one.prompt_sha256 for one in joined], [cell.prompt_sha256]),
    )
    return _differing(row, pairs)


def _edge(evidence: RunEvidence, row: RowKey) -> EdgeTrace:
    """The row's edge as it is recorded, between the registered cells; an empty one where it isn't there once."""
    registered = next(edge for edge in evidence.loaded.protocol.edges if edge.id == row.item)
    wanted = (registered.id, registered.left, registered.right)
    found = [one for one in evidence.trace(row).edges if (one.edge, one.left, one.right) == wanted]
    empty = EdgeTrace(edge=registered.id, left=registered.left, right=registered.right, stages=(), gates=())
    return found[0] if len(found) == 1 else empty


def _stage(cell: TraceCell, name: str) -> TensorFacts | None:
    found = [one.target for one in cell.hidden if one.stage == name]
    return found[0] if len(found) == 1 else None


def _target_routes(cell: TraceCell, name: str) -> RouteFacts | None:
    found = [one.target for one in cell.gates if one.gate == name]
    return found[0] if len(found) == 1 else None


def _protocol(evidence: RunEvidence) -> DepthProtocol:
    if not isinstance(evidence.loaded.protocol, DepthProtocol):
        raise RuntimeError(f"{evidence.loaded.protocol.id} traces nothing")
    return evidence.loaded.protocol


def _run(evidence: RunEvidence) -> DepthRun:
    if not isinstance(evidence.run, DepthRun):
        raise RuntimeError(f"{evidence.loaded.protocol.id} traces nothing")
    return evidence.run


def _differing(row: RowKey, pairs: Pairs) -> Differences:
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)
