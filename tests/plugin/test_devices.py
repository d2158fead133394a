"""A GPU for each process: which one a process sees, what is refused, and that xdist's workers each see their own."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pregate_support.mini import MINI, make_tree, run_pytest

from harness.plugin.devices import VISIBLE, own_gpu

GIVEN = "0,1,2,3,4,5,6,7"
SEEN = '''
"""Writes which GPU a process of a gate session sees."""
import os
from pathlib import Path


def pytest_sessionstart(session):
    worker = getattr(session.config, "workerinput", {}).get("workerid", "controller")
    Path(os.environ["SEEN"], worker).write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
'''


def config(gpus, *, worker=None, workers=0):
    """What `own_gpu` reads of a config: the option, and either xdist's workers or the worker that this is."""
    one = SimpleNamespace(option=SimpleNamespace(gpus=gpus, tx=["popen"] * workers))
    if worker is not None:
        one.workerinput = {"workerid": worker, "workercount": workers}
    return one


@pytest.fixture
def before_torch(monkeypatch):
    """A process that hasn't loaded torch, and was given eight GPUs."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv(VISIBLE, GIVEN)
    return monkeypatch


@pytest.mark.parametrize(
    ("given", "sees"),
    [
        (config(None), GIVEN),
        (config("3"), "3"),
        (config("3,5"), "3"),
        (config("3, 5", worker="gw0", workers=2), "3"),
        (config("3, 5", worker="gw1", workers=2), "5"),
        (config("3,5,6", worker="gw1", workers=2), "5"),
        (config("MIG-1b2c,MIG-9f/0/1", worker="gw1", workers=2), "MIG-9f/0/1"),
    ],
)
def test_a_process_sees_its_own_gpu(before_torch, given, sees):
    """By its number among the workers; without the option nothing is changed."""
    del before_torch
    own_gpu(given)
    assert os.environ[VISIBLE] == sees


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (config("0", workers=2), "expected a GPU for each of 2 workers, found 1. Name 2 GPUs, or start 1 workers"),
        (config("0,1", workers=3), "expected a GPU for each of 3 workers, found 2"),
        (config("0,0", workers=2), "found 0 twice"),
        (config("0,00", workers=2), "found 0 and 00, which may be one GPU"),
        (config("GPU-1b2c,GPU-1B2C9f", workers=2), "found GPU-1b2c and GPU-1B2C9f, which may be one GPU"),
        (config("0,GPU-1b2c", workers=2), "found numbers and identifiers"),
        (config("GPU-1b2c,MIG-9f/0/1", workers=2), "or identifiers of two kinds"),
        (config("0,8", workers=2), "expected GPUs of those that the session was given"),
        (config("0,1", worker="gw2", workers=2), "worker gw2: expected one of 2 GPUs to itself, found none left"),
        (config("0,", workers=2), "found ''"),
        (config("cuda:0"), "found 'cuda:0'"),
        (config("-1"), "found '-1'"),
        (config("all"), "found 'all'"),
        (config("0,1", worker="ssh=host", workers=2), "expected gw0, gw1"),
    ],
)
def test_what_gives_no_process_its_own_is_refused(before_torch, given, found):
    """Fewer GPUs than workers, one twice or not the session's, and what CUDA would read as none or as another."""
    del before_torch
    with pytest.raises(pytest.UsageError, match=found.replace("'", ".")) as refused:
        own_gpu(given)
    assert "\n" not in str(refused.value)


def test_torch_must_not_have_looked_already(monkeypatch):
    """A library that counted the GPUs keeps its count: refused, unless it saw the same one."""
    monkeypatch.setitem(sys.modules, "torch", object())
    monkeypatch.setenv(VISIBLE, "4")
    own_gpu(config("4"))
    with pytest.raises(pytest.UsageError, match="expected a process that hasn't loaded torch"):
        own_gpu(config("5"))


@pytest.mark.parametrize(
    ("workers", "seen"), [((), {"controller": "4"}), (("-n", "2"), {"controller": "4", "gw0": "4", "gw1": "7"})]
)
def test_the_processes_of_a_session_see_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...], seen: dict[str, str]
) -> None:
    """In a smoke session that passes; nothing of it stands in the records, which are those of one GPU."""
    monkeypatch.delenv(VISIBLE, raising=False)
    tree = make_tree(tmp_path / "tree")
    (tmp_path / "seen").mkdir()
    (tree / "seen_gpus.py").write_text(SEEN)
    code, output = run_pytest(
        tree,
        *("gates", "-m", "smoke", "--protocol", MINI, "--gpus", "4,7", "-p", "seen_gpus", *workers),
        env={"SEEN": str(tmp_path / "seen")},
    )
    assert code == 0, output
    assert {path.name: path.read_text() for path in (tmp_path / "seen").iterdir()} == seen
    (environment,) = tree.glob("reports/*/*/environment.json")
    assert VISIBLE not in environment.read_text()
