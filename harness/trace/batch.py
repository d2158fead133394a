"""A left-padded batch of prompts: which of its rows x columns are tokens, and where each cell's target is.

Unpadded tokens of all cells stand one after another, cell by cell, in the prompts' order: `tokens` of them in all. Only
they are ever read, so nothing of the padding can reach a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.records.depth import TargetTokens


@dataclass(frozen=True, slots=True)
class EdgeRows:
    """An edge to be compared: its ID, and the rows of its left and right cells in the batch."""

    edge: str
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A cell's tokens [start, end) among all tokens, and its target [target_start, target_end) within the cell."""

    start: int
    end: int
    target_start: int
    target_end: int

    @property
    def target(self) -> tuple[int, int]:
        """The target among all tokens."""
        return self.start + self.target_start, self.start + self.target_end


@dataclass(frozen=True, slots=True)
class Batch:
    """`live`: the places of all tokens in the flattened [rows x width]; one cut a row."""

    width: int
    live: tuple[int, ...]
    cuts: tuple[Cut, ...]
    edges: tuple[EdgeRows, ...]

    @property
    def tokens(self) -> int:
        """Unpadded tokens of all cells."""
        return len(self.live)


def lay_out(
    ids: Sequence[Sequence[int]],
    mask: Sequence[Sequence[int]],
    targets: Sequence[TargetTokens],
    edges: Sequence[EdgeRows],
) -> Batch:
    """The layout of rows of equal width, padded on the left; RuntimeError for any other batch, target or edge."""
    width = len(ids[0]) if ids else 0
    if not (len(ids) == len(mask) == len(targets)) or {len(row) for row in (*ids, *mask)} != {width}:
        raise RuntimeError("rows, masks and targets must be as many, and all rows as wide")
    live: list[int] = []
    cuts = []
    for row, (flags, target) in enumerate(zip(mask, targets, strict=True)):
        padding = width - sum(flags)
        if list(flags) != [0] * padding + [1] * (width - padding):
            raise RuntimeError(f"row {row} isn't padded on the left alone")
        if not 0 <= target.start < target.end <= width - padding:
            raise RuntimeError(f"row {row}: target [{target.start}, {target.end}) of {width - padding} tokens")
        cuts.append(Cut(len(live), len(live) + width - padding, target.start, target.end))
        live += range(row * width + padding, (row + 1) * width)
    _require_edges(edges, cuts)
    return Batch(width, tuple(live), tuple(cuts), tuple(edges))


def _require_edges(edges: Sequence[EdgeRows], cuts: Sequence[Cut]) -> None:
    for edge in edges:
        if not (0 <= edge.left < len(cuts) and 0 <= edge.right < len(cuts)):
            raise RuntimeError(f"edge {edge.edge}: rows {edge.left} and {edge.right} of {len(cuts)}")
    between = {row for edge in edges for row in (edge.left, edge.right)}
    lengths = sorted({cuts[row].target_end - cuts[row].target_start for row in between})
    if len(lengths) > 1:
        raise RuntimeError(f"edges between targets of {' and '.join(map(str, lengths))} tokens")
