"""How every verb reports a HarnessError: its one line on stderr, exit code 1, no traceback; under `--json` the same."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from harness.cli.show import tell
from harness.errors import HarnessError


@contextmanager
def errors_to_stderr() -> Iterator[None]:
    """A HarnessError as its one line on stderr and exit code 1."""
    try:
        yield
    except HarnessError as error:
        tell(error)
        raise typer.Exit(1) from error
