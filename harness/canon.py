"""The one canonical encoding: RFC 8785 bytes for everything that is hashed, journalled or compared.

rfc8785 says what they are. Where a value holds no number of 16 digits before its point and no letters beyond the Basic
Multilingual Plane, msgspec's encoder writes the same bytes faster, which `tests/core/test_canon.py` holds it to.

Integers of 64 bits travel as 16-digit lower-case hex (RFC 8785 stops at 2**53), lone surrogates, NaN and infinities
are refused. Text that a model wrote is kept as token IDs and as ASCII escapes.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

import msgspec
import rfc8785

from harness.errors import CanonError


def _fraction(text: str) -> float:
    """A fraction that is written alike by msgspec and by RFC 8785, which has exponents from -7 down alike."""
    if text.endswith(".0") or ("e" in text and ("e-" not in text or text.endswith("e-6"))):
        raise ValueError(text)
    return float(text)


_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(float_hook=_fraction)
# Beyond the Basic Multilingual Plane the order of UTF-8 bytes isn't that of UTF-16 units, by which keys are sorted.
_ASTRAL = re.compile(rb"[\xf0-\xf4]")
_POINT_ZERO = re.compile(rb"\.0(?=[,\]}])")
_MILLIONTHS = re.compile(rb"(?<=[:\[,-])([0-9])(?:\.([0-9]+))?e-6(?=[,\]}])")
_WHOLE = re.compile(rb"[:\[,](?:0|-?[1-9][0-9]*)\Z")
_DIGITS = bytes(48 if 48 <= code <= 57 else 32 for code in range(256))
_LONG = b"0" * 16
_CONTAINERS = (dict, list, tuple)


def canonical_bytes(value: Any) -> bytes:
    """RFC 8785 bytes of a record or of plain lists, dicts, strings, numbers.

    A set is encoded as its sorted list. Raises CanonError where the value has no canonical form.
    """
    try:
        plain = msgspec.to_builtins(value, order="deterministic")
        return _plain_bytes(plain) or rfc8785.dumps(plain)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, TypeError) as error:
        raise CanonError(
            f"canonical encoding of {type(value).__name__}",
            expected="valid Unicode text, finite numbers and integers within 2**53",
            found=str(error),
            todo="Encode 64-bit integers with hex64 and refuse the text where it enters.",
        ) from error


def _plain_bytes(plain: Any) -> bytes | None:
    """The canonical bytes where msgspec writes them too; None where it may not.

    What is read back must equal the value: so NaN is seen, a key that isn't a text, and a text in which `1.0` was
    shortened.
    """
    try:
        data = _shortened(_ENCODER.encode(plain))
        astral = not data.isascii() and _ASTRAL.search(data) is not None
        same = not astral and not _has_large(data) and _equals(_DECODER.decode(data), plain)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return data if same else None


def _equals(read: Any, plain: Any) -> bool:
    """Whether what was read back is the value; a tuple, as records have them, comes back as a list."""
    kind = type(plain)
    if kind is dict:
        if type(read) is not dict or read.keys() != plain.keys():
            return False
        for name, one in plain.items():
            other = read[name]
            if not (_equals(other, one) if type(one) in _CONTAINERS else other == one):
                return False
        return True
    if kind is list or kind is tuple:
        return type(read) is list and (read == [*plain] or (len(read) == len(plain) and all(map(_equals, read, plain))))
    return bool(read == plain)


def _shortened(data: bytes) -> bytes:
    """`1.0` as `1` and `1.5e-6` as `0.0000015`, where an element or a member ends so."""
    parts, last = [], 0
    for match in _POINT_ZERO.finditer(data):
        at = match.start()
        if _WHOLE.search(data, max(0, at - 20), at):
            parts.append(data[last:at])
            last = match.end()
    whole = b"".join((*parts, data[last:])) if parts else data
    return _MILLIONTHS.sub(rb"0.00000\1\2", whole) if b"e-6" in whole else whole


def _has_large(data: bytes) -> bool:
    """Whether there may be an integer beyond 2**53: 17 digits, or 16 from a 9 on, where a number can begin."""
    digits = data.translate(_DIGITS)
    at = digits.find(_LONG)
    while at >= 0:
        end = at + len(_LONG)
        while digits[end : end + 1] == b"0":
            end += 1
        if (at == 0 or data[at - 1] in b":[,-") and (end - at > len(_LONG) or data[at : at + 1] == b"9"):
            return True
        at = digits.find(_LONG, end)
    return False


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
