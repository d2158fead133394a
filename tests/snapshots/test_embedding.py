"""The checkpoint's embedding, read from its bytes: the rows that a trace's first stage must be."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from harness.embedding import TENSOR, read_embedding
from harness.errors import ModelError
from harness.places import places
from harness.protocols.load import load_protocol
from harness.trace.encoding import tensor_sha256
from harness.trace.host import as_matrix

IDS = (3, 0, 7, 3)


@pytest.fixture
def profile():
    """nano's: one weight file, model.safetensors."""
    return load_protocol("nano-depth").profile


def written(folder, profile, tensor, name=TENSOR):
    """A checkpoint with this tensor in its weight file."""
    (weights,) = (file.name for file in profile.files if file.role == "weights")
    save_file({"other": torch.zeros(3), name: tensor}, folder / weights)
    return folder


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float32, torch.float16])
def test_rows_are_the_traces_own_digest(tmp_path, profile, stored):
    """The same bytes under the same header, row by row in the order of the IDs."""
    table = torch.randn((9, 5), generator=torch.Generator().manual_seed(2)).to(stored)
    found = read_embedding(profile, written(tmp_path, profile, table)).sha256(IDS, str(stored).removeprefix("torch."))
    assert found == tensor_sha256(as_matrix(table[list(IDS)], "here"))


def test_bfloat16_is_upcast_exactly(tmp_path, profile):
    """A float32 model of bfloat16 weights holds the same numbers."""
    table = torch.randn((9, 5), generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)
    found = read_embedding(profile, written(tmp_path, profile, table)).sha256(IDS, "float32")
    assert found == tensor_sha256(as_matrix(table.float()[list(IDS)], "here"))


def test_another_row_is_another_digest(tmp_path, profile):
    """A single ID, or its place, counts."""
    table = read_embedding(profile, written(tmp_path, profile, torch.arange(45.0).reshape(9, 5)))
    assert len({table.sha256(ids, "float32") for ids in (IDS, (3, 0, 3, 7), (3, 0, 7, 4), IDS[:3])}) == 4


def test_a_dtype_that_is_not_stored_is_refused(tmp_path, profile):
    """Rounding would not be the model's own rows."""
    table = read_embedding(profile, written(tmp_path, profile, torch.ones((9, 5))))
    with pytest.raises(ModelError, match="bfloat16"):
        table.sha256(IDS, "bfloat16")


def test_a_checkpoint_without_an_embedding_is_refused(tmp_path, profile):
    """No weight file with it, or one in numbers that nothing here reads."""
    with pytest.raises(ModelError, match="no weight file with it"):
        read_embedding(profile, written(tmp_path, profile, torch.ones((9, 5)), name="lm_head.weight"))
    with pytest.raises(ModelError, match="I64"):
        read_embedding(profile, written(tmp_path, profile, torch.ones((9, 5), dtype=torch.int64)))


def test_the_embedded_checkpoints_own_rows(profile):
    """As wide as the config says, in the two bytes of bfloat16."""
    folder = places().models / "nano" / "checkpoint"
    table = read_embedding(profile, folder)
    header = json.loads((folder / "config.json").read_text())
    assert table.bits.shape == (header["vocab_size"], header["hidden_size"])
    assert table.bits.dtype == np.dtype("<u2")
