"""The progress line of a session: drawn on a terminal between pytest's captures, nowhere else."""

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
        with capture.global_and_fixture_disabled():
            reporter.write("\r" + line[:WIDTH].ljust(WIDTH) + ("" if line else "\r"))

    return draw
