"""Rows of a registered input file, parsed from the very bytes whose SHA-256 was verified.

A row is a dict of the file's own fields; its number is its place in the list, from 0. Values are as stored: no
stripping, no coercion. This module knows no domain and no field name.
"""

import csv
import gzip
import io
import json
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from harness.canon import sha256_hex
from harness.errors import InputError
from harness.files import read_bytes
from harness.inputs.archives import member_bytes
from harness.inputs.find import Present, location_of

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

Row = dict[str, Any]
BOM = b"\xef\xbb\xbf"
TODO = "Take the file from its publisher again; if its digest is the registered one, the registration is wrong."


def read_rows(present: Present) -> list[Row]:
    """All rows of the file, in order.

    Raises InputError where the bytes aren't the registered ones or don't parse (naming the line, from 1).
    """
    return [row for _, row in placed_rows(present)]


def placed_rows(present: Present) -> list[tuple[str, Row]]:
    """The same, each with where it stands: `line 3` (from 1; a CSV row's last line), or `row 2` (from 0) of a table."""
    data = verified_bytes(present)
    where = location_of(present)
    match present.format:
        case "jsonl":
            return _json_lines(data, where)
        case "jsonl.gz":
            return _json_lines(_gunzip(data, where), where)
        case "csv":
            return _csv(data, where)
        case "parquet":
            return [(f"row {number}", row) for number, row in enumerate(_parquet(data, where))]


def verified_bytes(present: Present) -> bytes:
    """The file's bytes, read once and hashed before anything parses them."""
    if present.member is None:
        data = read_bytes(present.path, what="input file")
    else:
        data = member_bytes(present.path, present.member)
    found = sha256_hex(data)
    if found != present.sha256:
        raise InputError(
            f"input {present.name}: {location_of(present)}",
            expected=f"SHA-256 {present.sha256}",
            found=found,
            todo="The file changed after it was found; take it from its publisher again.",
        )
    return data


def _gunzip(data: bytes, where: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(where, expected="gzip data", found=str(error), todo=TODO) from error


def _json_lines(data: bytes, where: str) -> list[tuple[str, Row]]:
    # Only \n ends a line: str.splitlines would also cut at U+2028 inside a JSON string.
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    return [
        (f"line {number}", _json_line(line, f"{where}: line {number}")) for number, line in enumerate(lines, start=1)
    ]


def _json_line(line: bytes, where: str) -> Row:
    try:
        if line.startswith(BOM):
            raise InputError(where, expected="one JSON object", found="a byte order mark", todo=TODO)
        row = msgspec.json.decode(line, type=Row)
        json.loads(line, object_pairs_hook=lambda pairs: _once(pairs, where))
        return row
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(where, expected="one JSON object", found=str(error), todo=TODO) from error


def _once(pairs: list[tuple[str, Any]], where: str) -> None:
    """A name that an object has twice has two values, of which a reader takes one unsaid."""
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(where, expected="each field once", found=f"{', '.join(twice)} twice", todo=TODO)


def _csv(data: bytes, where: str) -> list[tuple[str, Row]]:
    """Comma-separated values with a header, quoted as RFC 4180 has it; every value is a text, as it stands."""
    try:
        text = data.decode("utf-8-sig")  # a byte order mark isn't part of the first field's name
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{where}: line {line}", expected="UTF-8", found=error.reason, todo=TODO) from error
    limit = csv.field_size_limit(max(len(text), 1))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return _csv_rows(reader, where)
    except csv.Error as error:
        at = f"{where}: line {reader.line_num}"
        raise InputError(at, expected="comma-separated values", found=str(error), todo=TODO) from error
    finally:
        csv.field_size_limit(limit)


def _csv_rows(reader: "CsvReader", where: str) -> list[tuple[str, Row]]:
    names = next(reader, [])
    if not all(names) or len(set(names)) != len(names) or not names:
        raise InputError(f"{where}: line 1", expected="a header, each field named once", found=str(names), todo=TODO)
    rows: list[tuple[str, Row]] = []
    for values in reader:
        at = f"line {reader.line_num}"
        if len(values) != len(names):
            raise InputError(f"{where}: {at}", expected=f"{len(names)} fields", found=str(len(values)), todo=TODO)
        rows.append((at, dict(zip(names, values, strict=True))))
    return rows


def _parquet(data: bytes, where: str) -> list[Row]:
    # Heavy, and only this format needs it.
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        table = parquet.ParquetFile(pa.BufferReader(data)).read()
        _once([(name, None) for name in table.column_names], where)
        rows: list[Row] = table.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(where, expected="a parquet table", found=" ".join(str(error).split()), todo=TODO) from error
    return rows
