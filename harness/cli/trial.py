"""`trial FOLDER`: one set of conditions of `explain --rerun`, as request.json in that folder says. Not for hands."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import errors_to_stderr
from harness.cli.generate import end_with_parent
from harness.errors import ComparisonError
from harness.files import read_bytes
from harness.journal.folder import write_record
from harness.model.process import set_before_torch
from harness.records.base import decode_json
from harness.rerun.trial import REPORT, REQUEST, Trial, execution_of


def trial(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with request.json.")]) -> None:
    """Make forwards again in this fresh process; started by the harness, not by hand.

    Exit 0: made; 1: the model can't be loaded so.
    """
    with errors_to_stderr():
        data = read_bytes(folder / REQUEST, what="request of a trial")
        asked = decode_json(data, Trial, where=folder, error=ComparisonError, todo="Start `explain` again.")
        end_with_parent()
        set_before_torch(execution_of(asked.load), asked.load.placement)
        from harness.rerun.child import make_trial  # noqa: PLC0415 - loads torch

        write_record(folder / REPORT, make_trial(asked))
