"""The attempts file: a chain that goes on, and every alteration of it is found."""

import contextlib
import multiprocessing
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import JournalError, StorageError
from harness.journal.attempts_file import (
    FIRST,
    NAME,
    NO_END,
    AttemptsFile,
    attempt_rows,
    chained,
    is_open,
    lines_for,
)
from harness.records.attempts_file import Begun, Ended, Refused

COMMON = {"schema": 1, "at_us": 1_700_000_000_000_000, "protocol": "p", "protocol_digest": "d"}


def begun(run: str, *, how="new", there=0):
    """A maker of a beginning."""
    return lambda number, previous: Begun(
        **COMMON, number=number, previous_sha256=previous, run_id=run, port=False, how=how, units_there=there
    )


def ended(run: str, outcome="passed", placements=("one",), reason=""):
    """A maker of an end."""
    return lambda number, previous: Ended(
        **COMMON,
        number=number,
        previous_sha256=previous,
        run_id=run,
        outcome=outcome,
        placements=placements,
        audit_sha256="a",
        reason=reason,
    )


def refused(run: str):
    """A maker of a refusal."""
    return lambda number, previous: Refused(
        **COMMON, number=number, previous_sha256=previous, run_id=run, port=True, reason="no input"
    )


STORY = (begun("a"), ended("a"), begun("b"), refused("c"), begun("b", how="resumed", there=3), ended("b", "failed"))


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> bytes:
    """Six lines."""
    file = AttemptsFile(tmp_path_factory.mktemp("told") / "p" / NAME)
    for make in STORY:
        file.append(make)
    return file.read()


def test_each_line_names_the_one_before_it(told: bytes) -> None:
    """Numbers from 1, digests of the bytes of the line before; the file reads back."""
    lines, entries = told.splitlines(), chained(told, "x")
    assert [one.number for one in entries] == [1, 2, 3, 4, 5, 6]
    assert [one.previous_sha256 for one in entries] == [FIRST, *(sha256_hex(line) for line in lines[:-1])]
    assert b"".join(canonical_bytes(one) + b"\n" for one in entries) == told


def test_what_was_entered_reads_as_attempts(told: bytes) -> None:
    """A row a run, the last outcome counts, and a refusal is a row of its own."""
    rows = attempt_rows(chained(told, "x"))
    assert [(row.number, row.run_id, row.outcome, row.resumed, row.port) for row in rows] == [
        (1, "a", "passed", 0, False),
        (3, "b", "failed", 1, False),
        (4, "c", "refused", 0, True),
    ]


def test_a_run_that_goes_on_has_no_end_yet(told: bytes) -> None:
    """Also one that had ended before; a refusal of a session doesn't end a run."""
    entries = chained(told, "x")
    assert attempt_rows(entries[:5])[1].outcome == NO_END
    assert [is_open(entries[:count], "b") for count in (2, 3, 4, 5, 6)] == [False, True, True, True, False]
    again = structs.replace(entries[3], run_id="b")
    assert is_open((*entries[:3], again), "b")
    assert not is_open(entries, "c")


@given(st.data())
def test_any_flipped_bit_is_found(told: bytes, data: st.DataObject) -> None:
    """Wherever it is but in the last line, nothing follows the altered line; in the last line it isn't canonical, or
    it reads otherwise: a chain proves what lies before its end, and the end is held by whoever keeps its digest.
    """
    at = data.draw(st.integers(0, len(told) - 1))
    altered = bytearray(told)
    altered[at] ^= 1 << data.draw(st.integers(0, 7))
    last = told.rstrip(b"\n").rfind(b"\n") + 1
    if at < last:
        with pytest.raises(JournalError):
            chained(bytes(altered), "x")
    else:
        with contextlib.suppress(JournalError):
            assert chained(bytes(altered), "x") != chained(told, "x")


@pytest.mark.parametrize("at", range(5))
def test_a_dropped_or_doubled_line_is_found(told: bytes, at: int) -> None:
    """Anywhere before the last."""
    lines = told.splitlines(keepends=True)
    for altered in ([*lines[:at], *lines[at + 1 :]], [*lines[: at + 1], *lines[at:]]):
        with pytest.raises(JournalError, match=r"x: line \d+: expected number"):
            chained(b"".join(altered), "x")


def test_lines_that_changed_places_are_found(told: bytes) -> None:
    """Both numbers would have to change, and then both digests."""
    one, two, *rest = told.splitlines(keepends=True)
    with pytest.raises(JournalError, match="line 1"):
        chained(b"".join([two, one, *rest]), "x")


def test_other_bytes_of_the_same_entry_are_found(told: bytes) -> None:
    """Canonical JSON only."""
    with pytest.raises(JournalError, match="expected canonical JSON"):
        chained(told.replace(b'{"at_us"', b'{ "at_us"', 1), "x")


def test_a_line_that_was_cut_off_is_dropped_and_the_chain_goes_on(told: bytes, tmp_path: Path) -> None:
    """It announced nothing: nobody acts before the whole line is on the disk. What lies before it isn't touched."""
    file = AttemptsFile(tmp_path / NAME)
    file.path.write_bytes(told + told[:40])
    assert file.read() == told
    after = file.append(begun("e"))
    assert file.path.read_bytes() == after
    assert after.startswith(told)
    assert chained(after, "x")[-1].number == 7


def test_nothing_is_put_behind_a_broken_chain(told: bytes, tmp_path: Path) -> None:
    """The error names the file and the line, and the file stays as it is."""
    file = AttemptsFile(tmp_path / NAME)
    broken = told.replace(b'"run_id":"a"', b'"run_id":"z"', 1)
    file.path.write_bytes(broken)
    with pytest.raises(JournalError, match=rf"{NAME}: line 2"):
        file.append(begun("e"))
    assert file.path.read_bytes() == broken


def test_a_place_that_takes_no_file_is_one_error(tmp_path: Path) -> None:
    """A file lies where the folder should be."""
    (tmp_path / "p").write_text("")
    with pytest.raises(StorageError, match="a place to write"):
        AttemptsFile(tmp_path / "p" / NAME).append(begun("a"))


def enter(path: str, worker: int) -> None:
    """Ten lines of one process."""
    for number in range(10):
        AttemptsFile(Path(path)).append(begun(f"{worker}-{number}"))


def test_processes_that_enter_at_once_lose_no_line(tmp_path: Path) -> None:
    """Four processes, ten lines each."""
    path = str(tmp_path / NAME)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=enter, args=(path, number)) for number in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert [one.exitcode for one in workers] == [0] * 4
    entries = chained(AttemptsFile(tmp_path / NAME).read(), "x")
    assert sorted(one.run_id for one in entries) == sorted(f"{w}-{n}" for w in range(4) for n in range(10))


def test_what_is_known_of_a_runs_protocol(told: bytes, tmp_path: Path) -> None:
    """The file beside the run where it goes on from the run's own lines; else those alone."""
    run, own = tmp_path / "run", b"".join(told.splitlines(keepends=True)[:3])
    run.mkdir()
    assert lines_for(run) == b""
    (tmp_path / NAME).write_bytes(told)
    assert lines_for(run) == b""
    (run / NAME).write_bytes(own)
    assert lines_for(run) == told
    (tmp_path / NAME).write_bytes(told.replace(b'"a"', b'"z"'))
    assert lines_for(run) == own
    (tmp_path / NAME).unlink()
    assert lines_for(run) == own


def rows_of(path: Path, *story) -> list[tuple[int, str, str, int]]:
    """Number, run, outcome and resumed of each attempt that a story gives."""
    file = AttemptsFile(path / NAME)
    for make in story:
        file.append(make)
    return [(row.number, row.run_id, row.outcome, row.resumed) for row in attempt_rows(chained(file.read(), "x"))]


def test_a_name_that_began_anew_is_another_attempt(tmp_path: Path) -> None:
    """A folder that was removed and begun again under its name doesn't make two attempts one."""
    story = (begun("a"), ended("a", "failed"), begun("a"), begun("a"), ended("a"))
    assert rows_of(tmp_path, *story) == [(1, "a", "failed", 0), (3, "a", NO_END, 0), (4, "a", "passed", 0)]


def test_an_earlier_end_stays_in_the_row(tmp_path: Path) -> None:
    """Whoever reads that a run passed reads too that it had failed."""
    story = (begun("a"), ended("a", "failed", reason="a gate"), begun("a", how="resumed", there=2))
    assert rows_of(tmp_path, *story) == [(1, "a", f"failed then {NO_END}", 1)]
    assert rows_of(tmp_path, ended("a")) == [(1, "a", "failed then passed", 1)]
    (row,) = attempt_rows(chained(AttemptsFile(tmp_path / NAME).read(), "x"))
    assert row.reason == "a gate"


def test_a_refusal_under_a_runs_name_is_not_the_run(tmp_path: Path) -> None:
    """The run begins on its own line."""
    found = rows_of(tmp_path, refused("a"), begun("a"), ended("a"))
    assert found == [(1, "a", "refused", 0), (2, "a", "passed", 0)]


@pytest.mark.parametrize("where", ["a file", "nothing"])
def test_nothing_is_written_through_a_link(tmp_path: Path, where: str) -> None:
    """Lines that lie elsewhere can be put in another's place afterwards."""
    file = AttemptsFile(tmp_path / NAME)
    if where == "a file":
        (tmp_path / "elsewhere").touch()
    file.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="expected a file of its own, found a symbolic link"):
        file.append(begun("a"))
    assert not file.read()


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_is_no_file_is_not_read(tmp_path: Path, what: str) -> None:
    """Nobody waits for it either."""
    path = tmp_path / NAME
    path.mkdir() if what == "folder" else os.mkfifo(path)
    with pytest.raises(JournalError, match="expected a file, found a folder or something special"):
        AttemptsFile(path).append(begun("a"))
