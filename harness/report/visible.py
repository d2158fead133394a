r"""Text as it may stand in a page: markup escaped, and every character that can't be seen shown as its escape.

Controls, format characters (bidi marks, zero width, tags, variation selectors), spaces other than U+0020, private
use and noncharacters become `\x07`, `\u202e` and so on in `<span class="x">`, so that they neither act nor hide.
A line feed stays one. The set is written out here: Pythons differ in their Unicode databases.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

NONCHARACTERS = "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 14))
HIDDEN = re.compile(
    f"[{NONCHARACTERS}"
    "\x00-\x09\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ue000-\uf8ff\ufdd0-\ufdef\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
    "]+"
)
SHOWN = 4000  # code points of a text that are shown at once; the rest is in the page, folded


def visible(text: str) -> Markup:
    """A text as markup that shows exactly it; `unescaped` of a span's content gives back what it stands for."""
    parts, at = [], 0
    for match in HIDDEN.finditer(text):
        parts += [escape(text[at : match.start()]), Markup('<span class="x">{}</span>').format(_escape(match[0]))]
        at = match.end()
    return Markup("").join([*parts, escape(text[at:])])


def spelled(text: str) -> str:
    """The same where there is no markup: escapes stand in the text, which can't be told from a text that has them."""
    return HIDDEN.sub(lambda match: _escape(match[0]), text)


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a text. `mark`: what it is marked as (`edited`, `taken`, `target`, `eos`), empty for nothing."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text in segments: what is shown at once, and the rest, of `rest_length` code points."""

    shown: tuple[Segment, ...]
    rest: tuple[Segment, ...]
    rest_length: int


def passage(text: str, marks: dict[str, tuple[int, int]], *, limit: int = SHOWN) -> Passage:
    """A text cut at its marks, each [start, end) in code points, and at `limit`; marks may not overlap in part."""
    points = sorted({0, len(text), min(limit, len(text)), *(at for mark in marks.values() for at in mark)})
    segments = [
        (start, Segment(text[start:end], next((name for name, at in marks.items() if at[0] <= start < at[1]), "")))
        for start, end in pairwise(points)
    ]
    return Passage(
        shown=tuple(segment for start, segment in segments if start < limit),
        rest=tuple(segment for start, segment in segments if start >= limit),
        rest_length=max(0, len(text) - limit),
    )
