"""`inputs verify` and `inputs fetch`: are the registered data files here, and get those that can be got.

Both serve a protocol that isn't frozen yet too; one that is must be as it was frozen. Knows no rows and no sources.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.map import Verbs
from harness.cli.options import Json
from harness.cli.working import working
from harness.errors import HarnessError, ProtocolError
from harness.inputs.find import (
    Altered,
    InputState,
    Missing,
    Present,
    find_among,
    location_of,
    publisher,
    search_folders,
)
from harness.inputs.scan import scan
from harness.protocols.folders import protocol_ids
from harness.protocols.load import read_registration
from harness.records.base import Frozen
from harness.records.protocol import Protocol
from harness.records.sources import InputFile
from harness.records.verbs import FileState, InputLine, InputList

app = typer.Typer(cls=Verbs)

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", envvar="HARNESS_INPUTS", help="Folder of input files; any names, any depth.")
]
Named = Annotated[
    list[str] | None,
    typer.Option("--protocol", metavar="ID", help="Protocol whose inputs are meant; repeatable; default: all."),
]
HEADINGS = ("protocol", "input", "state", "registered SHA-256", "where")
THERE = ("present", "fetched", "already there")
STYLES = {
    **dict.fromkeys(THERE, "green"),
    **dict.fromkeys(("altered", "failed"), "red"),
    **dict.fromkeys(("missing", "unfrozen", "not fetched"), "yellow"),
}


@app.callback()
def inputs() -> None:
    """Registered data files: verify that they are here, fetch those that can be had."""


@app.command()
def verify(folder: Folder, protocol: Named = None, *, json: Json = False) -> None:
    """Say for each registered file whether its bytes are in DIR.

    Exit 0: all are; 1: not all, or DIR can't be read.
    """
    with errors_to_stderr(), working("inputs verify") as note:
        protocols = _protocols(protocol)
        note("hashing files")
        registered = [file for one in protocols for file in one.inputs]
        files = scan(search_folders(registered, (folder,)))
        states = [(one, find_among(one.inputs, files)) for one in protocols]
    for one, found in states:
        _warn_of_strays(one.id, found.altered, found.states)
    lines = [
        _line(one.id, file, state)
        for one, found in states
        for file, state in zip(one.inputs, found.states, strict=True)
    ]
    _end(lines, json=json)


@app.command()
def fetch(folder: Folder, protocol: Named = None, *, json: Json = False) -> None:
    """Download what is missing in DIR from its publisher.

    Exit 0: all files are there; 1: not all.
    """
    lines = []
    with errors_to_stderr(), working("inputs fetch") as note:
        for one in _protocols(protocol):
            for file in one.inputs:
                note(f"{one.id} {file.name}")
                lines.append(_fetched(one.id, file, folder))
    _end(lines, json=json)


def _fetched(protocol: str, file: InputFile, folder: Path) -> InputLine:
    # pooch brings requests: only this command pays for it.
    from harness.inputs.fetch import Fetched, NotFetched, fetch_inputs  # noqa: PLC0415

    try:
        state = fetch_inputs((file,), folder)[0]
    except HarnessError as error:
        show.tell(error)
        return _made(protocol, file, "failed", publisher(file))
    if isinstance(state, NotFetched):
        return _made(protocol, file, "not fetched", f"{state.why}; {state.location}")
    word: FileState = "fetched" if isinstance(state, Fetched) else "already there"
    return _made(protocol, file, word, location_of(state.present))


def _protocols(named: Sequence[str] | None) -> list[Protocol]:
    known = protocol_ids()
    for name in named or ():
        if name not in known:
            raise ProtocolError(
                f"protocol {name}",
                expected=f"one of {', '.join(known) or 'none'}",
                found="no such protocol",
                todo="Name a known protocol.",
            )
    return [read_registration(name) for name in named or known]


def _line(protocol: str, file: InputFile, state: InputState) -> InputLine:
    match state:
        case Present():
            return _made(protocol, file, "present", location_of(state))
        case Altered():
            where = f"{location_of(state)}: expected {state.expected}, found {state.found}; {publisher(file)}"
            return _made(protocol, file, "altered", where)
        case Missing():
            word: FileState = "missing" if isinstance(file.digest, Frozen) else "unfrozen"
            return _made(protocol, file, word, f"{state.why}; {state.location}")


def _made(protocol: str, file: InputFile, state: FileState, where: str) -> InputLine:
    registered = file.digest.sha256 if isinstance(file.digest, Frozen) else "unfrozen"
    where = show.valid(where)
    return InputLine(protocol=protocol, input=file.name, state=state, registered=registered, where=where)


def _warn_of_strays(protocol: str, altered: Sequence[Altered], states: Sequence[InputState]) -> None:
    for one in altered:
        if one not in states:
            where = f"{protocol} {one.name}: also altered: {location_of(one)}"
            show.tell(f"{where}: expected {one.expected}, found {one.found}")


def _end(lines: Sequence[InputLine], *, json: bool) -> None:
    """Print the lines; exit 1 where a file isn't there."""
    complete = all(one.state in THERE for one in lines)
    if json:
        show.document(InputList(schema=1, complete=complete, inputs=tuple(lines)))
    else:
        rows = [(one.protocol, one.input, one.state, one.registered, one.where) for one in lines]
        show.table(HEADINGS, rows, STYLES)
    if not complete:
        raise typer.Exit(1)
