"""`numeric-v1`: how a number is written and read: fractions, thousands, signs, units, digits of other scripts."""

import pytest

from harness.evaluate.numeric import numeric_v1


def value(text):
    """The value that is read, or None."""
    return getattr(numeric_v1(text), "value", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\boxed{84/2}", "42"),
        ("\\boxed{\\dfrac{84}{2}}", "42"),
        ("\\boxed{\\frac12}", "0.5"),
        ("\\boxed{\\tfrac{1}{3}}", "1/3"),
        ("\\boxed{\\frac{2}{6}}", "1/3"),
        ("\\boxed{-\\frac{1}{2}}", "-0.5"),
        ("\\boxed{\\frac{-1}{2}}", "-0.5"),
        ("\\boxed{3\\frac{1}{2}}", "3.5"),
        ("\\boxed{-3\\frac12}", "-3.5"),
        ("\\boxed{\\frac{1,000}{2.5}}", "400"),
        ("It is 1/3 of it.", "1/3"),
        ("It is -2/6.", "-1/3"),
        ("2 1/2 cups", "2.5"),
        ("8\u00bd cups", "8.5"),
        ("\u2153 of it", "1/3"),
        ("1\u20448 of it", "0.125"),
        ("give 12 84/2", "42"),
        ("1/2/3 of 4", "4"),
        ("5/0 of 4", "4"),
    ],
)
def test_fractions_are_exact(text, expected):
    """A quotient is a finite decimal where there is one, else reduced `p/q`; a chain or a zero below is no number."""
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12,450", "12450"),
        ("1,234,567.50", "1234567.5"),
        ("7{,}250", "7250"),
        ("7,\\!250", "7250"),
        ("1\\,234", "1234"),
        ("1\u2009234", "1234"),
        ("1\u202f234\u00a0567", "1234567"),
        ("1'234", "1234"),
        ("1\u2019234", "1234"),
        ("1_000", "1000"),
        ("1,50,000", "150000"),
        ("1.234.567", "1234567"),
        ("1.234", "1.234"),
        ("\uff11\uff0c\uff12\uff13\uff14", "1234"),
        ("3, 4", "4"),
        ("1,2,3", "3"),
        ("1,23", "23"),
        ("0,500", "500"),
        ("1,2345", "2345"),
        ("1 234", "234"),
        ("12,", "12"),
    ],
)
def test_thousands_are_grouped_by_threes(text, expected):
    """A separator counts between groups of three (or the Indian 2-2-3) only; a comma is never a decimal point."""
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("is \u221214", "-14"),
        ("is \uff0d\uff15", "-5"),
        ("is \ufe635", "-5"),
        ("is \u201114", "-14"),
        ("is \u201314 now", "-14"),
        ("is $-5", "-5"),
        ("is -$5", "-5"),
        ("is \u2212\\$1,200", "-1200"),
        ("x=-7", "-7"),
        ("\u7b54\u6848\u662f-14\u3002", "-14"),
        ("(-5)", "-5"),
        ("**-5**", "-5"),
        ("x = - 5", "-5"),
        ("Answer: - 14", "-14"),
        ("10\u201320", "20"),
        ("30-10", "10"),
        ("30-10=20", "20"),
        ("done \u201414", "14"),
        ("--3", "3"),
        ("all:\n- 14 apples", "14"),
        ("COVID-19", "19"),
        ("+5", "5"),
        ("#### -0", "0"),
        ("#### -0.00", "0"),
    ],
)
def test_a_minus_is_a_sign_where_no_operand_stands_before_it(text, expected):
    """Hyphens, minus signs and en dashes negate; after a digit, letter or closing bracket and in bullets they don't."""
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$31.00.", "31"),
        ("\u20ac1,250.50", "1250.5"),
        ("\u00a330", "30"),
        ("USD540", "540"),
        ("35 percent", "35"),
        ("\uff13\uff15\uff05", "35"),
        ("5kg", "5"),
        ("5\u5343\u514b", "5"),
        (".75", "0.75"),
        ("...75", "75"),
        ("75...", "75"),
        ("0.333...", "0.333"),
        ("3.", "3"),
        ("007", "7"),
        ("1.5e3", "1500"),
        ("2E-3", "0.002"),
        ("1.5 \\times 10^{3}", "1500"),
        ("1.5 \u00d7 10\u207b\u00b3", "0.0015"),
        ("10^6", "1000000"),
        ("5 million", "5000000"),
        ("2.5 Billion", "2500000000"),
        ("3\u4e07\u5143", "30000"),
        ("2^{10} = 1024", "1024"),
        ("9" * 5000 + ".50", "9" * 5000 + ".5"),
        ("1" + "0" * 30 + "1", "1" + "0" * 30 + "1"),
    ],
)
def test_a_number_is_read_to_its_last_digit(text, expected):
    """Currency, percent signs and units are dropped, powers of ten and scale words multiply, nothing is rounded."""
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u0664\u0662", "42"),
        ("\u06f4\u06f2", "42"),
        ("\u096a\u0968", "42"),
        ("\u0e54\u0e52", "42"),
        ("\U0001d7d2\U0001d7d0", "42"),
        ("\u0661\u066c\u0662\u0663\u0664\u066b\u0665", "1234.5"),
        ("\u200f-\u200e42", "-42"),
        ("4\u200b2", "42"),
        ("\uff21\uff4e\uff53\uff57\uff45\uff52\uff1a\uff14\uff12 of 50", "42"),
        ("x\u00b2 + \u2460", None),
        ("\u2167", None),
        ("\u56db\u5341\u4e8c", None),
        ("forty-two", None),
    ],
)
def test_digits_of_other_scripts_are_digits(text, expected):
    """Decimal digits of the listed scripts count, invisible marks don't part them; other numerals are words."""
    assert value(text) == expected
