"""Runs made apart: a fresh interpreter writes into an empty folder and can't open the first run's journals.

The parent must have released its model. The child's PID is kept by the parent, so that copied journals are found out.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from harness.errors import JournalError
from harness.files import read_bytes
from harness.journal.folder import RunFolder, write_record
from harness.places import places
from harness.records.base import Record, decode_json
from harness.records.protocol import Execution
from harness.run.request import Request

COMPLETE = "complete.json"
TAIL = 1500
POLL_S = 0.05


class ChildRequest(Record):
    """request.json of a child: what to run, what it must not read but for its own folder, and who shares that."""

    request: Request
    forbidden: tuple[str, ...]
    workers: int


class ChildReport(Record):
    """complete.json: written by the parent when every child process returned; `pids` are the parent's own knowledge."""

    pids: tuple[int, ...]
    parent_pid: int


def run_apart(request: Request, folder: RunFolder, *, forbidden: Path, workers: int = 1) -> ChildReport:
    """Generate the request's grid in fresh processes, or take a part of this run that was completed before.

    A half-made part is moved aside, never reused: a replay starts from an empty folder.
    """
    marker = folder.file(COMPLETE)
    if marker.exists():
        return decode_json(
            read_bytes(marker, what="child report"),
            ChildReport,
            where=marker,
            error=JournalError,
            todo="Start a new run.",
        )
    _set_aside(folder.path)
    folder.create()
    # Other runs and the frozen results hold the same answers as the run itself.
    listed = tuple(str(path.resolve()) for path in (forbidden, places().reports, places().snapshots))
    write_record(folder.file("request.json"), ChildRequest(request=request, forbidden=listed, workers=workers))
    codes = _wait(children := [_start(folder, index) for index in range(workers)])
    if any(codes):
        raise JournalError(
            str(folder.path),
            expected=f"{workers} child processes that return 0",
            found=f"exit codes {codes}: {_tail(folder)}",
            todo="See child-*.log in that folder.",
        )
    report = ChildReport(pids=tuple(child.pid for child in children), parent_pid=os.getpid())
    write_record(marker, report)
    return report


def read_child_request(path: Path) -> ChildRequest:
    """request.json as the child reads it."""
    return decode_json(
        read_bytes(path, what="request"), ChildRequest, where=path, error=JournalError, todo="Start a new run."
    )


def _start(folder: RunFolder, index: int) -> "subprocess.Popen[bytes]":
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PYTHONOPTIMIZE", "PYTHONINSPECT"))
    }
    environment["HARNESS_ROOT"] = str(places().root)
    environment["PYTHONHASHSEED"] = another_hash_seed(environment.get("PYTHONHASHSEED", ""))
    with folder.file(f"child-{index}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "harness", "generate", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )


def another_hash_seed(own: str) -> str:
    """A fixed seed for Python's hashes that isn't this process's, so that no order of a set is the same in both."""
    return "2" if own.strip().lstrip("+0") == "1" else "1"  # Python reads " +01" as 1 too


def _wait(children: "list[subprocess.Popen[bytes]]") -> list[int]:
    """Exit codes, once all have ended; the others of one that failed would wait for it, so they are ended with it."""
    try:
        while any(child.poll() is None for child in children) and not any(child.poll() for child in children):
            time.sleep(POLL_S)
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
    return [child.wait() for child in children]


def _set_aside(folder: Path) -> None:
    if not folder.exists() or not any(folder.iterdir()):
        return
    number = 1
    while (aside := folder.with_name(f"{folder.name}.incomplete-{number}")).exists():
        number += 1
    folder.rename(aside)


def _tail(folder: RunFolder) -> str:
    logs = sorted(folder.path.glob("child-*.log"))
    texts = [log.read_text(encoding="utf-8", errors="replace")[-TAIL:].strip() for log in logs]
    return " | ".join(text.replace("\n", " / ") for text in texts if text)


def replace_request(request: Request, **changes: object) -> Request:
    """A request with other placement, grid, execution or tier."""
    return msgspec.structs.replace(request, **changes)


def with_threads(request: Request, threads: int) -> Execution:
    """The request's execution with another number of threads."""
    return msgspec.structs.replace(request.execution, threads=threads)
