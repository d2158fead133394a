r"""The one place through which verbs print: lines and tables on stdout, messages on stderr, a record for machines.

In a terminal a table has headings and rules and folds what is wide; elsewhere (a pipe, a file, CI, NO_COLOR, TERM=dumb)
its rows are lines of tab-separated cells without headings. The rows are the same, nothing is cut, and no text is taken
for markup: what can't be seen, a tab and a line feed within a text included, is printed as its escape.
"""

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from harness.canon import canonical_bytes
from harness.errors import StorageError
from harness.records.base import Record
from harness.report.visible import spelled

NOT_WRITTEN = 2
DUMB = ("", "dumb", "unknown")

Part = str | tuple[str, str]


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody reads along who can be shown more than plain lines. No variable makes a pipe a terminal."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM", "") in DUMB
    return not plain and stream.isatty()


def visible(text: str) -> str:
    r"""A text on one line: controls, line feeds, bidi marks and other hidden characters as `\x1b`, `\n`, `\u202e`."""
    return spelled(text).replace("\n", "\\n")


def valid(text: str | Path) -> str:
    r"""A path, or a text that has one, as valid Unicode for a record: a byte that isn't UTF-8 as `\xff`."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def line(*parts: Part) -> None:
    """One line on stdout; a part may be (text, style), and the style is seen in a terminal alone."""
    pairs = [(one, "") if isinstance(one, str) else one for one in parts]
    if not is_terminal(sys.stdout):
        _write("".join(visible(text) for text, _ in pairs) + "\n")
        return
    _write(rendered(Text.assemble(*((visible(text), style) for text, style in pairs)), wrap=False))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], styles: Mapping[str, str] | None = None) -> None:
    """A table in a terminal; elsewhere one line of tab-separated cells a row. `styles`: of a cell that is that text."""
    if not is_terminal(sys.stdout):
        _write("".join("\t".join(map(visible, row)) + "\n" for row in rows))
        return
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in headings:
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*(Text(visible(cell), style=(styles or {}).get(cell, "")) for cell in row))
    _write(rendered(made))


def document(record: Record) -> None:
    """One record in canonical JSON on stdout, in UTF-8 and without a line feed."""
    _write(canonical_bytes(record))


def tell(text: object) -> None:
    """One line on stderr: a message for whoever runs the verb, never a part of the result."""
    typer.echo(visible(str(text)), err=True)


def rendered(what: RenderableType, *, wrap: bool = True) -> str:
    """What rich makes of it for the terminal on stdout, styles included."""
    console = Console(force_terminal=True, soft_wrap=not wrap, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def _write(data: str | bytes) -> None:
    """To stdout at once. Whoever reads along may have enough: the verb then still ends with its own exit code."""
    if isinstance(data, str):
        data = data.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    try:
        typer.echo(data, nl=False)
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        drop_stdout()
        _no_room(error)


def drop_stdout() -> None:
    """What couldn't be written is dropped, or Python would try again at its end."""
    try:
        target = sys.stdout.fileno()
    except io.UnsupportedOperation:  # a stream of this process alone
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, target)
    os.close(null)


def _no_room(error: OSError) -> NoReturn:
    found, todo = error.strerror or type(error).__name__, "Free disk space and run the verb again."
    tell(StorageError("standard output", expected="room for the result", found=found, todo=todo))
    raise typer.Exit(NOT_WRITTEN) from error
