"""`ast-r04`: is the first fenced block of a text, else the whole text, Python (R04 5)? Parsed, never executed.

A fence opens with a line of three or more backticks and an optional language, and closes with a line of at least as
many backticks and nothing else; both may be indented. Only the first opening counts, whatever its language: if it is
never closed, there is no fenced block and the whole text is parsed. Nothing is stripped or dedented, so an indented
block doesn't parse, and an empty text or a single word of prose does. The grammar is that of the running Python.

The outcome is a function of the text: nesting is bounded far below what any parser's own stack allows, and what
exceeds a bound is `too_deep`, whether it was measured afterwards or the parser ran out of stack on the way. This module
doesn't know whether code is right.
"""

import ast
import re
import warnings
from typing import Literal

from harness.records.ledger import DoesNotParse, Parses, SyntaxObservation, TooDeep

OPENING = re.compile(r"^[ \t]*(?P<ticks>`{3,})[^`\n]*\n", re.MULTILINE)

# Levels of the syntax tree. CPython 3.11 gives up with RecursionError at about 1,000 less the depth of the caller's
# stack, and with MemoryError at 6,000 levels of its parser: neither may decide an outcome below this bound.
MAX_DEPTH = 200


def syntax_r04(text: str) -> SyntaxObservation:
    """Which part of a text was parsed, and whether it is Python."""
    block = first_fence(text)
    part: Literal["fence", "whole_text"] = "whole_text" if block is None else "fence"
    return SyntaxObservation(part=part, outcome=parse_outcome(text if block is None else block))


def first_fence(text: str) -> str | None:
    """The body of the first fenced block, line breaks kept; None without an opening or where it is never closed."""
    opening = OPENING.search(text)
    if opening is None:
        return None
    closing = re.compile(rf"^[ \t]*{opening['ticks']}`*[ \t\r]*$", re.MULTILINE).search(text, opening.end())
    return None if closing is None else text[opening.end() : closing.start()]


def parse_outcome(source: str) -> Parses | DoesNotParse | TooDeep:
    """What `ast.parse` says of a source; the parser's warnings (invalid escapes and the like) are dropped."""
    if "\0" in source:
        return DoesNotParse(error="ValueError")  # said here, because 3.11.4 changed the class to SyntaxError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return DoesNotParse(error=type(error).__name__)
    except (RecursionError, MemoryError):
        return TooDeep()
    return TooDeep() if _deeper_than(tree, MAX_DEPTH) else Parses()


def _deeper_than(tree: ast.AST, bound: int) -> bool:
    level = [tree]
    for _ in range(bound + 1):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True
