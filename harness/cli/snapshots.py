"""`snapshots accept RUN`: freeze a passed formal run. The only way in which a snapshot comes to be."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.map import Verbs
from harness.cli.options import Json
from harness.cli.working import working
from harness.places import places_of_run
from harness.protocols.load import load_protocol
from harness.snapshots.store import accept as accept_run
from harness.snapshots.store import frozen_folder

app = typer.Typer(cls=Verbs)


@app.callback()
def snapshots() -> None:
    """Frozen results: accept a passed formal run, which others then replay."""


@app.command()
def accept(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder of a passed formal session.")],
    *,
    json: Json = False,
) -> None:
    """Freeze RUN's cells under snapshots/: the only way in which frozen results come to be.

    Exit 0: frozen; 1: refused: a port, an altered or failed run, or results are frozen already.
    """
    with errors_to_stderr(), working("snapshots accept") as note:
        note("the run's records")
        index = accept_run(run)
    if json:
        show.document(index)
        return
    where = frozen_folder(load_protocol(index.protocol, places_of_run(run), index.protocol_digest).results)
    show.line(f"{index.protocol}: {len(index.units)} files frozen from run {index.run_sha256} in {where}")
