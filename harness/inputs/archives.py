"""One member of a zip archive, as bytes. Knows no registered digest: callers verify what they get."""

import zipfile
import zlib
from pathlib import Path

from harness.errors import InputError, StorageError

TODO = "Take the archive from its publisher again; if its own digest is right, the registered member is wrong."


def member_bytes(path: Path, member: str) -> bytes:
    """The uncompressed bytes of `member`.

    Raises InputError for a file that is no zip, has no such member or is damaged, StorageError where it can't be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    except KeyError as error:
        raise _error(path, member, "no such member") from error
    # zipfile raises RuntimeError for an encrypted member, NotImplementedError for an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise _error(path, member, " ".join(str(error).split())) from error
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise StorageError(str(path), expected="a readable archive", found=found, todo="Check the path.") from error


def _error(path: Path, member: str, found: str) -> InputError:
    return InputError(f"{path}: member {member}", expected="a readable member", found=found, todo=TODO)
