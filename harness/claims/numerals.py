"""Numbers in words, as digits: English from one to nine hundred and ninety-nine, Chinese from 一 to 九百九十九.

A word is a number only beside what makes it one: a noun that is counted, an outcome, another number of a fraction.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_ONES = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90
}  # fmt: skip
_HAN = {letter: value for value, letter in enumerate("一二三四五六七八九", start=1)} | {"两": 2}
_SMALL = "|".join(sorted((*_ONES, *_TENS), key=len, reverse=True))
_BELOW = rf"(?:(?:{'|'.join(_TENS)})(?:[-\s](?:{'|'.join(list(_ONES)[:9])}))?|{_SMALL})\b"
_ENGLISH = re.compile(
    rf"\b(?:(?:an?|{'|'.join(list(_ONES)[:9])}) hundred(?: (?:and )?{_BELOW})?|{_BELOW})(?![-\w])", re.IGNORECASE
)
_CHINESE = re.compile(r"[一二三四五六七八九两]百(?:零?[一二三四五六七八九]?十?[一二三四五六七八九]?)"
                      r"|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九两]")  # fmt: skip
_MADE = (
    r"(?:cells?|outputs?|answers?|programs?|tasks?|problems?|questions?|samples?|sequences?|generations?|sources?"
    r"|tapes?)\b"
)
_OUTCOME = r"(?:(?:were|was|are|is) )?(?:correct|right|solved|passed|exact|cut|truncated|replayed|reproduced|ended)\b"
# Nouns that a text counts in passing in small words: "two runs", "three stages".
_OTHER = r"(?:tokens?|conditions?|seeds?|draws?|comparisons?|edges?|rows?|layers?|runs?|gates?)\b"
_OF = r"(?:out )?of (?:the |all )?"
_NUMBER = rf"(?:\d|{_SMALL}|an? hundred)"
_AFTER = re.compile(
    rf"\s?(?:(?:[a-z-]{{2,14}} )?{_MADE}|{_OUTCOME}|{_OF}{_NUMBER}|/\s?\d|percent|per cent)", re.IGNORECASE
)
_AFTER_LARGE = re.compile(rf"\s?(?:[a-z-]{{2,14}} )?{_OTHER}", re.IGNORECASE)
_BEFORE = re.compile(rf"(?:\d|\b(?:{_SMALL}|hundred)) {_OF}$|\d\s?/\s?$", re.IGNORECASE)
_ONLY = re.compile(r"(?:\bonly|\bexactly|\bjust|:)\s$", re.IGNORECASE)
_ALONE = re.compile(r"[:：]\s{0,3}$")
_AFTER_HAN = re.compile(
    r"\s?(?:格|条|道|份|个\s?(?:格|条件|输出|程序|答案|题|来源|source|样本|token)|盘\s?磁?带|(?:正确|通过|截断|自然结束)|中\s?[的有]?\s?[一二三四五六七八九十\d])"
)
_BEFORE_HAN = re.compile(r"(?:百分之|全部|所有|[格条道份个]?\s?中\s?[的有]?|/)\s?$")
_ORDINAL_HAN = re.compile(r"[第某统唯每任同另万之逐]\s?$")


@dataclass(frozen=True, slots=True)
class Digits:
    """A text with its numbers in words as digits. Piece i begins at `begins[i]` here and at `starts[i]` in the
    first text, letter by letter where `shifts[i]`.
    """

    text: str
    begins: tuple[int, ...]
    starts: tuple[int, ...]
    shifts: tuple[bool, ...]

    def start(self, at: int) -> int:
        """Where the character at `at` is from in the first text; the first letter of a number in words."""
        piece = bisect_right(self.begins, at) - 1
        return self.starts[piece] + (at - self.begins[piece] if self.shifts[piece] else 0)

    def end(self, at: int) -> int:
        """Where what ends before `at` has ended in the first text."""
        piece = bisect_right(self.begins, at - 1) - 1
        if self.shifts[piece]:
            return self.starts[piece] + at - self.begins[piece]
        return self.starts[piece + 1]


def in_digits(text: str) -> Digits:
    """The text with each number in words as digits, and the places where its pieces are from."""
    made, at = "", 0
    pieces: list[tuple[int, int, bool]] = []
    for start, end, value in (*sorted(spelled(text)), (len(text), len(text), 0)):
        if start > at:
            pieces.append((len(made), at, True))
            made += text[at:start]
        if end > start:
            pieces.append((len(made), start, False))
            made += str(value)
        at = end
    begins, starts, shifts = zip(*pieces, (len(made), len(text), True), strict=True)
    return Digits(made, begins, starts, shifts)


def spelled(text: str) -> Iterator[tuple[int, int, int]]:
    """[start, end) and value of each number in words that counts something."""
    for match in _ENGLISH.finditer(text):
        value = _english(match[0])
        if _counts_english(text, match, value):
            yield match.start(), match.end(), value
    for match in _CHINESE.finditer(text):
        value = _chinese(match[0])
        if _counts_chinese(text, match, value):
            yield match.start(), match.end(), value


def _counts_english(text: str, match: re.Match[str], value: int) -> bool:
    if _BEFORE.search(text, max(0, match.start() - 40), match.start()):
        return True
    if value == 1:  # "one" is a pronoun more often than a number
        return bool(_ONLY.search(text, max(0, match.start() - 10), match.start()) and _AFTER.match(text, match.end()))
    if _AFTER.match(text, match.end()) or (value > 10 and _AFTER_LARGE.match(text, match.end())):
        return True
    return _ends(text, match.end()) and _ALONE.search(text, max(0, match.start() - 5), match.start()) is not None


def _counts_chinese(text: str, match: re.Match[str], value: int) -> bool:
    near, named = max(0, match.start() - 8), _BEFORE_HAN.search(text, max(0, match.start() - 8), match.start())
    if value == 1 or (_ORDINAL_HAN.search(text, near, match.start()) and not named):
        return False
    return bool(named or _AFTER_HAN.match(text, match.end()) or (value > 10 and _ends(text, match.end())))


def _ends(text: str, at: int) -> bool:
    return len(text) - at < 9 and not text[at:].strip(" .。,，)")


def _english(words: str) -> int:
    value = 0
    for word in re.split(r"[-\s]", words.lower()):
        if word == "hundred":
            value = 100 * max(value, 1)
        else:
            value += _ONES.get(word, 0) or _TENS.get(word, 0)
    return value


def _chinese(letters: str) -> int:
    value = unit = 0
    for letter in letters:
        if letter in "百十":
            value += (unit or 1) * (100 if letter == "百" else 10)
            unit = 0
        else:
            unit = _HAN.get(letter, 0)
    return value + unit
