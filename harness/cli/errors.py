"""How every verb reports a HarnessError: its one line on stderr, exit code 1, no traceback; and what it may print."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from harness.errors import HarnessError


def any_letter() -> None:
    """From here on a letter that stdout's encoding doesn't have is printed as its escape, and ends nothing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def errors_to_stderr() -> Iterator[None]:
    """A HarnessError as its one line on stderr and exit code 1."""
    try:
        yield
    except HarnessError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
