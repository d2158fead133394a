"""`explain A B`: where two sides part, what differs there, and with --rerun which change brings A's token back.

Exit codes are those of `compare`. Every line says its source, `record` or `rerun`; the last is one sentence to quote.
"""

from pathlib import Path
from typing import Annotated

import typer

from harness.canon import canonical_bytes
from harness.cli import show
from harness.cli.compare import EXIT, NOT_COMPARABLE, STYLE, One, Other, fractions, side_words
from harness.cli.working import working
from harness.difference.make import comparison, read_sides
from harness.errors import HarnessError
from harness.explain.make import explanation
from harness.explain.place import divergence
from harness.explain.rows import HEADINGS, rows
from harness.files import write_atomic
from harness.records.difference import SideComparison
from harness.records.explanation import Explanation, NoRerun, Rerun
from harness.rerun.conditions import Checkpoints
from harness.rerun.make import rerun_of
from harness.rerun.processes import in_a_process
from harness.rerun.trials import Trials

NOT_ASKED = "not asked for: --rerun"

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout: the record.")]
Again = Annotated[bool, typer.Option("--rerun", help="Make the step again here, under both sides' conditions.")]
Folders = Annotated[
    list[Path] | None,
    typer.Option("--checkpoint", metavar="DIR", help="Folder of a side's checkpoint or tokenizer; repeatable."),
]
Which = Annotated[
    tuple[str, str, str] | None,
    typer.Option(
        "--cell", metavar="SOURCE REPLICATE CONDITION", help="Cell to explain; default: the one that parts earliest."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the record into FILE too.")]


def explain(  # noqa: PLR0913 - its options
    a: One,
    b: Other,
    *,
    again: Again = False,
    checkpoint: Folders = None,
    cell: Which = None,
    json: Json = False,
    out: Out = None,
) -> None:
    """Say where A and B part, what differs there, and with --rerun what brings A's token back.

    Exit 0: all cells are equal; 1: something differs in cells; 2: not comparable.
    """
    folders = tuple(checkpoint or ())
    try:
        with working("explain") as note:
            note("cell by cell")
            sides = read_sides(a, b)
            compared = comparison(*sides, checkpoint=folders[0] if folders else None)
            found = divergence(sides, compared, cell)
            made: Rerun | NoRerun = NoRerun(reason=NOT_ASKED)
            if again:
                made = rerun_of(sides, compared, found, Checkpoints(folders), Trials(in_a_process, note))
        record = explanation(compared, found, made)
        if out is not None:
            write_atomic(out, canonical_bytes(record))
    except HarnessError as error:
        show.tell(error)
        raise typer.Exit(NOT_COMPARABLE) from error
    if json:
        show.document(record)
    else:
        _show(record, compared)
    raise typer.Exit(EXIT[record.verdict])


def _show(record: Explanation, compared: SideComparison) -> None:
    show.line((record.verdict, STYLE[record.verdict]), fractions(compared))
    show.line(f"A  {side_words(record.a)}")
    show.line(f"B  {side_words(record.b)}")
    if made := list(rows(record)):
        show.table(HEADINGS, made, {"rerun": "cyan"})
    show.line(record.sentence)
