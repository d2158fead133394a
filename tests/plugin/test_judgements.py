"""Judged again: what the first judgement saw is what every later one expects."""

import json
from pathlib import Path

import pytest

from harness.canon import sha256_hex
from harness.journal.folder import RunFolder
from harness.snapshots.judgements import altered_since_judged, keep_judgement
from harness.snapshots.store import run_files


def judge_again(run: Path, *, passed: bool) -> None:
    """What a later session leaves: the earlier record kept, and one of its own over the files as they are now."""
    folder = RunFolder(run)
    audit = json.loads((run / "audit.json").read_bytes())
    keep_judgement(folder)
    data = json.dumps(audit | {"files": run_files(folder), "passed": passed}).encode()
    (run / "audit.json").write_bytes(data)
    (run / "audit.json.sha256").write_text(f"{sha256_hex(data)}  audit.json\n")


@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_an_alteration_stays_one(fresh_run: Path, sessions: int) -> None:
    """However often an altered run was judged since, the file is named with the digest of the first judgement."""
    first = sha256_hex((fresh_run / "gold.json").read_bytes())
    (fresh_run / "gold.json").write_bytes(b"{}")
    for _ in range(sessions):
        (line,) = altered_since_judged(RunFolder(fresh_run))
        assert "gold.json" in line
        assert first in line
        judge_again(fresh_run, passed=False)


def test_a_restored_file_is_no_alteration(fresh_run: Path) -> None:
    """What the first judgement saw is right, whatever a session in between found."""
    data = (fresh_run / "gold.json").read_bytes()
    (fresh_run / "gold.json").write_bytes(b"{}")
    judge_again(fresh_run, passed=False)
    (fresh_run / "gold.json").write_bytes(data)
    assert altered_since_judged(RunFolder(fresh_run)) == ()


def test_a_parts_observations_are_each_sessions_own(fresh_run: Path) -> None:
    """A later session closes the parts again, and they may lie elsewhere by then; after it nothing may change."""
    path = fresh_run / "replay" / "observations.json"
    path.write_bytes(path.read_bytes().replace(b'"folder":"', b'"folder":"/elsewhere'))
    judge_again(fresh_run, passed=True)
    assert altered_since_judged(RunFolder(fresh_run)) == ()
    path.write_bytes(b"{}")
    (line,) = altered_since_judged(RunFolder(fresh_run))
    assert "replay/observations.json" in line


def test_nothing_is_added_to_a_run_that_passed(fresh_run: Path) -> None:
    """A file that came after a passed judgement is named, also once a later session recorded it."""
    (fresh_run / "journal" / "more.json").write_text("{}")
    for _ in range(2):
        (line,) = altered_since_judged(RunFolder(fresh_run))
        assert "journal/more.json: expected no such file" in line
        judge_again(fresh_run, passed=False)
