"""Closed fences as the published rules take them: CommonMark's lines of backticks, without its containers.

An opening is a line of at most three spaces, three or more backticks and an info string without a backtick. It is
closed by the next line of at most three spaces, at least as many backticks and nothing else but spaces and tabs; what
lies between is the body, nothing stripped. An opening that nothing closes opens nothing, and reading goes on with the
next line. Tildes make no fence. The tag is the first word of the info string. This module doesn't know what a body is.
"""

import re

from harness.evaluate.code.task import LINE
from harness.records.base import Record

FENCE_LINE = re.compile(rf"{LINE} {{0,3}}(?P<ticks>`{{3,}})(?P<info>[^`\r\n]*)(?:\r\n|\n|\r|\Z)")
PYTHON_TAGS = ("python", "py")


class Fence(Record):
    """A closed fence: its tag in lower case, empty where it has none, and its body, `text[start:end]`."""

    tag: str
    start: int
    end: int

    @property
    def is_python(self) -> bool:
        """Tagged `python` or `py`, in any case and nothing else: `python3` is another tag."""
        return self.tag in PYTHON_TAGS


def closed_fences(text: str) -> tuple[Fence, ...]:
    """All closed fences of a text, in order; in linear time."""
    lines = list(FENCE_LINE.finditer(text))
    longest = _longest_closing(lines)
    fences, at = [], 0
    while at < len(lines):
        opening, at = lines[at], at + 1
        ticks = len(opening["ticks"])
        if longest[at] < ticks:
            continue
        while lines[at]["info"].strip() or len(lines[at]["ticks"]) < ticks:
            at += 1
        words = opening["info"].split()
        fences.append(Fence(tag=words[0].lower() if words else "", start=opening.end(), end=lines[at].start()))
        at += 1
    return tuple(fences)


def closed_python_fence(text: str) -> bool:
    """Whether a text has a closed fence tagged python or py (R05 4.2), whatever is in it."""
    return any(fence.is_python for fence in closed_fences(text))


def closed_fence(text: str) -> bool:
    """Whether a text has a closed fence, whatever its tag (R07 8.2)."""
    return bool(closed_fences(text))


def _longest_closing(lines: list[re.Match[str]]) -> list[int]:
    """For each index, the most backticks of any closing line from there on; 0 past the end."""
    longest = [0] * (len(lines) + 1)
    for at in range(len(lines) - 1, -1, -1):
        own = 0 if lines[at]["info"].strip() else len(lines[at]["ticks"])
        longest[at] = max(own, longest[at + 1])
    return longest
