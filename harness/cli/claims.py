"""`claims RUN`: what a judged run supports; `--check FILE.md`: whether somebody's write-up says more.

Exit 0: listed, or nothing in the write-up that the run doesn't support; 1: findings; 2: the run or the file can't be
read, or the run isn't judged. A permitted claim that is refuted is a result and no error of this verb.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.claims.judge import claims_of
from harness.claims.load import load_claims
from harness.claims.view import judged_view
from harness.claims.writeup import Finding, check_text
from harness.cli import show
from harness.cli.options import Judged
from harness.cli.working import working
from harness.errors import HarnessError, StorageError
from harness.files import read_given
from harness.journal.folder import write_once
from harness.records.claims import Claims, PermittedResult
from harness.records.verbs import CheckedWriteUp, WriteUpLine
from harness.verify.attestation import said_of

NOT_CHECKED = 2
FILE = "claims.json"
STYLES = {"SUPPORTED": "green", "REFUTED": "red", "NOT CHECKED": "yellow"}

Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout: claims.json, or with --check the findings.")
]
Check = Annotated[
    Path | None,
    typer.Option("--check", metavar="FILE", help="Read a write-up in Markdown for what RUN doesn't support."),
]
Write = Annotated[bool, typer.Option("--write", help="Write claims.json into RUN, where no session did.")]


def claims(run: Judged, *, json: Json = False, check: Check = None, write: Write = False) -> None:
    """List what RUN supports, each claim with its counts; --check reads a write-up against it.

    Exit 0: listed, or the write-up says no more than RUN supports; 1: it says more; 2: can't be checked.
    """
    try:
        with working("claims") as note:
            note("the run's records")
            view = judged_view(run)
            registration = load_claims(view.loaded)
            record = claims_of(view, registration)
        if write:
            write_once(view.folder.file(FILE), record, what="claims")
        document = None if check is None else _document(check)
    except HarnessError as error:
        show.tell(error)
        raise typer.Exit(NOT_CHECKED) from error
    if check is not None and document is not None:
        _say_findings(check, record, check_text(document, view, record, registration), json=json)
    elif json:
        show.document(record)
    else:
        _show(record, said_of(run))


def _document(path: Path) -> str:
    try:
        return read_given(path, what="write-up").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StorageError(str(path), expected="UTF-8 text", found=str(error), todo="Save it as UTF-8.") from error


def _say_findings(path: Path, record: Claims, findings: Sequence[Finding], *, json: bool) -> None:
    """One line a finding: file:line, what, expected, found. Exit 1 where there is any."""
    lines = [
        WriteUpLine(line=one.line, what=one.what, expected=one.places or one.expected, found=one.found)
        for one in findings
    ]
    if json:
        made = CheckedWriteUp(
            schema=1,
            path=show.valid(path),
            protocol=record.protocol,
            run_id=record.run_id,
            claims_sha256=record.claims_sha256,
            findings=tuple(lines),
        )
        show.document(made)
    else:
        for one in findings:
            show.line(f"{path}:{one.line}: {one.what}: expected {one.expected}, found {one.found}")
    counted = f"{len(lines)} finding{'' if len(lines) == 1 else 's'}"
    show.tell(f"{counted} under {record.protocol} {record.run_id}, claims {record.claims_sha256}")
    if lines:
        show.tell(f"Correct or remove what is named, then check {path} again; `claims RUN` lists what may be said.")
        raise typer.Exit(1)


def _show(record: Claims, signed: str) -> None:
    port = ", PORT: not the registered run" if record.port else ""
    state = "passed" if record.passed else "NOT passed"
    show.line(f"{record.result_name}: {record.protocol} {record.tier} {record.run_id}, {state}{port}")
    show.line(f"protocol {record.protocol_digest}")
    show.line(f"claims {record.claims_sha256}, {record.claims_registered}")
    show.line(f"attestation: {signed}")
    for heading, title in (("results", "Permitted"), ("diagnostics", "Diagnostics")):
        listed = [one for one in record.permitted if one.heading == heading]
        if listed:
            _heading(title)
        for one in listed:
            _permitted(one)
    _heading("Prohibited, whatever a run gives")
    for prohibited in record.prohibited:
        show.line(f"  {prohibited.id}: {prohibited.text}")
    _heading("Differences from the published and the registered run")
    rows = [(one.kind, one.field, one.registered, one.found) for one in record.differences]
    show.table(("kind", "field", "registered", "here"), rows)
    _heading("Records, by SHA-256")
    show.table(("SHA-256", "file"), [(sha256, name) for name, sha256 in record.records.items()])


def _heading(title: str) -> None:
    show.line()
    show.line((title, "bold"))


def _permitted(one: PermittedResult) -> None:
    show.line("  ", (one.status, STYLES[one.status]), f" {one.id}: {one.statement or one.text}")
    for reason in one.why:
        show.line(f"    {reason}")
    for figure in one.figures:
        show.line(f"    {figure.name} {figure.count}/{figure.of} ({figure.source})")
