"""`claims RUN`: what a judged run supports; `--check FILE.md`: whether somebody's write-up says more.

Exit 0: listed, or nothing in the write-up that the run doesn't support; 1: findings; 2: the run or the file can't be
read, or the run isn't judged. A permitted claim that is refuted is a result and no error of this verb.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.canon import canonical_bytes
from harness.claims.judge import claims_of
from harness.claims.load import Registration, load_claims
from harness.claims.view import RunView, judged_view
from harness.claims.writeup import check_text
from harness.cli.errors import any_letter
from harness.errors import HarnessError, StorageError
from harness.files import read_bytes
from harness.journal.folder import write_once
from harness.records.claims import Claims, PermittedResult
from harness.verify.attestation import said_of

NOT_CHECKED = 2
FILE = "claims.json"

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder that a session judged.")]
Json = Annotated[bool, typer.Option("--json", help="claims.json's bytes on stdout, and nothing else.")]
Check = Annotated[Path | None, typer.Option("--check", metavar="FILE", help="A write-up in Markdown to read.")]
Write = Annotated[bool, typer.Option("--write", help="Write claims.json into RUN, where no session did.")]


def claims(run: Run, *, json: Json = False, check: Check = None, write: Write = False) -> None:
    """What RUN supports: each permitted claim with its counts, and every prohibited one.

    Exit 0: listed, or the write-up says no more than RUN supports; 1: it does; 2: can't be checked.
    """
    try:
        view = judged_view(run)
        registration = load_claims(view.loaded)
        record = claims_of(view, registration)
        if write:
            write_once(view.folder.file(FILE), record, what="claims")
        document = None if check is None else _document(check)
    except HarnessError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(NOT_CHECKED) from error
    any_letter()
    if json:
        typer.echo(canonical_bytes(record), nl=False)
    if check is not None and document is not None:
        _check(check, document, view, record, registration)
    elif not json:
        _show(record, said_of(run))


def _document(path: Path) -> str:
    try:
        return read_bytes(path, what="write-up").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StorageError(str(path), expected="UTF-8 text", found=str(error), todo="Save it as UTF-8.") from error


def _check(path: Path, document: str, view: RunView, record: Claims, registration: Registration) -> None:
    """One line a finding: file:line, what, expected, found. Exit 1 where there is any."""
    findings = check_text(document, view, record, registration)
    for one in findings:
        typer.echo(f"{path}:{one.line}: {one.what}: expected {one.expected}, found {one.found}")
    where = f"{record.protocol} {record.run_id}, claims {record.claims_sha256}"
    typer.echo(f"{len(findings)} findings under {where}", err=True)
    if findings:
        raise typer.Exit(1)


def _show(record: Claims, signed: str) -> None:
    console = Console(soft_wrap=not _is_terminal())
    port = ", PORT: not the registered run" if record.port else ""
    state = "passed" if record.passed else "NOT passed"
    console.print(Text(f"{record.result_name}: {record.protocol} {record.tier} {record.run_id}, {state}{port}"))
    console.print(Text(f"protocol {record.protocol_digest}"))
    console.print(Text(f"claims {record.claims_sha256}, {record.claims_registered}"))
    console.print(Text(f"attestation: {signed}"))
    for heading, title in (("results", "Permitted"), ("diagnostics", "Diagnostics")):
        listed = [one for one in record.permitted if one.heading == heading]
        if listed:
            console.print(Text(f"\n{title}"))
        for one in listed:
            _permitted(console, one)
    console.print(Text("\nProhibited, whatever a run gives"))
    for prohibited in record.prohibited:
        console.print(Text(f"  {prohibited.id}: {prohibited.text}"))
    console.print(Text("\nDifferences from the published and the registered run"))
    _differences(console, record)
    console.print(Text("\nRecords, by SHA-256"))
    for name, sha256 in record.records.items():
        console.print(Text(f"  {sha256}  {name}"))


def _permitted(console: Console, one: PermittedResult) -> None:
    styles = {"SUPPORTED": "green", "REFUTED": "red", "NOT CHECKED": "yellow"}
    console.print(
        Text("  ").append(one.status, style=styles[one.status]).append(f" {one.id}: {one.statement or one.text}")
    )
    for reason in one.why:
        console.print(Text(f"    {reason}"))
    for figure in one.figures:
        console.print(Text(f"    {figure.name} {figure.count}/{figure.of} ({figure.source})"))


def _differences(console: Console, record: Claims) -> None:
    """A table in a terminal, plain lines elsewhere."""
    if not _is_terminal():
        for one in record.differences:
            console.print(Text(f"  {one.kind}  {one.field}  registered: {one.registered}  here: {one.found}"))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("kind", "field", "registered", "here"):
        table.add_column(name, overflow="fold")
    for one in record.differences:
        table.add_row(*(Text(words) for words in (one.kind, one.field, one.registered, one.found)))
    console.print(table)


def _is_terminal() -> bool:
    return Console().is_terminal
