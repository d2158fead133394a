"""Runs that are shared, stopped, resumed or judged twice give the same bytes, or are refused with one reason."""

import json
import shutil
from pathlib import Path

import pytest
from pregate_support.faults import faulty, run_on_terminal, screen
from pregate_support.fixtures import tree_of
from pregate_support.mini import MINI, Result, copy_tree, make_tree, run_gates

from harness.journal.folder import RunFolder
from harness.places import Places
from harness.plugin.progress import now_and_then
from harness.snapshots.store import accept

RESULTS = ("run.json", "ledger.json", "statistics.json")


def contents(run: Path, names: tuple[str, ...] = RESULTS) -> dict[str, bytes]:
    """The bytes of a run's files, by name."""
    return {name: (run / name).read_bytes() for name in names}


def journals(run: Path) -> dict[str, tuple[int, bytes]]:
    """A run's journals: when they were written, and their bytes."""
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted((run / "journal").glob("*.json"))
    }


def reasons(result: Result) -> list[str]:
    """The lines in which pytest refuses."""
    return [line for line in result.output.splitlines() if line.startswith("ERROR: ")]


@pytest.fixture(scope="module")
def smoke_run(formal_run: Path) -> Path:
    """The smoke run that the formal run stands on: made by one process."""
    reference = json.loads((formal_run / "smoke.json").read_bytes())
    return formal_run.parent / str(reference["run_id"])


@pytest.fixture(scope="module")
def frozen_tree(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the formal run's tree in which that run was accepted."""
    tree = copy_tree(tree_of(formal_run), tmp_path_factory.mktemp("frozen") / "tree")
    accept(tree / formal_run.relative_to(tree_of(formal_run)), Places(tree))
    return tree


@pytest.fixture(scope="module")
def shared_formal(frozen_tree: Path) -> Result:
    """A formal session of two workers over the frozen tree."""
    return run_gates(frozen_tree, "-m", "formal", "-n", "2", "--run", f"reports/{MINI}/formal-2")


def test_two_workers_make_the_formal_run_of_one(shared_formal: Result, formal_run: Path) -> None:
    """-n 2 gives the bytes of -n 0 in run, ledger and statistics, and every gate passes, snapshots too."""
    assert shared_formal.code == 0, shared_formal.output
    assert shared_formal.run is not None
    assert contents(shared_formal.run) == contents(formal_run)
    assert {one["id"]: one["passed"] for one in shared_formal.audit["gates"]}["frozen_snapshots"] == 2


def test_two_workers_make_the_smoke_run_of_one(mini_tree: Path, tmp_path: Path, smoke_run: Path) -> None:
    """The same for smoke."""
    result = run_gates(copy_tree(mini_tree, tmp_path / "tree"), "-m", "smoke", "-n", "2")
    assert result.code == 0, result.output
    assert result.run is not None
    assert contents(result.run) == contents(smoke_run)


def test_a_replay_session_passes_against_frozen_results(frozen_tree: Path) -> None:
    """Another run of the replay grid, held against the accepted run."""
    result = run_gates(frozen_tree, "-m", "replay")
    assert result.code == 0, result.output
    assert result.audit["frozen"] is True


def test_a_session_can_not_be_held_against_itself(frozen_tree: Path, formal_run: Path) -> None:
    """The accepted run, judged again, has no second witness: its snapshot gate fails and says so."""
    run = frozen_tree / formal_run.relative_to(tree_of(formal_run))
    result = run_gates(frozen_tree, "-m", "formal", "--run", str(run))
    assert result.code == 1, result.output
    assert "this run's own: nothing to compare" in result.output
    assert [one["id"] for one in result.audit["gates"] if one["failed"]] == ["frozen_snapshots"]


def test_a_formal_run_is_resumed_to_the_same_bytes(fresh_run: Path, formal_run: Path) -> None:
    """A lost unit is made again, the finished one isn't touched, and a half-made replay starts from an empty folder."""
    kept, lost = sorted((fresh_run / "journal").glob("*.json"))
    before = journals(fresh_run)[kept.name]
    lost.unlink()
    for name in RESULTS:
        (fresh_run / name).unlink()
    (fresh_run / "replay/complete.json").unlink()
    for name in ("audit.json", "audit.json.sha256", "junit.xml"):  # it was killed before it was judged
        (fresh_run / name).unlink()
    result = run_gates(tree_of(fresh_run), "-m", "formal", "--run", str(fresh_run))
    assert result.code == 0, result.output
    assert contents(fresh_run) == contents(formal_run)
    assert journals(fresh_run)[kept.name] == before
    first, again = (RunFolder(fresh_run / name) for name in ("replay.incomplete-1", "replay"))
    assert pids(first).isdisjoint(pids(again))


def pids(run: RunFolder) -> set[int]:
    """The processes that made a run's units."""
    return {json.loads(path.read_bytes())["observation"]["process"]["pid"] for path in (run.path / "journal").glob("*")}


@pytest.fixture(scope="module")
def killed(mini_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A smoke run whose process got SIGKILL after its first unit."""
    tree = copy_tree(mini_tree, tmp_path_factory.mktemp("killed") / "tree")
    arguments, env = faulty(tree / "faults", "kill")
    result = run_gates(tree, "-m", "smoke", "--run", "reports/killed", *arguments, env=env)
    if result.code != -9:
        pytest.fail(f"the session wasn't killed: {result.code} {result.output}")
    return tree / "reports/killed"


@pytest.fixture(scope="module")
def resumed(killed: Path) -> tuple[int, str, Path, dict[str, tuple[int, bytes]]]:
    """The killed run, resumed on a terminal: exit code, what was written, run folder, its journals before."""
    before = journals(killed)
    code, written = run_on_terminal(killed.parents[1], "-m", "smoke", "--run", str(killed))
    return code, written, killed, before


def test_a_killed_run_is_resumed_to_the_same_bytes(
    resumed: tuple[int, str, Path, dict[str, tuple[int, bytes]]], smoke_run: Path
) -> None:
    """The finished journal keeps bytes and time; the assembled run is that of a run that nobody killed."""
    code, written, run, before = resumed
    assert code == 0, written
    assert len(before) == 1
    assert {name: journals(run)[name] for name in before} == before
    assert contents(run) == contents(smoke_run)


def test_progress_is_shown_on_a_terminal(resumed: tuple[int, str, Path, dict[str, tuple[int, bytes]]]) -> None:
    """Source, step, tokens a second and ETA are drawn while a unit is made."""
    drawn = [one for one in resumed[1].split("\r") if "tokens/s" in one]
    assert drawn
    assert all(f"{MINI} smoke: unit " in one for one in drawn)
    assert any("nano-math/" in one and "step " in one and "ETA" in one for one in drawn)


def test_progress_leaves_the_output_as_it_is(resumed: tuple[int, str, Path, dict[str, tuple[int, bytes]]]) -> None:
    """In the end no trace of the line is on the screen, and each result stands after its file's name."""
    lines = screen(resumed[1])
    assert not [line for line in lines if "tokens/s" in line]
    dots = [line for line in lines if line.rstrip("]%0123456789[ ").endswith("..")]
    assert dots
    assert all(line.startswith("gates/test_") and len(line) <= 100 for line in dots)


def test_no_line_is_redrawn_without_a_terminal(formal_session: Result) -> None:
    """Output that goes to a file has no carriage return and no escape sequence; each line is whole."""
    assert not [mark for mark in ("\r", "\x1b") if mark in formal_session.output]
    said = [line for line in formal_session.output.splitlines() if "tokens/s" in line]
    assert all(line.startswith(f"{MINI} ") and ", ETA " in line for line in said)


def test_a_long_part_says_now_and_then_that_it_goes_on() -> None:
    """One line where none was said for thirty seconds; the line that erases is none."""
    times = iter([0, 1, 29, 31, 32, 60, 62, 100])
    said: list[str] = []
    draw = now_and_then(said.append, clock=lambda: next(times))
    for line in ("a", "b", "c", "", "d", "e"):
        draw(line)
    assert said == ["c", "e"]


def test_a_protocol_without_resume_refuses_a_begun_run(tmp_path: Path) -> None:
    """The journals stay, nothing is generated or assembled, and the reason is one line."""
    tree = make_tree(tmp_path / "tree", resume=False)
    arguments, env = faulty(tmp_path / "faults", "kill")
    assert run_gates(tree, "-m", "smoke", "--run", "reports/one", *arguments, env=env).code == -9
    before = journals(tree / "reports/one")
    result = run_gates(tree, "-m", "smoke", "--run", "reports/one")
    assert (result.code, len(reasons(result))) == (4, 1), result.output
    assert "expected all 2 units or none, found 1 units of a run that ended" in reasons(result)[0]
    assert journals(tree / "reports/one") == before
    assert not [name for name in (*RESULTS, "audit.json", "junit.xml") if (tree / "reports/one" / name).exists()]


def test_a_folder_belongs_to_one_session(fresh_run: Path) -> None:
    """While one session has the folder a second gets one clear error and alters nothing."""
    before = {path: path.read_bytes() for path in fresh_run.rglob("*") if path.is_file()}
    claim = RunFolder(fresh_run).claim()
    result = run_gates(tree_of(fresh_run), "-m", "formal", "--run", str(fresh_run))
    claim.release()
    assert (result.code, len(reasons(result))) == (4, 1), result.output
    assert "expected a run folder of one session, found another process that is using it" in reasons(result)[0]
    assert {path: path.read_bytes() for path in fresh_run.rglob("*") if path.is_file()} == before


def test_a_full_disk_stops_the_run_and_keeps_what_is_finished(mini_tree: Path, smoke_run: Path, tmp_path: Path) -> None:
    """Exit code not 0, the reason is said, the finished unit stays valid, and the run resumes to the same bytes."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    arguments, env = faulty(tmp_path / "faults", "full")
    result = run_gates(tree, "-m", "smoke", "--run", "reports/one", *arguments, env=env)
    assert result.code == 1, result.output
    assert "found No space left on device. Free disk space and start again" in result.output
    assert "BOOKS NOT CLOSED: mini-behavior: no audit record" in result.output
    before = journals(tree / "reports/one")
    assert len(before) == 1
    assert not list((tree / "reports/one").rglob("*.partial"))
    again = run_gates(tree, "-m", "smoke", "--run", "reports/one")
    assert again.code == 0, again.output
    assert {name: journals(tree / "reports/one")[name] for name in before} == before
    assert contents(tree / "reports/one") == contents(smoke_run)


def test_a_disk_that_takes_nothing_is_refused_before_generation(mini_tree: Path, tmp_path: Path) -> None:
    """One line that names the folder; exit code 4."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    arguments, env = faulty(tmp_path / "faults", "readonly")
    result = run_gates(tree, "-m", "smoke", "--run", "reports/one", *arguments, env=env)
    assert (result.code, len(reasons(result))) == (4, 1), result.output
    assert "reports/one" in reasons(result)[0]
    assert "found Read-only file system. Choose a folder that can be written." in reasons(result)[0]


def test_a_file_in_place_of_reports_is_refused(mini_tree: Path, tmp_path: Path) -> None:
    """The same where reports/ isn't a folder."""
    tree = copy_tree(mini_tree, tmp_path / "tree")
    shutil.rmtree(tree / "reports")
    (tree / "reports").write_text("")
    result = run_gates(tree, "-m", "smoke")
    assert (result.code, len(reasons(result))) == (4, 1), result.output
    assert "reports" in reasons(result)[0]
