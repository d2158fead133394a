"""What a port's records say of a checkpoint that was made: its name, borne out by its files, or a refusal."""

import json

import msgspec
import pytest
from pregate_support.random_profiles import NANO_RANDOM, add_random

from harness.errors import ModelError, StorageError
from harness.model.identity import ABSENT, check_shape, checkpoint_digests, digests_of_a_run
from harness.model.made import checkpoint_deviations
from harness.model.make import make_checkpoint
from harness.places import Places
from harness.records.base import Unfrozen
from harness.records.profile import ProfileFile

CODE = ProfileFile(name="modeling.py", role="code", digest=Unfrozen(reason="not published"))


@pytest.fixture
def random(tmp_path):
    """A fresh checkpoint of nano's shape with random weights."""
    add_random(tmp_path)
    make_checkpoint(NANO_RANDOM, tmp_path / "made", "cpu", Places(tmp_path))
    return tmp_path / "made"


def deviations(loaded, folder, *, port=True):
    """Of the folder as a checkpoint of nano."""
    return checkpoint_deviations(loaded.profile, folder, digests_of_a_run(loaded.profile, folder), port=port)


def test_a_port_names_what_it_runs(loaded, random):
    """The checkpoint first, then its files; the shape is checked and the record is no stranger in the folder."""
    check_shape(loaded.profile, random)
    first, *files = deviations(loaded, random)
    assert (first.field, first.registered) == ("checkpoint", "nano")
    assert first.actual.startswith(f"{NANO_RANDOM}, random weights (cpu, torch ")
    assert {one.field for one in files} == {"checkpoint.model.safetensors", "checkpoint.config.json"}


def test_only_a_port_runs_it(loaded, random):
    """Other weights stop everything else."""
    with pytest.raises(ModelError, match=r"checkpoint file model\.safetensors of nano"):
        deviations(loaded, random, port=False)


def test_a_checkpoint_without_a_record_is_named_by_its_digests_alone(loaded, random):
    """Nothing is guessed from its shape."""
    (random / "checkpoint.json").unlink()
    assert [one.field for one in deviations(loaded, random) if not one.field.startswith("checkpoint.")] == []


def test_a_record_of_other_files_is_refused(loaded, checkpoint, random):
    """Trained weights beside a record of random ones, or the other way round, are neither."""
    (random / "model.safetensors").unlink()
    (random / "model.safetensors").symlink_to(checkpoint / "model.safetensors")
    with pytest.raises(ModelError, match=r"checkpoint.json: model.safetensors: expected [0-9a-f]{64}, found 40bdb1e7"):
        deviations(loaded, random)


def test_a_record_with_another_file_is_refused(loaded, random):
    """It is of all files."""
    path = random / "checkpoint.json"
    record = json.loads(path.read_bytes())
    record["files"] = record["files"][1:]
    path.write_text(json.dumps(record))
    with pytest.raises(ModelError, match=r"checkpoint.json: model.safetensors: expected no such file, found"):
        deviations(loaded, random)


@pytest.mark.parametrize("data", [b"{}", b"[", b'{"schema": 1}'])
def test_a_record_that_is_none_is_refused(loaded, random, data):
    """A folder that says something unreadable of itself isn't run."""
    (random / "checkpoint.json").write_bytes(data)
    with pytest.raises(ModelError, match=r"checkpoint\.json"):
        deviations(loaded, random)


def test_a_code_file_that_is_not_there(loaded, random):
    """A port lists it and executes nothing; anything else is refused; `profile record` wants it."""
    profile = msgspec.structs.replace(loaded.profile, files=(*loaded.profile.files, CODE))
    found = digests_of_a_run(profile, random)
    assert found["modeling.py"] == ABSENT
    named = {one.field: one for one in checkpoint_deviations(profile, random, found, port=True)}
    assert named["checkpoint.modeling.py"].registered == "unfrozen (not published)"
    assert named["checkpoint.modeling.py"].actual == ABSENT
    assert "checkpoint" in named
    with pytest.raises(ModelError, match="of nano: expected"):
        checkpoint_deviations(profile, random, found, port=False)
    with pytest.raises(StorageError, match=r"modeling\.py"):
        checkpoint_digests(profile, random)
