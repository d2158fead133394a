"""Comparison checks (R04 5, R05 4 and 7): what the ledger says is what the run gives, cell by cell, edge by edge."""

from collections.abc import Sequence
from itertools import takewhile

from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.ledgers.book import AnyLedger, GenerationLedger, OutputLedger, ledger_of
from harness.ledgers.executions import read_executions
from harness.protocols.grids import RowKey
from harness.records.completion import AccountedRow, CompletionEdgeRow
from harness.records.depth_ledger import DepthLedger
from harness.records.ledger import CellRow, EdgeRow
from harness.records.task_ledger import TaskLedger, TaskRow

Row = CellRow | EdgeRow | AccountedRow | CompletionEdgeRow | TaskRow


def observations(evidence: RunEvidence, row: RowKey) -> Differences:
    """The cell's ledger row exists once and is what the registered evaluators give on the run's text."""
    stored = [one for one in _generated(evidence.ledger).cells if _is(one, row) and one.condition == row.item]
    again = [one for one in recomputed(evidence).cells if _is(one, row) and one.condition == row.item]
    return _same(row, stored, again)


def paired_comparison(evidence: RunEvidence, row: RowKey) -> Differences:
    """The edge's row exists once, follows from the two cells' IDs, and is possible at all."""
    stored = [one for one in _compared(evidence.ledger).edges if _is(one, row) and one.edge == row.item]
    again = [one for one in _compared(recomputed(evidence)).edges if _is(one, row) and one.edge == row.item]
    found = _same(row, stored, again)
    if found:
        return found
    edge = stored[0]
    left, right = (evidence.condition(row, side).generated_ids for side in (edge.left, edge.right))
    compared = edge.comparison
    pairs = (
        ("ids_exact", left == right, compared.ids_exact),
        ("distance 0", left == right, compared.distance == 0),
        ("common prefix", len(list(takewhile(eq_pair, zip(left, right, strict=False)))), compared.common_prefix_tokens),
        ("longest", max(len(left), len(right)), compared.longest),
        ("distance within its bounds", True, abs(len(left) - len(right)) <= compared.distance <= compared.longest),
    )
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def eq_pair(pair: tuple[int, int]) -> bool:
    """Whether two IDs at one place are equal."""
    return pair[0] == pair[1]


def _generated(book: AnyLedger) -> OutputLedger:
    if isinstance(book, DepthLedger):
        raise RuntimeError("outputs are compared, and a trace has none")
    return book


def _compared(book: AnyLedger) -> GenerationLedger:
    if isinstance(book, TaskLedger | DepthLedger):
        raise RuntimeError("edges are of ledgers that compare outputs over edges")
    return book


def recomputed(evidence: RunEvidence) -> OutputLedger:
    """The ledger that the run and its executions give now, computed once for a piece of evidence."""
    cache = evidence.__dict__
    if "_recomputed" not in cache:
        cache["_recomputed"] = ledger_of(evidence.loaded.protocol, evidence.run, read_executions(evidence.folder))
    return _generated(cache["_recomputed"])


def _is(one: Row, row: RowKey) -> bool:
    return row.unit is not None and (one.source_id, one.replicate) == (row.unit.source_id, row.unit.replicate)


def _same(row: RowKey, stored: Sequence[Row], again: Sequence[Row]) -> Differences:
    if len(stored) != 1:
        return (differs(f"{cell_name(row)} ledger rows", 1, len(stored)),)
    return () if stored == again else (differs(f"{cell_name(row)} ledger row", again, stored),)
