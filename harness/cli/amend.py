"""`amend`: a numbered revision of a frozen protocol, with its reason and what had been made of it by then."""

import time
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.freeze import said
from harness.cli.freezing import freeze_folder, named_folder
from harness.cli.options import Checkpoint, Folders, Json, Named
from harness.cli.working import working
from harness.places import places
from harness.protocols.amend import revise, staged
from harness.protocols.load import load_line
from harness.records.verbs import AmendedProtocol

Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why it is changed; kept in the revision's record.")
]


def amend(
    protocol: Named, reason: Reason, inputs: Folders = None, checkpoint: Checkpoint = None, *, json: Json = False
) -> None:
    """Put the files of PROTOCOL/amendment in force, as a numbered revision of the frozen protocol.

    Exit 0: amended; 1: refused, and the frozen files are as they were.
    """
    with errors_to_stderr(), working("amend") as note:
        named = named_folder(protocol, places())
        loaded = load_line(named.folder, named.tree)[-1]
        with staged(loaded, named.tree) as staging:
            note("sources and prompts")
            content, checks = freeze_folder(named, inputs or [], checkpoint=checkpoint, folder=staging.folder)
            record = revise(staging, content, reason=reason, at_us=time.time_ns() // 1000)
        loaded = load_line(named.folder, named.tree)[-1]
    made = AmendedProtocol(
        schema=1, protocol=loaded.protocol.id, protocol_digest=loaded.digest, revision=record, checks=checks
    )
    if json:
        show.document(made)
    else:
        _show(made)


def _show(made: AmendedProtocol) -> None:
    one = made.revision
    show.line(
        f"{made.protocol}: revision {one.number}, protocol digest {made.protocol_digest}, supersedes {one.supersedes}"
    )
    for words in said(made.checks):
        show.line(words)
    there = f"{len(one.outputs)} outputs existed" if one.outputs_existed else "no output existed"
    show.line(f"{there}, by looking into {', '.join(one.looked_in)}")
    show.table(
        ("kind", "output", "protocol digest"), [(out.kind, out.where, out.protocol_digest) for out in one.outputs]
    )
