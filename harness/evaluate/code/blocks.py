"""Fenced blocks as `code-v1` reads them: any indentation, backticks or tildes, and the closing that lets a block parse.

A line of backticks or tildes is a mark. Within Python such a line can only stand in a string that is open there, so a
body that ends at it doesn't parse: the first mark at which a body parses is therefore a real end of the block, whatever
docstrings hold. A body may also run to the end of the text. Where a Python block parses at no mark, the first bare mark
closes it; an opening without a tag is then no opening, since it may be the closing of a fence that the prompt opened.
"""

import ast
import bisect
import heapq
import re
from itertools import islice
from typing import Literal, NamedTuple

from harness.evaluate.code.parse import Parser, dedented
from harness.evaluate.code.task import LINE

Tag = Literal["python", "none", "other"]

MARK = re.compile(
    rf"{LINE}(?P<margin>[ \t]*)(?P<run>`{{3,}}|~{{3,}})(?P<info>[^`\r\n]*)(?:\r\n|\n|\r|\Z)"
    # Within a line: an opening with a Python tag after prose or a list marker, or a closing after the last statement.
    r"|(?<!`)(?P<late>`{3,})[ \t]*(?P<tag>(?:python|py)[\d.]*)?[ \t]*(?:\r\n|\n|\r|\Z)",
    re.IGNORECASE,
)
PYTHON_TAG = re.compile(r"[\s{.]*(?:python|py)[\d.]*(?![\w+#-])", re.IGNORECASE)
MAX_MARKS = 20_000  # what comes after so many marks is in no block
MAX_ENDS = 32  # marks that are tried as the end of one block


class Mark(NamedTuple):
    """A run of fence characters: where it starts, where the next line does, and what an opening there would be."""

    start: int
    next: int
    character: str
    length: int
    tag: Tag
    margin: str
    late: bool

    def ends(self, other: "Mark") -> bool:
        """Whether this mark is of the other's kind and long enough to end its block."""
        return self.character == other.character and self.length >= other.length


class Block(NamedTuple):
    """A block, `text[start:end]`, and the tree of its dedented source where that parses."""

    tag: Tag
    start: int
    end: int
    margin: str
    closed: bool
    tree: ast.Module | None


class Reading(NamedTuple):
    """A text with its marks, for each the next bare one, and the places that define the entry point."""

    text: str
    parser: Parser
    mentions: list[int]
    marks: list[Mark]
    bare: list[int | None]


def blocks(text: str, parser: Parser, mention: re.Pattern[str]) -> list[Block]:
    """The blocks of a text in order, none within another. `mention`: what a block must hold that has no Python tag."""
    marks = [_mark(match) for match in islice(MARK.finditer(text), MAX_MARKS)]
    reading = Reading(text, parser, [one.start() for one in mention.finditer(text)], marks, _next_bare(marks))
    found: list[Block] = []
    at = 0
    while at < len(marks):
        if marks[at].late and marks[at].tag == "none":
            at += 1
            continue
        block, at = _block(reading, at)
        if block is not None:
            found.append(block)
    return found


def _mark(match: re.Match[str]) -> Mark:
    late = match["late"] is not None
    run = match["late"] if late else match["run"]
    info = (match["tag"] or "") if late else match["info"]
    tag: Tag = "none" if not info.strip() else "python" if PYTHON_TAG.match(info) else "other"
    start = match.start("late") if late else match.start()
    return Mark(start, match.end(), run[0], len(run), tag, match["margin"] or "", late)


def _next_bare(marks: list[Mark]) -> list[int | None]:
    """For each mark, the index of the next line without a tag that would end it as an opening."""
    following: list[int | None] = [None] * len(marks)
    waiting: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
    for at, mark in enumerate(marks):
        heap = waiting[mark.character]
        if mark.tag == "none" and not mark.late:
            while heap and heap[0][0] <= mark.length:
                following[heapq.heappop(heap)[1]] = at
        heapq.heappush(heap, (mark.length, at))
    return following


def _block(reading: Reading, at: int) -> tuple[Block | None, int]:
    """The block that mark `at` opens, and the mark to go on with."""
    marks, opening = reading.marks, reading.marks[at]
    if opening.tag == "other":
        return _as_written(reading, at)
    for end in range(at + 1, min(at + 1 + MAX_ENDS, len(marks))):
        if marks[end].ends(opening) and (block := _closed(reading, opening, marks[end])).tree is not None:
            # A mark with a tag is an opening itself.
            return block, end + 1 if marks[end].tag == "none" else end
    block = _open(reading, opening)
    return (block, len(marks)) if block.tree is not None else _as_written(reading, at)


def _as_written(reading: Reading, at: int) -> tuple[Block | None, int]:
    """The block up to the mark that closes it; without a Python tag it counts only where the entry point is in it."""
    marks, opening = reading.marks, reading.marks[at]
    # An opening without a tag may be a closing, so what follows is a block at most up to the next mark.
    closing = reading.bare[at] if opening.tag != "none" else at + 1 if at + 1 < len(marks) else None
    end = len(reading.text) if closing is None else marks[closing].start
    after = len(marks) if closing is None else closing + (marks[closing].tag == "none")
    held = bisect.bisect_left(reading.mentions, end) > bisect.bisect_left(reading.mentions, opening.next)
    if opening.tag == "python" or held:
        return (_open(reading, opening) if closing is None else _closed(reading, opening, marks[closing])), after
    return None, at + 1 if opening.tag == "none" else after


def _closed(reading: Reading, opening: Mark, closing: Mark) -> Block:
    return _read(reading, opening, closing.start, closed=True)


def _open(reading: Reading, opening: Mark) -> Block:
    return _read(reading, opening, len(reading.text), closed=False)


def _read(reading: Reading, opening: Mark, end: int, *, closed: bool) -> Block:
    start, tree = opening.next, None
    if reading.parser.affords(end - start):
        found = reading.parser.parse(dedented(reading.text[start:end]))
        written = isinstance(found, ast.Module) and (found.body or opening.tag != "none")
        tree = found if isinstance(found, ast.Module) and written else None
    return Block(opening.tag, start, end, opening.margin, closed, tree)
