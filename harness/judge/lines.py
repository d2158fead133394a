"""JSON lines as they come: one at a time, in bounded memory, a bad one as a bad line and not as the end of the file.

Reads a file, a gzip file (by its bytes, under any name) or standard input (`-`). Blank lines are passed over and
counted, CR LF and a byte order mark are no part of a line. This module knows which fields say who a line is, and no
other.
"""

import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from harness.errors import HarnessError, InputError, StorageError
from harness.records.base import Record

LINE_LIMIT = 64 << 20  # bytes: 10 MB of text, each byte of it written as an escape
SAFE_INTEGER = 2**53
STDIN = "-"
GZIP = b"\x1f\x8b"
BOM = "\ufeff"
TODO = "Correct this line; the others are judged without it."

LineId = str | int


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number as it is written, or NaN, Infinity, -Infinity: no digit is lost and none is refused unseen."""

    written: str


class Said(Record):
    """The four parts of a HarnessError, in ASCII."""

    where: str
    expected: str
    found: str
    todo: str


class ErrorLine(Record):
    """What a line gets that can't be judged. `id`: none where the line doesn't say one."""

    id: LineId | None
    line: int
    error: Said


@dataclass(frozen=True, slots=True)
class Line:
    """One object of the file: its line's number from 1, its ID (none: it says none) and its fields."""

    number: int
    id: LineId | None
    fields: dict[str, Any]

    def where(self, field: str) -> str:
        """The place of a field, for messages."""
        return f"line {self.number}, field {field}"

    def own_id(self) -> LineId:
        """The ID; InputError where the line has no usable one."""
        if self.id is None:
            raise InputError(
                self.where("id"),
                expected="`id` or `task_id`: a string, or an integer within 2**53",
                found=_kind(self.fields.get("id", self.fields.get("task_id"))) if self._names() else "no such field",
                todo=TODO,
            )
        return self.id

    def text(self, field: str) -> str:
        """A field that must be a string of valid Unicode; the InputError doesn't quote it."""
        value = self.fields.get(field)
        if not isinstance(value, str):
            found = _kind(value) if field in self.fields else "no such field"
            raise InputError(self.where(field), expected="a string", found=found, todo=TODO)
        if _has_surrogate(value):
            raise InputError(self.where(field), expected="valid Unicode text", found="a lone surrogate", todo=TODO)
        return value

    def flag(self, field: str) -> bool:
        """A field that is true or false, and false where it's absent."""
        value = self.fields.get(field, False)
        if not isinstance(value, bool):
            raise InputError(self.where(field), expected="true or false", found=_kind(value), todo=TODO)
        return value

    def error(self, error: HarnessError) -> ErrorLine:
        """The error line of this line."""
        return ErrorLine(id=self.id, line=self.number, error=said(error))

    def _names(self) -> bool:
        return "id" in self.fields or "task_id" in self.fields


def said(error: HarnessError) -> Said:
    """An error's four parts, ASCII as its message is."""
    parts = (error.where, error.expected, error.found, error.todo)
    where, expected, found, todo = (one.encode("ascii", "backslashreplace").decode("ascii") for one in parts)
    return Said(where=where, expected=expected, found=found, todo=todo)


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """The bytes of a file or of standard input, unpacked where they are gzip. StorageError where there are none."""
    if file == STDIN:
        yield _unpacked(sys.stdin.buffer)
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below, apart from what the reader raises
    except OSError as error:
        raise StorageError(
            file,
            expected="a readable file of JSON lines",
            found=error.strerror or type(error).__name__,
            todo="Name an existing file, or - for standard input.",
        ) from error
    with stream:
        yield _unpacked(stream)


def read_lines(stream: BinaryIO, *, name: str) -> Iterator[Line | ErrorLine]:
    """Every line that isn't blank, as it is read; a stream that breaks off ends in an error line.

    InputError where the file is one JSON array or has no line at all.
    """
    none = True
    for number, line in _raw_lines(stream):
        if isinstance(line, bytes):
            text = line.strip(b" \t\r\n")
            if none and text.removeprefix(BOM.encode()).lstrip().startswith(b"["):
                raise _not_lines(name, "a JSON array")
            if not text:
                continue
        none = False
        yield _parsed(number, text) if isinstance(line, bytes) else ErrorLine(id=None, line=number, error=said(line))
    if none:
        raise _not_lines(name, "nothing but white space")


def _unpacked(stream: Any) -> BinaryIO:
    peeking = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
    if peeking.peek(len(GZIP)).startswith(GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=peeking))
    return peeking


def _raw_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | InputError]]:
    """Number and bytes of each line, or what is wrong with it before it is looked at."""
    number = 0
    try:
        while data := stream.readline(LINE_LIMIT + 1):
            number += 1
            if len(data) > LINE_LIMIT and not data.endswith(b"\n"):
                _skip_line(stream)
                yield number, _bad(number, f"at most {LINE_LIMIT} bytes", "more")
            else:
                yield number, data
    except (OSError, EOFError, zlib.error) as error:
        yield number + 1, _bad(number + 1, "a file that can be read to its end", " ".join(str(error).split()))


def _skip_line(stream: BinaryIO) -> None:
    while (data := stream.readline(1 << 20)) and not data.endswith(b"\n"):
        pass


def _parsed(number: int, data: bytes) -> Line | ErrorLine:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = _bad(number, "UTF-8", f"byte 0x{data[error.start]:02x} at {error.start}")
        return ErrorLine(id=_id_of(_decoded(data.decode("utf-8", "replace"))), line=number, error=said(problem))
    value = _decoded(text.removeprefix(BOM))
    if isinstance(value, dict):
        return Line(number, _id_of(value), value)
    found = value.found if isinstance(value, _NoJson) else _kind(value)
    return ErrorLine(id=None, line=number, error=said(_bad(number, "one JSON object", found)))


@dataclass(frozen=True, slots=True)
class _NoJson:
    found: str


def _decoded(text: str) -> Any:
    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
    except json.JSONDecodeError as error:
        return _NoJson(f"no JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        return _NoJson("nesting too deep to read")


def _id_of(value: Any) -> LineId | None:
    """`id`, or else `task_id`, where it can be said again: a string of valid Unicode or an integer within 2**53."""
    fields = value if isinstance(value, dict) else {}
    found = fields.get("id", fields.get("task_id"))
    if isinstance(found, str):
        return None if _has_surrogate(found) else found
    if isinstance(found, Number) and len(found.written) < 18 and found.written.lstrip("-").isdigit():
        return int(found.written) if abs(int(found.written)) <= SAFE_INTEGER else None
    return None


def _kind(value: Any) -> str:
    """What a JSON value is, without the value: it may be a test or a gold answer."""
    if isinstance(value, Number):
        return "NaN or an infinity" if value.written.lstrip("-")[0] in "NI" else "a number"
    names: dict[type, Literal["a string", "true or false", "null", "an array", "an object"]] = {
        str: "a string",
        bool: "true or false",
        type(None): "null",
        list: "an array",
        dict: "an object",
    }
    return names[type(value)]


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _bad(number: int, expected: str, found: str) -> InputError:
    return InputError(f"line {number}", expected=expected, found=found, todo=TODO)


def _not_lines(name: str, found: str) -> InputError:
    return InputError(
        name, expected="JSON lines: one object on each line", found=found, todo="Write one object on each line."
    )
