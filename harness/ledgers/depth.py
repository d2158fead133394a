"""The ledger of a depth run (R05 depth 7-9): a row for each cell and each edge, in the protocol's order.

A function of the protocol and run.json alone. It takes only a run that is exactly its grid, whose cells are its
baseline's by source text and prompt: a trace of anything else is a JournalError, never compared.
"""

from collections.abc import Sequence

from harness.compare import TODO, compare_ids, traced_by_condition
from harness.errors import JournalError
from harness.ledgers.heads import ledger_head
from harness.ledgers.plan import units_in_order
from harness.records.depth import DepthRun, EdgeTrace, GateEdge, StageEdge, TraceBaseline, TraceCell, TraceEvidence
from harness.records.depth_ledger import At, DepthCellRow, DepthEdgeRow, DepthLedger, Nowhere
from harness.records.prompt import Edge
from harness.records.protocol import DepthProtocol
from harness.records.run import BaselineCell


def depth_ledger(protocol: DepthProtocol, run: DepthRun) -> DepthLedger:
    """Rows of a run; JournalError where it isn't exactly a grid of this protocol, or isn't its baseline's cells."""
    units = [unit for _, unit in units_in_order(protocol, run, run.units)]
    return DepthLedger(
        **ledger_head(protocol, run),
        baseline_run_sha256=run.baseline.run_sha256,
        cells=tuple(_cell_row(unit, cell) for unit in units for cell in traced_by_condition(protocol, unit).values()),
        edges=tuple(_edge_row(protocol, run.baseline, unit, edge) for unit in units for edge in protocol.edges),
    )


def _cell_row(unit: TraceEvidence, cell: TraceCell) -> DepthCellRow:
    return DepthCellRow(
        domain=unit.domain,
        index=unit.index,
        source_id=unit.source_id,
        replicate=unit.replicate,
        condition=cell.condition,
        prompt_tokens=len(cell.prompt_ids),
        target_tokens=cell.target.end - cell.target.start,
        crossing_tokens=cell.target.crossing,
        route_decisions=sum(sum(gate.target.load) for gate in cell.gates),
    )


def _edge_row(protocol: DepthProtocol, baseline: TraceBaseline, unit: TraceEvidence, edge: Edge) -> DepthEdgeRow:
    traced = _edge(unit, edge)
    cells = traced_by_condition(protocol, unit)
    left, right = (_joined(baseline, unit, cells[side]) for side in (edge.left, edge.right))
    return DepthEdgeRow(
        domain=unit.domain,
        index=unit.index,
        source_id=unit.source_id,
        replicate=unit.replicate,
        edge=edge.id,
        kind=edge.kind,
        left=edge.left,
        right=edge.right,
        first_differing_stage=_first_stage(traced.stages),
        first_differing_gate=_first_gate(traced.gates),
        stages=traced.stages,
        gates=traced.gates,
        output=compare_ids(left.generated_ids, right.generated_ids),
    )


def _edge(unit: TraceEvidence, edge: Edge) -> EdgeTrace:
    wanted = (edge.id, edge.left, edge.right)
    found = [one for one in unit.edges if (one.edge, one.left, one.right) == wanted]
    if len(found) != 1:
        where = f"unit {unit.source_id}: edge {edge.id}"
        raise JournalError(where, expected="once, left to right", found=str(len(found)), todo=TODO)
    return found[0]


def _joined(baseline: TraceBaseline, unit: TraceEvidence, cell: TraceCell) -> BaselineCell:
    """The baseline's cell of the same source text and prompt; JournalError refuses to compare any other (R05 8)."""
    where = f"unit {unit.source_id} {cell.condition}: join with {baseline.protocol}"
    wanted = (unit.source_id, cell.condition)
    cells = [one for one in baseline.cells if (one.source_id, one.condition) == wanted]
    if len(cells) != 1:
        raise JournalError(where, expected="one cell", found=str(len(cells)), todo=TODO)
    pairs = (
        ("source_text_sha256", baseline.source_texts.get(unit.source_id, "none"), unit.source_text_sha256),
        ("prompt_sha256", cells[0].prompt_sha256, cell.prompt_sha256),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise JournalError(f"{where}: {name}", expected=expected, found=found, todo=TODO)
    return cells[0]


def _first_stage(stages: Sequence[StageEdge]) -> At | Nowhere:
    names = (one.stage for one in stages if one.exact_rows < one.rows)
    return _first(next(names, None), "every row of every stage is exact")


def _first_gate(gates: Sequence[GateEdge]) -> At | Nowhere:
    names = (one.gate for one in gates if one.ordered_exact < one.tokens)
    return _first(next(names, None), "every ordered route is exact" if gates else "the model has no gate")


def _first(name: str | None, otherwise: str) -> At | Nowhere:
    return Nowhere(reason=otherwise) if name is None else At(name=name)
