"""One traced cell on both sides: what every environment gives, and, where they can be compared, tensor digests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.difference.leaves import same
from harness.difference.side import Plain, SideUnit
from harness.protocols.stages import EMBEDDING, FINAL_NORM
from harness.records.depth import Scope
from harness.records.difference import NoPlace, TracePair, TracePlace

SCOPES: tuple[Scope, ...] = ("target", "full")
# Of a unit, and of each of its cells: what is the same in every environment.
OF_UNIT = ("source_text_sha256", "content_token_ids_sha256", "target_tokens", "crossing_tokens", "crossing_cells")
OF_CELL = ("prompt_sha256", "target", "embedding_sha256", "shapes", "top_k")
TENSORS = ("hidden_sha256", "routes_sha256", "weights_sha256", "record_sha256")
Digests = Mapping[str, Sequence[str]]


def trace_fields(
    a: SideUnit, b: SideUnit, condition: str, *, tensors: bool, edges: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    """The names of everything that differs in a traced cell. `edges`: the two conditions of each registered edge."""
    left, right = a.cells[condition], b.cells[condition]
    pairs = [(name, a.plain.get(name), b.plain.get(name)) for name in OF_UNIT]
    pairs += [(name, left.get(name), right.get(name)) for name in OF_CELL]
    if tensors:
        one, other = _tensors(a, condition), _tensors(b, condition)
        pairs += [(name, one.get(name), other.get(name)) for name in TENSORS]
        pairs += [("edges_sha256", _edges(a, condition, edges), _edges(b, condition, edges))]
    yield from (name.removesuffix("_sha256") for name, x, y in pairs if not same(x, y))


def trace_pair(a: SideUnit, b: SideUnit, condition: str, *, tensors: bool) -> TracePair:
    """The first stage and the first gate that differ; without tensors the embedding is all that there is."""
    if not tensors:
        one, other = ({EMBEDDING: unit.cells[condition].get("embedding_sha256", ())} for unit in (a, b))
        return TracePair(tensors=False, first_stage=_first_stage(one, other), first_gate=NoPlace())
    return first_places(_tensors(a, condition), _tensors(b, condition))


def first_places(left: Plain, right: Plain) -> TracePair:
    """The same of two cells' digests: `hidden_sha256` by stage, `routes_sha256` and `weights_sha256` by gate."""
    return TracePair(
        tensors=True,
        first_stage=_first_stage(left.get("hidden_sha256", {}), right.get("hidden_sha256", {})),
        first_gate=_first_gate(left, right),
    )


def _first_stage(left: Digests, right: Digests) -> TracePlace | NoPlace:
    for name in sorted({*left, *right}, key=_order):
        scope = _first_scope(left.get(name, ()), right.get(name, ()))
        if scope is not None:
            return TracePlace(name=name, scope=scope, digest="hidden")
    return NoPlace()


def _first_gate(left: Plain, right: Plain) -> TracePlace | NoPlace:
    """By gate in the forward's order, routes before the weights that stand beside them."""
    routes, weights = ((left.get(name, {}), right.get(name, {})) for name in ("routes_sha256", "weights_sha256"))
    for name in sorted({*routes[0], *routes[1], *weights[0], *weights[1]}, key=_order):
        if (scope := _first_scope(routes[0].get(name, ()), routes[1].get(name, ()))) is not None:
            return TracePlace(name=name, scope=scope, digest="routes")
        if (scope := _first_scope(weights[0].get(name, ()), weights[1].get(name, ()))) is not None:
            return TracePlace(name=name, scope=scope, digest="weights")
    return NoPlace()


def _first_scope(left: Sequence[str], right: Sequence[str]) -> Scope | None:
    """The first scope whose digest isn't on both sides, or isn't the same."""
    for at, scope in enumerate(SCOPES):
        if list(left[at : at + 1]) != list(right[at : at + 1]):
            return scope
    return None


def _order(name: str) -> tuple[int, str]:
    """Places of names in the forward: embedding, layers, final norm."""
    return {EMBEDDING: 0, FINAL_NORM: 2}.get(name, 1), name


def _tensors(unit: SideUnit, condition: str) -> Plain:
    cells: list[dict[str, Any]] = [] if unit.tensors is None else list(unit.tensors["cells"])
    return next((one for one in cells if one["condition"] == condition), {})


def _edges(unit: SideUnit, condition: str, edges: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Digests of the edges that the cell is a side of; one that isn't registered is of every cell."""
    found: dict[str, str] = {} if unit.tensors is None else unit.tensors.get("edges_sha256", {})
    return {name: value for name, value in found.items() if condition in edges.get(name, (condition,))}
