"""Comparison of two cells by their generated token IDs, and of a unit over the protocol's edges (R04 5).

IDs are the evidence; text is never compared. The sequences are the recorded ones: up to and including the first EOS,
padding dropped. This module doesn't know what a token says or which side of an edge is better.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TypeVar

from rapidfuzz.distance import Levenshtein

from harness.errors import JournalError
from harness.records.depth import TraceCell, TraceEvidence
from harness.records.ledger import Comparison, EdgeRow
from harness.records.protocol import Protocol
from harness.records.run import BatchEvidence, CellRecord, PromptRow, UnitEvidence

Row = TypeVar("Row", bound=PromptRow)
TODO = "The evidence isn't this protocol's: assemble the run again from its journals."


def compare_ids(left: Sequence[int], right: Sequence[int]) -> Comparison:
    """Exactness, common prefix and Levenshtein distance (insert, delete, replace: 1 each) of two ID sequences."""
    distance, longest = Levenshtein.distance(left, right), max(len(left), len(right))
    return Comparison(
        ids_exact=tuple(left) == tuple(right),
        common_prefix_tokens=common_prefix(left, right),
        distance=distance,
        longest=longest,
        similarity=similarity(distance, longest),
    )


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of leading tokens in which two sequences agree."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def similarity(distance: int, longest: int) -> float:
    """1 - distance / longest in binary64, evaluated as written; 1.0 for two empty sequences."""
    return 1.0 - distance / longest if longest else 1.0


def cells_by_condition(protocol: Protocol, unit: UnitEvidence) -> dict[str, CellRecord]:
    """A unit's cells in the protocol's order; JournalError unless each condition is there exactly once."""
    return _by_condition(protocol, unit, unit.cells)


def traced_by_condition(protocol: Protocol, unit: TraceEvidence) -> dict[str, TraceCell]:
    """The same of a unit that was traced."""
    return _by_condition(protocol, unit, unit.cells)


def _by_condition(protocol: Protocol, unit: BatchEvidence, rows: Sequence[Row]) -> dict[str, Row]:
    found = [cell.condition for cell in rows]
    expected = [condition.id for condition in protocol.conditions]
    if sorted(found) != sorted(expected):
        where = f"unit {unit.source_id}, {unit.replicate}: conditions"
        raise JournalError(where, expected=str(expected), found=str(found), todo=TODO)
    cells = {cell.condition: cell for cell in rows}
    return {name: cells[name] for name in expected}


def unit_edges(protocol: Protocol, unit: UnitEvidence) -> Iterator[EdgeRow]:
    """The registered edges of a unit in the protocol's order, joined by condition, never by position."""
    cells = cells_by_condition(protocol, unit)
    for edge in protocol.edges:
        yield EdgeRow(
            domain=unit.domain,
            index=unit.index,
            source_id=unit.source_id,
            replicate=unit.replicate,
            edge=edge.id,
            kind=edge.kind,
            left=edge.left,
            right=edge.right,
            comparison=compare_ids(cells[edge.left].generated_ids, cells[edge.right].generated_ids),
        )
