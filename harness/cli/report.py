"""`report RUN` and `export RUN`: a judged run as a page, and its cells as a table. Needs no model and no network."""

import importlib.util
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import errors_to_stderr
from harness.errors import SessionError

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder of a judged session.")]


class Table(StrEnum):
    """The formats of a table."""

    parquet = "parquet"
    csv = "csv"


def report(run: Run) -> None:
    """Write RUN/report.html from the run folder: claims, gates, figures and a page for each cell, in one file."""
    with errors_to_stderr():
        _require_drawing()
        from harness.report.make import write_report  # noqa: PLC0415  needs the extra `report`, other verbs don't

        typer.echo(str(write_report(run)))


def _require_drawing() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        todo = "Install the extra: pip install -e '.[report]'."
        raise SessionError("report", expected="matplotlib, which draws the charts", found="none", todo=todo)


def export(
    run: Run,
    to: Annotated[Table, typer.Option("--to", help="Format of the table.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; without it one in the current folder.")
    ] = None,
) -> None:
    """Write the run's cells as a table, one row a cell."""
    with errors_to_stderr():
        from harness.export.write import export as write  # noqa: PLC0415  loads what tables need

        typer.echo(str(write(run, to.value, out)))
