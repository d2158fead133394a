"""The one canonical encoding: RFC 8785 bytes for everything that is hashed, journalled or compared.

Integers of 64 bits travel as 16-digit lower-case hex (RFC 8785 stops at 2**53), lone surrogates, NaN and infinities
are refused. Text that a model wrote is kept as token IDs and as ASCII escapes.
"""

import hashlib
import json
import warnings
from collections.abc import Sequence
from typing import Any

import msgspec
import rfc8785

from harness.errors import CanonError


def canonical_bytes(value: Any) -> bytes:
    """RFC 8785 bytes of a record or of plain lists, dicts, strings, numbers.

    A set is encoded as its sorted list. Raises CanonError where the value has no canonical form.
    """
    try:
        return rfc8785.dumps(msgspec.to_builtins(value, order="deterministic"))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, TypeError) as error:
        raise CanonError(
            f"canonical encoding of {type(value).__name__}",
            expected="valid Unicode text, finite numbers and integers within 2**53",
            found=str(error),
            todo="Encode 64-bit integers with hex64 and refuse the text where it enters.",
        ) from error


def is_canonical(data: bytes) -> bool:
    """Whether bytes are JSON in the canonical encoding."""
    try:
        return canonical_bytes(json.loads(data.decode("utf-8"), parse_int=_integer)) == data
    except (ValueError, RecursionError, CanonError):
        return False


def _integer(text: str) -> float:
    """A number without a point: beyond 2**53 it can only be what a float was written as."""
    return int(text) if len(text) < 16 else float(text)


def sha256_hex(data: bytes) -> str:
    """Lower-case hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes of a value."""
    return sha256_hex(canonical_bytes(value))


def ids_sha256(ids: Sequence[int]) -> str:
    """SHA-256 of the canonical list of token IDs, e.g. of b'[0,17,1]' (DECISIONS: identity and encoding)."""
    return digest([int(i) for i in ids])


def text_sha256(text: str) -> str:
    """SHA-256 of the UTF-8 bytes of a text; a lone surrogate is a CanonError."""
    try:
        return sha256_hex(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise CanonError(
            "text hash", expected="valid Unicode text", found=str(error), todo="Keep the text as token IDs."
        ) from error


def hex64(value: int) -> str:
    """A 64-bit unsigned integer as 16 lower-case hex digits."""
    if not 0 <= value < 2**64:
        raise RuntimeError(f"hex64 takes 0 <= value < 2**64, got {value}")
    return f"{value:016x}"


def escaped(text: str) -> str:
    """Model text as ASCII: Python's unicode_escape, reversible by `unescaped`; a lone surrogate is a CanonError."""
    if _has_surrogate(text):
        raise CanonError(
            "escaped text",
            expected="valid Unicode text",
            found="a lone surrogate",
            todo="Keep the text as token IDs.",
        )
    return text.encode("unicode_escape").decode("ascii")


def unescaped(text: str) -> str:
    """The text that `escaped` was given; UnicodeError for anything that `escaped` doesn't write: nothing is guessed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # an unknown escape is refused below, in every Python
        plain = text.encode("ascii").decode("unicode_escape")
    if plain.encode("unicode_escape").decode("ascii") != text or _has_surrogate(plain):
        raise UnicodeError(f"not an escaped text: {text[:80]!a}")
    return plain


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
