"""`report RUN` and `export RUN`: a judged run as a page, and its cells as a table. Needs no model and no network."""

import importlib.util
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.canon import sha256_hex
from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Json, Judged
from harness.cli.working import working
from harness.errors import SessionError
from harness.files import read_bytes
from harness.records.verbs import WrittenReport, WrittenTable


class Table(StrEnum):
    """The formats of a table."""

    parquet = "parquet"
    csv = "csv"


def report(run: Judged, *, json: Json = False) -> None:
    """Write RUN as one page, RUN/report.html, and print where it is.

    Exit 0: written; 1: refused, where RUN isn't judged or was altered.
    """
    with errors_to_stderr(), working("report") as note:
        _require_drawing()
        from harness.report.make import write_report  # noqa: PLC0415  needs the extra `report`, other verbs don't

        path = write_report(run, note=note)
        data = read_bytes(path, what="report")
    if json:
        made = WrittenReport(schema=1, path=show.valid(path), bytes=len(data), sha256=sha256_hex(data))
        show.document(made)
    else:
        show.line(str(path))


def _require_drawing() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        todo = "Install the extra: pip install -e '.[report]'."
        raise SessionError("report", expected="matplotlib, which draws the charts", found="none", todo=todo)


def export(
    run: Judged,
    to: Annotated[Table, typer.Option("--to", help="Format of the table.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write; default: PROTOCOL-RUN.parquet or .csv here."),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """Write RUN's cells as a table, one row a cell; print where it is.

    Exit 0: written; 1: refused, where RUN isn't judged or was altered, or FILE is inside RUN.
    """
    with errors_to_stderr(), working("export") as note:
        from harness.export.write import export as write  # noqa: PLC0415  loads what tables need

        written = write(run, to.value, out, note=note)
        data = read_bytes(written.path, what="table")
    if json:
        made = WrittenTable(
            schema=1,
            path=show.valid(written.path),
            format=to.value,
            bytes=len(data),
            sha256=sha256_hex(data),
            rows=written.rows,
            columns=written.columns,
        )
        show.document(made)
    else:
        show.line(str(written.path))
