"""`verify RUN`: everything that can be recomputed of a run folder, without a model, an engine or a network.
`attest RUN`: the statement over it, for somebody to sign.

Exit 0: it holds; 1: something doesn't, with where, expected, found and what to do; 2: something can't be checked here.
"""

import shlex
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from harness.canon import canonical_bytes
from harness.cli.errors import errors_to_stderr
from harness.errors import HarnessError
from harness.records.verification import Verification, VerifiedLine
from harness.snapshots.store import ATTESTATION
from harness.verify.attest import attest as attest_run
from harness.verify.attestation import NAMESPACE, SIGNED, said_of
from harness.verify.keys import require_cryptography
from harness.verify.run import verify as verify_run
from harness.verify.signers import Signers, read_signers

EXIT = {"holds": 0, "fails": 1, "not checkable": 2}
STYLE = {"holds": "green", "fails": "red", "not checkable": "yellow", "none": "dim"}

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder that a session judged.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON record on stdout.")]

Named = Annotated[
    Path | None,
    typer.Option("--signers", metavar="FILE", help="Who may have signed RUN: OpenSSH's allowed_signers format."),
]


def verify(run: Run, *, json: Json = False, signers: Named = None) -> None:
    """Recompute RUN's digests and records, from the protocol to the frozen snapshots, and say who signed them.

    Exit 0: all holds; 1: something fails, also a run that none of the signers signed; 2: something can't be checked
    here, also a file of signers that can't be read.
    """
    found = verify_run(run, signers=_read(signers))
    if json:
        typer.echo(canonical_bytes(found), nl=False)
    else:
        _show(found)
    raise typer.Exit(EXIT[found.verdict])


def attest(run: Run) -> None:
    """Write RUN/attestation.json, an in-toto statement over a run that verifies, and say how it is signed."""
    with errors_to_stderr():
        statement = attest_run(run)
    about = statement.predicate.pregate
    typer.echo(f"{run / ATTESTATION}: {len(statement.subject)} subjects, {statement.predicate.result}, {said_of(run)}")
    for one in about.not_checkable:
        typer.echo(f"not checkable, and said in the statement: {one}")
    typer.echo(f"Sign it: ssh-keygen -Y sign -n {NAMESPACE} -f KEY {shlex.quote(str(run / ATTESTATION))}")


def _read(path: Path | None) -> Signers | None:
    """The signers that were named; where they can't be read nothing is verified."""
    if path is None:
        return None
    try:
        require_cryptography()
        return read_signers(path, datetime.now().astimezone())
    except HarnessError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT["not checkable"]) from error


def _show(found: Verification) -> None:
    console = Console(soft_wrap=True)
    for one in found.lines:
        console.print(_line(one))
    text = Text(f"{found.protocol} {found.run}: ").append(found.verdict, style=STYLE[found.verdict])
    console.print(text.append(f" (audit.json {found.audit_sha256}); {_signed(found)}"))


def _signed(found: Verification) -> str:
    """Who signed, in the last line of every verification."""
    (one,) = (line for line in found.lines if line.step == SIGNED)
    return one.found if one.state in ("holds", "none") else f"signature {one.state}: {one.found}"


def _line(one: VerifiedLine) -> Text:
    text = Text(f"{one.step}: ").append(one.state, style=STYLE[one.state]).append(f": {one.where}")
    if one.state in ("holds", "none"):
        return text.append(f": {one.found}")
    return text.append(f": expected {one.expected}, found {one.found}. {one.todo}")
