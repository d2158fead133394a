"""`verify RUN`: everything that can be recomputed of a run folder, without a model, an engine or a network.

Exit 0: it holds; 1: something doesn't, with where, expected, found and what to do; 2: something can't be checked here.
"""

import sys
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.options import Judged
from harness.cli.working import working
from harness.records.verification import Verification, VerifiedLine
from harness.verify.run import verify as verify_run

EXIT = {"holds": 0, "fails": 1, "not checkable": 2}
STYLE = {"holds": "green", "fails": "red", "not checkable": "yellow", "none": "dim"}

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout: what was verified, line by line.")]


def verify(run: Judged, *, json: Json = False) -> None:
    """Recompute RUN's digests and records, from the protocol to the frozen snapshots.

    Exit 0: all holds; 1: something fails; 2: something can't be checked here.
    """
    with working("verify") as note:
        found = verify_run(run, note=note)
    if json:
        show.document(found)
    else:
        _show(found)
    raise typer.Exit(EXIT[found.verdict])


def _show(found: Verification) -> None:
    """A table in a terminal; elsewhere a line each, `step: state: where: what`."""
    if show.is_terminal(sys.stdout):
        rows = [(one.step, one.state, one.where, _words(one)) for one in found.lines]
        show.table(("step", "state", "where", "what"), rows, STYLE)
    else:
        for one in found.lines:
            show.line(f"{one.step}: {one.state}: {one.where}: {_words(one)}")
    run = f"{found.protocol} {found.run}: "
    show.line(run, (found.verdict, STYLE[found.verdict]), f" (audit.json {found.audit_sha256})")


def _words(one: VerifiedLine) -> str:
    if one.state in ("holds", "none"):
        return one.found
    return f"expected {one.expected}, found {one.found}. {one.todo}"
