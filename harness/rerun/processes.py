"""Trials in processes of their own, one after another: whatever a process has once is what its load says."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.errors import ComparisonError
from harness.files import read_bytes
from harness.journal.folder import write_record
from harness.model.process import STEERING
from harness.places import places
from harness.records.base import decode_json
from harness.rerun.trial import REPORT, REQUEST, Trial, TrialReport

Make = Callable[[Trial], TrialReport]
TODO = "Make the step again on a machine that has what these conditions need."


def in_a_process(trial: Trial) -> TrialReport:
    """The report of a trial made in a fresh interpreter. ComparisonError with its last words where it gave none."""
    with tempfile.TemporaryDirectory(prefix="pregate-trial-") as folder:
        path = Path(folder)
        write_record(path / REQUEST, trial)
        done = subprocess.run(
            [sys.executable, "-m", "harness", "trial", folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(trial.load.variables),
            check=False,
        )
        if done.returncode != 0:
            expected = "a process that makes its forwards"
            found = _ending(done.returncode, done.stderr.decode("utf-8", "replace"))
            raise ComparisonError("these conditions", expected=expected, found=found, todo=TODO)
        return _report(path / REPORT)


def environment(variables: dict[str, str]) -> dict[str, str]:
    """The environment of this process, with these variables in place of all that steer kernels."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*STEERING, "PYTEST_"))}
    return kept | variables | {"HARNESS_ROOT": str(places().root)}


def _report(path: Path) -> TrialReport:
    data = read_bytes(path, what="report of a trial")
    return decode_json(data, TrialReport, where=path, error=ComparisonError, todo=TODO)


def _ending(code: int, errors: str) -> str:
    """A signal by its name; else the process's last line."""
    if code < 0:
        return f"it ended by {signal.Signals(-code).name}"
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {code}"
