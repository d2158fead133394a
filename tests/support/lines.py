"""A cell's hidden and router line as plain arrays, and the records that follow from them, in numpy's simplest words.

Knows nothing of `harness.trace`: what a digest, a load or a cosine is stands here once more.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.protocols.stages import EMBEDDING, expected_gates, expected_stages
from harness.records.depth import (
    Gate,
    GateEdge,
    HiddenStage,
    RouteFacts,
    StageEdge,
    TargetTokens,
    TensorFacts,
    TensorStatistics,
)
from harness.records.profile import Shape

Array = NDArray[Any]
STEP = 0.05  # how far a condition moves a state from its source's


@dataclass(frozen=True)
class Line:
    """Over all tokens of a cell: float32 [tokens, width] by stage, int16 and float32 [tokens, top_k] by gate."""

    hidden: dict[str, Array]
    routes: dict[str, Array]
    weights: dict[str, Array]


def seeded(*identity: object) -> np.random.Generator:
    """A generator that belongs to an identity alone."""
    return np.random.default_rng(list(hashlib.sha256("|".join(map(str, identity)).encode()).digest()))


def line_of(shape: Shape, source_id: str, condition: str, prompt: tuple[int, ...], target: TargetTokens) -> Line:
    """A line whose embedding is a lookup by token ID, and whose later states differ a little by condition."""
    places = ["before"] * target.start + list(range(target.end - target.start))
    places += ["after"] * (len(prompt) - len(places))
    hidden = {EMBEDDING: np.stack([seeded(token).standard_normal(shape.hidden_size) for token in prompt])}
    for stage in expected_stages(shape)[1:]:
        common = [seeded(source_id, stage, place).standard_normal(shape.hidden_size) for place in places]
        own = seeded(source_id, stage, condition).standard_normal((len(prompt), shape.hidden_size))
        hidden[stage] = np.stack(common) + STEP * own
    routes, weights = {}, {}
    for gate in expected_gates(shape):
        scores = np.stack([seeded(source_id, gate, place).standard_normal(shape.routed_experts) for place in places])
        scores = scores + seeded(source_id, gate, condition).standard_normal(scores.shape)
        chosen = np.argsort(-scores, axis=1)[:, : shape.experts_per_token]
        routes[gate] = chosen.astype(np.int16)
        weights[gate] = np.take_along_axis(np.exp(scores) / np.exp(scores).sum(1, keepdims=True), chosen, 1)
    return Line(
        {name: one.astype(np.float32) for name, one in hidden.items()},
        routes,
        {name: one.astype(np.float32) for name, one in weights.items()},
    )


def sha256_of(array: Array) -> str:
    """Over `dtype|rows,columns` and the little-endian bytes in C order."""
    head = f"{array.dtype.name}|{array.shape[0]},{array.shape[1]}".encode()
    return hashlib.sha256(head + array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def statistics_of(array: Array) -> TensorStatistics:
    """Of all numbers, in float64."""
    numbers = array.astype(np.float64)
    return TensorStatistics(
        mean=float(numbers.mean()),
        standard_deviation=float(numbers.std()),
        root_mean_square=math.sqrt(float((numbers**2).mean())),
        minimum=float(numbers.min()),
        maximum=float(numbers.max()),
    )


def hidden_stages(line: Line, target: TargetTokens) -> tuple[HiddenStage, ...]:
    """The records of a cell's stages."""
    return tuple(
        HiddenStage(stage=name, target=_facts(array[target.start : target.end]), full=_facts(array))
        for name, array in line.hidden.items()
    )


def _facts(array: Array) -> TensorFacts:
    rows, columns = array.shape
    return TensorFacts(
        shape=(rows, columns), dtype=array.dtype.name, sha256=sha256_of(array), statistics=statistics_of(array)
    )


def gates(line: Line, target: TargetTokens, experts: int) -> tuple[Gate, ...]:
    """The records of a cell's gates."""
    cut = slice(target.start, target.end)
    return tuple(
        Gate(
            gate=name,
            target=_routes(routes[cut], line.weights[name][cut], experts),
            full=_routes(routes, line.weights[name], experts),
        )
        for name, routes in line.routes.items()
    )


def _loads(routes: Array, weights: Array, experts: int) -> tuple[list[int], list[float]]:
    load, weighted = [0] * experts, [0.0] * experts
    for expert, weight in zip(routes.ravel().tolist(), weights.ravel().tolist(), strict=True):
        load[expert] += 1
        weighted[expert] += weight
    return load, weighted


def _routes(routes: Array, weights: Array, experts: int) -> RouteFacts:
    load, weighted = _loads(routes, weights, experts)
    shares = [one / sum(load) for one in load if one]
    return RouteFacts(
        tokens=routes.shape[0],
        top_k=routes.shape[1],
        routes_sha256=sha256_of(routes),
        weights_sha256=sha256_of(weights),
        load=tuple(load),
        weighted_load=tuple(weighted),
        experts_used=len(shares),
        load_entropy=-sum(one * math.log(one) for one in shares) + 0.0,
        weight_statistics=statistics_of(weights),
    )


def stage_edges(left: Line, right: Line, cuts: tuple[TargetTokens, TargetTokens]) -> tuple[StageEdge, ...]:
    """Every stage between two cells, over their targets."""
    one, other = (slice(cut.start, cut.end) for cut in cuts)
    return tuple(stage_edge(name, left.hidden[name][one], right.hidden[name][other]) for name in left.hidden)


def stage_edge(name: str, left: Array, right: Array) -> StageEdge:
    """One stage between two arrays [rows, width] without a zero row."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    norms = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    cosines = float(np.clip((a * b).sum(1) / norms, -1.0, 1.0).sum())
    difference, length = float(((b - a) ** 2).sum()), float((a * a).sum())
    return StageEdge(
        stage=name,
        rows=len(left),
        exact_rows=sum(x.tobytes() == y.tobytes() for x, y in zip(left, right, strict=True)),
        cosine=cosines / len(left),
        relative_l2=math.sqrt(difference / length),
        cosine_sum=cosines,
        difference_squared=difference,
        left_squared=length,
    )


def gate_edges(left: Line, right: Line, cuts: tuple[TargetTokens, TargetTokens], experts: int) -> tuple[GateEdge, ...]:
    """Every gate between two cells, over their targets."""
    one, other = (slice(cut.start, cut.end) for cut in cuts)
    return tuple(
        _gate_edge(
            name,
            (left.routes[name][one], left.weights[name][one]),
            (right.routes[name][other], right.weights[name][other]),
            experts,
        )
        for name in left.routes
    )


def _gate_edge(name: str, left: tuple[Array, Array], right: tuple[Array, Array], experts: int) -> GateEdge:
    pairs = list(zip(left[0].tolist(), right[0].tolist(), strict=True))
    loads = [_loads(*side, experts) for side in (left, right)]
    return GateEdge(
        gate=name,
        tokens=len(pairs),
        ordered_exact=sum(x == y for x, y in pairs),
        set_exact=sum(set(x) == set(y) for x, y in pairs),
        load_total_variation=_variation(loads[0][0], loads[1][0]),
        weighted_load_total_variation=_variation(loads[0][1], loads[1][1]),
    )


def _variation(left: list[Any], right: list[Any]) -> float:
    return sum(abs(p / sum(left) - q / sum(right)) for p, q in zip(left, right, strict=True)) / 2
