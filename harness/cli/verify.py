"""`verify RUN`: everything that can be recomputed of a run folder, without a model, an engine or a network.

That a run holds says that its records agree, and not that it passed: the last line says both.
Exit 0: it holds; 1: something doesn't, with where, expected, found and what to do; 2: something can't be checked here.
"""

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.options import Authority, Judged
from harness.cli.working import working
from harness.errors import HarnessError
from harness.files import read_given
from harness.records.verification import Said, Verification, VerifiedLine
from harness.verify.attestation import SIGNED
from harness.verify.keys import require_cryptography
from harness.verify.run import verify as verify_run
from harness.verify.signers import Signers, read_signers

EXIT = {"holds": 0, "fails": 1, "not checkable": 2}
STYLE = {"holds": "green", "fails": "red", "not checkable": "yellow", "none": "dim"}
# Whether the run passed, by whether its records hold: what an audit record says is no more than its folder is.
SAID: Mapping[tuple[bool, Said], str] = {
    (True, "passed"): "and the run passed",
    (True, "not passed"): "the records agree, and the run did NOT pass",
    (False, "passed"): "and its audit record says that it passed",
    (False, "not passed"): "and the run did NOT pass, by its audit record",
    (False, "not judged"): "and the run was NOT judged",
    (False, "unknown"): "and whether the run passed is unknown",
}

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout: what was verified, line by line.")]
Named = Annotated[
    Path | None,
    typer.Option("--signers", metavar="FILE", help="Who may have signed RUN: OpenSSH's allowed_signers format."),
]


def verify(run: Judged, *, json: Json = False, signers: Named = None, authority: Authority = None) -> None:
    """Recompute RUN's digests and records, from the protocol to the frozen snapshots, and say who signed.

    Exit 0: all holds, also of a run that did not pass, which is said; 1: something fails, also a run that none of
    the signers signed; 2: something can't be checked here, also a file of signers or certificates that can't be read.
    """
    named, trusted = _read(signers), _certificates(authority)
    try:
        with working("verify") as note:
            found = verify_run(run, note=note, signers=named, authority=trusted)
    except OSError as error:
        show.tell(f"{error.filename or run}: expected a folder that can be read, found {error.strerror or error}.")
        raise typer.Exit(EXIT["not checkable"]) from error
    if json:
        show.document(found)
    else:
        _show(found)
    raise typer.Exit(EXIT[found.verdict])


def _read(path: Path | None) -> Signers | None:
    """The signers that were named; where they can't be read nothing is verified."""
    if path is None:
        return None
    try:
        require_cryptography()
        return read_signers(path, datetime.now().astimezone())
    except HarnessError as error:
        show.tell(error)
        raise typer.Exit(EXIT["not checkable"]) from error


def _certificates(path: Path | None) -> bytes | None:
    """The certificates that were named; where they can't be read nothing is verified."""
    try:
        return None if path is None else read_given(path, what="file of certificates")
    except HarnessError as error:
        show.tell(error)
        raise typer.Exit(EXIT["not checkable"]) from error


def _show(found: Verification) -> None:
    """A table in a terminal; elsewhere a line each, `step: state: where: what`."""
    if show.is_terminal(sys.stdout):
        rows = [(one.step, one.state, one.where, _words(one)) for one in found.lines]
        show.table(("step", "state", "where", "what"), rows, STYLE)
    else:
        for one in found.lines:
            show.line(f"{one.step}: {one.state}: {one.where}: {_words(one)}")
    run, audit = f"{found.protocol} {found.run}: ", f" (audit.json {found.audit_sha256}); {_signed(found)}"
    show.line(run, (found.verdict, STYLE[found.verdict]), f", {SAID[found.verdict == 'holds', found.said]}", audit)


def _signed(found: Verification) -> str:
    """Who signed, in the last line of every verification."""
    (one,) = (line for line in found.lines if line.step == SIGNED)
    return one.found if one.state in ("holds", "none") else f"signature {one.state}: {one.found}"


def _words(one: VerifiedLine) -> str:
    if one.state in ("holds", "none"):
        return one.found
    return f"expected {one.expected}, found {one.found}. {one.todo}"
