"""`compare A B`: which cells of two runs, or of a run and frozen results, are equal, and what else differs.

Exit 0: all cells that both have are equal, and none is missing; 1: something differs in cells; 2: not comparable. What
differs in environment or placement alone is said, and no reason for another exit code.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.canon import canonical_bytes, escaped
from harness.cli.errors import any_letter
from harness.cli.prompts import Checkpoint
from harness.difference.leaves import field_of
from harness.difference.make import compare_sides
from harness.errors import HarnessError
from harness.records.difference import (
    CellPair,
    ComparedSide,
    Decoded,
    Fact,
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
STEP = "from step"
HEADS: dict[str, Row] = {"facts": ("what", "field", "A", "B"), "cells": ("cell", "differs in", STEP, "A", "B")}
BARE = ("what", "field", "cell")

Side = Annotated[Path, typer.Argument(metavar="RUN|SNAPSHOTS", help="A run folder, or snapshots/PROTOCOL.")]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Differing cells that are shown; 0 for all.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON record on stdout, with all cells.")]


def compare(a: Side, b: Side, *, limit: Limit = 10, json: Json = False, checkpoint: Checkpoint = None) -> None:
    """Compare A and B cell by cell, and say what else differs, the most telling first.

    Exit 0: all cells are equal; 1: something differs in cells; 2: not comparable.
    """
    try:
        found = compare_sides(a, b, checkpoint=checkpoint)
    except HarnessError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(NOT_COMPARABLE) from error
    any_letter()
    if json:
        typer.echo(canonical_bytes(found), nl=False)
    else:
        _show(found, limit)
    raise typer.Exit(EXIT[found.verdict])


def _show(found: SideComparison, limit: int) -> None:
    console = Console(soft_wrap=not Console().is_terminal)
    for line in _head(found):
        console.print(line)
    if found.facts:
        console.print(Text("\nWhat differs besides, most telling first"))
        _table(console, "facts", list(_facts(found.facts)))
    if found.not_compared:
        console.print(Text("\nNot compared"))
        for reason in found.not_compared:
            console.print(Text(f"  {_word(reason)}"))
    differing = [cell for cell in found.cells if not cell.equal]
    if differing:
        shown = differing[: limit or len(differing)]
        console.print(Text(f"\nDiffering cells, {len(shown)} of {len(differing)}; steps count from 0"))
        _table(console, "cells", [_cell(cell) for cell in shown])


def _head(found: SideComparison) -> Iterator[Text]:
    """Verdict with its fractions, the sides, one run twice, cells of one side, and groups that aren't whole."""
    cut = "" if found.whole else f" in their first {found.budget} tokens, the smaller budget"
    if any(isinstance(cell.found, TracePair) and not cell.found.tensors for cell in found.cells):
        cut = " in what every environment gives"
    differ = found.equal.of - found.equal.count
    told = f": {found.equal.count} of {found.equal.of} cells equal{cut}" + (f", {differ} differ" if differ else "")
    missing = sum(one.missing for one in found.lone)
    told += f", {missing} missing" if missing else ""
    yield Text(found.verdict, style=STYLE[found.verdict]).append(told)
    yield Text(f"A  {_side(found.a)}")
    yield Text(f"B  {_side(found.b)}")
    if found.shared_units.count:
        count = f"{found.shared_units.count} of {found.shared_units.of} units"
        yield Text(
            f"one run twice: {count} are of one and the same making on both sides; that they agree shows nothing"
        )
    yield from (Text(line) for line in _lone(found.lone))
    for what, parts in (("domain", [one for one in found.groups if one.domain]), ("condition", found.groups)):
        short = [one for one in parts if one.equal.count < one.equal.of and getattr(one, what)]
        words = ", ".join(f"{_word(getattr(one, what))} {one.equal.count}/{one.equal.of}" for one in short)
        if short:
            yield Text(f"by {what}: {words}")


def _side(side: ComparedSide) -> str:
    what = "frozen results of " if side.kind == "frozen" else ""
    budget = f", {side.budget} tokens" if side.budget else ""
    port = ", PORT" if side.port else ""
    name = f"{what}{side.protocol}" if what else f"{side.name} of {side.protocol}"
    state = "" if side.kind == "frozen" else f", {side.state}"
    return _word(f"{name} {side.protocol_digest[:16]}, grid {side.grid}{budget}, {side.cells} cells{state}{port}")


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
            yield group, f"{_word(one.field)}{where}", _word(one.a), _word(one.b)
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
        return "-", ends[0], ends[1]
    a, b = _token(found.parting.a), _token(found.parting.b)
    return str(found.parting.step), f"{a} ({ends[0]})", f"{b} ({ends[1]})"


def _token(token: Token | NoToken) -> str:
    if isinstance(token, NoToken):
        return "ended"
    text = f"'{token.text.text_escaped}'" if isinstance(token.text, Decoded) else "not decoded"
    return f"{token.id} {text}"


def _table(console: Console, kind: str, rows: list[Row]) -> None:
    """A table in a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        for row in rows:
            console.print(Text("  " + "  ".join(_named(HEADS[kind], row))))
        return
    table = Table(box=None, pad_edge=False)
    for name in HEADS[kind]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(word) for word in row))
    console.print(table)


def _named(heads: Row, row: Row) -> Iterator[str]:
    """What stands in a row, the sides by their letter and a step by its word."""
    for name, word in zip(heads, row, strict=True):
        if word:
            yield word if name in BARE else f"{name} {word}" if name == STEP else f"{name}: {word}"


def _word(text: str) -> str:
    """Words of a record on one line, in letters that a terminal shows and doesn't obey; long ones cut."""
    plain = text if text.isascii() and text.isprintable() else escaped(text)
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}..."
