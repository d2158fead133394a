"""The prompt's side of a candidate: what of it stands before a candidate, and where a text writes a definition.

The imports and helpers of a prompt (R05 6) are all of it that stands before the entry point's own definition, whose
decorators belong to it. Tests and gold answers are not known here.
"""

import ast
import keyword
import re

from harness.canon import escaped
from harness.errors import InputError
from harness.evaluate.code.parse import definition, first_line, line_starts, parse

LINE = r"(?:\A|(?<=[\r\n]))"
DECORATION = 10_000  # how far above a definition its decorators are looked for


def check_entry_point(entry_point: str) -> str:
    """The name itself; InputError where it can't be the name of a Python function."""
    if not entry_point.isidentifier() or keyword.iskeyword(entry_point):
        raise InputError(
            "entry point",
            expected="the name of a Python function",
            found=f"`{escaped(entry_point[:80].encode('utf-8', 'replace').decode('utf-8'))}`",
            todo="Correct the task.",
        )
    return entry_point


def mentions(name: str) -> re.Pattern[str]:
    """`def <name>` anywhere in a text, as whole words; `async def` has it too."""
    return re.compile(rf"(?<!\w)def[ \t]+{re.escape(name)}(?!\w)")


def definitions(name: str) -> re.Pattern[str]:
    """`def <name>` or `async def <name>` at the start of a line: group `margin`, then group `head`."""
    return re.compile(rf"{LINE}(?P<margin>[ \t]*)(?P<head>(?:async[ \t]+)?def[ \t]+{re.escape(name)}(?!\w))")


def with_decorators(text: str, start: int) -> int:
    """`start` (of a line), moved up over the lines right above it that begin with `@`, by DECORATION code points."""
    above = text[max(0, start - DECORATION) : start]
    for line in reversed(line_starts(above)[:-1]):
        if not above[line:].lstrip(" \t").startswith("@"):
            break
        start -= len(above) - line
        above = above[:line]
    return start


def kept_of_prompt(prompt: str, entry_point: str) -> str:
    r"""What of a prompt stands before a candidate that replaces it; empty or whole lines.

    Where the prompt parses: all before the last top-level definition of the entry point, and the whole prompt where
    there is none. Where it doesn't: all before the last definition of it that isn't indented, if that parses, else
    nothing.
    """
    tree = parse(prompt)
    if isinstance(tree, ast.Module):
        found = definition(tree, entry_point)
        return ended(prompt) if found is None else prompt[: line_starts(prompt)[first_line(found) - 1]]
    written = [one for one in definitions(entry_point).finditer(prompt) if not one["margin"]]
    kept = prompt[: with_decorators(prompt, written[-1].start())] if written else ""
    return kept if isinstance(parse(kept), ast.Module) else ""


def ended(source: str) -> str:
    """A source with a line end at its end, unless it is empty."""
    return source if not source or source.endswith(("\n", "\r")) else f"{source}\n"
