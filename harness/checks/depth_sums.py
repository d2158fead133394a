"""What the numbers of a trace say of each other (R05 depth 7-9): a scope's facts, and an edge's against its two cells.

No tensor is kept, so what is recorded of one in two ways must agree: norms and roots of mean squares, loads and their
entropy, weights and their mean. Sums made in another order may differ in the last places.
"""

import math
from collections.abc import Iterable, Sequence

from harness.records.depth import GateEdge, RouteFacts, StageEdge, TensorFacts, TensorStatistics

Pairs = Iterable[tuple[str, object, object]]
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def statistics_pairs(target: TensorStatistics, full: TensorStatistics) -> Pairs:
    """Statistics of a stage's or gate's numbers are possible, and the target's lie within the full input's."""
    for scope, one in (("target", target), ("full", full)):
        root = math.hypot(one.mean, one.standard_deviation)
        slack = RELATIVE * max(abs(one.minimum), abs(one.maximum))
        yield f"{scope} root mean square", *_near(root, one.root_mean_square)
        within = one.minimum - slack <= one.mean <= one.maximum + slack
        yield f"{scope} mean within the extremes", True, within and one.standard_deviation >= 0.0
    yield "target within the full extremes", True, full.minimum <= target.minimum and target.maximum <= full.maximum


def route_pairs(routes: RouteFacts, tokens: int, *, experts: int, top_k: int) -> Pairs:
    """Loads of a gate over a scope: every place of every route is counted once, and weighs what the routes weigh."""
    load, weighted = routes.load, routes.weighted_load
    yield "tokens", tokens, routes.tokens
    yield "top_k", top_k, routes.top_k
    yield "experts", (experts, experts), (len(load), len(weighted))
    yield "load", tokens * top_k, sum(load)
    yield "tokens of one expert within their bounds", True, all(0 <= one <= tokens for one in load)
    yield "experts used", sum(1 for one in load if one), routes.experts_used
    pairs = enumerate(zip(load, weighted, strict=False))
    yield "weight without load", [], [at for at, (one, weight) in pairs if not one and weight]
    yield "weighted load at or above 0", True, all(weight >= 0.0 for weight in weighted)
    yield "weighted load", *_near(routes.weight_statistics.mean * tokens * top_k, math.fsum(weighted))
    yield "load entropy", *_near(_entropy(load), routes.load_entropy)


def scope_pairs(target: RouteFacts, full: RouteFacts) -> Pairs:
    """The target's tokens are among the full input's."""
    beyond = [at for at, (one, other) in enumerate(zip(target.load, full.load, strict=False)) if one > other]
    yield "target load beyond the full one", [], beyond
    yield from statistics_pairs(target.weight_statistics, full.weight_statistics)


def stage_pairs(edge: StageEdge, tokens: int, sides: tuple[TensorFacts | None, TensorFacts | None]) -> Pairs:
    """A stage on an edge against its two cells' target: A is the left one, by its norm."""
    left, right = sides
    same = left is not None and right is not None and left.sha256 == right.sha256
    whole = edge.exact_rows == edge.rows
    difference, length = edge.difference_squared, edge.left_squared
    squares = difference >= 0.0 and length >= 0.0
    yield "rows", tokens, edge.rows
    yield "exact rows within their bounds", True, 0 <= edge.exact_rows <= edge.rows
    yield "every row exact where the digests are equal", same, whole
    yield "no difference where every row is exact", True, difference == 0.0 or not whole
    yield "cosine within its bounds", True, -1.0 <= edge.cosine <= 1.0
    yield "cosine", edge.cosine_sum / edge.rows if edge.rows else "no rows", edge.cosine
    yield "cosine where every row is exact", *(_near(1.0, edge.cosine) if whole else (edge.cosine, edge.cosine))
    yield "squares at or above 0", True, squares
    yield "a left side that isn't zero where anything differs", True, length > 0.0 or not difference
    yield "relative L2", math.sqrt(difference / length) if squares and length else 0.0, edge.relative_l2
    if left is not None and right is not None and squares:
        one, other = _squared(left), _squared(right)
        yield "squared norm of the left side", *_near(one, length)
        least, most = abs(math.sqrt(one) - math.sqrt(other)), math.sqrt(one) + math.sqrt(other)
        slack = RELATIVE * most
        possible = least - slack <= math.sqrt(difference) <= most + slack
        yield "difference within what the two norms allow", True, possible


def gate_pairs(edge: GateEdge, tokens: int, sides: tuple[RouteFacts | None, RouteFacts | None]) -> Pairs:
    """A gate on an edge against its two cells' target. A token whose experts are the same moves no load."""
    left, right = sides
    same = left is not None and right is not None and left.routes_sha256 == right.routes_sha256
    shares = (edge.load_total_variation, edge.weighted_load_total_variation)
    parted = 1 - edge.set_exact / edge.tokens if edge.tokens else 0.0
    yield "tokens", tokens, edge.tokens
    yield "ordered within set within tokens", True, 0 <= edge.ordered_exact <= edge.set_exact <= edge.tokens
    yield "every ordered route exact where the digests are equal", same, edge.ordered_exact == edge.tokens
    yield "total variations within [0, 1]", True, all(0.0 <= one <= 1.0 for one in shares)
    yield "load moved by tokens whose set differs", True, edge.load_total_variation <= parted + ABSOLUTE
    if left is not None and right is not None:
        yield "load total variation", *_near(_variation(left.load, right.load), shares[0])
        yield "weighted load total variation", *_near(_variation(left.weighted_load, right.weighted_load), shares[1])


def _near(expected: float, found: float) -> tuple[float, float]:
    """The two numbers; the found one twice where they differ in the last places only."""
    near = math.isclose(expected, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return (found, found) if near else (expected, found)


def _squared(facts: TensorFacts) -> float:
    """The squared Frobenius norm of a tensor, by its statistics."""
    rows, columns = facts.shape
    return facts.statistics.root_mean_square**2 * rows * columns


def _entropy(load: Sequence[int]) -> float:
    total = sum(load)
    shares = [one / total for one in load if one > 0] if total > 0 else []
    return math.fsum(-share * math.log(share) for share in shares)


def _variation(left: Sequence[float], right: Sequence[float]) -> float:
    """Half the sum of |p - q|; -1 where there is none."""
    one, other = sum(left), sum(right)
    if not (one and other) or len(left) != len(right):
        return -1.0
    return sum(abs(p / one - q / other) for p, q in zip(left, right, strict=True)) / 2
