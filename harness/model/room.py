"""Where a checkpoint may be made. No torch here."""

from pathlib import Path

from harness.errors import StorageError
from harness.model.identity import MADE_RECORD


def require_empty(folder: Path) -> None:
    """A folder that holds anything is refused: a finished checkpoint, what a cut-off creation left, or others."""
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if there:
        finished = MADE_RECORD in there
        left = f"a finished checkpoint, with {MADE_RECORD}" if finished else f"no {MADE_RECORD}: nothing finished"
        raise StorageError(
            str(folder),
            expected="an empty folder, or none",
            found=f"{len(there)} files, {left}",
            todo="Name another folder." if finished else "Remove what a cut-off creation left and start it again.",
        )
