"""Every regular file under some folders with its SHA-256, each hashed once. Knows no registered input.

Nothing is left out silently: a folder or file that can't be read is an error, and so is a tree beyond the bounds.
Symbolic links are followed, each real folder and each real file once. What isn't a regular file holds no bytes to
hash (pipes, sockets, devices) and is no input.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError, StorageError
from harness.files import file_sha256
from harness.records.base import Record


class HashedFile(Record):
    """A regular file and the SHA-256 of its bytes when it was scanned (lower-case hex)."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that is hashed: a folder beyond it is somebody's home or checkpoint folder, named by mistake."""

    files: int
    bytes: int


BOUNDS = Bounds(files=4096, bytes=8 << 30)


def scan(folders: Sequence[Path], *, bounds: Bounds = BOUNDS) -> tuple[HashedFile, ...]:
    """The files under `folders`, in the folders' order and by path within each.

    Raises InputError for what isn't a folder and for a tree beyond `bounds`, StorageError for what can't be read.
    """
    paths = _regular_files(folders, bounds)
    return tuple(HashedFile(path=path, sha256=file_sha256(path, what="input file")) for path in paths)


def _regular_files(folders: Sequence[Path], bounds: Bounds) -> list[Path]:
    seen: set[Path] = set()
    found: list[Path] = []
    total = 0
    for path in (path for folder in folders for path in _walk(folder)):
        status = _status(path)
        if path.resolve() in seen or not stat.S_ISREG(status.st_mode):
            continue
        seen.add(path.resolve())
        found.append(path)
        total += status.st_size
        if len(found) > bounds.files or total > bounds.bytes:
            raise InputError(
                str(path),
                expected=f"at most {bounds.files} files and {bounds.bytes} bytes in the input folders",
                found="more",
                todo="Name the folder that holds the input files and little else.",
            )
    return found


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise InputError(str(folder), expected="a folder of input files", found="none", todo="Name an existing folder.")
    visited: set[Path] = set()
    for where, names, files in os.walk(folder, followlinks=True, onerror=_unreadable):
        real = Path(where).resolve()
        if real in visited:
            names.clear()
            continue
        visited.add(real)
        names.sort()
        yield from (Path(where) / name for name in sorted(files))


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise _storage_error(path, error) from error


def _unreadable(error: OSError) -> None:
    raise _storage_error(Path(error.filename), error) from error


def _storage_error(path: Path, error: OSError) -> StorageError:
    found = error.strerror or type(error).__name__
    todo = "Make it readable, or take it out of the folder."
    return StorageError(str(path), expected="a readable file or folder", found=found, todo=todo)
