"""A write-up as sentences with their line numbers and their place: headings above, what introduces them, table labels.

Markdown is read for what a reader sees: emphasis, code spans, entities and invisible characters hide no number, and
full-width forms are the plain ones. Not a Markdown renderer: what it can't place it keeps as text of a paragraph.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

LEAD = 500  # characters of a paragraph that are kept as what introduces the next block
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s{1,9}(.*?)#{0,6}$")
_FENCE = re.compile(r"^ {0,9}(?:`{3,20}|~{3,20})")
_ITEM = re.compile(r"^\s{0,20}(?:[-*+•·]|\d{1,3}[.)、])\s{1,9}")
_NUMBERED = re.compile(r"^\d{1,3}[.)、]\s{1,9}")
_RULE = re.compile(r"^[\s|:-]{3,}$")
_TARGET = re.compile(r"\]\([^()\s]{0,500}\)|https?://[^\s)>]{1,500}")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,100}>|<!--|-->")
_FRACTION = re.compile(r"\\[dt]?frac\{(\d{1,12})\}\{(\d{1,12})\}")
_SENTENCE = re.compile(r"(?<=[。！？!?;；])|(?<=[.])(?=\s)")
_SLASHES = {"\u2044": "/", "\u2215": "/", "\u2212": "-"}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A normalised sentence (a table cell, a line of a block); `lines[i]` is the line of character i, from 1.

    `headings`: from the outermost; `lead`: the paragraph that introduces the list, table or block; `labels`: the
    table's column and row; `item`: of a list or block, and `first` the first sentence of it.
    """

    text: str
    lines: tuple[int, ...]
    headings: tuple[str, ...]
    lead: str
    labels: str
    item: bool
    first: bool

    def line(self, at: int) -> int:
        """The line of a character."""
        return self.lines[min(at, len(self.lines) - 1)]


def plain(line: str) -> str:
    """What a reader sees of a line: marks, tags and link targets gone, full-width forms and foreign digits as ASCII."""
    seen = _FRACTION.sub(r"\1/\2", html.unescape(line))
    seen = _TARGET.sub("]", _TAG.sub("", seen))
    return re.sub(r"[*`$\\]|(?<!\w)_|_(?!\w)", "", "".join(map(_letter, seen)))


def _letter(letter: str) -> str:
    if unicodedata.category(letter) == "Cf" or "\ufe00" <= letter <= "\ufe0f":
        return ""
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    wide = unicodedata.normalize("NFKC", letter)
    return "".join(_SLASHES.get(one, one) for one in wide)


@dataclass(slots=True)
class _Reader:
    """Where the reading is: headings above, the last paragraph, the open block."""

    headings: list[str]
    lead: str = ""
    header: tuple[str, ...] = ()
    fenced: bool = False

    def place(self, text: str, lines: Sequence[int], *, labels: str = "", item: bool = False) -> Sentence:
        """A sentence at this place."""
        names = tuple(name for name in self.headings if name)
        return Sentence(text, tuple(lines), names, self.lead, labels, item, first=True)


def sentences(document: str) -> Iterator[Sentence]:
    """The sentences of a Markdown document, in order; headings are sentences too."""
    reader, item, numbered = _Reader([""] * 6), False, False
    block: list[tuple[str, int]] = []
    for number, raw in enumerate(document.splitlines(), start=1):
        line = re.sub(r"^(?:\s{0,3}>\s?){1,9}", "", raw)
        alone = reader.fenced or _FENCE.match(line) or _HEADING.match(line) or "|" in line or not line.strip()
        if block and (alone or _ITEM.match(line)):
            yield from _paragraph(reader, block, item=item, numbered=numbered)
            block, item, numbered = [], False, False
        if alone:
            yield from _alone(reader, line, number)
        else:
            item = item or bool(_ITEM.match(line))
            numbered = numbered or bool(_NUMBERED.match(line))
            block.append((plain(_ITEM.sub("", line)), number))
    if block:
        yield from _paragraph(reader, block, item=item, numbered=numbered)


def _alone(reader: _Reader, line: str, number: int) -> Iterator[Sentence]:
    """A line that is no part of a paragraph: a heading, a row of a table, a line of a block, nothing."""
    if _FENCE.match(line):
        reader.fenced = not reader.fenced
        return
    if (heading := _HEADING.match(line)) and not reader.fenced:
        level, text = len(heading[1]), plain(heading[2]).strip()
        reader.headings[level - 1 :] = [text, *[""] * (6 - level)]
        reader.lead, reader.header = "", ()
        yield from _split(reader.place(text, [number] * len(text)))
    elif "|" in line and not reader.fenced:
        yield from _row(reader, line, number)
    else:
        reader.header = ()
        text = plain(line)
        if text.strip():
            yield reader.place(text, [number] * len(text), item=True)


def _row(reader: _Reader, line: str, number: int) -> Iterator[Sentence]:
    """The cells of a table row, each with its column's header and its row's first cell."""
    if _RULE.match(line):
        return
    cells = [plain(cell).strip() for cell in line.strip().strip("|").split("|")]
    for at, cell in enumerate(cells):
        column = reader.header[at] if at < len(reader.header) else ""
        labels = " ".join(one for one in (column, cells[0] if at else "") if one)
        if cell:
            yield reader.place(cell, [number] * len(cell), labels=labels)
    reader.header = reader.header or tuple(cells)


def _paragraph(reader: _Reader, block: Sequence[tuple[str, int]], *, item: bool, numbered: bool) -> Iterator[Sentence]:
    """A paragraph or a list item, its lines joined. A paragraph becomes the lead of the lists and blocks below it."""
    text, reader.header = "", ()
    lines: list[int] = []
    for part, number in block:
        joined = f"{part.strip()} "
        text, lines = text + joined, lines + [number] * len(joined)
    if not item:
        reader.lead = ""
    yield from _split(reader.place(text, lines, item=item))
    if not item or (numbered and len(block) == 1):
        reader.lead = text.strip()[
            -LEAD:
        ]  # "8. Prohibited" above a list is an item to Markdown, and a title to its reader


def _split(sentence: Sentence) -> Iterator[Sentence]:
    at, first = 0, True
    for cut in [*(match.start() for match in _SENTENCE.finditer(sentence.text)), len(sentence.text)]:
        if sentence.text[at:cut].strip():
            yield replace(sentence, text=sentence.text[at:cut], lines=sentence.lines[at:cut], first=first)
            first = False
        at = cut
