"""The channel between checker and candidate: length-prefixed frames that hold plain builtin values and nothing else.

None, bool, int of any size, float (bit for bit), complex, str (lone surrogates too), bytes, list, tuple, dict, set,
frozenset. A subclass travels as its builtin's content, read by the builtin's own methods; anything else has no form.
Decoding makes builtin objects only, so nothing of a value's own code ever reaches the other side. It knows no calls.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # `typing` costs a start of Python that every container would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

FRAME_LIMIT = 8 << 20  # bytes of one frame
DEPTH_LIMIT = 100  # containers in containers; a cycle ends here too
VALUE_LIMIT = 1 << 20  # values of one frame


class UnsendableError(Exception):
    """A value has no form on the channel: its type, its depth or its size."""


class MalformedError(Exception):
    """Bytes that the encoder never writes."""


def encode(value: Any, limit: int = FRAME_LIMIT) -> bytes:
    """The bytes of a plain value, `limit` of them at most. Raises UnsendableError."""
    encoder = _Encoder(limit)
    encoder.put(value, 0)
    return b"".join(encoder.parts)


def decode(data: bytes) -> Any:
    """The value of such bytes. Raises MalformedError."""
    decoder = _Decoder(data)
    value = decoder.take(0)
    if decoder.at != len(data):
        raise MalformedError("bytes left over")
    return value


def frame(data: bytes) -> bytes:
    """Bytes with their length before them."""
    return struct.pack(">I", len(data)) + data


def base_of(kind: type, bases: Collection[type]) -> type | None:
    """The nearest class of a type's line that is one of `bases`; none where there is none."""
    for base in kind.__mro__:
        if base in bases:
            return base
    return None


_NAMES = {None: b"N", True: b"T", False: b"F"}


class _Encoder:
    def __init__(self, limit: int) -> None:
        self.parts: list[bytes] = []
        self.count = 0
        self.room = limit

    def put(self, value: Any, depth: int) -> None:
        self.count += 1
        if self.count > VALUE_LIMIT:
            raise UnsendableError("too_large")
        if depth > DEPTH_LIMIT:
            raise UnsendableError("too_deep")
        if value is None or value is True or value is False:
            self.add(_NAMES[value])
            return
        base = base_of(type(value), _KINDS)
        if base in _SCALARS:
            tag, read = _SCALARS[base]
            self.block(tag, read(value))
        elif base in _CONTAINERS:
            tag, items = _CONTAINERS[base]
            self.items(tag, items(value), depth)
        else:
            raise UnsendableError("not_plain")

    def add(self, data: bytes) -> None:
        self.room -= len(data)
        if self.room < 0:
            raise UnsendableError("too_large")
        self.parts.append(data)

    def block(self, tag: bytes, data: bytes) -> None:
        self.add(tag + struct.pack(">I", len(data)))
        self.add(data)

    def items(self, tag: bytes, values: Iterable[Any], depth: int) -> None:
        listed = list(values)
        self.add(tag + struct.pack(">I", len(listed)))
        for one in listed:
            self.put(one, depth + 1)


# Each reads a value by the builtin's own methods: a subclass's are never asked.
_SCALARS: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    int: (b"i", lambda value: int.__format__(value, "x").encode("ascii")),
    str: (b"s", lambda value: str.encode(value, "utf-8", "surrogatepass")),
    bytes: (b"b", lambda value: bytes.__getitem__(value, slice(None))),
    float: (b"d", lambda value: struct.pack(">d", float.__float__(value))),
    complex: (b"c", lambda value: struct.pack(">dd", *_parts(value))),
}
_CONTAINERS: dict[type, tuple[bytes, Callable[[Any], Iterable[Any]]]] = {
    list: (b"l", list.__iter__),
    tuple: (b"t", tuple.__iter__),
    set: (b"e", set.__iter__),
    frozenset: (b"z", frozenset.__iter__),
    dict: (b"m", lambda value: [one for pair in dict.items(value) for one in pair]),
}
_KINDS = frozenset(_SCALARS) | frozenset(_CONTAINERS)


def _parts(value: complex) -> tuple[float, float]:
    return vars(complex)["real"].__get__(value), vars(complex)["imag"].__get__(value)


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.count = 0

    def take(self, depth: int) -> Any:
        self.count += 1
        if self.count > VALUE_LIMIT or depth > DEPTH_LIMIT:
            raise MalformedError("too large or too deep")
        tag = self.raw(1)
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _BLOCKS:
            return _BLOCKS[tag](self.raw(self.length()))
        if tag in _LISTS:
            return _LISTS[tag](self.items(depth))
        raise MalformedError("no such tag")

    def raw(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise MalformedError("cut short")
        data, self.at = self.data[self.at : end], end
        return data

    def length(self) -> int:
        return int.from_bytes(self.raw(4), "big")

    def items(self, depth: int) -> list[Any]:
        size = self.length()
        if size > len(self.data) - self.at:
            raise MalformedError("cut short")
        return [self.take(depth + 1) for _ in range(size)]


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise MalformedError("no UTF-8") from None


def _integer(data: bytes) -> int:
    if not data or data.strip(b"-0123456789abcdef"):
        raise MalformedError("no integer")
    try:
        return int(data, 16)
    except ValueError:
        raise MalformedError("no integer") from None


def _floats(data: bytes, count: int) -> tuple[float, ...]:
    if len(data) != 8 * count:
        raise MalformedError("no float")
    return struct.unpack(f">{count}d", data)


def _unique(values: list[Any]) -> set[Any]:
    """A set one element at a time: an alarm gets its turn between two of them."""
    found: set[Any] = set()
    for one in values:
        try:
            found.add(one)
        except TypeError:
            raise MalformedError("an element without a hash") from None
    return found


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        raise MalformedError("half a pair")
    found: dict[Any, Any] = {}
    for at in range(0, len(values), 2):
        try:
            found[values[at]] = values[at + 1]
        except TypeError:
            raise MalformedError("a key without a hash") from None
    return found


_CONSTANTS = {name: value for value, name in _NAMES.items()}
_BLOCKS: dict[bytes, Callable[[bytes], Any]] = {
    b"i": _integer,
    b"s": _text,
    b"b": bytes,
    b"d": lambda data: _floats(data, 1)[0],
    b"c": lambda data: complex(*_floats(data, 2)),
}
_LISTS: dict[bytes, Callable[[list[Any]], Any]] = {
    b"l": list,
    b"t": tuple,
    b"e": _unique,
    b"z": lambda values: frozenset(_unique(values)),
    b"m": _pairs,
}
