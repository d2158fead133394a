"""The one folder in which all actors of a run have their temporary ones, on each node: `end` removes its own, a killed
actor can't, so the driver removes the whole in the end.

Knows no cluster. The name is made for the run, so that nothing of another run or program is in it.
"""

import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = re.compile(r"pregate-actors-[0-9a-f]{32}")
TRIES, PAUSE_S = 20, 0.25  # a process that was just killed may still write for a moment


def new_name() -> str:
    """A name that no other run has."""
    return f"pregate-actors-{uuid.uuid4().hex}"


def folder_of(name: str) -> Path:
    """Where it is on this machine; RuntimeError for a name that isn't one, which must never be removed."""
    if _NAME.fullmatch(name) is None:
        raise RuntimeError(f"no name of a run's actors: {name!r}")
    return Path(tempfile.gettempdir()) / name


@contextmanager
def inside(name: str) -> Iterator[Path]:
    """A folder of this process in it, for all its temporary files; gone afterwards, the last one with the whole."""
    before, folder = tempfile.tempdir, folder_of(name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = tempfile.mkdtemp(dir=folder)
    tempfile.tempdir = own
    try:
        yield Path(own)
    finally:
        tempfile.tempdir = before
        shutil.rmtree(own, ignore_errors=True)  # libraries leave theirs
        with suppress(OSError):  # another actor of this node is at work in it
            folder.rmdir()


def remove(name: str) -> bool:
    """Remove what actors left on this machine; whether nothing is left."""
    folder = folder_of(name)
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return True
        time.sleep(PAUSE_S)
    return False
