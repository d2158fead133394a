"""The channel's encoding: exact on plain values, closed to everything else, and safe on any bytes."""

import enum
import math
import struct
from collections import Counter, OrderedDict, defaultdict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.inside import codec

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters(codec=None)),
    st.binary(),
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.sets(HASHABLE, max_size=3)
    ),
    max_leaves=12,
)
Point = namedtuple("Point", "x y")


class Sly(int):
    """An int that lies about itself."""

    def __format__(self, spec):
        return "7"

    def __index__(self):
        return 7

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Words(str):
    """A str that encodes to something else."""

    def encode(self, *_):
        """Bytes of something else."""
        return b"forged"


class Endless(list):
    """A list that never ends to iteration."""

    def __iter__(self):
        while True:
            yield 1


class Colour(enum.IntEnum):
    """An int by name."""

    RED = 3


def same(one, other):
    """Equal in type and value, all the way down."""
    return type(one) is type(other) and repr(one) == repr(other)


@given(VALUES)
def test_a_plain_value_comes_back(value):
    """Value and type, of any size; -0.0 stays -0.0."""
    back = codec.decode(codec.encode(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param((1, [2, (3,)]), id="tuple in list"),
        pytest.param(-0.0, id="minus zero"),
        pytest.param(math.inf, id="infinity"),
        pytest.param(10**50, id="big int"),
        pytest.param(-(2**64), id="negative"),
        pytest.param("\ud800\udc00", id="lone surrogates stay two"),
        pytest.param({1: True, "1": 1.0}, id="dict"),
        pytest.param(frozenset({(1,)}), id="frozenset"),
        pytest.param(True, id="bool is no int"),
        pytest.param(b"\x00\xff", id="bytes"),
        pytest.param(complex(-0.0, math.inf), id="complex"),
    ],
)
def test_types_stay_apart(value):
    """What compares equal in Python but isn't the same comes back as what it was."""
    assert same(codec.decode(codec.encode(value)), value)


def test_an_int_of_any_size_travels():
    """Beyond what Python prints as decimal digits."""
    assert codec.decode(codec.encode(-(7**50_000))) == -(7**50_000)


def test_nan_keeps_its_bits():
    """A float travels bit for bit."""
    value = struct.unpack(">d", bytes.fromhex("7ff8000000000123"))[0]
    assert struct.pack(">d", codec.decode(codec.encode(value))).hex() == "7ff8000000000123"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param(Sly(5), 5, id="int"),
        pytest.param(Words("true"), "true", id="str"),
        pytest.param(Endless([4]), [4], id="list"),
        pytest.param(Point(1, 2), (1, 2), id="namedtuple"),
        pytest.param(Counter("aa"), {"a": 2}, id="counter"),
        pytest.param(OrderedDict(a=1), {"a": 1}, id="ordered dict"),
        pytest.param(defaultdict(int, a=1), {"a": 1}, id="defaultdict"),
        pytest.param(Colour.RED, 3, id="int enum"),
    ],
)
def test_a_subclass_travels_as_its_content(value, plain):
    """By the builtin's own methods: what the subclass overrides is never asked."""
    back = codec.decode(codec.encode(value))
    assert same(back, plain)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),
        pytest.param(range(3), id="range"),
        pytest.param(bytearray(b"x"), id="bytearray"),
        pytest.param([print], id="function inside"),
        pytest.param({"a": iter([])}, id="iterator inside"),
        pytest.param(int, id="class"),
    ],
)
def test_anything_else_has_no_form(value):
    """One fixed word."""
    with pytest.raises(codec.UnsendableError, match=r"^not_plain$"):
        codec.encode(value)


def cyclic():
    """A list in itself."""
    value = []
    value.append(value)
    return value


def deep(levels):
    """Lists in lists."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "word"),
    [
        pytest.param(cyclic(), "too_deep", id="cycle"),
        pytest.param(deep(codec.DEPTH_LIMIT + 1), "too_deep", id="depth"),
        pytest.param("x" * (codec.FRAME_LIMIT + 1), "too_large", id="bytes"),
        pytest.param([None] * (codec.VALUE_LIMIT + 1), "too_large", id="values"),
    ],
)
def test_size_and_depth_are_capped(value, word):
    """Both ends of the cap: one less travels."""
    with pytest.raises(codec.UnsendableError, match=f"^{word}$"):
        codec.encode(value)


def test_the_deepest_value_travels():
    """The cap's other side."""
    assert codec.decode(codec.encode(deep(codec.DEPTH_LIMIT))) == deep(codec.DEPTH_LIMIT)


def listed(count):
    """The head of a list with `count` items and none of them."""
    return b"l" + struct.pack(">I", count)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"x", id="no such tag"),
        pytest.param(b"NN", id="two values"),
        pytest.param(b"i\x00\x00\x00\x02-", id="cut"),
        pytest.param(b"i\x00\x00\x00\x01-", id="no digits"),
        pytest.param(b"i\x00\x00\x00\x03f_f", id="underscore"),
        pytest.param(b"i\x00\x00\x00\x00", id="empty int"),
        pytest.param(b"d\x00\x00\x00\x04abcd", id="short float"),
        pytest.param(b"s\x00\x00\x00\x01\xff", id="no UTF-8"),
        pytest.param(listed(1 << 31), id="more items than bytes"),
        pytest.param(b"e\x00\x00\x00\x01" + listed(0), id="a list in a set"),
        pytest.param(b"m\x00\x00\x00\x01N", id="half a pair"),
        pytest.param(b"m\x00\x00\x00\x02" + listed(0) + b"N", id="a list as key"),
        pytest.param(listed(1) * 5000, id="deeper than the cap"),
        pytest.param(listed(codec.VALUE_LIMIT + 1) + b"N" * (codec.VALUE_LIMIT + 1), id="more values than the cap"),
    ],
)
def test_bytes_of_another_make_are_refused(data):
    """Each with the one error."""
    with pytest.raises(codec.MalformedError):
        codec.decode(data)


@given(st.binary(max_size=64))
def test_any_bytes_decode_or_are_refused(data):
    """No other exception comes out, whatever comes in."""
    try:
        value = codec.decode(data)
    except codec.MalformedError:
        return
    assert type(value).__module__ == "builtins"
