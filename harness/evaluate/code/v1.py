"""`code-v1`: the best reading of a text for new protocols. What it takes it takes as written; it executes nothing.

The first step that finds something decides; the page of the evaluators says in words what each does:

1. `whole_text`: the text is a program that defines the entry point;
2. `suffix`: prompt and text are one program, and the text goes on within the prompt's function;
3. `fence_with_entry_point`: a block that defines it, the last such; `fences_joined`: with blocks whose names it needs;
4. `definition`: a definition outside closed blocks, with the code right around it;
5. `suffix_cut`: as 2, with the lines that end the text (a fence, prose) cut off;
6. `fence_body`: as 2, for the body of a block;
7. `unparsed_fence`, `unparsed_definition`, `unparsed_suffix`: as 3, 4 and 2 by the words of the text alone, since
   nothing parses (within the parser's bounds);
8. `fence`: the first Python block, whatever it holds.

A block may lose indentation, the same on each line, and never gets any. A program that isn't the prompt's continuation
has the prompt's imports and helpers before it, but after its own `from __future__` imports.
"""

import ast
import bisect
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from harness.evaluate.code.blocks import Block, blocks
from harness.evaluate.code.parse import (
    WEAK,
    Parser,
    bindings,
    dedented,
    is_program,
    line_starts,
    needs,
    parse,
)  # fmt: skip
from harness.evaluate.code.task import check_entry_point, definitions, ended, kept_of_prompt, mentions, with_decorators
from harness.evaluate.code.unfenced import Region, continuation, continues, defined, defines, trimmed
from harness.records.evaluation import CodeExtraction, CodeFound, CodeMissing

BOM = "\ufeff"


class Reading(NamedTuple):
    """One text, without a byte order mark, before its steps; `kept` is what stays of the prompt."""

    text: str
    prompt: str
    kept: str
    name: str
    parser: Parser
    blocks: list[Block]


def code_v1(text: str, prompt: str, entry_point: str) -> CodeExtraction:
    """The candidate of a text; never raises for a text or a prompt, InputError for a name that is none."""
    check_entry_point(entry_point)
    read, parser = text.removeprefix(BOM), Parser()
    prompt = prompt.removeprefix(BOM)
    found_blocks = blocks(read, parser, mentions(entry_point))
    reading = Reading(read, prompt, kept_of_prompt(prompt, entry_point), entry_point, parser, found_blocks)
    before = len(text) - len(read)
    for step in STEPS if read.strip() else ():
        if (found := step(reading)) is not None:
            return msgspec.structs.replace(found, start=found.start + before, end=found.end + before)
    return CodeMissing(rule="code-v1")


def _whole_text(reading: Reading) -> CodeFound | None:
    # The first line may begin after a space that belongs to the turn before it, not to the program.
    for start in dict.fromkeys((0, len(reading.text) - len(reading.text.lstrip(" \t")))):
        tree = reading.parser.parse(dedented(reading.text[start:]))
        if isinstance(tree, ast.Module) and defines(tree, reading.name):
            region = trimmed(reading.text, Region(start, len(reading.text), tree), "")
            return _replaced(reading, "whole_text", region.start, region.end)
    return None


def _suffix(reading: Reading) -> CodeFound | None:
    source = reading.prompt + reading.text
    tree = reading.parser.parse(source)
    if not isinstance(tree, ast.Module) or not continues(tree, reading.prompt, source, reading.name):
        return None
    region = trimmed(reading.text, Region(0, len(reading.text), tree), reading.prompt)
    return _continued(reading, "suffix", region.start, region.end)


def _fence_with_entry_point(reading: Reading) -> CodeFound | None:
    best: tuple[bool, int, int] | None = None
    for at, block in enumerate(reading.blocks):
        if block.tree is not None and is_program(block.tree) and reading.name in (bound := bindings(block.tree)):
            one = (block.tag != "other", bound[reading.name], at)
            best = one if best is None else max(best, one)
    if best is None:
        return None
    used = _with_helpers(reading, best[2])
    sources = [dedented(reading.text[block.start : block.end]) for block in used]
    method = "fence_with_entry_point" if len(used) == 1 else "fences_joined"
    program = _replacing(reading.kept, "".join(ended(source) for source in sources[:-1]) + sources[-1])
    return _found(method, used[0].start, used[-1].end, program)


def _with_helpers(reading: Reading, chosen: int) -> list[Block]:
    """The chosen block and those that bind names which it, or they, need; in the order of the text."""
    suppliers: dict[str, int] = {}
    for at in [*reversed(range(chosen + 1, len(reading.blocks))), *range(chosen)]:
        block = reading.blocks[at]
        if block.tree is None or block.tag == "other" or not is_program(block.tree):
            continue
        bound = {name for name, strength in bindings(block.tree).items() if strength > WEAK}
        if at < chosen or reading.name not in bindings(block.tree):
            suppliers.update(dict.fromkeys(bound, at))
    kept = parse(reading.kept)
    known = set(bindings(kept)) if isinstance(kept, ast.Module) else set()
    used, waiting = {chosen}, [chosen]
    while waiting:
        tree = reading.blocks[waiting.pop()].tree
        wanted = set() if tree is None else needs(tree) - known
        new = {suppliers[name] for name in wanted if name in suppliers} - used
        used |= new
        waiting += new
    return [reading.blocks[at] for at in sorted(used)]


def _definition(reading: Reading) -> CodeFound | None:
    named = _assigned_or_defined(reading.name)
    region = defined(reading.text, reading.parser, named, reading.name, _outside_closed(reading.blocks))
    return None if region is None else _replaced(reading, "definition", region.start, region.end)


def _suffix_cut(reading: Reading) -> CodeFound | None:
    region = continuation(reading.text, reading.prompt, reading.parser, reading.name)
    return None if region is None else _continued(reading, "suffix_cut", region.start, region.end)


def _fence_body(reading: Reading) -> CodeFound | None:
    for block in reading.blocks:
        if block.tree is None or block.tag == "other":
            continue
        raw = reading.text[block.start : block.end]
        for body in dict.fromkeys((raw, _outdented(raw, block.margin))):
            source = reading.prompt + body
            tree = reading.parser.parse(source)
            if isinstance(tree, ast.Module) and continues(tree, reading.prompt, source, reading.name):
                return _found("fence_body", block.start, block.end, source)
    return None


def _unparsed_fence(reading: Reading) -> CodeFound | None:
    named = mentions(reading.name)
    held = (block for block in reading.blocks if named.search(reading.text, block.start, block.end))
    return _as_written(reading, "unparsed_fence", next(held, None))


def _unparsed_definition(reading: Reading) -> CodeFound | None:
    match = definitions(reading.name).search(reading.text)
    if match is None:
        return None
    start = with_decorators(reading.text, match.start())
    return _replaced(reading, "unparsed_definition", start, len(reading.text))


def _unparsed_suffix(reading: Reading) -> CodeFound | None:
    if not reading.text.lstrip("\r\n").startswith((" ", "\t")):
        return None
    return _continued(reading, "unparsed_suffix", 0, len(reading.text))


def _fence(reading: Reading) -> CodeFound | None:
    return _as_written(reading, "fence", next((block for block in reading.blocks if block.tag == "python"), None))


def _as_written(reading: Reading, method: str, block: Block | None) -> CodeFound | None:
    return None if block is None else _replaced(reading, method, block.start, block.end)


def _replaced(reading: Reading, method: str, start: int, end: int) -> CodeFound:
    return _found(method, start, end, _replacing(reading.kept, dedented(reading.text[start:end])))


def _continued(reading: Reading, method: str, start: int, end: int) -> CodeFound:
    return _found(method, start, end, reading.prompt + reading.text[start:end])


def _found(method: str, start: int, end: int, program: str) -> CodeFound:
    return CodeFound(rule="code-v1", method=method, program=program, start=start, end=end)


def _replacing(kept: str, source: str) -> str:
    """A source with what was kept of the prompt before it, and before both the source's `from __future__` imports."""
    tree = parse(source) if "__future__" in source else None
    body = tree.body if isinstance(tree, ast.Module) else []
    future = [one for one in body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    moved = {line for one in future for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    if not moved:
        return kept + source
    starts = line_starts(source)
    lines = [source[start:end] for start, end in zip(starts, [*starts[1:], len(source)], strict=True)]
    first = "".join(line for at, line in enumerate(lines, 1) if at in moved)
    return ended(first) + kept + "".join(line for at, line in enumerate(lines, 1) if at not in moved)


def _outdented(body: str, margin: str) -> str:
    """A body without the indentation of its fence, where all its lines have it."""
    lines = re.split(r"(?<=\n)", body)
    if not all(line.startswith(margin) for line in lines if line.strip()):
        return body
    return "".join(line[len(margin) :] if line.strip() else line for line in lines)


def _assigned_or_defined(name: str) -> re.Pattern[str]:
    """A line that starts a definition, a class or an assignment of the name: groups `margin` and `head`."""
    kinds = rf"(?:async[ \t]+)?def[ \t]+{name}\b|class[ \t]+{name}\b|{name}[ \t]*(?::[^\r\n=]+)?=(?!=)"
    return re.compile(rf"(?:\A|(?<=[\r\n]))(?P<margin>[ \t]*)(?P<head>{kinds})")


def _outside_closed(found: list[Block]) -> Callable[[int], bool]:
    """Whether a place is in no closed block; blocks are in order and don't overlap."""
    closed = [block for block in found if block.closed]
    starts = [block.start for block in closed]

    def outside(place: int) -> bool:
        before = bisect.bisect_right(starts, place)
        return not before or place >= closed[before - 1].end

    return outside


STEPS: tuple[Callable[[Reading], CodeFound | None], ...] = (
    _whole_text,
    _suffix,
    _fence_with_entry_point,
    _definition,
    _suffix_cut,
    _fence_body,
    _unparsed_fence,
    _unparsed_definition,
    _unparsed_suffix,
    _fence,
)
