"""The checkpoint's identity, before anything of it is loaded: every file, count and special ID that can be wrong."""

import json
import shutil

import msgspec
import pytest

from harness.errors import ModelError, StorageError
from harness.model.identity import ABSENT, check_shape, check_special_ids, checkpoint_digests, require_registered
from harness.model.load import uses_remote_code
from harness.places import places
from harness.protocols.load import load_protocol
from harness.records.base import Frozen, Unfrozen
from harness.records.profile import ProfileFile

FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")
COUNTS = {
    "model_type": "llama",
    "num_hidden_layers": 5,
    "first_k_dense_replace": 0,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "hidden_size": 64,
    "vocab_size": 2047,
}


def one_byte_changed(data):
    """The same length, another last byte."""
    return data[:-1] + bytes([data[-1] ^ 1])


def test_the_embedded_checkpoint_is_the_registered_one(loaded, checkpoint):
    """No deviation, and every file of the profile was hashed."""
    found = checkpoint_digests(loaded.profile, checkpoint)
    assert require_registered(loaded.profile, found, port=False) == ()
    assert set(found) == {file.name for file in loaded.profile.files} == set(FILES)
    check_shape(loaded.profile, checkpoint)
    check_special_ids(loaded.profile, checkpoint)


@pytest.mark.parametrize("name", FILES)
def test_one_changed_byte_in_a_file_is_refused(loaded, checkpoint, files, name):
    """R04 6.1: the file, its registered digest and the one found."""
    found = checkpoint_digests(loaded.profile, files(name, one_byte_changed((checkpoint / name).read_bytes())))
    message = f"checkpoint file {name} of nano: expected [0-9a-f]{{64}}, found {found[name]}"
    with pytest.raises(ModelError, match=message):
        require_registered(loaded.profile, found, port=False)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(loaded, files, name):
    """By its path."""
    with pytest.raises(StorageError, match=f"{name}: expected a readable checkpoint file of nano, found No such file"):
        checkpoint_digests(loaded.profile, files(name, None))


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "model.safetensors"])
def test_a_port_lists_another_file_as_a_deviation(loaded, files, name):
    """Under --port the digest found is recorded beside the registered one."""
    found = checkpoint_digests(loaded.profile, files(name, b"other"))
    (deviation,) = require_registered(loaded.profile, found, port=True)
    assert deviation.field == f"checkpoint.{name}"
    assert deviation.actual == found[name] != deviation.registered


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_port_keeps_the_tokenizer(loaded, files, name):
    """Another tokenizer is another protocol, under --port too."""
    with pytest.raises(ModelError, match=f"checkpoint file {name}"):
        require_registered(loaded.profile, checkpoint_digests(loaded.profile, files(name, b"other")), port=True)


@pytest.mark.parametrize(("field", "value"), COUNTS.items(), ids=COUNTS)
def test_another_shape_is_refused(loaded, files, field, value):
    """Every count of the profile, as config.json has it."""
    with pytest.raises(ModelError, match=rf"config\.json: {field}: expected .*, found {value}\."):
        check_shape(loaded.profile, files("config.json", {field: value}))


def test_a_count_that_is_not_there_is_refused(loaded, files):
    """No default stands in for it."""
    with pytest.raises(ModelError, match="model_type: expected deepseek_v2, found no such field"):
        check_shape(loaded.profile, files("config.json", b"{}"))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff"], ids=["empty", "torn", "list", "bytes"])
def test_a_config_that_is_no_object_is_refused(loaded, files, data):
    """As a ModelError with the file's name."""
    with pytest.raises(ModelError, match=r"config\.json: expected (JSON|a JSON object)"):
        check_shape(loaded.profile, files("config.json", data))


def test_a_quantised_model_is_refused(loaded, files):
    """It is another profile under another name."""
    with pytest.raises(ModelError, match="quantization_config: expected no quantisation"):
        check_shape(loaded.profile, files("config.json", {"quantization_config": {"bits": 4}}))


@pytest.mark.parametrize(
    "name",
    [
        "pytorch_model.bin",
        "model.gguf",
        "adapter_config.json",
        "adapter_model.safetensors",
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
        "modeling_other.py",
    ],
)
def test_files_that_a_library_could_load_are_refused(loaded, files, name):
    """An adapter, a stray weight file or code beside the registered files is never there to be picked up."""
    with pytest.raises(ModelError, match=f"expected the 5 files of profile nano and nothing .*, found {name}"):
        check_shape(loaded.profile, files(name, b"x"))


@pytest.mark.parametrize("name", ["generation_config.json", "config.json"])
@pytest.mark.parametrize("field", ["bos_token_id", "eos_token_id"])
@pytest.mark.parametrize("value", [7, [1, 7], None], ids=str)
def test_another_special_id_is_refused(loaded, files, name, field, value):
    """Also a list that has the right ID among others."""
    with pytest.raises(ModelError, match=f"{name}: {field}: expected [0-9]+, found"):
        check_special_ids(loaded.profile, files(name, {field: value}))


CODE = [
    ProfileFile(name="modeling.py", role="code", digest=Frozen(sha256="0" * 64)),
    ProfileFile(name="configuration.py", role="code", digest=Unfrozen(reason="not published")),
]


@pytest.mark.parametrize(
    ("code", "experts", "trusted"),
    [
        pytest.param(CODE[:1], "remote_code", True, id="all-frozen"),
        pytest.param(CODE, "remote_code", False, id="one-owed"),
        pytest.param([], "remote_code", False, id="no-code-registered"),
        pytest.param(CODE[:1], "grouped_mm", False, id="not-registered-to-run"),
    ],
)
def test_remote_code_needs_every_digest(loaded, code, experts, trusted):
    """Code of a checkpoint runs only where the protocol says so and each of its files is pinned."""
    profile = msgspec.structs.replace(loaded.profile, files=(*loaded.profile.files, *code))
    execution = msgspec.structs.replace(loaded.protocol.execution, experts=experts)
    assert uses_remote_code(profile, execution) is trusted


@pytest.mark.parametrize(
    ("digest", "found", "refused"),
    [
        (Frozen(sha256="0" * 64), "1" * 64, True),
        (Frozen(sha256="0" * 64), ABSENT, False),
        (Unfrozen(reason="not published"), "1" * 64, False),
    ],
)
def test_pinned_code_is_that_code_in_a_port_too(loaded, digest, found, refused):
    """It would be executed. Code that isn't there, or has no pin, never is: a deviation."""
    file = ProfileFile(name="modeling.py", role="code", digest=digest)
    profile = msgspec.structs.replace(loaded.profile, files=(file,))
    if not refused:
        (deviation,) = require_registered(profile, {"modeling.py": found}, port=True)
        assert deviation.actual == found
        return
    with pytest.raises(ModelError, match="another tokenizer or code can't"):
        require_registered(profile, {"modeling.py": found}, port=True)


@pytest.mark.parametrize("port", [False, True])
def test_an_owed_digest_stops_all_but_a_port(loaded, port):
    """R04 6.1: what isn't frozen can't be the registered file; a port records what was there."""
    profile = msgspec.structs.replace(loaded.profile, files=tuple(CODE[1:]))
    if port:
        (deviation,) = require_registered(profile, {"configuration.py": "1" * 64}, port=True)
        assert deviation.registered == "unfrozen (not published)"
    else:
        with pytest.raises(ModelError, match=r"expected unfrozen \(not published\), found 1111"):
            require_registered(profile, {"configuration.py": "1" * 64}, port=False)


DENSE = load_protocol("smollm2-behavior").profile


def test_a_dense_config_has_no_field_of_experts(tmp_path):
    """Its profile counts none, and the registered config has none."""
    home = places().models / "smollm2" / "checkpoint"
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        shutil.copy(home / name, tmp_path / name)
    check_shape(DENSE, tmp_path)
    check_special_ids(DENSE, tmp_path)


@pytest.mark.parametrize("field", ["first_k_dense_replace", "n_routed_experts", "num_experts_per_tok"])
def test_a_config_with_experts_is_no_dense_model(tmp_path, field):
    """Zero experts are a field too: another kind of config."""
    config = json.loads((places().models / "smollm2" / "checkpoint" / "config.json").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, field: 0}))
    with pytest.raises(ModelError, match=f"{field}: expected None, found 0"):
        check_shape(DENSE, tmp_path)
