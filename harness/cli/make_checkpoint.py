"""`make-checkpoint ID DIR`: a checkpoint that is made here, with random weights or converted from a published file."""

from pathlib import Path
from typing import Annotated, cast

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Json
from harness.cli.working import working
from harness.places import places
from harness.records.converted import ConvertedCheckpoint
from harness.records.random_weights import Device, MadeCheckpoint


def make_checkpoint(
    profile: Annotated[str, typer.Argument(metavar="ID", help="Random or converted profile under fixtures/models.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Empty or new folder.")],
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--source",
            metavar="FILE",
            help="Converted: the wheel or file with the registered bytes; default: the installed package.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="KIND", help="Random: what draws, cuda or cpu; each draws its own.")
    ] = "cuda",
    json: Json = False,
) -> None:
    """Draw a random profile's weights, or convert a published file, and list every file's SHA-256.

    Exit 0: made; 1: refused, where DIR has files, the disk no room, the machine no such device or the file isn't the
    registered one.
    """
    if device not in ("cuda", "cpu"):
        raise typer.BadParameter("cuda or cpu", param_hint="--device")
    made: MadeCheckpoint | ConvertedCheckpoint
    converted = (places().models / profile / "convert.toml").is_file()
    with errors_to_stderr(), working("make-checkpoint") as note:
        if converted:
            from harness.model.convert import convert_checkpoint  # noqa: PLC0415 - loads gguf

            made = convert_checkpoint(profile, folder, source, note=note)
        else:
            from harness.model.make import make_checkpoint as make  # noqa: PLC0415 - loads torch

            made = make(profile, folder, cast("Device", device), note=note)
    if json:
        show.document(made)
    else:
        _lines(made)


def _lines(made: MadeCheckpoint | ConvertedCheckpoint) -> None:
    if isinstance(made, MadeCheckpoint):
        show.line(f"{made.profile}: {made.parameters} random weights ({made.device_name}, torch {made.torch})")
    else:
        show.line(f"{made.profile}: {made.parameters} weights converted from {made.source}")
    rows = [(file.name, file.role, str(file.bytes), file.sha256) for file in made.files]
    show.table(("file", "role", "bytes", "SHA-256"), rows)
