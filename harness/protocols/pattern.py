"""Patterns of a study: RE2's syntax and its engine, which never goes back, so that no pattern hangs on a text.

For some patterns Python's `re` needs twice the time for each further character, and a time limit would make a verdict
depend on the machine. So a pattern that RE2 doesn't have isn't taken at all.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

import re2

from harness.errors import ProtocolError

TODO = (
    "Patterns are RE2's: no look-around, no back reference, no possessive repetition, {1000} at most; \\z for \\Z and "
    "\\x{4e00} for \\u4e00. Put what is wanted into the first group, or write a function judge (docs/authoring.md)."
)
_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # one byte of UTF-8, which is no character


class Match(Protocol):
    """What is read of a match: by 0 all of it, by 1 the first group, which is None where it took no part."""

    def __getitem__(self, group: int) -> str | None: ...


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    @property
    def groups(self) -> int:
        """How many groups it has."""

    def search(self, text: str) -> Match | None:
        """The first match."""

    def finditer(self, text: str) -> Iterator[Match]:
        """All matches, each from where the last one ended."""


@lru_cache
def compiled(pattern: str, where: str = "pattern") -> Pattern:
    """A pattern; ProtocolError where it is empty or RE2 doesn't have it."""
    options = re2.Options()
    options.log_errors = False
    reason = "it is empty" if not pattern else "\\C is a byte and no character" if _BYTE.search(pattern) else ""
    try:
        made: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
    except UnicodeEncodeError:
        reason = "half a surrogate pair is no character"
    if reason:
        raise ProtocolError(
            where, expected="a regular expression of RE2", found=f"{pattern or 'nothing'} ({reason})", todo=TODO
        )
    return made
