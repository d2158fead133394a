"""The attempts file in a verification: a run whose beginning or end isn't on record doesn't verify."""

import json
from pathlib import Path

import pytest

from harness.canon import canonical_bytes, sha256_hex
from harness.journal.attempts_file import NAME
from harness.places import Places
from harness.records.attempts_file import NO_AUDIT
from harness.verify.attempts import STEP
from harness.verify.run import verify

from .conftest import enter_again, reseal, write_audit


def lines_of(path: Path) -> list[dict]:
    """The entries as plain data."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write_chain(path: Path, entries: list[dict]) -> None:
    """Entries as a chain that holds: numbers and digests made anew."""
    made, previous = b"", "0" * 64
    for number, entry in enumerate(entries, 1):
        line = canonical_bytes(entry | {"number": number, "previous_sha256": previous})
        made, previous = made + line + b"\n", sha256_hex(line)
    path.write_bytes(made)


def attempts_lines(lines) -> list[tuple[str, str]]:
    """State and place of what the step says."""
    return [(one.state, one.where) for one in lines if one.step == "attempts"]


def test_a_run_without_its_beginning_does_not_verify(run, judge):
    """Removed, and the audit record sealed over what is left."""
    (run / NAME).unlink()
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", NAME)]


@pytest.mark.parametrize(
    ("field", "value"), [("run_id", "formal-7"), ("protocol_digest", "0" * 64), ("port", True), ("protocol", "other")]
)
def test_another_runs_beginning_is_found(run, judge, field, value):
    """Under a new seal: what the run keeps must be its own beginning."""
    entries = lines_of(run / NAME)
    write_chain(run / NAME, [*entries[:-1], entries[-1] | {field: value}])
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert f"{NAME}: last line: {field}" in {where for _, where in attempts_lines(lines)}


def test_a_kept_line_that_is_no_beginning_is_found(run, judge):
    """The end of the run instead."""
    (run / NAME).write_bytes((run.parent / NAME).read_bytes())
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"{NAME}: last line")]


def test_a_second_beginning_is_not_the_first(run, judge):
    """A run that was begun twice keeps the lines up to its first beginning."""
    entries = lines_of(run / NAME)
    write_chain(run / NAME, [*entries, entries[-1]])
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"{NAME}: first beginning of the run")]


def test_a_seal_that_the_end_does_not_name_is_found(run, judge):
    """An audit record written after the session's last line, with no judgement kept."""
    entered = (run.parent / NAME).read_bytes()
    write_audit(run, judge={"more": "words"})
    (run.parent / NAME).write_bytes(entered)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"../{NAME}: end of formal-1")]


def test_a_run_that_never_ended_on_record_is_found(run, judge):
    """The file beside it stops at its beginning."""
    (run.parent / NAME).write_bytes((run / NAME).read_bytes())
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"../{NAME}: end of formal-1")]


def test_later_attempts_are_counted(run, judge):
    """They stand beside the run; nothing fails for them."""
    entries = lines_of(run.parent / NAME)
    later = entries[0] | {"run_id": "formal-2"}
    write_chain(run.parent / NAME, [*entries, later])
    assert judge(run) == ("holds", [])


def test_an_attempt_taken_out_before_the_run_is_found(run, judge):
    """By the run's own lines two others came first; the file beside it begins as they do, and lacks the second."""
    entries = lines_of(run.parent / NAME)
    earlier = [entries[0] | {"run_id": "formal-0"}, entries[0] | {"run_id": "formal-00"}]
    write_chain(run / NAME, [*earlier, entries[0]])
    write_chain(run.parent / NAME, [earlier[0], *entries])
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"../{NAME}")]


def test_a_broken_chain_beside_the_run_is_found(run, judge):
    """The file as it lies there: a byte of its first line."""
    data = (run.parent / NAME).read_bytes()
    (run.parent / NAME).write_bytes(data.replace(b'"how":"new"', b'"how":"nev"', 1))
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert any(NAME in where for _, where in attempts_lines(lines))


@pytest.mark.parametrize("other", ["no file", "another clone's"])
def test_without_the_protocols_file_nothing_can_be_said_of_the_rest(run, judge, other):
    """The run's own lines hold; whether it ended, and what else was tried, can't be checked."""
    if other == "no file":
        (run.parent / NAME).unlink()
    else:
        entries = lines_of(run.parent / NAME)
        write_chain(run.parent / NAME, [entries[0] | {"at_us": 1}, *entries[1:]])
    verdict, lines = judge(run)
    assert (verdict, attempts_lines(lines)) == ("not checkable", [("not checkable", f"../{NAME}")])


def test_attempts_under_one_name_are_counted_apart(run, judge):
    """Two that failed under a name that was used again, then this run."""
    begun, ended = lines_of(run.parent / NAME)
    other = [begun | {"run_id": "x"}, ended | {"run_id": "x", "outcome": "failed", "audit_sha256": NO_AUDIT}]
    write_chain(run / NAME, [*other, *other, begun])
    write_chain(run.parent / NAME, [*other, *other, begun, ended])
    reseal(run)
    assert judge(run) == ("holds", [])
    said = [one.found for one in verify(run, Places(run.parents[2])).lines if one.step == STEP]
    assert said == ["attempt 3 of 3 on record (2 failed, 1 passed)"]


def test_a_run_that_began_with_units_is_found(run, judge):
    """Made before any session of it was on record."""
    begun, ended = lines_of(run.parent / NAME)
    begun |= {"how": "resumed", "units_there": 2}
    write_chain(run / NAME, [begun])
    write_chain(run.parent / NAME, [begun, ended])
    reseal(run)
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"{NAME}: last line: how, and units_there")]


def test_an_end_whose_audit_record_was_taken_away_is_found(run, judge):
    """The run failed, its record was removed, and it went on to pass."""
    begun, ended = lines_of(run.parent / NAME)
    failed = ended | {"outcome": "failed", "audit_sha256": "0" * 64, "reason": "a gate"}
    write_chain(run.parent / NAME, [begun, failed, begun | {"how": "resumed", "units_there": 2}, ended])
    verdict, lines = judge(run)
    assert verdict == "fails"
    assert attempts_lines(lines) == [("fails", f"../{NAME}: end of formal-1")]


@pytest.mark.parametrize("passed", [True, False])
def test_an_end_that_its_audit_record_contradicts_is_found(run, judge, passed):
    """Failed by the file and passed by the record, and the other way round."""
    if passed:
        enter_again(run, outcome="failed", reason="x")
    else:
        reseal(run, passed=False)
        enter_again(run, outcome="passed")
    _, lines = judge(run)
    assert ("fails", f"../{NAME}: line 2: passed") in attempts_lines(lines)


def test_lines_of_another_protocol_are_found(run, judge):
    """A protocol's file is its own."""
    begun, ended = lines_of(run.parent / NAME)
    write_chain(run.parent / NAME, [begun, ended, begun | {"protocol": "other", "run_id": "x"}])
    assert attempts_lines(judge(run)[1]) == [("fails", f"../{NAME}: protocol")]
