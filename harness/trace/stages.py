"""What is made of one stage's or one gate's numbers, in tasks that need nothing of each other. numpy only.

A hidden stage is cut into runs of cells and runs of edges; a gate is a single task, being small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from harness.records.depth import Gate, GateEdge, HiddenStage, StageEdge, TensorFacts
from harness.trace.batch import Batch, Cut, EdgeRows
from harness.trace.edges import RowComparisons, edges_of, gate_edges, stage_edges
from harness.trace.encoding import Matrix, RowMoments, finite, row_moments, tensor_facts
from harness.trace.gates import GateOutput, GateRule, routes_of
from harness.trace.routes import route_facts, weight_moments
from harness.trace.work import Task

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class GateResult:
    """A gate in every cell and on every edge, both in the batch's order."""

    cells: tuple[Gate, ...]
    edges: tuple[GateEdge, ...]


class Stage(Protocol):
    """A hidden stage's numbers [tokens, columns], and what is summed over their columns."""

    @property
    def name(self) -> str:
        """`embedding`, `layer_00`..."""

    def matrix(self) -> Matrix:
        """The numbers, on the host."""

    def moments(self, start: int, end: int) -> RowMoments:
        """Of rows [start, end)."""

    def edges(self, cuts: Sequence[Cut], edges: Sequence[EdgeRows]) -> list[StageEdge]:
        """The given edges between cells."""


@dataclass(frozen=True, slots=True)
class HostStage:
    """A stage whose numbers are on the host, where everything is made of them."""

    name: str
    numbers: Callable[[], Matrix]

    def matrix(self) -> Matrix:
        """The numbers."""
        return self.numbers()

    def moments(self, start: int, end: int) -> RowMoments:
        """Of rows [start, end)."""
        return row_moments(self.numbers().rows(start, end), self.name)

    def edges(self, cuts: Sequence[Cut], edges: Sequence[EdgeRows]) -> list[StageEdge]:
        """The given edges between cells."""
        matrix = self.numbers()
        rows, pairs = between(edges)
        return stage_edges(self.name, [matrix.rows(*cuts[row].target) for row in rows], pairs)


@dataclass(frozen=True, slots=True)
class DeviceStage:
    """A stage whose sums over columns were made on its device: `sums` over all rows, `comparisons` over all edges."""

    name: str
    numbers: Callable[[], Matrix]
    sums: Callable[[], RowMoments]
    comparisons: Callable[[], RowComparisons]
    batch: Batch

    def matrix(self) -> Matrix:
        """The numbers."""
        return self.numbers()

    def moments(self, start: int, end: int) -> RowMoments:
        """Of rows [start, end)."""
        return finite(self.sums().rows(start, end), self.name)

    def edges(self, cuts: Sequence[Cut], edges: Sequence[EdgeRows]) -> list[StageEdge]:
        """The given edges between cells, once the whole stage was seen to be finite."""
        del cuts
        finite(self.sums(), self.name)
        found = edges_of(self.name, self.comparisons())
        places = {edge.edge: place for place, edge in enumerate(self.batch.edges)}
        return [found[places[edge.edge]] for edge in edges]


def hidden_tasks(stage: Stage, batch: Batch, parts: int) -> list[Task]:
    """Tasks for a stage: lists of HiddenStage, cell by cell, then of StageEdge.

    Cells and edges are cut into at most `parts` runs each. No record depends on how.
    """
    cells = [partial(_hidden_stages, stage, cuts) for cuts in _runs(batch.cuts, parts)]
    shares = 1 if isinstance(stage, DeviceStage) else parts
    edges = [partial(stage.edges, batch.cuts, edges) for edges in _runs(batch.edges, shares)]
    return [*cells, *edges]


def _runs(items: Sequence[Item], parts: int) -> list[Sequence[Item]]:
    size = -(-len(items) // parts) or 1
    return [items[start : start + size] for start in range(0, len(items), size)]


def _hidden_stages(stage: Stage, cuts: Sequence[Cut]) -> list[HiddenStage]:
    first, last = cuts[0].start, cuts[-1].end
    matrix, moments = stage.matrix().rows(first, last), stage.moments(first, last)
    return [
        HiddenStage(
            stage=stage.name,
            target=_facts(matrix, moments, cut.target[0] - first, cut.target[1] - first),
            full=_facts(matrix, moments, cut.start - first, cut.end - first),
        )
        for cut in cuts
    ]


def _facts(matrix: Matrix, moments: RowMoments, start: int, end: int) -> TensorFacts:
    return tensor_facts(matrix.rows(start, end), moments.rows(start, end))


def between(edges: Sequence[EdgeRows]) -> tuple[list[int], list[tuple[int, int]]]:
    """The rows of the batch that edges stand between, and each edge as two places among them."""
    rows = sorted({row for edge in edges for row in (edge.left, edge.right)})
    return rows, [(rows.index(edge.left), rows.index(edge.right)) for edge in edges]


def gate_result(name: str, output: Callable[[], GateOutput], rule: GateRule, batch: Batch, where: str) -> GateResult:
    """The records of a gate's output over all tokens; ModelError where it isn't what the rule makes."""
    routes = routes_of(output(), rule, where)
    moments = weight_moments(routes, where)
    targets = [routes.rows(*cut.target) for cut in batch.cuts]
    rows, pairs = between(batch.edges)
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
