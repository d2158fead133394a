"""`profile record DIR`: the digests of a checkpoint's files, as lines for profile.toml. Reads bytes, loads nothing."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.map import Verbs
from harness.cli.options import Json
from harness.cli.working import working
from harness.model.identity import checkpoint_digests
from harness.places import places
from harness.protocols.load import read_profile
from harness.records.base import Frozen
from harness.records.profile import ProfileFile
from harness.records.verbs import CheckpointFile, CheckpointList, DigestState

app = typer.Typer(cls=Verbs)


@app.callback()
def profiles() -> None:
    """Model profiles: record the digests of a checkpoint's files."""


@app.command()
def record(
    checkpoint: Annotated[Path, typer.Argument(metavar="DIR", help="Checkpoint folder.")],
    profile: Annotated[str, typer.Option("--profile", metavar="ID", help="Profile under fixtures/models.")],
    *,
    json: Json = False,
) -> None:
    """List every file's SHA-256 and whether the profile has it, as lines for profile.toml.

    Exit 0: no frozen digest differs; 1: one does, or a file can't be read.
    """
    with errors_to_stderr(), working("profile record") as note:
        registered = read_profile(places().models / profile / "profile.toml")
        found = checkpoint_digests(registered, checkpoint, note=lambda name: note(f"hashing {name}"))
    files = tuple(_file(file, found[file.name]) for file in registered.files)
    if json:
        show.document(CheckpointList(schema=1, profile=registered.id, files=files))
    else:
        for one in files:
            digest = f'{{ state = "frozen", sha256 = "{one.sha256}" }}'
            state = "DIFFERS" if one.state == "differs" else one.state
            show.line(f'{{ name = "{one.name}", role = "{one.role}", digest = {digest} }},  # {state}')
    if any(one.state == "differs" for one in files):
        raise typer.Exit(1)


def _file(file: ProfileFile, sha256: str) -> CheckpointFile:
    state: DigestState = "owed"
    if isinstance(file.digest, Frozen):
        state = "as registered" if file.digest.sha256 == sha256 else "differs"
    return CheckpointFile(name=file.name, role=file.role, sha256=sha256, state=state)
