"""`make-checkpoint ID DIR`: a checkpoint with random weights, for runs that need a model's size and not its answers."""

from pathlib import Path
from typing import Annotated, cast

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Json
from harness.cli.working import working
from harness.records.random_weights import Device, MadeCheckpoint


def make_checkpoint(
    profile: Annotated[str, typer.Argument(metavar="ID", help="Random profile under fixtures/models.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Empty or new folder.")],
    *,
    device: Annotated[
        str, typer.Option("--device", metavar="KIND", help="What draws the numbers, cuda or cpu; each draws its own.")
    ] = "cuda",
    json: Json = False,
) -> None:
    """Draw the weights of a random profile and write its checkpoint, with every file's SHA-256.

    Exit 0: made; 1: refused, where DIR has files, the disk no room or the machine no such device.
    """
    if device not in ("cuda", "cpu"):
        raise typer.BadParameter("cuda or cpu", param_hint="--device")
    with errors_to_stderr(), working("make-checkpoint") as note:
        from harness.model.make import make_checkpoint as make  # noqa: PLC0415 - loads torch

        made = make(profile, folder, cast("Device", device), note=note)
    if json:
        show.document(made)
    else:
        _lines(made)


def _lines(made: MadeCheckpoint) -> None:
    show.line(f"{made.profile}: {made.parameters} random weights ({made.device_name}, torch {made.torch})")
    rows = [(file.name, file.role, str(file.bytes), file.sha256) for file in made.files]
    show.table(("file", "role", "bytes", "SHA-256"), rows)
