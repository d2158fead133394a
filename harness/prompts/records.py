"""Prompts as records: a cell's unpadded IDs with their hash, and a source's cells as one batch."""

from collections.abc import Sequence

from harness.inputs.sources import SourceText
from harness.records.base import Record
from harness.records.run import Edit
from harness.records.study import CellEdits

IdRows = tuple[tuple[int, ...], ...]
PaddedRows = tuple[IdRows, IdRows]


class PromptCell(Record):
    """One prompt, unpadded, after its edit. Positions are 0-based; `sha256` is over the canonical list of `ids`.

    `boundary_position`: the historical boundary's; in a study where the first edit stands, or the length without one.
    """

    condition: str
    ids: tuple[int, ...]
    boundary_position: int
    edits: tuple[Edit, ...]
    sha256: str
    length: int


class StudyCell(PromptCell):
    """A study's prompt: `edited` says what was replaced where, `edits` the same ID by ID where lengths are equal."""

    edited: CellEdits


class PromptBatch(Record):
    """A source's cells in the protocol's order of conditions, without any gold field.

    `width` is the longest cell's length in tokens; `padding` the left padding of each row, in tokens.
    """

    domain: str
    index: int
    source_id: str
    text_sha256: str
    cells: tuple[PromptCell, ...]
    width: int
    padding: tuple[int, ...]


def batch_of(source: SourceText, cells: Sequence[PromptCell]) -> PromptBatch:
    """A source's cells as one batch, as wide as the longest of them."""
    width = max(cell.length for cell in cells)
    return PromptBatch(
        domain=source.domain,
        index=source.index,
        source_id=source.source_id,
        text_sha256=source.text_sha256,
        cells=tuple(cells),
        width=width,
        padding=tuple(width - cell.length for cell in cells),
    )
