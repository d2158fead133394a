"""A profile made from a checkpoint folder: what it reads of each family, and every kind of folder that it refuses."""

import json
import shutil

import pytest

from harness.authoring.profile import profile_of
from harness.errors import ModelError
from harness.model.identity import check_shape, check_special_ids
from harness.model.shape import shape_of

SHAPES = {"llama": (3, 0, 0), "qwen2": (3, 0, 0), "mixtral": (0, 4, 2)}


@pytest.fixture
def copied(checkpoints, tmp_path):
    """`copied(kind)`: a checkpoint folder that a test may alter."""
    return lambda kind: shutil.copytree(checkpoints[kind], tmp_path / kind)


def change(folder, name, **fields):
    """Replace fields of a JSON file; None takes one away."""
    path = folder / name
    content = json.loads(path.read_text(encoding="utf-8")) | fields
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", SHAPES)
def test_a_profile_holds_of_its_own_folder(checkpoints, kind):
    """Dense layers, experts and top-k by family; every file with a role; the checks of a run hold."""
    profile = profile_of(checkpoints[kind], "p")
    shape = profile.shape
    assert (shape.dense_layers, shape.routed_experts, shape.experts_per_token) == SHAPES[kind]
    assert {file.name for file in profile.files} == {path.name for path in checkpoints[kind].iterdir()}
    check_shape(profile, checkpoints[kind])
    check_special_ids(profile, checkpoints[kind])


def test_a_tokenizer_without_bos_has_none(checkpoints):
    """The word `none`, and None for libraries; PAD is its own token here and EOS elsewhere."""
    ids, other = (profile_of(checkpoints[kind], "p").special_ids for kind in ("qwen2", "llama"))
    assert (ids.bos, ids.bos_id, ids.pad == ids.eos) == ("none", None, False)
    assert (other.bos_id, other.pad) == (256, other.eos)


def test_a_template_in_its_own_file_has_its_role(checkpoints):
    """`chat_template`, beside the tokenizer config."""
    roles = {file.role: file.name for file in profile_of(checkpoints["qwen2"], "p").files}
    assert roles["chat_template"] == "chat_template.jinja"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("adapter_model.safetensors", "a file of another kind"),
        ("adapter_config.json", "a file of another kind"),
        ("pytorch_model.bin", "a file of another kind"),
        ("modeling_own.py", "a file of another kind"),
    ],
)
def test_a_stranger_is_refused(copied, name, words):
    """What a library could load besides."""
    folder = copied("llama")
    (folder / name).write_bytes(b"{}")
    with pytest.raises(ModelError, match=words):
        profile_of(folder, "p")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_folder_without_a_part_is_refused(copied, name):
    """Each part is named."""
    folder = copied("llama")
    (folder / name).unlink()
    with pytest.raises(ModelError, match="expected also "):
        profile_of(folder, "p")


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("config.json", {"quantization_config": {"bits": 4}}, "a quantised model"),
        ("config.json", {"dtype": "float8_e4m3fn"}, "dtype: expected one of"),
        ("config.json", {"num_hidden_layers": None}, "num_hidden_layers: expected a count, found no such field"),
        ("config.json", {"architectures": []}, "architectures: expected a name"),
        ("config.json", {"num_experts_per_tok": 2}, "num_experts_per_tok: expected None, found 2"),
        ("config.json", {"eos_token_id": 7}, "eos_token_id: expected 257, found 7"),
        ("generation_config.json", {"eos_token_id": [7, 8]}, r"eos_token_id: expected 257, found \[7, 8\]"),
        ("tokenizer_config.json", {"eos_token": "</nothing>"}, "expected a token of tokenizer.json"),
        ("tokenizer_config.json", {"eos_token": None}, "expected a token that ends an answer"),
    ],
)
def test_a_folder_that_contradicts_itself_is_refused(copied, name, fields, words):
    """Field, expected and found."""
    with pytest.raises(ModelError, match=words):
        profile_of(change(copied("llama"), name, **fields), "p")


def test_several_eos_are_accepted_in_the_registered_file_alone(copied):
    """The file of the profile may name a list; the same list in an altered file isn't the registered model's."""
    folder = copied("qwen2")
    profile = profile_of(folder, "p")
    check_special_ids(profile, folder)
    change(folder, "generation_config.json", top_k=3)
    with pytest.raises(ModelError, match="eos_token_id: expected 258"):
        check_special_ids(profile, folder)


def test_layers_with_and_without_experts_are_refused():
    """A pattern that no count describes."""
    config = {
        "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "num_hidden_layers": 4,
        "hidden_size": 8, "vocab_size": 9, "num_experts": 4, "num_experts_per_tok": 2,
    }  # fmt: skip
    assert shape_of(config, "c").routed_experts == 4
    with pytest.raises(ModelError, match="mlp_only_layers"):
        shape_of(config | {"mlp_only_layers": [1]}, "c")
