"""Files: what is written is all there or not there, and whatever a disk does wrong is one kind of error."""

import errno
import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.errors import StorageError
from harness.files import CHUNK, file_sha256, read_bytes, read_given, require_writable, write_atomic

FAULTS = [
    pytest.param(errno.ENOSPC, "No space left on device", "Free disk space", id="full"),
    pytest.param(errno.EROFS, "Read-only file system", "Choose a folder that can be written", id="read-only"),
    pytest.param(errno.EACCES, "Permission denied", "Give this user the right", id="no-right"),
    pytest.param(errno.EIO, "Input/output error", "Check the path", id="broken"),
]


@pytest.fixture
def target(tmp_path):
    """A file with old content."""
    path = tmp_path / "record.json"
    path.write_bytes(b"old")
    return path


def fail_with(code):
    """A function that fails as the system call would."""

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


def test_writing_replaces_the_whole_file(target):
    """The new bytes, and nothing else in the folder."""
    write_atomic(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_writing_makes_the_folder(tmp_path):
    """Folders on the way are made."""
    write_atomic(tmp_path / "a" / "b" / "record.json", b"x")
    assert (tmp_path / "a" / "b" / "record.json").read_bytes() == b"x"


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize(("code", "found", "todo"), FAULTS)
def test_a_disk_fault_leaves_the_old_file(target, monkeypatch, call, code, found, todo):
    """Whether the data or the rename fails: old bytes, no leftover, and an error that says where and what to do."""
    monkeypatch.setattr(os, call, fail_with(code))
    with pytest.raises(StorageError, match=found) as caught:
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]
    assert str(target) in str(caught.value)
    assert todo in str(caught.value)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    """A file stands where the folder should be."""
    (tmp_path / "taken").write_bytes(b"x")
    with pytest.raises(StorageError, match="expected a place to write"):
        write_atomic(tmp_path / "taken" / "record.json", b"x")


def test_a_folder_in_the_file_s_place_is_a_storage_error(tmp_path):
    """Nothing is removed to make room, and no partial file stays."""
    (tmp_path / "record.json").mkdir()
    with pytest.raises(StorageError, match="Is a directory"):
        write_atomic(tmp_path / "record.json", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_kill_before_the_rename_leaves_the_old_file(target, call):
    """The process dies between writing and renaming: the old bytes stay, and readers of *.json see only them."""
    program = (
        "import os, signal, pathlib\n"
        "from harness.files import write_atomic\n"
        f"os.{call} = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"write_atomic(pathlib.Path({str(target)!r}), b'new')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    assert target.read_bytes() == b"old"
    assert list(target.parent.glob("*.json")) == [target]


def test_concurrent_writers_leave_one_whole_file(target):
    """Sixteen writers at once: the file is one of the sixteen, complete, and nothing else is left."""
    contents = [bytes([number]) * 300_000 for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda data: write_atomic(target, data), contents))
    assert target.read_bytes() in contents
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("read", [read_bytes, file_sha256])
def test_a_missing_file_is_named(tmp_path, read):
    """What it was to be, where, and what to do."""
    with pytest.raises(StorageError, match="expected a readable manifest, found No such file") as caught:
        read(tmp_path / "none.json", what="manifest")
    assert str(tmp_path / "none.json") in str(caught.value)
    assert "Put the file there" in str(caught.value)


@pytest.mark.parametrize("read", [read_bytes, file_sha256])
def test_a_folder_is_not_a_file(tmp_path, read):
    """Reading a folder is the same kind of error."""
    with pytest.raises(StorageError, match="Is a directory"):
        read(tmp_path, what="manifest")


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])
def test_the_hash_does_not_depend_on_chunks(tmp_path, size):
    """A file at and around the chunk size has the hash of its bytes."""
    data = os.urandom(size)
    (tmp_path / "data").write_bytes(data)
    assert file_sha256(tmp_path / "data", what="data") == hashlib.sha256(data).hexdigest()
    assert read_bytes(tmp_path / "data", what="data") == data


def test_a_writable_folder_stays_empty(tmp_path):
    """The proof leaves nothing behind, and makes the folder."""
    require_writable(tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize(("code", "found", "todo"), FAULTS)
def test_a_folder_that_takes_no_file_is_refused(tmp_path, monkeypatch, code, found, todo):
    """Before any work would be lost."""
    monkeypatch.setattr(os, "replace", fail_with(code))
    with pytest.raises(StorageError, match=found) as caught:
        require_writable(tmp_path)
    assert todo in str(caught.value)


def test_a_message_is_one_ascii_line(tmp_path):
    """A path with line breaks, surrogates and Chinese in it can't break a log, a JUnit file or a terminal."""
    with pytest.raises(StorageError) as caught:
        read_bytes(tmp_path / "\u4e2d\n\udcff.json", what="manifest")
    assert str(caught.value).isascii()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [read_bytes, file_sha256])
def test_nobody_waits_for_a_pipe(tmp_path, read):
    """It lies where a record should; nobody writes to it."""
    os.mkfifo(tmp_path / "record.json")
    with pytest.raises(StorageError, match="expected a readable record, found a pipe, socket or device"):
        read(tmp_path / "record.json", what="record")


def test_a_pipe_that_somebody_names_is_read(tmp_path):
    """What a shell gives for `<(command)`."""
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit((tmp_path / "pipe").write_bytes, b"text")
        assert read_given(tmp_path / "pipe", what="write-up") == b"text"
        assert written.result() == 4
