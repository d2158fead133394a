"""`snapshots accept RUN`: freeze a passed formal run. The only way in which a snapshot comes to be."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import errors_to_stderr
from harness.snapshots.store import accept as accept_run
from harness.snapshots.store import frozen_folder

app = typer.Typer(help="Frozen results.", no_args_is_help=True)


@app.callback()
def snapshots() -> None:
    """Frozen results of accepted runs."""


@app.command()
def accept(run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder of a passed formal session.")]) -> None:
    """Freeze RUN's cells. Refused for a port, an altered or failed run, or where results are frozen."""
    with errors_to_stderr():
        index = accept_run(run)
    where = frozen_folder(index.protocol)
    typer.echo(f"{index.protocol}: {len(index.units)} files frozen from run {index.run_sha256} in {where}")
