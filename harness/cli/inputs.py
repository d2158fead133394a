"""`inputs verify` and `inputs fetch`: are the registered data files here, and get those that can be got.

Both read protocol.toml alone, so they serve a protocol that isn't frozen yet too; a run checks the protocol's own
digests before it uses any of this. Knows no rows and no sources.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.errors import errors_to_stderr
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
from harness.places import places
from harness.protocols.load import protocol_ids, read_protocol
from harness.records.base import Frozen
from harness.records.protocol import Protocol
from harness.records.sources import InputFile

app = typer.Typer(help="Registered input files: verify and fetch.", no_args_is_help=True)

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", envvar="HARNESS_INPUTS", help="Folder of input files; any names, any depth.")
]
Named = Annotated[list[str] | None, typer.Option("--protocol", metavar="ID", help="Repeatable; default: all.")]
Line = tuple[str, str, str, str, str]
HEADINGS = ("protocol", "input", "state", "registered SHA-256", "where")


@app.command()
def verify(folder: Folder, protocol: Named = None) -> None:
    """Say for each registered file whether its bytes are in DIR. Exit 0: all are; 1: not all."""
    with errors_to_stderr():
        protocols = _protocols(protocol)
        inputs = [file for one in protocols for file in one.inputs]
        files = scan(search_folders(inputs, (folder,)))
        states = [(one, find_among(one.inputs, files)) for one in protocols]
    _show(
        [
            _line(one.id, file, state)
            for one, found in states
            for file, state in zip(one.inputs, found.states, strict=True)
        ]
    )
    for one, found in states:
        _warn_of_strays(one.id, found.altered, found.states)
    if not all(isinstance(state, Present) for _, found in states for state in found.states):
        raise typer.Exit(1)


@app.command()
def fetch(folder: Folder, protocol: Named = None) -> None:
    """Download what is missing in DIR from its publisher. Exit 0: all files are there; 1: not all."""
    with errors_to_stderr():
        protocols = _protocols(protocol)
    lines = [line for one in protocols for file in one.inputs for line in _fetch_line(one.id, file, folder)]
    _show(lines)
    if not all(state in ("fetched", "already there") for _, _, state, _, _ in lines):
        raise typer.Exit(1)


def _fetch_line(protocol: str, file: InputFile, folder: Path) -> Iterator[Line]:
    # pooch brings requests: only this command pays for it.
    from harness.inputs.fetch import Fetched, NotFetched, fetch_inputs  # noqa: PLC0415

    try:
        state = fetch_inputs((file,), folder)[0]
    except HarnessError as error:
        typer.echo(str(error), err=True)
        yield (protocol, file.name, "failed", _registered(file), publisher(file))
        return
    if isinstance(state, NotFetched):
        yield (protocol, file.name, "not fetched", _registered(file), f"{state.why}; {state.location}")
    else:
        word = "fetched" if isinstance(state, Fetched) else "already there"
        yield (protocol, file.name, word, _registered(file), location_of(state.present))


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
    return [read_protocol(places().protocols / name / "protocol.toml") for name in named or known]


def _line(protocol: str, file: InputFile, state: InputState) -> Line:
    match state:
        case Present():
            return (protocol, file.name, "present", state.sha256, location_of(state))
        case Altered():
            where = f"{location_of(state)}: expected {state.expected}, found {state.found}; {publisher(file)}"
            return (protocol, file.name, "altered", _registered(file), where)
        case Missing():
            word = "missing" if isinstance(file.digest, Frozen) else "unfrozen"
            return (protocol, file.name, word, _registered(file), f"{state.why}; {state.location}")


def _warn_of_strays(protocol: str, altered: Sequence[Altered], states: Sequence[InputState]) -> None:
    for one in altered:
        if one not in states:
            where = f"{protocol} {one.name}: also altered: {location_of(one)}"
            typer.echo(_ascii(f"{where}: expected {one.expected}, found {one.found}"), err=True)


def _registered(file: InputFile) -> str:
    return file.digest.sha256 if isinstance(file.digest, Frozen) else "unfrozen"


def _show(lines: Sequence[Line]) -> None:
    console = Console()
    if not console.is_terminal:
        for line in lines:
            typer.echo(_ascii("  ".join(line)))
        return
    table = Table(*HEADINGS)
    for line in lines:
        table.add_row(*(Text(_ascii(cell), overflow="fold") for cell in line))
    console.print(table)


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
