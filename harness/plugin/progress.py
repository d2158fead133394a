"""The progress of a session: a line that is redrawn in a terminal, elsewhere a plain line now and then.

Both are written between pytest's captures. What is shown depends on the clock and decides nothing.
"""

import shutil
import sys
import time
from collections.abc import Callable

import pytest

from harness.run.progress import Sink, quiet

WIDTH = 110
INTERVAL_S = 30.0


def sink_for(config: pytest.Config) -> Sink:
    """A sink that shows lines on the session's terminal, or in its output; quiet on workers."""
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None or hasattr(config, "workerinput"):
        return quiet

    def written(write: Sink) -> Sink:
        def show(line: str) -> None:
            reporter.ensure_newline()  # the reporter then repeats the file's name before its next result
            with capture.global_and_fixture_disabled():
                write(line)

        return show

    return written(_redraw) if reporter.isatty else now_and_then(written(_say))


def _redraw(line: str) -> None:
    """In place of the line before; past the reporter, which would count the line's width as its own."""
    width = min(WIDTH, shutil.get_terminal_size().columns - 1)
    sys.stdout.write("\r" + line[:width].ljust(width) + ("" if line else "\r"))
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def now_and_then(show: Sink, clock: Callable[[], float] = time.monotonic) -> Sink:
    """A line where none was shown for thirty seconds: a short part says nothing, a long one that it goes on."""
    said = clock()

    def draw(line: str) -> None:
        nonlocal said
        if line and clock() - said >= INTERVAL_S:
            said = clock()
            show(line)

    return draw
