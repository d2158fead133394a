"""`generate FOLDER`: a child's whole work, as request.json in that folder says. Started by the harness, not by hand."""

import os
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import errors_to_stderr
from harness.errors import SessionError
from harness.journal.folder import RunFolder
from harness.run.child import read_child_request
from harness.run.guard import forbid_reading
from harness.run.request import loaded_for
from harness.run.start import generate_run

WAIT_S = 600.0
POLL_S = 0.05
PARENT_POLL_S = 0.5
ORPHANED = 3


def generate(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with request.json.")]) -> None:
    """Generate a requested grid in this fresh process; started by the harness, not by hand.

    Exit 0: generated; 1: it couldn't be; 3: the session that asked for it is gone.
    """
    with errors_to_stderr():
        call = read_child_request(folder / "request.json")
        forbid_reading(tuple(Path(one) for one in call.forbidden), but=folder)
        end_with_parent()
        meeting = Meeting(folder, call.workers)
        generate_run(loaded_for(call.request), call.request, RunFolder(folder), ready=meeting.wait)


def end_with_parent() -> None:
    """A child whose session was killed writes nothing into the next one's part: it ends within a second."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_S)
        os._exit(ORPHANED)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


class Meeting:
    """Processes of one folder wait until each has loaded its model, so that each makes units."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder / "ready"
        self._workers = workers

    def wait(self, load_id: str) -> None:
        """Say that this process is ready and wait for the others; SessionError after ten minutes."""
        self._folder.mkdir(exist_ok=True)
        (self._folder / load_id).touch()
        until = time.monotonic() + WAIT_S
        while (ready := len(list(self._folder.iterdir()))) < self._workers:
            if time.monotonic() > until:
                raise SessionError(
                    str(self._folder),
                    expected=f"{self._workers} processes",
                    found=f"{ready}",
                    todo="See child-*.log beside it.",
                )
            time.sleep(POLL_S)
