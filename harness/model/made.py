"""A checkpoint that was made here says what it is: checkpoint.json, held against the files. No torch here.

Nothing of a checkpoint is believed that its digests don't bear out: a record beside other files is refused.
"""

from pathlib import Path

from harness.errors import ModelError
from harness.files import read_bytes
from harness.journal.naming import MADE, RANDOM
from harness.model.identity import ABSENT, MADE_RECORD, require_registered
from harness.records.base import decode_json
from harness.records.profile import Profile
from harness.records.random_weights import MadeCheckpoint
from harness.records.run import Deviation

TODO = "Make the checkpoint again in an empty folder, or take its checkpoint.json away."


def checkpoint_deviations(
    profile: Profile, checkpoint: Path, found: dict[str, str], *, port: bool
) -> tuple[Deviation, ...]:
    """All deviations of a port's checkpoint, what it is before file by file; ModelError as `require_registered`."""
    files = require_registered(profile, found, port=port)
    made = read_made(checkpoint)
    if made is None or made.profile == profile.id:
        return files
    require_files(made, checkpoint, found)
    actual = f"{made.profile}{RANDOM} ({made.device}, torch {made.torch})"
    return (Deviation(field=MADE, registered=profile.id, actual=actual), *files)


def read_made(checkpoint: Path) -> MadeCheckpoint | None:
    """The folder's checkpoint.json; None where it has none; ModelError for one that isn't such a record."""
    path = checkpoint / MADE_RECORD
    if not path.exists():
        return None
    data = read_bytes(path, what="record of a made checkpoint")
    return decode_json(data, MadeCheckpoint, where=path, error=ModelError, todo=TODO)


def require_files(made: MadeCheckpoint, checkpoint: Path, found: dict[str, str]) -> None:
    """The record is of these files and of all of them."""
    here = {name: sha256 for name, sha256 in found.items() if sha256 != ABSENT}
    recorded = {file.name: file.sha256 for file in made.files}
    for name in sorted({*here, *recorded}):
        if here.get(name) != recorded.get(name):
            raise ModelError(
                f"{checkpoint / MADE_RECORD}: {name}",
                expected=recorded.get(name, "no such file"),
                found=here.get(name, "no such file"),
                todo=TODO,
            )
