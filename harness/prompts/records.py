"""Prompts as records: a cell's unpadded IDs with their hash, and a source's cells as one batch."""

from harness.records.base import Record
from harness.records.run import Edit

IdRows = tuple[tuple[int, ...], ...]
PaddedRows = tuple[IdRows, IdRows]


class PromptCell(Record):
    """One prompt, unpadded, after its edit. Positions are 0-based; `sha256` is over the canonical list of `ids`."""

    condition: str
    ids: tuple[int, ...]
    boundary_position: int
    edits: tuple[Edit, ...]
    sha256: str
    length: int


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
