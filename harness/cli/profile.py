"""`profile record DIR`: the digests of a checkpoint's files, as lines for profile.toml. Reads bytes, loads nothing."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import errors_to_stderr
from harness.model.identity import checkpoint_digests, registered_digest
from harness.places import places
from harness.protocols.load import read_profile

app = typer.Typer(help="Model profiles.", no_args_is_help=True)


@app.callback()
def profiles() -> None:
    """Model profiles: which files are the model."""


@app.command()
def record(
    checkpoint: Annotated[Path, typer.Argument(metavar="DIR", help="Checkpoint folder.")],
    profile: Annotated[str, typer.Option("--profile", metavar="ID", help="Profile under fixtures/models.")],
) -> None:
    """Print every file's SHA-256 and whether the profile has it. Exit 0: all frozen digests agree; 1: one differs."""
    with errors_to_stderr():
        registered = read_profile(places().models / profile / "profile.toml")
        found = checkpoint_digests(registered, checkpoint, note=lambda name: typer.echo(f"hashing {name}", err=True))
    differs = False
    for file in registered.files:
        pinned = registered_digest(file)
        state = (
            "as registered" if pinned == found[file.name] else ("owed" if pinned.startswith("unfrozen") else "DIFFERS")
        )
        differs = differs or state == "DIFFERS"
        digest = f'{{ state = "frozen", sha256 = "{found[file.name]}" }}'
        typer.echo(f'{{ name = "{file.name}", role = "{file.role}", digest = {digest} }},  # {state}')
    if differs:
        raise typer.Exit(1)
