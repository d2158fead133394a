"""What is made of one stage's or one gate's numbers, in tasks that need nothing of each other. numpy only.

A hidden stage is cut into runs of cells and runs of edges; a gate is a single task, being small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from harness.records.depth import Gate, GateEdge, HiddenStage, StageEdge, TensorFacts
from harness.trace.batch import Batch, Cut, EdgeRows
from harness.trace.edges import gate_edges, stage_edges
from harness.trace.encoding import Matrix, RowMoments, row_moments, tensor_facts
from harness.trace.gates import GateOutput, GateRule, routes_of
from harness.trace.routes import route_facts, weight_moments
from harness.trace.work import Task

Item = TypeVar("Item")
Hidden = Callable[[], Matrix]


@dataclass(frozen=True, slots=True)
class GateResult:
    """A gate in every cell and on every edge, both in the batch's order."""

    cells: tuple[Gate, ...]
    edges: tuple[GateEdge, ...]


def hidden_tasks(name: str, numbers: Hidden, batch: Batch, parts: int) -> list[Task]:
    """Tasks for a stage with numbers [tokens, columns]: lists of HiddenStage, cell by cell, then of StageEdge.

    Cells and edges are cut into at most `parts` runs each. No record depends on how.
    """
    cells = [partial(_hidden_stages, name, numbers, cuts) for cuts in _runs(batch.cuts, parts)]
    edges = [partial(_stage_edges, name, numbers, batch.cuts, edges) for edges in _runs(batch.edges, parts)]
    return [*cells, *edges]


def _runs(items: Sequence[Item], parts: int) -> list[Sequence[Item]]:
    size = -(-len(items) // parts) or 1
    return [items[start : start + size] for start in range(0, len(items), size)]


def _hidden_stages(name: str, numbers: Hidden, cuts: Sequence[Cut]) -> list[HiddenStage]:
    first = cuts[0].start
    matrix = numbers().rows(first, cuts[-1].end)
    moments = row_moments(matrix, name)
    return [
        HiddenStage(
            stage=name,
            target=_facts(matrix, moments, cut.target[0] - first, cut.target[1] - first),
            full=_facts(matrix, moments, cut.start - first, cut.end - first),
        )
        for cut in cuts
    ]


def _facts(matrix: Matrix, moments: RowMoments, start: int, end: int) -> TensorFacts:
    return tensor_facts(matrix.rows(start, end), moments.rows(start, end))


def _stage_edges(name: str, numbers: Hidden, cuts: Sequence[Cut], edges: Sequence[EdgeRows]) -> list[StageEdge]:
    matrix = numbers()
    rows, pairs = _between(edges)
    return stage_edges(name, [matrix.rows(*cuts[row].target) for row in rows], pairs)


def _between(edges: Sequence[EdgeRows]) -> tuple[list[int], list[tuple[int, int]]]:
    """The rows of the batch that edges stand between, and each edge as two places among them."""
    rows = sorted({row for edge in edges for row in (edge.left, edge.right)})
    return rows, [(rows.index(edge.left), rows.index(edge.right)) for edge in edges]


def gate_result(name: str, output: Callable[[], GateOutput], rule: GateRule, batch: Batch, where: str) -> GateResult:
    """The records of a gate's output over all tokens; ModelError where it isn't what the rule makes."""
    routes = routes_of(output(), rule, where)
    moments = weight_moments(routes, where)
    targets = [routes.rows(*cut.target) for cut in batch.cuts]
    rows, pairs = _between(batch.edges)
    return GateResult(
        cells=tuple(
            Gate(
                gate=name,
                target=route_facts(target, moments.rows(*cut.target)),
                full=route_facts(routes.rows(cut.start, cut.end), moments.rows(cut.start, cut.end)),
            )
            for cut, target in zip(batch.cuts, targets, strict=True)
        ),
        edges=tuple(gate_edges(name, [targets[row] for row in rows], pairs) if pairs else ()),
    )
