"""Code that no fence delimits, as `code-v1` reads it: a definition among prose, or the continuation of a prompt.

Such code ends before a line that is not indented against it, at the last such line up to which it parses: it is never
cut within a function, so a function that breaks off doesn't become a shorter one. A last line that is an expression
without a call (a word of prose is a name to Python) is dropped, since it does nothing. Only lines within a window of
the parser's bound are read. This module knows no fences beyond that a fence line doesn't parse.
"""

import ast
import bisect
import re
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from harness.evaluate.code.parse import (
    MAX_SOURCE,
    WEAK,
    Parser,
    bindings,
    dedented,
    definition,
    first_line,
    is_program,
    line_number,
    line_starts,
)  # fmt: skip
from harness.evaluate.code.task import LINE, with_decorators

MAX_CUTS = 32  # ends that are tried for one start
MAX_STARTS = 32  # lines that are tried as the start of the code around one definition
MAX_DEFINITIONS = 8  # places of a text that are tried as the definition
TOP = r"(?:from[ \t]+\S+[ \t]+import\b|import[ \t]|(?:async[ \t]+)?def[ \t]|class[ \t]|@|#|\w+[ \t]*(?::[^\r\n=]+)?=)"


class Region(NamedTuple):
    """Part of a text, `text[start:end]`, and the tree of what comes before it and of the dedented part."""

    start: int
    end: int
    tree: ast.Module


def defines(tree: ast.Module, name: str) -> bool:
    """Whether a module binds a name by more than a stub, and is no function's body."""
    return bindings(tree).get(name, WEAK) > WEAK and is_program(tree)


def continues(tree: ast.Module, prompt: str, source: str, name: str) -> bool:
    """Whether a source that begins with the prompt goes on within the function of the entry point."""
    function, body = definition(tree, name), source[len(prompt) :]
    if function is None or not body.strip():
        return False
    first = len(source) - len(body.lstrip())
    return first_line(function) <= line_number(source, first) <= (function.end_lineno or 0)


def continuation(text: str, prompt: str, parser: Parser, name: str) -> Region | None:
    """The first lines of a text that complete the prompt's function, and whole statements after them."""
    region = _longest(parser, text, 0, before=prompt, margin="")
    if region is None or not continues(region.tree, prompt, prompt + text[: region.end], name):
        return None
    return trimmed(text, region, prompt)


def defined(text: str, parser: Parser, named: re.Pattern[str], name: str, free: Callable[[int], bool]) -> Region | None:
    """The first definition of the entry point at a place that is `free`, with the code right around it that parses."""
    found = (one for one in named.finditer(text) if free(one.start()))
    for match in islice(found, MAX_DEFINITIONS):
        start, margin = with_decorators(text, match.start()), match["margin"]
        region = _longest(parser, text, start, before="", margin=margin)
        if region is not None and defines(region.tree, name):
            return trimmed(text, _with_code_above(parser, text, region, margin, name), "")
    return None


def _with_code_above(parser: Parser, text: str, region: Region, margin: str, name: str) -> Region:
    # The first line of a text may begin after a space that belongs to the turn before it, not to the program.
    tops = re.compile(rf"(?:\A[ \t]*|{LINE}){margin}(?={TOP})")
    for top in islice(tops.finditer(text, max(0, region.end - MAX_SOURCE), region.start), MAX_STARTS):
        start = top.end() - len(margin)
        tree = parser.parse(dedented(text[start : region.end]))
        if isinstance(tree, ast.Module) and defines(tree, name):
            return Region(start, region.end, tree)
    return region


def _longest(parser: Parser, text: str, start: int, *, before: str, margin: str) -> Region | None:
    """The longest part from `start` (of a line) that parses and ends at a line's start or at the end of the text.

    No longer part can parse than one that ends before the line of an error, so few ends are tried.
    """
    window = text[start : start + max(0, MAX_SOURCE - len(before))]
    offsets = line_starts(window)
    limit, cuts = _cuts(window, offsets, margin)
    if start + limit < len(text) and limit == len(window):
        limit = cuts.pop() if cuts else 0
    lines_before = line_number(before, len(before)) - 1
    for _ in range(MAX_CUTS):
        tree = parser.parse(before + dedented(window[:limit]) if margin else before + window[:limit])
        if isinstance(tree, ast.Module):
            return Region(start, start + limit, tree) if window[:limit].strip() else None
        line = len(offsets) if tree.line is None else tree.line - lines_before
        if line < 1:
            return None
        last = offsets[min(line, len(offsets)) - 1]
        keep = min(bisect.bisect_right(cuts, last), bisect.bisect_left(cuts, limit))
        if not keep:
            return None
        limit = cuts[keep - 1]
    return None


def _cuts(window: str, offsets: list[int], margin: str) -> tuple[int, list[int]]:
    """Where the part must end at the latest (a line indented less), and where it may end before that."""
    cuts: list[int] = []
    for offset, stop in zip(offsets[1:], [*offsets[2:], len(window)], strict=False):
        line = window[offset:stop]
        if not line.strip():
            continue
        if not line.startswith(margin):
            return offset, cuts
        if line[len(margin)] not in " \t":
            cuts.append(offset)
    return len(window), cuts


def trimmed(text: str, region: Region, before: str) -> Region:
    """A region without last lines that only hold an expression without a call or an annotation without a value."""
    body = list(region.tree.body)
    end_line = None
    while len(body) > 1 and _does_nothing(body[-1]) and (body[-2].end_lineno or 0) < body[-1].lineno:
        end_line = body.pop().lineno
    if end_line is None:
        return region
    line = end_line - (line_number(before, len(before)) - 1)
    if line < 2:
        return region
    end = region.start + line_starts(text[region.start : region.end])[line - 1]
    return Region(region.start, end, ast.Module(body, []))


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    acts = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return isinstance(statement, ast.Expr) and not any(isinstance(node, acts) for node in ast.walk(statement))
