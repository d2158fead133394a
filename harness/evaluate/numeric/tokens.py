r"""The written numbers of a folded text, for `numeric-v1`: where they stand, their sign and their exact value.

A token is a decimal with or without grouped thousands, a fraction (`84/2`, `\frac{84}{2}`, `\frac12`, `2 1/2`, `½`), a
decimal with a power of ten or a scale word, or something that looks like a number and is none: a date, a time, a
ratio, a version, a power. The latter has no value, so that no part of it is read as one. Each pattern is linear: what
repeats is possessive. This module doesn't know which token is an answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.evaluate.numeric.exact import MAX_EXPONENT, plain_decimal, quotient, shifted

_GROUPS = "|".join(
    rf"(?:{mark}[0-9]{{3}})++(?!(?:{mark})?[0-9])"
    for mark in (",", r"\{,\}", r",\\!", r"\{\\,\}", r"\\[,;:]", "\u00a0", "'", "_")
)
_DECIMALS = r"(?:\.[0-9]++)?"
_UNSIGNED = rf"""(?:
    [1-9][0-9]{{0,2}}(?:{_GROUPS}){_DECIMALS}
  | [1-9][0-9]?(?:,[0-9]{{2}}(?=,))++,[0-9]{{3}}(?!,?[0-9]){_DECIMALS}
  | [0-9]++{_DECIMALS}
  | (?<![\w.)])\.[0-9]++
)"""
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?(?![0-9A-Za-z])"
_YEAR = r"(?:,?[ ][0-9]{4}(?![0-9]))?"
_NO_NUMBER = rf"""
    [0-9]{{4}}[-./][0-9]{{1,2}}[-./][0-9]{{1,2}}(?![0-9])
  | [0-9]{{1,2}}[-/][0-9]{{1,2}}[-/][0-9]{{4}}(?![0-9])
  | [0-9]{{2,4}}年[0-9]{{1,2}}月(?:[0-9]{{1,2}}[日号])?
  | {_DAY}[ ]{_MONTH}{_YEAR}
  | \b{_MONTH}[ ]{_DAY}{_YEAR}
  | [0-9]++(?:[ ]?:[ ]?[0-9]++)++
  | {_UNSIGNED}(?:[ ]?/[ ]?{_UNSIGNED}){{2,}}+
"""
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_TO_ASCII = str.maketrans(_SUPERSCRIPTS + "⁺⁻", "0123456789+-")
_ARGUMENT = r"(?:\{{[ ]?(?P<{0}>[-+]?[ ]?{1})[ ]?\}}|[ ]?(?P<{0}_digit>[0-9]))"
_OVER, _UNDER = _ARGUMENT.format("over", _UNSIGNED), _ARGUMENT.format("under", _UNSIGNED)
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "万": 4, "亿": 8}

TOKEN = re.compile(
    rf"""
    (?P<european>[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}}){{2,}}+(?![.]?[0-9]))
  | (?P<version>[0-9]++(?:\.[0-9]++){{2,}}+)
  | (?P<other>{_NO_NUMBER})
  | (?:(?P<whole>[0-9]++)[ \u00a0]?)?\\[dtc]?frac[ ]?{_OVER}{_UNDER}
  | (?P<mixed>[0-9]++)[ \u00a0](?P<mixed_over>[0-9]++)/(?P<mixed_under>[0-9]++)(?![.,]?[0-9])
  | (?P<slash_over>{_UNSIGNED})[ ]?/[ ]?(?P<slash_under>{_UNSIGNED})
  | (?:(?P<vulgar_whole>[0-9]++)[ \u00a0]?)?(?P<vulgar>[{"".join(_VULGAR)}])
  | (?P<base>{_UNSIGNED})(?:
        [eE](?P<e>[-+]?[0-9]++)(?![0-9A-Za-z])
      | [ ]?(?:\\times|\\cdot|[×·*x])[ ]?10(?:
            \^[ ]?\{{?(?P<ten>[-+]?[0-9]++)\}}?|\*\*(?P<stars>[-+]?[0-9]++)|(?P<raised>[⁺⁻]?[{_SUPERSCRIPTS}]++))
      | (?P<power>[ ]?\^(?![ ]?\{{?[ ]?(?:\\circ|°))[ ]?\{{?(?P<exponent>[-+]?[0-9A-Za-z]*+)\}}?
            |\*\*(?P<exponent_stars>[-+]?[0-9]++)|(?P<exponent_raised>[⁺⁻]?[{_SUPERSCRIPTS}]++))
      | [ ](?i:(?P<scale>hundred|thousand|million|billion|trillion))\b
      | [ ]?(?P<wan>[万亿])(?![0-9])
    )?
    """,
    re.VERBOSE,
)

_BEFORE = re.compile(r"(?P<sign>[-+–±]|\\pm|\\mp)(?P<gap>[ \t]{0,2})(?:(?:\\?\$|[€£¥₹₩]|\\text\{\\?\$\})[ ]?)?\Z")
_REACH = 16  # characters before a token that can hold its sign
# What stands before a minus when it's a subtraction, a range or a word's hyphen. CJK letters aren't among them.
_OPERAND = re.compile(r"[0-9A-Za-z_)\]}%°–-]\Z")
_OPENS = re.compile(r"(?:[=:({\[<>≈是为]|\bis|####)[ \t]*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Token:
    """A written number: its span with the sign, its plain value, and where its digits begin (`bare`).

    `value` is None for what looks like a number and is none; with `plus_minus` it stands for two numbers.
    """

    start: int
    bare: int
    end: int
    value: str | None
    plus_minus: bool


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of text[start:end], in order."""
    return (token_of(text, match) for match in TOKEN.finditer(text, start, end))


def token_of(text: str, match: re.Match[str]) -> Token:
    """A match of TOKEN in the text as a token, with the sign before it."""
    sign = _sign(text, match.start())
    start = sign.start("sign") if sign else match.start()
    negative = sign is not None and sign["sign"] in ("-", "–")
    return Token(start, match.start(), match.end(), _value(match, negative), bool(sign and sign["sign"] in "±\\pm\\mp"))


def _sign(text: str, start: int) -> re.Match[str] | None:
    # endpos makes \Z the token's start.
    match = _BEFORE.search(text, max(0, start - _REACH), start)
    if match is None:
        return None
    before = text[max(0, match.start() - _REACH) : match.start()]
    if match["gap"]:  # a dash with a space after it is a minus only where a value must begin
        return match if _OPENS.search(before) else None
    return None if _OPERAND.search(before) else match


def _value(match: re.Match[str], negative: bool) -> str | None:  # noqa: FBT001
    if match["base"] is not None:
        return _scaled(match, _plain(match["base"], negative))
    if match["european"] is not None:
        return plain_decimal(match["european"].replace(".", ""), negative=negative)
    if match["version"] is not None or match["other"] is not None:
        return None
    return _fraction(match, negative)


def _scaled(match: re.Match[str], value: str) -> str | None:
    if match["power"] is not None:
        exponent = match["exponent"] or match["exponent_stars"] or match["exponent_raised"]
        return _shifted("-1" if value[0] == "-" else "1", exponent) if value.lstrip("-") == "10" else None
    if (word := match["scale"] or match["wan"]) is not None:
        return shifted(value, _SCALES[word.lower()])
    exponent = match["e"] or match["ten"] or match["stars"] or match["raised"]
    return value if exponent is None else _shifted(value, exponent)


def _shifted(value: str, exponent: str | None) -> str | None:
    """None for an exponent that is no number or beyond MAX_EXPONENT: such a value is never written out."""
    digits = (exponent or "").translate(_TO_ASCII)
    if not re.fullmatch(r"[-+]?0*[0-9]{1,3}", digits, re.ASCII):
        return None
    size = int(digits.lstrip("+-").lstrip("0") or "0")
    return shifted(value, -size if digits[0] == "-" else size) if size <= MAX_EXPONENT else None


def _fraction(match: re.Match[str], negative: bool) -> str | None:  # noqa: FBT001
    if match["vulgar"] is not None:
        parts = _VULGAR[match["vulgar"]]
        return quotient(str(parts[0]), str(parts[1]), whole=_whole(match["vulgar_whole"]), negative=negative)
    if match["mixed"] is not None:
        return _mixed(match["mixed"], match["mixed_over"], match["mixed_under"], negative=negative)
    if match["slash_over"] is not None:
        return quotient(_plain(match["slash_over"]), _plain(match["slash_under"]), negative=negative)
    over = match["over"] or match["over_digit"]
    under = match["under"] or match["under_digit"]
    return quotient(_written(over), _written(under), whole=_whole(match["whole"]), negative=negative)


def _mixed(whole: str, over: str, under: str, *, negative: bool) -> str | None:
    """`2 1/2` is one number; `12 84/2` are two, of which the second counts."""
    over, under = _plain(over), _plain(under)
    proper = (len(over), over) < (len(under), under)
    return quotient(over, under, whole=_whole(whole) if proper else "0", negative=negative)


def _whole(written: str | None) -> str:
    return _plain(written or "0")


def _written(argument: str) -> str:
    return _plain(argument.lstrip("+- "), argument.startswith("-"))


def _plain(written: str, negative: bool = False) -> str:  # noqa: FBT001, FBT002
    whole, _, fraction = written.partition(".")
    return plain_decimal(re.sub("[^0-9]", "", whole), fraction, negative=negative)
