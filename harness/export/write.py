"""Rows as a file. CSV bytes are a function of the rows alone; Parquet's also of the pyarrow that wrote them.

In CSV a list is JSON text, a truth value `true` or `false`, and a missing value an empty field; lines end with LF.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.claims.view import judged_view
from harness.errors import StorageError
from harness.export.columns import COLUMNS, Cell, Kind
from harness.export.rows import rows
from harness.files import write_atomic
from harness.places import Places

Format = Literal["parquet", "csv"]
Rows = Iterable[Mapping[str, Cell]]


@dataclass(frozen=True, slots=True)
class Written:
    """A table on disk: where, how many rows, and the names of its columns in order."""

    path: Path
    rows: int
    columns: tuple[str, ...]


def export(
    run: Path,
    kind: Format,
    out: Path | None,
    tree: Places | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Written:
    """Write the cells of a judged run to `out`, else to PROTOCOL-RUN.csv or .parquet in the current folder.

    StorageError for a file inside the run folder, which would no longer be what its audit record speaks for. `note` is
    told each step before it is taken.
    """
    note("the run's records")
    view = judged_view(run, tree)
    target = out or Path(f"{view.audit.protocol}-{view.audit.run_id}.{kind}")
    _require_outside(run, target)
    note("cells")
    made = list(rows(view))  # the whole table in memory: a run has hundreds of cells
    note("the table")
    write_atomic(target, csv_bytes(made) if kind == "csv" else parquet_bytes(made))
    return Written(target, len(made), tuple(column.name for column in COLUMNS))


def csv_bytes(made: Rows) -> bytes:
    """UTF-8 with a head line; everything in it is ASCII but names that a protocol registers."""
    target = io.StringIO(newline="")
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    writer.writerows([_text(row[column.name]) for column in COLUMNS] for row in made)
    return target.getvalue().encode("utf-8")


def _text(value: Cell) -> str:
    if isinstance(value, tuple):
        return msgspec.json.encode(value).decode("ascii")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def parquet_bytes(made: Rows) -> bytes:
    """Typed columns, missing values null, compressed with zstd."""
    import pyarrow as pa  # noqa: PLC0415  loaded only where a table is really written
    from pyarrow import parquet  # noqa: PLC0415  the same

    types: dict[Kind, Any] = {
        "string": pa.string(),
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "list<int32>": pa.list_(pa.int32()),
    }
    listed = list(made)
    schema = pa.schema([(column.name, types[column.kind]) for column in COLUMNS])
    arrays = [pa.array([row[column.name] for row in listed], types[column.kind]) for column in COLUMNS]
    target = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), target, compression="zstd")
    return target.getvalue()


def _require_outside(run: Path, target: Path) -> None:
    if target.resolve().is_relative_to(run.resolve()):
        todo = "Name a file elsewhere with --out."
        raise StorageError(str(target), expected="a file outside the run folder", found="one inside it", todo=todo)
