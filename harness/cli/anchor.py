"""`anchor`: an RFC 3161 time stamp over a protocol's digest, asked for over a network or carried by hand."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.authority import ask
from harness.cli.errors import errors_to_stderr
from harness.cli.freezing import named_folder
from harness.cli.options import Authority, Json, Named
from harness.cli.working import working
from harness.errors import SessionError
from harness.files import read_given
from harness.places import places
from harness.protocols.anchor import ANCHOR, REQUEST, anchor_of
from harness.protocols.load import LoadedProtocol, load_line
from harness.records.verbs import AnchoredProtocol
from harness.records.verification import VerifiedLine
from harness.verify.rfc3161 import require_client
from harness.verify.timestamp import keep, request_for, timestamp_line

EXIT = {"holds": 0, "none": 0, "fails": 1, "not checkable": 2}

Url = Annotated[
    str | None, typer.Option("--tsa", metavar="URL", help="Time-stamp authority that is asked for a token.")
]
Response = Annotated[
    Path | None, typer.Option("--response", metavar="FILE", help="Answer to the request, brought by other means.")
]
Request = Annotated[bool, typer.Option("--request", help="Write the request, for an authority not reached from here.")]


def anchor(  # noqa: PLR0913  a parameter an option
    protocol: Named,
    tsa: Url = None,
    response: Response = None,
    authority: Authority = None,
    *,
    request: Request = False,
    json: Json = False,
) -> None:
    """Stamp PROTOCOL's digest with the time by an authority, or say how it stands.

    Exit 0: stamped, or owed; 1: refused, or a token that doesn't hold; 2: a token that can't be verified here.
    """
    with errors_to_stderr(), working("anchor") as note:
        if sum((tsa is not None, response is not None, request)) > 1:
            todo = "Choose how the token is had."
            raise SessionError("anchor", expected="one of --tsa, --response, --request", found="several", todo=todo)
        named = named_folder(protocol, places())
        loaded = load_line(named.folder, named.tree)[-1]
        trusted = None if authority is None else read_given(authority, what="file of certificates")
        if request:
            request_for(loaded)
        elif tsa is not None:
            note(f"asking {tsa}")
            asked(loaded, tsa, _needed(trusted))
        elif response is not None:
            certificates = _needed(trusted)
            _require_request(loaded)
            keep(loaded, read_given(response, what="answer of an authority"), certificates)
        found = timestamp_line(loaded, trusted)
    _show(loaded, found, json=json)
    raise typer.Exit(EXIT[found.state])


def asked(loaded: LoadedProtocol, url: str, certificates: bytes) -> None:
    """Ask an authority for a token over the protocol's digest and keep it; TimestampError where none is had."""
    keep(loaded, ask(url, request_for(loaded)), certificates)


def _needed(certificates: bytes | None) -> bytes:
    require_client()
    if certificates is None:
        todo = "A token is worth what its authority is: name the certificates that you trust."
        raise SessionError("anchor", expected="--authority FILE", found="none", todo=todo)
    return certificates


def _require_request(loaded: LoadedProtocol) -> None:
    if anchor_of(loaded) is None and not (loaded.folder / ANCHOR / REQUEST).is_file():
        todo = "Write the request first: --request."
        raise SessionError("anchor --response", expected=f"{ANCHOR}/{REQUEST}", found="no such file", todo=todo)


def _show(loaded: LoadedProtocol, found: VerifiedLine, *, json: bool) -> None:
    words = (
        found.found
        if found.state in ("holds", "none")
        else f"expected {found.expected}, found {found.found}. {found.todo}"
    )
    if json:
        made = AnchoredProtocol(
            schema=1, protocol=loaded.protocol.id, protocol_digest=loaded.digest, state=found.state, said=words
        )
        show.document(made)
        return
    show.line(f"{loaded.protocol.id}: {found.state}: {words}")
    path = loaded.folder / ANCHOR / REQUEST
    if found.state == "none" and path.is_file():
        show.line(f"request: {path}; send it as application/timestamp-query, then bring the answer: --response FILE")
