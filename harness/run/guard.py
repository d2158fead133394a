"""A replay can't read what it must reproduce: opening anything under the forbidden folders raises.

The guard is an audit hook: it holds for every file that Python opens, lists, links or moves in this process, and can't
be removed. It knows nothing of what native libraries open by themselves, or of other processes.
"""

import os
import sys
from pathlib import Path

READING = ("open", "os.listdir", "os.scandir")
MOVING = ("os.link", "os.rename")


class ForbiddenReadError(RuntimeError):
    """A process tried to open a file that it was forbidden to see."""


def forbid_reading(folders: tuple[Path, ...], *, but: Path | None = None) -> None:
    """From now on, opening, listing, linking or moving anything under `folders` raises ForbiddenReadError.

    `but`: a folder within them that stays open, this process's own. A folder above a forbidden one can be listed but
    not opened: a name relative to its descriptor would carry no path to judge.
    """
    forbidden = tuple(_real(folder) for folder in folders)
    own = _real(but) if but is not None else None

    def refused(path: str, *, opens: bool) -> bool:
        if own is not None and path.startswith(own):
            return False
        return path.startswith(forbidden) or (opens and any(one.startswith(path) for one in forbidden))

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in READING or event in MOVING:
            name = arguments[0]
            if isinstance(name, str | bytes | os.PathLike) and refused(_real(name), opens=event == "open"):
                raise ForbiddenReadError(f"a replay must not read {os.fsdecode(name)}")

    sys.addaudithook(hook)


def _real(name: "str | bytes | os.PathLike[str] | os.PathLike[bytes]") -> str:
    return os.path.realpath(os.fsdecode(name)).rstrip(os.sep) + os.sep
