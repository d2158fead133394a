"""The table of cells: columns as documented, values the records' own, and three readers that take it as it is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.claims.view import judged_view
from harness.errors import StorageError
from harness.export.columns import COLUMNS
from harness.export.rows import rows
from harness.export.write import csv_bytes, export, parquet_bytes

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
LISTS = [one.name for one in COLUMNS if one.kind == "list<int32>"]


@pytest.fixture(scope="module")
def every_row(hand_view):
    """All rows as they are."""
    return list(rows(hand_view))


@pytest.fixture(scope="module")
def made(every_row):
    """The rows without the megabyte that one output has: DuckDB takes a CSV line of 2,000,000 bytes at most."""
    short = {"generated_ids": (7, 1), "text_escaped": "cut", "length": 2}
    return [one if len(one["text_escaped"]) < 10_000 else one | short for one in every_row]


@pytest.fixture(scope="module")
def files(made, tmp_path_factory):
    """(csv, parquet) on disk."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "cells.csv").write_bytes(csv_bytes(made))
    (folder / "cells.parquet").write_bytes(parquet_bytes(made))
    return folder / "cells.csv", folder / "cells.parquet"


def test_every_column_is_documented():
    """Name and type, in order, as the page has them."""
    found = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| \S.* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [(one.name, one.kind) for one in COLUMNS]


def test_a_row_a_cell_with_the_records_own_values(every_row, hand_view):
    """Joined by identity: IDs, text, verdict and class of every cell."""
    found = {(one["source_id"], one["replicate"], one["condition"]): one for one in every_row}
    assert len(found) == len(every_row) == 128
    ledger = {(one.source_id, one.replicate, one.condition): one for one in hand_view.ledger.cells}
    for unit in hand_view.run.units:
        for cell in unit.cells:
            key = (unit.source_id, unit.replicate, cell.condition)
            row = found[key]
            assert row["generated_ids"] == cell.generated_ids
            assert row["prompt_ids"] == cell.prompt_ids
            assert row["text_escaped"] == cell.text_escaped
            assert row["edit_replaced_ids"] == tuple(edit.replaced for edit in cell.edits)
            assert (row["completion"], row["stop"], row["length"]) == (
                ledger[key].completion,
                ledger[key].stop,
                cell.length,
            )
    assert {one["verdict"] for one in every_row if one["domain"] == "code"} == {"passed", "assertion_failed", "timeout"}
    assert {one["fixed_budget_success"] for one in every_row if one["domain"] == "english"} == {None}


def test_a_port_says_so_in_every_row(tmp_path, reading):
    """In the result's name and in a column of its own."""
    view = judged_view(reading.write_run(tmp_path / "port", port=True))
    assert {(one["result_name"].endswith(" (port)"), one["port"]) for one in rows(view)} == {(True, True)}


def test_parquet_is_typed(files, made):
    """The schema is the columns', and what comes back is what was given, missing values null."""
    table = parquet.read_table(files[1])
    kinds = {
        "string": pa.string(),
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "list<int32>": pa.list_(pa.int32()),
    }
    assert [(one.name, one.type) for one in table.schema] == [(one.name, kinds[one.kind]) for one in COLUMNS]
    plain = [{name: list(v) if isinstance(v, tuple) else v for name, v in one.items()} for one in made]
    assert table.to_pylist() == plain


def test_pandas_takes_both(files, made):
    """Lengths stay integers, digests strings, lists lists or JSON text, and nothing missing is a word."""
    csv = pd.read_csv(files[0], dtype_backend="numpy_nullable")
    table = pd.read_parquet(files[1])
    for frame in (csv, table):
        assert len(frame) == 128
        assert list(frame.columns) == [one.name for one in COLUMNS]
        assert pd.api.types.is_integer_dtype(frame["length"])
        assert int(frame["length"].sum()) == sum(one["length"] for one in made)
        assert frame["generated_sha256"].tolist() == [one["generated_sha256"] for one in made]
        assert frame["completion"].isna().sum() == 0
        assert frame["outcome"].isna().sum() == sum(one["outcome"] is None for one in made)
        assert frame["text_escaped"].fillna("").tolist() == [one["text_escaped"] for one in made]
    assert [json.loads(one) for one in csv["generated_ids"]] == [list(one["generated_ids"]) for one in made]
    assert [list(one) for one in table["generated_ids"]] == [list(one["generated_ids"]) for one in made]


def test_polars_takes_both(files, made):
    """The same, with the types that it infers."""
    csv, table = pl.read_csv(files[0]), pl.read_parquet(files[1])
    for frame in (csv, table):
        assert frame.shape == (128, len(COLUMNS))
        assert frame["length"].dtype.is_integer()
        assert frame["natural_eos"].dtype == pl.Boolean
        assert frame["prompt_sha256"].dtype == pl.String
        assert frame["natural_eos"].sum() == sum(one["natural_eos"] for one in made)
        assert frame["evaluable"].null_count() == sum(one["evaluable"] is None for one in made)
    assert table["prompt_ids"].to_list() == [list(one["prompt_ids"]) for one in made]


def test_duckdb_takes_both(files, made):
    """A query over the file itself."""
    for path in files:
        columns = "condition, count(*), sum(length), count(outcome)"
        query = f"select {columns} from '{path}' group by condition order by condition"
        found = duckdb.sql(query).fetchall()
        conditions = sorted({one["condition"] for one in made})
        assert found == [
            (
                name, 16, sum(one["length"] for one in made if one["condition"] == name),
                sum(one["outcome"] is not None for one in made if one["condition"] == name),
            )
            for name in conditions
        ]  # fmt: skip
    joined = duckdb.sql(f"select len(generated_ids) = length from '{files[1]}'").fetchall()
    assert {one[0] for one in joined} == {True}


def test_csv_bytes_are_the_rows_alone(hand_run, every_row, tmp_path):
    """The same in another process under another locale; LF, no byte-order mark."""
    environment = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    target = tmp_path / "again.csv"
    command = [sys.executable, "-m", "harness", "export", str(hand_run), "--to", "csv", "--out", str(target)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{target}\n"), done.stderr
    assert target.read_bytes() == csv_bytes(every_row)
    assert b"\r" not in target.read_bytes()


def test_a_file_is_named_after_the_run(hand_run, tmp_path, monkeypatch):
    """In the current folder, where no name is given."""
    monkeypatch.chdir(tmp_path)
    for kind in ("csv", "parquet"):
        assert export(hand_run, kind, None).path == Path(f"nano-completion-formal-1.{kind}")
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "nano-completion-formal-1.csv",
        "nano-completion-formal-1.parquet",
    ]


def test_a_run_folder_takes_no_table(hand_run):
    """It would no longer be what its audit record speaks for."""
    with pytest.raises(StorageError, match="outside the run folder"):
        export(hand_run, "csv", hand_run / "cells.csv")
    assert not (hand_run / "cells.csv").exists()
