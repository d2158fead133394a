"""Reading, hashing and atomically writing files, with one kind of error for everything a disk can do wrong.

This module knows bytes and paths; it knows no record types.
"""

import errno
import hashlib
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path

from harness.errors import StorageError

CHUNK = 1 << 20


def read_bytes(path: Path, *, what: str) -> bytes:
    """The bytes of a file; a StorageError that names `what` where they can't be had, or where no file lies there."""
    _refuse_special(path, what)
    return read_given(path, what=what)


def read_given(path: Path, *, what: str) -> bytes:
    """The same of whatever somebody names, also a pipe: reading it may wait for who writes to it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _storage_error(path, f"a readable {what}", error) from error


def _refuse_special(path: Path, what: str) -> None:
    """Nobody waits for a pipe or a device that lies where a record should."""
    with suppress(OSError):  # what can't be looked at is named by who opens it
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            todo = "Put the file itself there."
            raise StorageError(str(path), expected=f"a readable {what}", found="a pipe, socket or device", todo=todo)


def file_sha256(path: Path, *, what: str) -> str:
    """Lower-case hex SHA-256 of a file, read in chunks."""
    _refuse_special(path, what)
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                hasher.update(chunk)
    except OSError as error:
        raise _storage_error(path, f"a readable {what}", error) from error
    return hasher.hexdigest()


def write_atomic(path: Path, data: bytes) -> None:
    """Write bytes so that `path` holds either what it held or all of `data`, also after a kill or a full disk."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # where nothing could be written there may be no folder to look in either
            temporary.unlink(missing_ok=True)
        raise _storage_error(path, "a place to write", error) from error


def append_line(path: Path, line: bytes, *, keep: int) -> None:
    """Put a line and its break after the file's first `keep` bytes; on the disk when this returns.

    What lies behind those bytes is what a write left that was cut off: it is dropped, nothing before it is touched.
    """
    try:
        with path.open("ab") as stream:
            stream.truncate(keep)
            stream.write(line + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        _sync_folder(path.parent)
    except OSError as error:
        raise _storage_error(path, "a place to write", error) from error


def _sync_folder(folder: Path) -> None:
    """A new file's name is on the disk too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_writable(folder: Path) -> None:
    """Prove that a folder takes files, before any work that would be lost."""
    write_atomic(folder / ".writable", b"")
    (folder / ".writable").unlink(missing_ok=True)


def _storage_error(path: Path, expected: str, error: OSError) -> StorageError:
    todo = {
        errno.ENOSPC: "Free disk space and start again; finished units stay valid.",
        errno.EROFS: "Choose a folder that can be written.",
        errno.EACCES: "Give this user the right to the folder or choose another.",
        errno.ENOENT: "Put the file there or name the right folder.",
    }.get(error.errno or 0, "Check the path.")
    return StorageError(str(path), expected=expected, found=error.strerror or type(error).__name__, todo=todo)
