"""The canonical encoding: one byte string a value, and a refusal for what has none."""

import hashlib
import json

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from harness.canon import (
    canonical_bytes,
    digest,
    escaped,
    hex64,
    ids_sha256,
    is_canonical,
    sha256_hex,
    text_sha256,
    unescaped,
)
from harness.errors import CanonError

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=12,
)


@given(PLAIN)
def test_json_reads_the_canonical_bytes_back(value):
    """Any JSON reader gives the value again (numbers in binary64, as RFC 8785 has them: 1.0 and 1 are one)."""
    assert json.loads(canonical_bytes(value), parse_int=float) == value


NUMBERED = st.text('0123456789.:,[]-e"', max_size=24)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.integers().map(float) | TEXT | NUMBERED,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(TEXT | NUMBERED, inner)
        | st.dictionaries(st.integers(), inner)
    ),
    max_leaves=12,
)


@given(ANY)
@example([-0.0, 0.0, 1.0, -1.0, 100.0, 1e15, 9007199254740991.0, 9007199254740992.0])
@example(
    [1e-6, -1e-6, 1.5e-6, -9.999999999999999e-6, 9.99e-7, -1e-7, 1.25e-10, 0.00001, "a:1e-6,", [1e-6], {"b": 1e-6}]
)
@example(["x,1.5e-6,", 1])
@example([1e16, 1e21, 1e-4, 1e-5, 1.5e-5, 1e-7, 5e-324, 1.7976931348623157e308])
@example([9007199254740991, -9007199254740991, 1796083612472697, "9" * 16, "a:1.0,b", ["x:1.0,"], {"a:1.0,": 1.0}])
@example([{"1": 1, "\x7f": '\x00\x1f\b\f\n\r\t"\\/'}, 0.12345678901234567, 1234567890123456.5])
@example({"9007199254740993": [12345678901234567]})
@example({"\u9898\uff0c": 1.0, "\x80": "\u7ed3\uff1a1.0,", "\uffff": 2, "z": "\ud7ff\ue000\u2028"})
@example({"\ufb33": 1, "\U0001f600": 2, "\r": 3})
@example({"\u9898": "\ud800"})
@example(({"a": ((1.0, "x:1.0,"), [(), ("\u9898",)])}, (2, 3)))
@example({1: 2})
@example({"a": ({1: 2},)})
@example((1, (float("nan"),)))
@example([float("nan")])
def test_bytes_are_those_of_rfc8785(value):
    """Whichever encoder wrote them; and what has none there has none here."""
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        with pytest.raises(CanonError):
            canonical_bytes(value)
    else:
        assert canonical_bytes(value) == expected


@given(st.dictionaries(TEXT, WHOLE))
def test_the_order_of_keys_is_not_content(value):
    """A dictionary built the other way round has the same bytes."""
    assert canonical_bytes(dict(reversed(value.items()))) == canonical_bytes(value)


def test_keys_are_sorted_by_utf16_code_units():
    """RFC 8785 3.2.3: an astral key sorts before U+FB33, as its first surrogate is smaller."""
    assert canonical_bytes({"\ufb33": 1, "\U0001f600": 2, "\r": 3}) == '{"\\r":3,"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize(
    ("value", "data"),
    [
        pytest.param(1e21, b"1e+21", id="large"),
        pytest.param(0.000001, b"0.000001", id="small"),
        pytest.param(1e-7, b"1e-7", id="smaller"),
        pytest.param(-0.0, b"0", id="negative-zero"),
        pytest.param(0.1 + 0.2, b"0.30000000000000004", id="shortest-round-trip"),
        pytest.param(2**53 - 1, b"9007199254740991", id="largest-integer"),
        pytest.param(-(2**53) + 1, b"-9007199254740991", id="smallest-integer"),
        pytest.param("\u2028\x00\x7f\\", '"\u2028\\u0000\x7f\\\\"'.encode(), id="text"),
        pytest.param({"b", "a", "c"}, b'["a","b","c"]', id="set"),
    ],
)
def test_a_value_has_its_rfc_8785_bytes(value, data):
    """Known answers of RFC 8785; a set, which has no order of its own, is sorted."""
    assert canonical_bytes(value) == data


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(float("nan"), id="nan"),
        pytest.param(float("inf"), id="inf"),
        pytest.param(float("-inf"), id="minus-inf"),
        pytest.param(2**53, id="2**53"),
        pytest.param(-(2**53), id="-2**53"),
        pytest.param(2**64, id="2**64"),
        pytest.param(2**200, id="2**200"),
        pytest.param("\ud800", id="lone-surrogate"),
        pytest.param({"\udfff": 1}, id="lone-surrogate-key"),
        pytest.param({1: 1}, id="integer-key"),
        pytest.param(1j, id="complex"),
        pytest.param(object(), id="object"),
    ],
)
@pytest.mark.parametrize(
    "wrap", [lambda one: one, lambda one: [one], lambda one: {"a": one}], ids=["bare", "list", "dict"]
)
def test_a_value_without_canonical_form_is_refused(value, wrap):
    """Also deep inside: nothing is rounded, replaced or dropped."""
    with pytest.raises(CanonError, match="canonical encoding of"):
        canonical_bytes(wrap(value))


@pytest.mark.parametrize(
    ("ids", "data"), [((0, 17, 1), b"[0,17,1]"), ((), b"[]"), ((100001,), b"[100001]")], ids=["three", "none", "one"]
)
def test_the_hash_of_ids_is_over_their_canonical_list(ids, data):
    """DECISIONS: SHA-256 of b'[0,17,1]' for the IDs 0, 17, 1; list, tuple and generator of int-likes alike."""
    assert ids_sha256(ids) == hashlib.sha256(data).hexdigest()
    assert ids_sha256(list(ids)) == ids_sha256(ids)


def test_published_example_of_an_ids_hash():
    """The value itself, so that another encoding can't pass by agreeing with itself."""
    assert ids_sha256((0, 17, 1)) == "89e2d7b5f4f8962c2adb90c2e4c9e53f2bc9617fe1e67150927ab3f32b8f16dc"


def test_the_order_of_ids_is_content():
    """Two orders of the same IDs are two hashes."""
    assert ids_sha256((1, 2)) != ids_sha256((2, 1))


@given(TEXT)
def test_escaped_text_comes_back(text):
    """Any text without lone surrogates: ASCII, one line, and the same text again."""
    line = escaped(text)
    assert line.isascii()
    assert line.isprintable()
    assert unescaped(line) == text


def test_every_code_point_comes_back():
    """All of Unicode but the surrogates: control characters, U+2028, astral planes."""
    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    assert unescaped(escaped(text)) == text
    assert text_sha256(text) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"], ids=ascii)
@pytest.mark.parametrize("refusing", [escaped, text_sha256, digest])
def test_a_lone_surrogate_is_refused(refusing, text):
    """Such a text is kept as token IDs; no hash and no escape of it exists."""
    with pytest.raises(CanonError):
        refusing(text)


@pytest.mark.parametrize(
    "line",
    ["\\x4", "\\q", "\\N{DIGIT ONE}", "\\ud800", "\\u0041", "\\101", "\\", "\u00e9", "\n", "\\U00110000", "\\x41"],
    ids=ascii,
)
def test_what_escaped_does_not_write_is_refused(line):
    """Two escapes of one text, an unknown escape, or a torn one: none is read as anything."""
    with pytest.raises(UnicodeError):
        unescaped(line)


def test_hex64_is_sixteen_digits():
    """Both ends of the 64-bit range."""
    assert (hex64(0), hex64(2**64 - 1)) == ("0" * 16, "f" * 16)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_hex64_beyond_its_range_is_misuse(value):
    """A caller's error, not bad data."""
    with pytest.raises(RuntimeError, match="hex64 takes"):
        hex64(value)


def test_sha256_is_lower_case_hex():
    """FIPS 180-4's empty message."""
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(PLAIN)
def test_canonical_bytes_are_recognised(value):
    """And the same content in another form isn't."""
    data = canonical_bytes(value)
    assert is_canonical(data)
    assert not is_canonical(b" " + data)


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a":1,"a":1}', b'{"b":1,"a":1}', b"1.0", b"[" * 100_000 + b"]" * 100_000]
)
def test_other_bytes_are_not_canonical(data):
    """No JSON, a name twice, another order, another number, deeper than it can be read."""
    assert not is_canonical(data)
