"""Python's hash seed tells a replay's process from the run's (R05 depth 10): set, seen, and another one in a child."""

import os
import subprocess
import sys

import pytest

from harness.errors import JournalError
from harness.journal.folder import RunFolder
from harness.run import child as module
from harness.run.child import another_hash_seed, run_apart
from harness.run.request import make_request

CODE = "from harness.model.process import process_identity; print(process_identity(1).str_hash)"
SPELLED = ["1", "01", "+1", " 1", " +001"]  # Python takes each of them for seed 1
SEEDS = ["", "0", "00", "2", "10", "4294967295", "random", *SPELLED]


def started(*seeds):
    """The `str_hash` of a process for each seed; empty: unset, so that Python draws one."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CODE],
            env=kept | ({"PYTHONHASHSEED": seed} if seed else {}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in seeds
    ]
    found = [child.communicate()[0].strip() for child in children]
    assert [child.returncode for child in children] == [0] * len(seeds)
    return found


def test_processes_of_one_seed_hash_alike_and_of_others_do_not():
    """Two of seed 1, one of 2, one of 0 (no seed), two that drew theirs: the first two agree, and no others."""
    found = started("1", "1", "2", "0", "", "random")
    assert found[0] == found[1]
    assert len(set(found)) == 5
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in found)


@pytest.mark.parametrize("own", SEEDS)
def test_another_seed_is_fixed_and_another(own):
    """Whatever this process has, also one that is drawn: a number, the same at every call."""
    seed = another_hash_seed(own)
    assert seed == another_hash_seed(own)
    assert seed == ("2" if own in SPELLED else "1")


def test_seed_1_has_several_spellings():
    """Real processes: all of them hash alike, so that none is another seed than 1."""
    assert len(set(started(*SPELLED))) == 1


def test_a_child_of_another_seed_hashes_differently():
    """The two real processes behind the two words."""
    one, other = started("1", another_hash_seed("1"))
    assert one != other


class Child:
    """A process that has ended."""

    pid = 4321

    def __init__(self, *_, **kwargs):
        self.environment = kwargs["env"]

    def poll(self):
        """It returned."""
        return 0

    def wait(self):
        """Its exit code."""
        return 0


@pytest.mark.parametrize("own", [None, "0", "1", "random"])
def test_a_run_made_apart_has_another_seed(nano, options, tmp_path, monkeypatch, own):
    """Every child's environment: another seed than the parent's, whatever that has; none of pytest's words."""
    made = []
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if own is not None:
        monkeypatch.setenv("PYTHONHASHSEED", own)
    monkeypatch.setattr(module.subprocess, "Popen", lambda *args, **kwargs: made.append(Child(**kwargs)) or made[-1])
    request = make_request(nano, "smoke", "run/replay", options())
    report = run_apart(request, RunFolder(tmp_path / "replay"), forbidden=tmp_path / "run", workers=2)
    assert report.pids == (4321, 4321)
    assert [child.environment["PYTHONHASHSEED"] for child in made] == ["2" if own == "1" else "1"] * 2
    assert not [name for child in made for name in child.environment if name.startswith("PYTEST_")]
    assert os.environ.get("PYTHONHASHSEED") == own


def test_a_child_that_fails_is_said(nano, options, tmp_path, monkeypatch):
    """Exit codes; no report is left behind, so that nothing takes the part for a whole one."""
    monkeypatch.setattr(
        module.subprocess, "Popen", type("Failed", (Child,), {"poll": lambda _: 3, "wait": lambda _: 3})
    )
    request, folder = make_request(nano, "smoke", "run/replay", options()), RunFolder(tmp_path / "replay")
    with pytest.raises(JournalError, match=r"expected 1 child processes that return 0, found exit codes \[3\]"):
        run_apart(request, folder, forbidden=tmp_path / "run")
    assert not folder.file("complete.json").exists()
