"""A text as `numeric-v1` reads it: other scripts' digits and signs as ASCII, invisible marks gone, positions kept.

Every replacement is one code point for one; only direction marks, zero-width characters and soft hyphens are dropped,
and where they stood is remembered. The table is written out, not asked of `unicodedata`: a rule may not change with
the Python that runs it. Superscripts, circled and Roman numerals and numbers in words are no digits. This module
knows no numbers, only characters.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass

# Code points of the digit 0; nine more follow each.
ZEROS = (
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x0ED0,
    0x0F20, 0x1040, 0x17E0, 0x1810, 0xFF10, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6,
)  # fmt: skip
SIGNS = {
    "-": "\u2010\u2011\u2212\ufe63\uff0d",
    "+": "\ufe62\uff0b",
    ".": "\u066b\uff0e",
    ",": "\u066c",
    "%": "\u066a\ufe6a\uff05",
    "$": "\ufe69\uff04",
    "\u00a3": "\uffe1",
    "\u00a5": "\uffe5",
    "/": "\u2044\u2215\uff0f",
    "(": "\uff08",
    ")": "\uff09",
    "[": "\uff3b",
    "]": "\uff3d",
    "{": "\uff5b",
    "}": "\uff5d",
    "\\": "\uff3c",
    ":": "\ufe55\uff1a",
    "=": "\uff1d",
    "#": "\uff03",
    "*": "\uff0a",
    "<": "\uff1c",
    ">": "\uff1e",
    "'": "\u2019",
    " ": "\u3000",
    "\u00a0": "\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f",  # spaces that may stand in a number
    "\n": "\r\u0085\u2028\u2029",
}
_TABLE = {zero + digit: str(digit) for zero in ZEROS for digit in range(10)}
_TABLE |= {ord(other): plain for plain, others in SIGNS.items() for other in others}
_TABLE |= {0xFEE0 + code: chr(code) for code in (*range(0x41, 0x5B), *range(0x61, 0x7B))}
_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
# A full-width comma parts clauses, so it only groups thousands among full-width digits.
_WIDE_COMMA = re.compile("(?<=[\uff10-\uff19])\uff0c(?=[\uff10-\uff19]{3}(?![\uff10-\uff19]))")


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text and, for each dropped character, the folded position that it stood before (ascending)."""

    text: str
    dropped: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the text as written of a span of the folded text that isn't empty."""
        return self._written(start), self._written(end - 1) + 1

    def _written(self, index: int) -> int:
        return index + bisect_right(self.dropped, index)


def fold(text: str) -> Folded:
    """A text with one way to write each digit, sign and space."""
    if text.isascii():
        return Folded(text.replace("\r", "\n"), ())
    dropped = tuple(mark.start() - count for count, mark in enumerate(_INVISIBLE.finditer(text)))
    kept = _INVISIBLE.sub("", text) if dropped else text
    return Folded(_WIDE_COMMA.sub(",", kept).translate(_TABLE), dropped)
