"""A run folder: records are written once, a folder belongs to one session, failures are kept."""

import pytest

from harness.errors import JournalError, SessionError, StorageError
from harness.files import read_bytes
from harness.journal.folder import RunFolder, difference, failures, write_once, write_record


@pytest.fixture
def empty(tmp_path):
    """A folder without a run."""
    return RunFolder(tmp_path / "run")


def test_nothing_is_created_before_create(empty):
    """Naming a folder makes none."""
    empty.file("run.json")
    empty.part("replay").file("run.json")
    assert not empty.path.exists()


def test_a_folder_that_takes_no_files_is_refused(empty):
    """Before any work would be lost."""
    empty.path.write_bytes(b"")
    with pytest.raises(StorageError, match="expected a place to write"):
        empty.create()


def test_writing_the_same_again_is_agreement(empty):
    """Two workers that read the same environment back."""
    write_once(empty.file("a.json"), {"b": 1}, what="environment")
    write_once(empty.file("a.json"), {"b": 1}, what="environment")
    assert read_bytes(empty.file("a.json"), what="x") == b'{"b":1}'


def test_writing_another_is_refused_by_field(empty):
    """The field, what is written now and what was there; the file stays."""
    write_once(empty.file("a.json"), {"a": 1, "b": 1}, what="environment")
    with pytest.raises(JournalError, match=r"a\.json: expected the environment of this run: b=2, found b=1"):
        write_once(empty.file("a.json"), {"a": 1, "b": 2}, what="environment")
    assert read_bytes(empty.file("a.json"), what="x") == b'{"a":1,"b":1}'


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(b"{", ("canonical JSON", "other bytes"), id="torn"),
        pytest.param(b'{"a": 1}', ("the same fields", "other bytes"), id="not-canonical"),
        pytest.param(b"[]", ("$={'a': 1}", "$=[]"), id="list"),
    ],
)
def test_a_difference_has_words_where_no_field_differs(found, words):
    """Torn, reformatted, or another kind of JSON: the place is named where there is one."""
    assert difference(found, b'{"a":1}') == words


def test_a_folder_belongs_to_one_session(empty):
    """A second claim is refused while the first is held, and granted after."""
    empty.create()
    first = empty.claim()
    with pytest.raises(SessionError, match="another process that is using it"):
        RunFolder(empty.path).claim()
    first.release()
    RunFolder(empty.path).claim().release()


def test_a_run_without_failures_has_none(empty):
    """No folder, no failure."""
    assert failures(empty) == ()


def test_a_damaged_failure_record_is_refused(empty):
    """A failure can't be hidden by damaging its record."""
    write_record(empty.path / "failures" / "unit.json", {"kind": "none"})
    with pytest.raises(JournalError, match=r"unit\.json"):
        failures(empty)
