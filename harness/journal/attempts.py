"""The attempts in a run folder that ran out of memory: where their evidence lies, and which placement is due.

attempts/NN-<placement>/ holds what an attempt left, attempts/NN-<placement>-check/ a smoke grid under a placement
further down, attempts.json the list. Knows no model and compares no cell.
"""

from pathlib import Path

from harness.errors import SessionError
from harness.journal.folder import RunFolder, read_record
from harness.records.attempts import Attempt, Attempts, NextPlacement, OutOfMemory

ATTEMPTS = "attempts.json"
OUT_OF_MEMORY = "oom.json"
FOLDER = "attempts"
CHECK = "-check"
# What an attempt writes; moved aside together, so that no part of it is found by the next.
LEFT = (
    "spec.json",
    "environment.json",
    "placement.json",
    "gold.json",
    "journal",
    "failures",
    "workers",
    OUT_OF_MEMORY,
)


class AttemptOverError(SessionError):
    """Another process of this folder ran out of memory: nothing more is generated under this placement."""


def attempts_of(folder: RunFolder) -> tuple[Attempt, ...]:
    """The recorded attempts; none where there is no attempts.json."""
    path = folder.file(ATTEMPTS)
    return read_record(path, Attempts, what="attempts").attempts if path.exists() else ()


def out_of_memory_of(folder: RunFolder) -> OutOfMemory:
    """What ended the attempt that lies in the folder."""
    return read_record(folder.file(OUT_OF_MEMORY), OutOfMemory, what="out-of-memory record")


def attempt_folder(folder: RunFolder, number: int, placement: str) -> RunFolder:
    """Where the evidence of an attempt lies."""
    return folder.part(f"{FOLDER}/{number:02d}-{placement}")


def check_folder(folder: RunFolder, number: int, placement: str) -> RunFolder:
    """Where the smoke grid lies that was made after an attempt under a placement further down."""
    return folder.part(f"{FOLDER}/{number:02d}-{placement}{CHECK}")


def set_aside(folder: RunFolder) -> tuple[Path, ...]:
    """The folders of attempts that were moved aside, recorded or not, in order; folders of checks aren't among them."""
    return tuple(sorted(path for path in (folder.path / FOLDER).glob("*") if not path.name.endswith(CHECK)))


def attempt_number(folder: RunFolder, placement: str) -> int:
    """How many attempts went before the one that is on under `placement`; AttemptOverError where it is over.

    It is over where memory ran out in it, where it was moved aside, or where another placement is due.
    """
    made, aside = attempts_of(folder), set_aside(folder)
    due = made[-1].next if made else NextPlacement(id=placement)
    if folder.file(OUT_OF_MEMORY).exists() or len(made) != len(aside) or due != NextPlacement(id=placement):
        raise over(folder, placement)
    return len(made)


def require_on(folder: RunFolder, number: int, placement: str) -> None:
    """The attempt that began as `number` is still on. To be asked while holding a lock that ending it needs."""
    if folder.file(OUT_OF_MEMORY).exists() or len(set_aside(folder)) != number:
        raise over(folder, placement)


def over(folder: RunFolder, placement: str) -> AttemptOverError:
    """The error that says so."""
    return AttemptOverError(
        str(folder.path),
        expected=f"a run under placement {placement} that goes on",
        found="one that ran out of memory",
        todo=f"See {OUT_OF_MEMORY} or {ATTEMPTS} in the folder; nothing of it is reused: start a new run.",
    )
