"""`verify RUN`: everything that can be recomputed of a run folder, without a model, an engine or a network.

Exit 0: it holds; 1: something doesn't, with where, expected, found and what to do; 2: something can't be checked here.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from harness.canon import canonical_bytes
from harness.records.verification import Verification, VerifiedLine
from harness.verify.run import verify as verify_run

EXIT = {"holds": 0, "fails": 1, "not checkable": 2}
STYLE = {"holds": "green", "fails": "red", "not checkable": "yellow", "none": "dim"}

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder that a session judged.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON record on stdout.")]


def verify(run: Run, *, json: Json = False) -> None:
    """Recompute RUN's digests and records, from the protocol to the frozen snapshots.

    Exit 0: all holds; 1: something fails; 2: something can't be checked here.
    """
    found = verify_run(run)
    if json:
        typer.echo(canonical_bytes(found), nl=False)
    else:
        _show(found)
    raise typer.Exit(EXIT[found.verdict])


def _show(found: Verification) -> None:
    console = Console(soft_wrap=True)
    for one in found.lines:
        console.print(_line(one))
    text = Text(f"{found.protocol} {found.run}: ").append(found.verdict, style=STYLE[found.verdict])
    console.print(text.append(f" (audit.json {found.audit_sha256})"))


def _line(one: VerifiedLine) -> Text:
    text = Text(f"{one.step}: ").append(one.state, style=STYLE[one.state]).append(f": {one.where}")
    if one.state in ("holds", "none"):
        return text.append(f": {one.found}")
    return text.append(f": expected {one.expected}, found {one.found}. {one.todo}")
