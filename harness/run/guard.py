"""A replay can't read what it must reproduce: opening any file under the forbidden folders raises.

The guard is an audit hook: it holds for every `open` that goes through Python in this process and can't be removed.
"""

import os
import sys
from pathlib import Path


class ForbiddenReadError(RuntimeError):
    """The process tried to open a file that it was forbidden to see."""


def forbid_reading(folders: tuple[Path, ...]) -> None:
    """From now on, opening or listing anything under `folders` raises ForbiddenReadError."""
    prefixes = tuple(os.path.realpath(folder) + os.sep for folder in folders)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in ("open", "os.listdir", "os.scandir") or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.path.realpath(os.fsdecode(arguments[0])) + os.sep
        if path.startswith(prefixes):
            raise ForbiddenReadError(f"a replay must not read {path}")

    sys.addaudithook(hook)
