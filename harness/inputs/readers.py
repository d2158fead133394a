"""Rows of a registered input file, parsed from the very bytes whose SHA-256 was verified.

A row is a dict of the file's own fields; its number is its place in the list, from 0. Values are as stored: no
stripping, no coercion. This module knows no domain and no field name.
"""

import gzip
import zlib
from typing import Any

import msgspec

from harness.canon import sha256_hex
from harness.errors import InputError
from harness.files import read_bytes
from harness.inputs.archives import member_bytes
from harness.inputs.find import Present, location_of

Row = dict[str, Any]
TODO = "Take the file from its publisher again; if its digest is the registered one, the registration is wrong."


def read_rows(present: Present) -> list[Row]:
    """All rows of the file, in order.

    Raises InputError where the bytes aren't the registered ones or don't parse (naming the line, from 1).
    """
    data = verified_bytes(present)
    where = location_of(present)
    match present.format:
        case "jsonl":
            return _json_lines(data, where)
        case "jsonl.gz":
            return _json_lines(_gunzip(data, where), where)
        case "parquet":
            return _parquet(data, where)


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


def _json_lines(data: bytes, where: str) -> list[Row]:
    # Only \n ends a line: str.splitlines would also cut at U+2028 inside a JSON string.
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    return [_json_line(line, f"{where}: line {number}") for number, line in enumerate(lines, start=1)]


def _json_line(line: bytes, where: str) -> Row:
    try:
        return msgspec.json.decode(line, type=Row)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(where, expected="one JSON object", found=str(error), todo=TODO) from error


def _parquet(data: bytes, where: str) -> list[Row]:
    # Heavy, and only this format needs it.
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    try:
        rows: list[Row] = parquet.ParquetFile(pa.BufferReader(data)).read().to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(where, expected="a parquet table", found=" ".join(str(error).split()), todo=TODO) from error
    return rows
