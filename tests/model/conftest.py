"""The nano checkpoint: loaded once resident, once with layers on disk; links to its files for tests that alter one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.decode.greedy import adopt_contract
from harness.model.load import LoadedModel, load_model
from harness.places import places
from harness.protocols.load import LoadedProtocol, load_protocol

BUDGET = 6
Files = Callable[..., Path]


@pytest.fixture(scope="session")
def loaded() -> LoadedProtocol:
    """The nano protocol of this tree."""
    return load_protocol("nano-behavior")


@pytest.fixture(scope="session")
def checkpoint(loaded) -> Path:
    """The embedded checkpoint. Read only."""
    return places().models / loaded.profile.id / "checkpoint"


@pytest.fixture(scope="session")
def placed(loaded, checkpoint) -> Callable[[str], LoadedModel]:
    """`placed(id)` loads under a registered placement, with the contract adopted."""

    def load(placement_id: str) -> LoadedModel:
        placement = next(one for one in loaded.protocol.placements if one.id == placement_id)
        model = load_model(loaded.profile, loaded.protocol.execution, placement, checkpoint)
        adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, BUDGET)
        return model

    return load


@pytest.fixture(scope="session")
def resident(placed):
    """The whole model on the CPU."""
    model = placed("nano-resident")
    yield model
    model.close()


@pytest.fixture(scope="session")
def on_disk(placed):
    """The last two layers, norm and head on disk."""
    model = placed("nano-disk")
    yield model
    model.close()


@pytest.fixture
def files(checkpoint, tmp_path) -> Files:
    """`files(name=bytes or a dict of changed JSON fields or None)`: a checkpoint folder of links, one file altered."""

    def make(name: str = "", content: bytes | dict[str, Any] | None = b"") -> Path:
        folder = tmp_path / "checkpoint"
        folder.mkdir()
        for path in checkpoint.iterdir():
            if path.name != name:
                (folder / path.name).symlink_to(path)
        if isinstance(content, dict):
            content = json.dumps(json.loads((checkpoint / name).read_bytes()) | content).encode()
        if name and content is not None:
            (folder / name).write_bytes(content)
        return folder

    return make


@pytest.fixture(scope="session")
def batch(loaded) -> tuple[list[list[int]], list[list[int]]]:
    """Three left-padded rows of ordinary IDs, int [3, 9], and their mask."""
    pad = loaded.profile.special_ids.pad
    rows = [[loaded.profile.special_ids.bos, *range(30 + 7 * row, 35 + 9 * row)] for row in range(3)]
    width = max(map(len, rows))
    return (
        [[pad] * (width - len(row)) + row for row in rows],
        [[0] * (width - len(row)) + [1] * len(row) for row in rows],
    )


@pytest.fixture(autouse=True)
def torch_settings():
    """Threads and determinism as they were before each test: a leak is a failure of the test that leaks."""
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
    yield
    torch.set_num_threads(before[0])
    torch.use_deterministic_algorithms(before[1])
