"""The figures that a clause of a write-up states: fractions, percentages, "all N", ranges, counted nouns, decimals.

A number in words is read as its digits.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from harness.claims.numerals import in_digits

Form = Literal["fraction", "percentage", "all", "count", "decimal"]
Things = Literal["", "cells", "sources", "tapes"]

_N = r"(\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,12})"
_D = r"(\d{1,9}(?:\.\d{1,9})?)"
_LEFT, _RIGHT = r"(?<![A-Za-z0-9_./@#-])", r"(?![A-Za-z0-9_/]|\.\d)"
_TO = r"\s?(?:-|–|—|~|至|到|\bto\b|\band\b)\s?"
_OF = r"\s{0,2}(?:/|\bout of\b(?: the| all)?|\bof\b(?: the| all)?(?: the)?)\s{0,2}"
_WORDS = r"\s?(?:[A-Za-z-]{2,20} ){0,2}?"
_NOUN = (
    r"(?:cells?|outputs?|sources?|tasks?|problems?|questions?|tokens?|seeds?|draws?|programs?|comparisons?|edges?|rows?"
    r"|conditions?|tapes?|digests?|stages?|gates?|layers?|decisions?|samples?|runs?|answers?)\b"
)
# What the run makes one of for each source and condition.
_CELL = re.compile(
    r"\s?(?:[A-Za-z-]{2,20} ){0,2}?(?:cells?|outputs?|sequences?|generations?|programs?|answers?)\b"
    r"|\s?(?:个\s?)?(?:格|输出|程序|答案)",
    re.IGNORECASE,
)
_DONE = (
    r"\s?(?:(?:(?:were|was|are|is) )?(?:correct|right|solved|passed|exact|cut|truncated|replayed|reproduced|ended)\b"
    r"|(?:正确|通过|截断|自然结束))"
)
# What cells are of: a source has one under each condition, and in each replicate.
_SOURCE = re.compile(
    r"\s?(?:[A-Za-z-]{2,20} ){0,2}?(?:sources?|tasks?|problems?|questions?)\b"
    r"|\s?(?:[个条道]\s?)?(?:来源|题目?|问题|source)",
    re.IGNORECASE,
)
_TAPE = re.compile(
    r"\s?(?:[A-Za-z-]{2,20} ){0,2}?tapes?\b|\s?[条个盘]?\s?(?:随机|固定)?(?:磁带|带子?(?!有|来|着|入|上))",
    re.IGNORECASE,
)
_THINGS: tuple[tuple[Things, re.Pattern[str]], ...] = (("tapes", _TAPE), ("sources", _SOURCE), ("cells", _CELL))
_KANJI = r"\s?(?:格|条|道题|道|个|次|份|对|行|词元|层|阶段)"


@dataclass(frozen=True, slots=True)
class Quoted:
    """A figure as it was written: `values` are (numerator, denominator), or one number; [start, end) in the clause.

    `things`: what it is said to be a number of, where that is cells, sources or tapes.
    """

    form: Form
    words: str
    values: tuple[Decimal, ...]
    start: int
    end: int
    things: Things


def _number(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


Reading = Callable[[re.Match[str]], tuple[tuple[Form, tuple[Decimal, ...]], ...]]


def _each(form: Form, *groups: int) -> Reading:
    """Each group as a figure of its own: the two ends of a range."""
    return lambda match: tuple((form, (_number(match[group]),)) for group in groups)


def _ends_of(match: re.Match[str]) -> tuple[tuple[Form, tuple[Decimal, ...]], ...]:
    return tuple(("fraction", (_number(match[end]), _number(match[3]))) for end in (1, 2))


def _pair(first: int, second: int) -> Reading:
    return lambda match: (("fraction", (_number(match[first]), _number(match[second]))),)


_FORMS: tuple[tuple[re.Pattern[str], Reading], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reading)
    for pattern, reading in (
        (rf"{_LEFT}{_N}{_TO}{_N}{_OF}{_N}{_RIGHT}", _ends_of),
        (rf"{_LEFT}{_N}{_OF}{_N}{_RIGHT}", _pair(1, 2)),
        (rf"{_LEFT}{_N}{_KANJI}?\s?(?:中|里)\s?(?:的|有)?\s?{_N}(?![A-Za-z0-9_/])", _pair(2, 1)),
        (rf"{_LEFT}{_D}\s?%?{_TO}{_D}\s?(?:%|percent|per cent)", _each("percentage", 1, 2)),
        (rf"{_LEFT}{_D}\s?(?:%|percent|per cent)", _each("percentage", 1)),
        (rf"百分之\s?{_D}", _each("percentage", 1)),
        (rf"(?:\ball(?: of)?(?: the)?|\bevery one of(?: the)?|全部|所有)\s?{_N}(?![A-Za-z0-9_/.%])", _each("all", 1)),
        (rf"{_LEFT}(?<!第)(?<!第 ){_N}{_TO}{_N}(?:{_WORDS}{_NOUN}|{_KANJI})", _each("count", 1, 2)),
        (rf"{_LEFT}(?<!第)(?<!第 ){_N}(?:{_WORDS}{_NOUN}|{_KANJI})", _each("count", 1)),
        (rf"{_LEFT}(?<!第)(?<!第 ){_N}{_DONE}", _each("count", 1)),
        (rf"(?:正确|答对|通过)\s?{_N}(?![A-Za-z0-9_/.%])", _each("count", 1)),
        (rf"{_LEFT}(\d{{1,6}}\.\d{{1,12}})(?![A-Za-z0-9_/%]|\.\d)", _each("decimal", 1)),
    )
)
# What stands before a number that is no figure: a version, a clause, a setting.
_LABEL = re.compile(
    r"(?:version|clause|section|§|\bR\d\d|python|torch|transformers|numpy|cuda|temperature|top.?p|条款|第|节|版本|温度)"
    r"[\s=:v.]{0,4}$",
    re.IGNORECASE,
)
# Which one it is, and no count: "problem 3 passed".
_WHICH = re.compile(
    r"\b(?:source|problem|task|question|cell|layer|step|seed|row|position|rank|ID|HumanEval|GSM8K)\s?#?$", re.IGNORECASE
)


def quoted(clause: str) -> Iterator[Quoted]:
    """Every figure of a normalised clause, none twice."""
    read = in_digits(clause)
    taken = [False] * len(read.text)
    for pattern, reading in _FORMS:
        for match in pattern.finditer(read.text):
            if any(taken[match.start() : match.end()]) or _is_label(read.text, match):
                continue
            taken[match.start() : match.end()] = [True] * (match.end() - match.start())
            start, end = read.start(match.start()), read.end(match.end())
            things = _things(read.text, match)
            for form, values in reading(match):
                yield Quoted(form, clause[start:end].strip(), values, start, end, things)


def _things(text: str, match: re.Match[str]) -> Things:
    """By the noun within the figure or right after it."""
    found = (name for name, noun in _THINGS if noun.search(match[0]) or noun.match(text, match.end()))
    return next(found, "")


def _is_label(text: str, match: re.Match[str]) -> bool:
    near = max(0, match.start() - 40)
    return bool(_LABEL.search(text, near, match.start()) or _WHICH.search(text, near, match.start()))
