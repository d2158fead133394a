"""Plain forms, equality of written numbers, and gold numbers."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.evaluate.numeric import parse_gold, same_number
from harness.evaluate.numeric.exact import MAX_FRACTION_DIGITS, plain, quotient, shifted

FIXED = settings(deadline=None, derandomize=True, max_examples=60)  # no verdict on time, the same cases everywhere

DECIMAL = st.decimals(allow_nan=False, allow_infinity=False, places=6).map(lambda value: f"{value:f}")
FRACTION = st.tuples(st.integers(-(10**12), 10**12), st.integers(1, 10**6)).map(lambda parts: f"{parts[0]}/{parts[1]}")
WRITTEN = DECIMAL | FRACTION


@FIXED
@given(WRITTEN, WRITTEN)
def test_written_numbers_are_the_same_exactly_when_their_values_are(one, other):
    """Equality is that of exact rational values, decimals and fractions mixed."""
    assert same_number(one, other) == (Fraction(one) == Fraction(other))


@FIXED
@given(WRITTEN)
def test_the_plain_form_keeps_the_value_and_is_its_own(written):
    """No value is changed, and a plain form is left as it is."""
    form = plain(written)
    assert (Fraction(form), plain(form)) == (Fraction(written), form)


@FIXED
@given(DECIMAL, st.integers(-30, 30))
def test_a_shift_is_a_power_of_ten(written, exponent):
    """Moving the point multiplies by exactly ten to the power of the exponent."""
    assert Fraction(shifted(plain(written), exponent)) == Fraction(written) * Fraction(10) ** exponent


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("42", "42.0", True),
        ("1,250", "1250", True),
        ("84/2", "42", True),
        ("1/3", "2/6", True),
        ("1/3", "0.333", False),
        ("-0", "0", True),
        ("618", "18", False),
        ("-14", "14", False),
        ("1/8", "0.125", True),
    ],
)
def test_same_number(one, other, same):
    """Two ways to write a number are one number; nothing is nearly equal."""
    assert same_number(one, other) is same


@pytest.mark.parametrize("written", ["", "x", "1/0", "1/2/3", "1e3", "\uff11"])
def test_same_number_takes_numbers_only(written):
    """Anything else is misuse, not an unequal pair."""
    with pytest.raises(RuntimeError, match="takes two numbers"):
        same_number("1", written)


def test_what_is_too_large_to_reduce_has_no_value():
    """A fraction of very long parts and a far exponent are refused, not computed for minutes."""
    assert quotient("1" * (MAX_FRACTION_DIGITS + 1), "3") is None
    with pytest.raises(RuntimeError, match="exponent within"):
        shifted("1", 1000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", "18"),
        ("1,250", "1250"),
        ("42.0", "42"),
        ("1/3", "1/3"),
        ("84/2", "42"),
        (" -7\n", "-7"),
        ("+5", "5"),
        ("-0", "0"),
        ("1,234,567.50", "1234567.5"),
        ("9" * 6000, "9" * 6000),
    ],
)
def test_a_gold_number_is_read(text, value):
    """Digits, well-placed commas, a sign, a point or a fraction, with space around."""
    assert parse_gold(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "eighteen",
        "$18",
        "18 apples",
        "1,2",
        "12,50",
        "1e3",
        "1/0",
        "1/2/3",
        ".",
        "3.",
        "\uff11",
        "nan",
        "\ud800",
    ],
)
def test_a_gold_that_is_no_number_is_refused(text):
    """A broken gold answer is bad input with its place named: it is never guessed at."""
    with pytest.raises(InputError, match=r"^line 3: expected one number such as 18, 1,250, -42\.0 or 1/3, found"):
        parse_gold(text, where="line 3")
