"""Arguments and options that several verbs have, each with the one line that its help shows."""

from pathlib import Path
from typing import Annotated

import typer

Named = Annotated[
    str, typer.Argument(metavar="PROTOCOL", help="ID of a protocol under fixtures/protocols, or its folder.")
]
Judged = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder that a session judged.")]
Folders = Annotated[
    list[Path] | None,
    typer.Option("--inputs", metavar="DIR", envvar="HARNESS_INPUTS", help="Folder of input files; repeatable."),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="DIR", help="Folder with the tokenizer's files; default: those at hand."),
]
Json = Annotated[bool, typer.Option("--json", help="One canonical JSON document on stdout, and nothing else there.")]
Authority = Annotated[
    Path | None,
    typer.Option("--authority", metavar="FILE", help="Certificates of the authority that is trusted, in PEM."),
]
