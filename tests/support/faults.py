"""A pytest plugin that breaks the world at a chosen point, and sessions under it or on a terminal.

FAULT: `kill` ends the process by SIGKILL once its first journal has landed; `full` fills the disk before the second;
`readonly` lets nothing be written at all.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .mini import MINI, TIMEOUT_S, environment

PLUGIN = '''
"""Breaks os.replace as FAULT says."""
import errno, os, signal
from pathlib import Path

kind, landed, replace = os.environ["FAULT"], [], os.replace

def broken(source, target, **more):
    journal = Path(target).parent.name == "journal"
    if kind == "readonly":
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(target))
    if kind == "full" and (len(landed) > 1 or journal and landed):
        landed.append(target)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
    replace(source, target, **more)
    if journal:
        landed.append(target)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)

os.replace = broken
'''


def faulty(folder: Path, kind: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """(arguments, environment) that plant a fault in a session; the plugin's file is written to `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "planted_fault.py").write_text(PLUGIN)
    return ("-p", "planted_fault"), {"FAULT": kind, "PYTHONPATH": str(folder)}


def run_on_terminal(tree: Path, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """(exit code, everything written) of a gate session whose three streams are a terminal of 100 columns."""
    controller, terminal = pty.openpty()
    session = subprocess.Popen(
        [sys.executable, "-m", "pytest", "gates", "--protocol", MINI, *arguments],
        cwd=tree,
        env=environment(tree, {"COLUMNS": "100", "TERM": "dumb", **(env or {})}),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    pieces = []
    while True:
        try:
            piece = os.read(controller, 4096)
        except OSError:  # how Linux says that the last writer has gone
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(controller)
    return session.wait(timeout=TIMEOUT_S), b"".join(pieces).decode("utf-8", "replace")


def screen(written: str) -> list[str]:
    """The lines that a terminal shows in the end: a carriage return goes back, later characters overwrite."""
    lines = []
    for raw in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", written).replace("\r\n", "\n").split("\n"):
        shown: list[str] = []
        for part in raw.split("\r"):
            shown[: len(part)] = part
        lines.append("".join(shown).rstrip())
    return lines
