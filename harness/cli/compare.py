"""`compare A B`: which cells of two runs, or of a run and frozen results, are equal, and what else differs.

Exit 0: all cells that both have are equal, and none is missing; 1: something differs in cells; 2: not comparable. What
differs in environment or placement alone is said, and no reason for another exit code.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.options import Checkpoint
from harness.cli.working import working
from harness.difference.leaves import field_of
from harness.difference.make import compare_sides
from harness.errors import HarnessError
from harness.records.difference import (
    CellPair,
    ComparedSide,
    Decoded,
    Fact,
    JudgedBy,
    LoneCell,
    NoToken,
    OutputPair,
    Parting,
    SideComparison,
    Token,
    TracePair,
    TracePlace,
)

EXIT = {"equal": 0, "different": 1}
NOT_COMPARABLE = 2
STYLE = {"equal": "green", "different": "red"}
FACTS_SHOWN, LONGEST = 3, 300
Row = tuple[str, ...]
FACTS: Row = ("what", "field", "A", "B")
CELLS: Row = ("cell", "differs in", "where", "A", "B")

SIDE = "A run folder, or snapshots/PROTOCOL."
One = Annotated[Path, typer.Argument(metavar="A", help=SIDE)]
Other = Annotated[Path, typer.Argument(metavar="B", help=SIDE)]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Differing cells that are shown; 0 for all.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, with all cells.")]


def compare(a: One, b: Other, *, limit: Limit = 10, json: Json = False, checkpoint: Checkpoint = None) -> None:
    """Compare A and B cell by cell, and say what else differs, the most telling first.

    Exit 0: all cells are equal; 1: something differs in cells; 2: not comparable.
    """
    try:
        with working("compare") as note:
            note("cell by cell")
            found = compare_sides(a, b, checkpoint=checkpoint)
    except HarnessError as error:
        show.tell(error)
        raise typer.Exit(NOT_COMPARABLE) from error
    if json:
        show.document(found)
    else:
        _show(found, limit)
    raise typer.Exit(EXIT[found.verdict])


def _show(found: SideComparison, limit: int) -> None:
    show.line((found.verdict, STYLE[found.verdict]), fractions(found))
    for line in _head(found):
        show.line(line)
    if found.facts:
        show.line("What differs besides, most telling first:")
        show.table(FACTS, list(_facts(found.facts)))
    if found.not_compared:
        show.line("Not compared:")
        for reason in found.not_compared:
            show.line(f"  {_word(reason)}")
    differing = [cell for cell in found.cells if not cell.equal]
    if differing:
        shown = differing[: limit or len(differing)]
        show.line(f"Differing cells, {len(shown)} of {len(differing)}; steps count from 0:")
        show.table(CELLS, [_cell(cell) for cell in shown])


def fractions(found: SideComparison) -> str:
    """What stands behind the verdict: cells equal, different and missing."""
    cut = "" if found.whole else f" in their first {found.budget} tokens, the smaller budget"
    if any(isinstance(cell.found, TracePair) and not cell.found.tensors for cell in found.cells):
        cut = " in what every environment gives"
    differ = found.equal.of - found.equal.count
    told = f": {found.equal.count} of {found.equal.of} cells equal{cut}" + (f", {differ} differ" if differ else "")
    missing = sum(one.missing for one in found.lone)
    return told + (f", {missing} missing" if missing else "")


def _head(found: SideComparison) -> Iterator[str]:
    """The sides, one run twice, cells of one side, and groups that aren't whole."""
    yield f"A  {side_words(found.a)}"
    yield f"B  {side_words(found.b)}"
    if found.shared_units.count:
        count = f"{found.shared_units.count} of {found.shared_units.of} units"
        yield f"one run twice: {count} are of one and the same making on both sides; that they agree shows nothing"
    yield f"judged by: {_judged(found.judged_by)}"
    yield from _lone(found.lone)
    for what, parts in (("domain", [one for one in found.groups if one.domain]), ("condition", found.groups)):
        short = [one for one in parts if one.equal.count < one.equal.of and getattr(one, what)]
        words = ", ".join(f"{_word(getattr(one, what))} {one.equal.count}/{one.equal.of}" for one in short)
        if short:
            yield f"by {what}: {words}"


def side_words(side: ComparedSide) -> str:
    """A side on one line: what it is, of which protocol, grid and budget, and what was said of it."""
    what = "frozen results of " if side.kind == "frozen" else ""
    budget = f", {side.budget} tokens" if side.budget else ""
    port = ", PORT" if side.port else ""
    name = f"{what}{side.protocol}" if what else f"{side.name} of {side.protocol}"
    state = "" if side.kind == "frozen" else f", {side.state}"
    return _word(f"{name} {side.protocol_digest[:16]}, grid {side.grid}{budget}, {side.cells} cells{state}{port}")


def _judged(one: JudgedBy) -> str:
    """Who judged the sides: the same, what differs, or why that isn't known."""
    if one.state != "differs":
        return f"{one.state} ({_word(one.held or one.why)})"
    return "; ".join(f"{part.field} A: {_word(part.a)}, B: {_word(part.b)}" for part in one.differing)


def _lone(lone: tuple[LoneCell, ...]) -> Iterator[str]:
    """How many cells one side alone has, those that the other should have apart from the rest."""
    for side, other in (("a", "B"), ("b", "A")):
        own = [one for one in lone if one.side == side]
        lost = [one for one in own if one.missing]
        if lost:
            first = f"{lost[0].source_id} {lost[0].replicate} {lost[0].condition}"
            yield f"missing in {other}: {len(lost)} cells, first {_word(first)}"
        if len(own) > len(lost):
            yield f"only in {side.upper()}: {len(own) - len(lost)} cells, which {other}'s grid doesn't have"


def _facts(facts: tuple[Fact, ...]) -> Iterator[Row]:
    """The first facts of each field of a group, in order, and how many more there are: no table hides the next one."""
    for (group, name), members in groupby(facts, key=lambda one: (one.group, field_of(one.field))):
        listed = list(members)
        for one in listed[:FACTS_SHOWN]:
            where = f" ({_word(one.where)})" if one.where else ""
            yield group, f"{_word(one.field)}{where}", f"A: {_word(one.a)}", f"B: {_word(one.b)}"
        if len(listed) > FACTS_SHOWN:
            yield group, f"and {len(listed) - FACTS_SHOWN} more of {_word(name)}: --json has them", "", ""


def _cell(cell: CellPair) -> Row:
    name = _word(f"{cell.source_id} {cell.replicate} {cell.condition}")
    return (name, ", ".join(cell.fields), *_found(cell.found))


def _found(found: OutputPair | TracePair) -> tuple[str, str, str]:
    """Where the cell parts, and what stands there on both sides."""
    if isinstance(found, TracePair):
        places = [("stage", found.first_stage), ("gate", found.first_gate)]
        words = [f"{what} {one.name} {one.digest} ({one.scope})" for what, one in places if isinstance(one, TracePlace)]
        return "; ".join(words) or "-", "", ""
    ends = [f"{end.length} tokens, {end.stop}" for end in (found.a, found.b)]
    if not isinstance(found.parting, Parting):
        return "-", f"A: {ends[0]}", f"B: {ends[1]}"
    a, b = token_words(found.parting.a), token_words(found.parting.b)
    return f"from step {found.parting.step}", f"A: {a} ({ends[0]})", f"B: {b} ({ends[1]})"


def token_words(token: Token | NoToken) -> str:
    """A token by its ID, with its text where it was decoded."""
    if isinstance(token, NoToken):
        return "ended"
    text = f"'{token.text.text_escaped}'" if isinstance(token.text, Decoded) else "not decoded"
    return f"{token.id} {text}"


def _word(text: str) -> str:
    """Words of a record, long ones cut: `--json` has them whole."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
