"""The progress line of a session: drawn on a terminal between pytest's captures, nowhere else."""

import shutil
import sys

import pytest

from harness.run.progress import Sink, quiet

WIDTH = 110


def sink_for(config: pytest.Config) -> Sink:
    """A sink that redraws one line on the session's terminal; quiet without one and on workers."""
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None or not reporter.isatty or hasattr(config, "workerinput"):
        return quiet

    def draw(line: str) -> None:
        width = min(WIDTH, shutil.get_terminal_size().columns - 1)
        reporter.ensure_newline()  # the reporter then repeats the file's name before its next result
        with capture.global_and_fixture_disabled():
            # Past the reporter, which would count the line's width as its own.
            sys.stdout.write("\r" + line[:width].ljust(width) + ("" if line else "\r"))
            sys.stdout.flush()

    return draw
