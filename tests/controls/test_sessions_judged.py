"""Sessions over a run that was judged already, was altered since, or that something keeps from failing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.mini import run_gates

from harness.canon import canonical_bytes
from harness.errors import SnapshotError
from harness.places import Places
from harness.snapshots.store import accept

from .damage import Case, failed_gates, read, unjudge

Judge = Callable[[], Any]


@pytest.mark.parametrize("name", ["observations.json", "junit.xml", "workers", "journal", "audit.json"])
def test_a_run_that_was_altered_after_it_was_judged(case: Case, judge: Judge, name: str) -> None:
    """An audited file, and the audit record itself: the new session fails and keeps the earlier record."""
    path = case.run / name
    if path.is_dir():
        sorted(path.glob("*.json"))[0].unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"e", b"f", 1))
    result = judge()
    assert result.code == 1
    assert not result.audit["passed"]
    assert any(word in " ".join(result.audit["books"]) for word in (f"{name}: expected", f"formal-1/{name}"))
    assert (case.run / "judgements/01/audit.json").is_file()


def test_a_file_that_came_after_the_audit(case: Case) -> None:
    """A failure record that was added to a judged run isn't frozen with it."""
    (case.run / "failures").mkdir()
    (case.run / "failures/x.json").write_text("{}")
    with pytest.raises(SnapshotError, match=r"failures/x\.json altered after its audit"):
        accept(case.run, Places(case.tree))


def test_a_part_that_is_a_link(case: Case, judge: Judge) -> None:
    """What a link points to is no part of the run, so no digest holds it."""
    elsewhere = case.tree / "elsewhere"
    shutil.move(case.run / "replay", elsewhere)
    (case.run / "replay").symlink_to(elsewhere)
    unjudge(case.run)
    result = judge()
    assert result.code == 1
    assert any("symbolic link" in line for line in result.audit["books"])


SWALLOW = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True
"""
LATE = """
import pathlib, pytest
@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    path = pathlib.Path({run!r})
    path.write_bytes(path.read_bytes().replace(b'"eos":false', b'"eos":true ', 1))
"""


def test_a_plugin_that_swallows_assertions(case: Case) -> None:
    """A case that pytest calls passed, and whose check found differences, passes nothing."""
    case.edit_cell("s0_x", lambda cell: cell.update(length=999))
    unjudge(case.run)
    (case.tree / "swallow.py").write_text(SWALLOW)
    result = run_gates(
        case.tree, "-m", "formal", "-p", "swallow", "--run", str(case.run), env={"PYTHONPATH": str(case.tree)}
    )
    assert result.code == 1
    assert "its check found differences" in " ".join(result.audit["books"])
    assert not result.audit["passed"]


def test_a_run_that_is_another_by_the_end(case: Case) -> None:
    """What was judged is what is audited: run.json that changes after its rows were judged fails the session."""
    unjudge(case.run)
    (case.tree / "late.py").write_text(LATE.format(run=str(case.run / "run.json")))
    result = run_gates(
        case.tree, "-m", "formal", "-p", "late", "--run", str(case.run), env={"PYTHONPATH": str(case.tree)}
    )
    assert result.code == 1
    assert "run.json is" in " ".join(result.audit["books"])


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (("--assert=plain",), {}, "gates assert"),
        (("--assert=plain", "-W", "ignore"), {"PYTHONOPTIMIZE": "1"}, "optimisation level 1"),
        (("--markers",), {}, "--markers"),
    ],
)
def test_a_session_that_could_not_fail(case: Case, arguments: tuple[str, ...], env: dict[str, str], words: str) -> None:
    """No assertion, no item, a protocol by path: refused."""
    result = run_gates(case.tree, "-m", "formal", *arguments, "--run", str(case.run), env=env)
    assert result.code == 4
    assert words in result.output


def test_a_protocol_by_path(case: Case, tmp_path: Path) -> None:
    """A folder elsewhere that calls itself as a protocol of this tree does: refused."""
    elsewhere = tmp_path / "mini-behavior"
    shutil.copytree(case.tree / "fixtures/protocols/mini-behavior", elsewhere)
    result = run_gates(case.tree, "-m", "formal", protocol=str(elsewhere))
    assert result.code == 4
    assert "expected a folder with a name that no other protocol has" in result.output


def test_a_gate_without_its_test(case: Case, judge: Judge) -> None:
    """A registered gate that no file of gates/ judges has no passed row, and the session isn't passed."""
    (case.tree / "gates/test_2_prompts.py").unlink()
    assert judge().code == 1
    assert set(failed_gates(case.run)) == {"prompt_hashes", "single_id_contract", "batch_alignment"}


def test_a_deleted_unit_is_made_again(case: Case, judge: Judge) -> None:
    """Where the protocol resumes, the unit comes back byte for byte, so that run.json and all gates stand as before."""
    path, before = case.journal(), read(case.journal())
    path.unlink()
    unjudge(case.run)
    result = judge()
    assert result.code == 0, result.output[-3000:]
    assert canonical_bytes(read(path)["evidence"]) == canonical_bytes(before["evidence"])
    assert read(path)["observation"] != before["observation"]


def test_the_undamaged_run_passes(case: Case) -> None:
    """The session that the other tests turn red is green on the same copy when nothing was damaged."""
    assert run_gates(case.tree, "-m", "formal", "--run", str(case.run)).code == 0
    assert failed_gates(case.run) == {}


def test_the_copy_is_private(case: Case, formal_run: Path) -> None:
    """Damage never reaches the run that the other tests read."""
    assert case.run != formal_run
