"""Runs made apart: empty folder, guarded process, both processes or none, and copies that are found out."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pregate_support.fixtures import tree_of
from pregate_support.mini import MINI, environment

from harness.checks.pairs import made_apart
from harness.errors import JournalError
from harness.evidence import PairEvidence, RunEvidence
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.run import child
from harness.run.child import ChildReport, read_child_request, run_apart


def pair(run: Path) -> PairEvidence:
    """The run and its replay as evidence."""
    loaded = load_protocol(MINI, Places(tree_of(run)))
    report = json.loads((run / "replay/complete.json").read_bytes())
    first, second = (RunEvidence(loaded, RunFolder(path)) for path in (run, run / "replay"))
    return PairEvidence(first, second, loaded.protocol.independent_replay, tuple(report["pids"]))


def edit(path: Path, change: Any) -> None:
    """Rewrite a JSON file."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def test_a_real_replay_was_made_apart(formal_run: Path) -> None:
    """The control of the controls below."""
    evidence = pair(formal_run)
    assert [made_apart(evidence, row) for row in rows(evidence)] == [()] * 2


def test_a_replay_fed_with_the_runs_journals_is_found_out(fresh_run: Path) -> None:
    """Journals copied from the run carry its model load and its process, whatever their evidence says."""
    for path in (fresh_run / "replay/journal").glob("*.json"):
        own = json.loads((fresh_run / "journal" / path.name).read_bytes())["observation"]
        edit(path, lambda content, own=own: content.update(observation=own))
    evidence = pair(fresh_run)
    found = " ".join(made_apart(evidence, rows(evidence)[0]))
    assert re.search(r"model loads: expected .*shared|shared model loads: expected 0, found 1", found), found
    assert "started children" in found


def test_a_replay_of_a_process_that_nobody_started_is_found_out(fresh_run: Path) -> None:
    """The children's PIDs are the parent's own knowledge."""
    edit(fresh_run / "replay/complete.json", lambda content: content.update(pids=[1]))
    evidence = pair(fresh_run)
    assert "started children" in " ".join(made_apart(evidence, rows(evidence)[0]))


def rows(evidence: PairEvidence) -> list[Any]:
    """A row of each unit of the pair."""
    from harness.protocols.grids import RowKey

    return [RowKey(key, "s0_eos") for key in evidence.second.keys]


def test_a_child_can_not_read_what_its_request_forbids(fresh_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`generate` is guarded before it reads anything: a forbidden checkpoint stops it, and no unit lands."""
    part = RunFolder(fresh_run / "forged")
    part.create()
    edit_to = json.loads((fresh_run / "replay/request.json").read_bytes())
    edit_to["forbidden"] = [edit_to["request"]["checkpoint"]]
    part.file("request.json").write_text(json.dumps(edit_to))
    done = subprocess.run(
        [sys.executable, "-m", "harness", "generate", str(part.path)],
        env=environment(tree_of(fresh_run)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "a replay must not read" in done.stderr
    assert not (part.path / "journal").exists()


def test_a_replay_is_forbidden_the_run_all_reports_and_all_snapshots(formal_run: Path) -> None:
    """What the first run's answers could be read from, now or later."""
    forbidden = read_child_request(formal_run / "replay/request.json").forbidden
    tree = tree_of(formal_run)
    assert set(forbidden) == {str(path.resolve()) for path in (formal_run, tree / "reports", tree / "snapshots")}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Children that run a line of Python each instead of generating."""

    def start(lines: list[str]) -> None:
        monkeypatch.setattr(child, "_start", lambda _, index: subprocess.Popen([sys.executable, "-c", lines[index]]))

    return start


def test_a_half_made_part_is_moved_aside(formal_run: Path, tmp_path: Path, quick: Any) -> None:
    """Its journals are kept and never reused: the children start from an empty folder."""
    quick(["pass"])
    request = read_child_request(formal_run / "replay/request.json").request
    part = RunFolder(tmp_path / "replay")
    (part.path / "journal").mkdir(parents=True)
    (part.path / "journal/one.json").write_text("{}")
    report = run_apart(request, part, forbidden=tmp_path)
    assert (tmp_path / "replay.incomplete-1/journal/one.json").exists()
    assert not (part.path / "journal").exists()
    assert run_apart(request, part, forbidden=tmp_path) == report
    assert isinstance(report, ChildReport)


def test_one_failed_process_ends_the_others(formal_run: Path, tmp_path: Path, quick: Any) -> None:
    """Processes of one folder wait for each other: where one fails none is left waiting, and no part completes."""
    quick(["import time; time.sleep(600)", "raise SystemExit(3)"])
    request = read_child_request(formal_run / "replay/request.json").request
    started = time.monotonic()
    with pytest.raises(JournalError, match=r"expected 2 child processes that return 0, found exit codes \[-9, 3\]"):
        run_apart(request, RunFolder(tmp_path / "part"), forbidden=tmp_path, workers=2)
    assert time.monotonic() - started < 300
    assert not (tmp_path / "part/complete.json").exists()
