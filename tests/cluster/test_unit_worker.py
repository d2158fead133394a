"""A worker without a cluster: what it answers, what it refuses, and what it leaves behind."""

import json
import os
import tempfile

import msgspec
import pytest

from harness.cluster.apart import new_name, remove
from harness.cluster.unit_worker import UnitWorker
from harness.model.process import steer_as, steering
from harness.protocols.load import load_protocol
from harness.run import code
from harness.run.code import code_sha256
from harness.run.engine import Engine
from harness.run.request import Options, make_request

replace = msgspec.structs.replace


@pytest.fixture
def nano():
    """The embedded behaviour protocol and its smoke request."""
    loaded = load_protocol("nano-behavior")
    options = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)
    return loaded, make_request(loaded, "smoke", "smoke-1", options)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Where workers make their folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_worker_answers_with_what_is_new(nano, folders):
    """What the run is, then a unit and what the process noted of itself; nothing twice, and the folder goes."""
    loaded, request = nano
    worker = UnitWorker(request, loaded.digest, steering(), code_sha256(), new_name())
    first = worker.begin()
    assert (first.refusal, set(first.files)) == (
        "",
        {"spec.json", "environment.json", "placement.json", "gold.json"},
    )
    key, second = loaded.units(request.grid, request.domains)[:2]
    unit = worker.land(key)
    assert (unit.refusal, [name.split("/")[0] for name in unit.files]) == ("", ["journal", "workers"])
    assert worker.land(key).files == {}
    note = next(name for name in unit.files if name.startswith("workers/"))
    assert json.loads(unit.files[note])["memory_bytes"]["rss"] > 0
    assert f"journal/{second.name}.json" in worker.land(second).files
    assert worker.end().files == {}
    assert list(folders.iterdir()) == []


def test_a_refusal_leaves_nothing_on_the_node(nano, folders, monkeypatch):
    """What failed is in the answer; the folder goes, and nothing more is made."""
    loaded, request = nano
    worker = UnitWorker(request, loaded.digest, steering(), code_sha256(), new_name())
    worker.begin()
    keys = loaded.units(request.grid, request.domains)

    def broken(*given, **named):
        raise ValueError("no such kernel")

    monkeypatch.setattr(Engine, "make_unit", broken)
    answer = worker.land(keys[0])
    assert (list(answer.files), "no such kernel" in answer.refusal) == ([f"failures/{keys[0].name}.json"], True)
    assert list(folders.iterdir()) == []
    assert "has not begun" in worker.land(keys[1]).refusal


def test_what_a_killed_worker_leaves_is_in_the_runs_one_folder(nano, folders):
    """Its units and what the model has on disk; another that ended leaves that alone, and the driver doesn't."""
    loaded, request = nano
    request = replace(
        request, placement=next(one for one in loaded.protocol.placements if one.offload_device == "disk")
    )
    name = new_name()
    killed, other = (UnitWorker(request, loaded.digest, steering(), code_sha256(), name) for _ in range(2))
    assert killed.begin().refusal == ""
    (own,) = (folders / name).iterdir()
    assert tempfile.tempdir == str(own)
    assert {"pregate-units", "pregate-offload"} <= {path.name.rsplit("-", 1)[0] for path in own.iterdir()}
    tempfile.tempdir = str(folders)  # the other is a process of its own
    other.begin()
    other.end()
    assert [path.name for path in folders.iterdir()] == [name]
    assert list((folders / name).iterdir()) == [own]
    assert remove(name)
    assert list(folders.iterdir()) == []
    killed.end()


def test_another_protocol_on_the_node_is_refused(nano):
    """By its digest, before a model is loaded."""
    loaded, request = nano
    answer = UnitWorker(request, "0" * 64, steering(), code_sha256(), new_name()).begin()
    assert answer.files == {}
    assert f"has digest {loaded.digest} here, not {'0' * 64}" in answer.refusal


def test_other_code_on_the_node_is_refused(nano):
    """Whatever its version says: before a model is loaded, and nothing is sent that could be merged."""
    loaded, request = nano
    answer = UnitWorker(request, loaded.digest, steering(), "0" * 64, new_name()).begin()
    assert answer.files == {}
    assert f"the project's code has digest {code_sha256()} here, not {'0' * 64}" in answer.refusal


def test_every_source_file_is_in_the_codes_digest(tmp_path, monkeypatch):
    """One more, one byte more, another name: another digest."""
    found = set()
    monkeypatch.setattr(code.harness, "__file__", str(tmp_path / "__init__.py"))
    for name, text in (("a.py", "1"), ("sub/b.py", "1"), ("sub/b.py", "2"), ("sub/c.py", "2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        found.add(code_sha256.__wrapped__())
    assert len(found) == 4


def test_a_unit_before_the_beginning_is_refused(nano):
    """A worker that hasn't loaded anything makes nothing."""
    loaded, request = nano
    answer = UnitWorker(request, loaded.digest, steering(), code_sha256(), new_name()).land(
        loaded.units(request.grid, request.domains)[0]
    )
    assert answer.refusal == "RuntimeError: the worker has not begun"


def test_variables_that_steer_kernels_are_the_drivers(monkeypatch):
    """What started the process set its own: it goes; the allocator's is the placement's and stays."""
    for name in (*steering(), "KMP_BLOCKTIME"):
        monkeypatch.setenv(name, "here before")  # so that what is steered as is taken back
    for name, value in {"OMP_NUM_THREADS": "1", "MKL_DYNAMIC": "FALSE", "PYTORCH_CUDA_ALLOC_CONF": "x"}.items():
        monkeypatch.setenv(name, value)
    steer_as({"MKL_DYNAMIC": "TRUE", "KMP_BLOCKTIME": "0"})
    found = steering()
    assert "OMP_NUM_THREADS" not in found
    assert (found["MKL_DYNAMIC"], found["KMP_BLOCKTIME"]) == ("TRUE", "0")
    assert os.environ["PYTORCH_CUDA_ALLOC_CONF"] == "x"
