"""The record base and strict decoding.

A record has no unknown field, nothing is coerced, and no field that can change a token or a count has a default.
"""

import re
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import msgspec

from harness.errors import HarnessError

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class RecordMeta(msgspec.StructMeta):
    """Tells type checkers what msgspec does: subclasses of Record are frozen and keyword-only."""


class Record(msgspec.Struct, metaclass=RecordMeta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all records."""


class Frozen(Record, tag_field="state", tag="frozen"):
    """A registered SHA-256 (64 lower-case hex digits)."""

    sha256: str


class Unfrozen(Record, tag_field="state", tag="unfrozen"):
    """A digest that is owed: `reason` says why and what it waits for. Never filled in by guessing."""

    reason: str


Digest = Frozen | Unfrozen

_PATH = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)


def convert(data: Any, kind: type[T], *, where: Path | str, error: type[HarnessError], todo: str) -> T:
    """Plain data as a record of type `kind`; raises `error` naming the field, what was expected and what was found."""
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as problem:
        match = _PATH.match(str(problem))
        what, path = (match["what"], match["path"] or "$") if match else (str(problem), "$")
        expected, found = _expected_found(what)
        raise error(f"{where}: field {path}", expected=expected, found=found, todo=todo) from problem


def decode_json(data: bytes, kind: type[T], *, where: Path | str, error: type[HarnessError], todo: str) -> T:
    """JSON bytes as a record; the errors of `convert`, and one for bytes that aren't JSON."""
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise error(str(where), expected="JSON", found=str(problem), todo=todo) from problem
    return convert(plain, kind, where=where, error=error, todo=todo)


def _expected_found(what: str) -> tuple[str, str]:
    if found := re.match(r"Expected `(.+)`, got `(.+)`", what):
        return found[1], found[2]
    if found := re.match(r"Object missing required field `(.+)`", what):
        return f"a field `{found[1]}`", "no such field"
    if found := re.match(r"Object contains unknown field `(.+)`", what):
        return "only known fields", f"unknown field `{found[1]}`"
    return "a valid value", what
