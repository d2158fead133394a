"""The nano model and a batch of eight left-padded rows with the same target tokens in each, traced once."""

from dataclasses import dataclass

import pytest
import torch

from harness.model.load import LoadedModel, load_model
from harness.places import places
from harness.protocols.load import load_protocol
from harness.records.depth import TargetTokens
from harness.trace.batch import EdgeRows
from harness.trace.forward import Traced, trace_batch

ROWS, TARGET = 8, 9
EDGES = tuple(
    EdgeRows(f"e{left}{right}", left, right)
    for left, right in [(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (0, 4), (0, 6), (1, 3), (1, 5), (1, 7)]
)


@dataclass(frozen=True)
class Rows:
    """A batch as the trace takes it."""

    ids: list[list[int]]
    mask: list[list[int]]
    targets: list[TargetTokens]

    def trace(self, loaded: LoadedModel, edges=EDGES) -> Traced:
        """Its trace under a model."""
        return trace_batch(loaded, self.ids, self.mask, targets=self.targets, edges=edges)

    def padding(self, row: int) -> int:
        """Padded columns of a row."""
        return self.mask[row].count(0)


def make_rows(vocabulary: int, pad: int = 1) -> Rows:
    """Eight rows of seeded IDs, 20 to 27 tokens, with the same nine target tokens at different places."""
    generator = torch.Generator().manual_seed(7)
    draw = lambda count: torch.randint(4, vocabulary, (count,), generator=generator).tolist()  # noqa: E731
    content, width = draw(TARGET), 20 + ROWS - 1
    ids, mask, targets = [], [], []
    for row in range(ROWS):
        start = 3 + row % 3
        tokens = [*draw(start), *content, *draw(20 + row - start - TARGET)]
        ids.append([pad] * (width - len(tokens)) + tokens)
        mask.append([0] * (width - len(tokens)) + [1] * len(tokens))
        targets.append(TargetTokens(start=start, end=start + TARGET, crossing=0))
    return Rows(ids, mask, targets)


@pytest.fixture(scope="session")
def nano() -> LoadedModel:
    """The nano model, resident. A test that alters its weights or hooks puts them back."""
    loaded = load_protocol("nano-behavior")
    placement = next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)
    model = load_model(loaded.profile, loaded.protocol.execution, placement, places().models / "nano" / "checkpoint")
    yield model
    model.close()


@pytest.fixture(scope="session")
def rows() -> Rows:
    """The batch. Read only."""
    return make_rows(2000)


@pytest.fixture(scope="session")
def traced(nano, rows) -> Traced:
    """Its trace. Read only."""
    return rows.trace(nano)
