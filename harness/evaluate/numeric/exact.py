"""Exact plain forms of numbers: what two evaluators, or an evaluator and a gold number, are compared by.

A plain form is an optional `-`, digits without leading zeros, and a `.` with digits that don't end in 0; or, for a
value that no finite decimal holds, a reduced `p/q`. Zero has no sign, nothing is rounded and nothing is written with
an exponent, so two numbers are equal exactly when their plain forms are. Numbers are handled as strings, because
Decimal rounds to its context and `int` refuses long texts. This module doesn't know what text a number stood in.
"""

import re
from fractions import Fraction

from harness.canon import escaped
from harness.errors import CanonError, InputError

# Digits of each part of a fraction. Reducing is quadratic, and `int` and `str` refuse more than 4,300 digits; parts of
# 400 digits give at most some 1,750.
MAX_FRACTION_DIGITS = 400
MAX_EXPONENT = 999

_DECIMAL = r"[-+]?(?:[1-9][0-9]{0,2}(?:,[0-9]{3})++|[0-9]++)(?:\.[0-9]++)?"
PLAIN = re.compile(rf"(?P<over>{_DECIMAL})(?:/(?P<under>{_DECIMAL}))?")


def plain_decimal(whole: str, fraction: str = "", *, negative: bool = False) -> str:
    """The plain form of ASCII digits before and after the point: `007`, `50` is `7.5`; -0 is `0` (R05 5)."""
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    digits = f"{whole}.{fraction}" if fraction else whole
    return f"-{digits}" if negative and digits != "0" else digits


def shifted(plain: str, exponent: int) -> str:
    """A plain decimal times ten to the power of `exponent`, exactly. More than MAX_EXPONENT is misuse."""
    if abs(exponent) > MAX_EXPONENT:
        raise RuntimeError(f"shifted takes an exponent within {MAX_EXPONENT}, got {exponent}")
    whole, _, fraction = plain.lstrip("-").partition(".")
    if exponent >= 0:
        moved = fraction.ljust(exponent, "0")
        whole, fraction = whole + moved[:exponent], moved[exponent:]
    else:
        moved = whole.rjust(-exponent, "0")
        whole, fraction = moved[:exponent], moved[exponent:] + fraction
    return plain_decimal(whole, fraction, negative=plain.startswith("-"))


def quotient(over: str, under: str, *, whole: str = "0", negative: bool = False) -> str | None:
    """The plain form of whole + over/under (plain decimals; `negative` turns all of it): `42`, `0.5` or `1/3`.

    None where there is no value that this module can give: a division by zero, or a part longer than
    MAX_FRACTION_DIGITS.
    """
    if max(len(over), len(under), len(whole)) > MAX_FRACTION_DIGITS or under == "0":
        return None
    value = Fraction(whole) + Fraction(over) / Fraction(under)
    return _plain_fraction(-value if negative else value)


def plain(written: str) -> str | None:
    """The plain form of a number written as `-1,250.50` or as a fraction `84/2` of two such; None for anything else."""
    match = PLAIN.fullmatch(written)
    if match is None:
        return None
    over = _plain_written(match["over"])
    return over if match["under"] is None else quotient(over, _plain_written(match["under"]))


def same_number(one: str, other: str) -> bool:
    """Are two written numbers (`42.0`, `1,250`, `84/2`, `1/3`) the same value? Anything but a number is misuse."""
    forms = plain(one), plain(other)
    if None in forms:
        raise RuntimeError(f"same_number takes two numbers, got {one[:80]!a} and {other[:80]!a}")
    return forms[0] == forms[1]


def parse_gold(text: str, *, where: str = "gold") -> str:
    """The plain form of a gold number: digits, well-placed commas, a sign, a decimal point or a fraction.

    Space around it is dropped. `where` names it in the InputError that anything else gives, a division by zero too.
    """
    value = plain(text.strip())
    if value is None:
        raise InputError(
            where,
            expected="one number such as 18, 1,250, -42.0 or 1/3",
            found=_shown(text),
            todo="Write the gold answer as digits only: no unit, no currency sign, no words.",
        )
    return value


def _plain_written(written: str) -> str:
    whole, _, fraction = written.replace(",", "").lstrip("+-").partition(".")
    return plain_decimal(whole, fraction, negative=written.startswith("-"))


def _plain_fraction(value: Fraction) -> str:
    places, rest = _decimal_places(value.denominator)
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    cut = len(digits) - places
    return plain_decimal(digits[:cut], digits[cut:], negative=value < 0)


def _decimal_places(denominator: int) -> tuple[int, int]:
    counts, rest = [0, 0], denominator
    for index, prime in enumerate((2, 5)):
        while rest % prime == 0:
            rest //= prime
            counts[index] += 1
    return max(counts), rest


def _shown(text: str) -> str:
    try:
        return f"`{escaped(text[:60])}`"
    except CanonError:
        return "text with a lone surrogate"
