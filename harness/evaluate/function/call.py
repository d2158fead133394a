"""Calling an author's function on many texts: the process is started, watched, and replaced where a call ends it.

A process apart is no sandbox: the function may do whatever this user may. What it can't do is change the harness's own
state, keep it waiting, or pass anything but plain values.
"""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from harness.canon import canonical_bytes
from harness.errors import CanonError, InputError

CHILD = Path(__file__).with_name("child.py")
START_S = 60.0  # importing what the author's module needs
TODO = "Correct the module; another source has another digest, and is another protocol."


@dataclass(frozen=True, slots=True)
class Call:
    """One text with the gold fields of its source."""

    text: str
    gold: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Given:
    """What the function gave: canonical JSON of its value where it returned, else why there is none."""

    outcome: Literal["returned", "raised", "timeout", "ended"]
    value: str
    detail: str


def call_function(
    file: Path, sha256: str, function: str, calls: Sequence[Call], *, timeout_ms: int
) -> tuple[Given, ...]:
    """What the function gives for each call, in order, each within `timeout_ms` ms.

    Raises InputError where the file hasn't the digest, doesn't run, or has no such function.
    """
    child: _Child | None = None
    given: list[Given] = []
    try:
        for call in calls:
            child = child or _Child(file, sha256, function)
            answered = child.ask(call, timeout_ms / 1000)
            if answered.outcome in ("timeout", "ended"):
                child.end()
                child = None
            given.append(answered)
    finally:
        if child is not None:
            child.end()
    return tuple(given)


def require_function(file: Path, sha256: str, function: str) -> None:
    """Start the function's process and end it: InputError where it can't be called."""
    _Child(file, sha256, function).end()


class _Child:
    """One process that serves calls."""

    def __init__(self, file: Path, sha256: str, function: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
        self._alone = tempfile.TemporaryDirectory(prefix="pregate-function-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-sP", str(CHILD), str(file.resolve()), sha256, function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._alone.name,
            env=kept | {"PYTHONHASHSEED": "0"},
        )
        self._read = b""
        first = self._line(START_S)
        if first is None or "ready" not in first:
            self.end()
            found = "no answer" if first is None else str(first.get("refused"))
            where = f"function {function} of {file.name}"
            raise InputError(where, expected=f"a function in the source {sha256}", found=found, todo=TODO)

    def ask(self, call: Call, timeout_s: float) -> Given:
        """The answer to one call; where none comes in time, the process is to be ended."""
        request = json.dumps({"text": call.text, "gold": dict(call.gold)}) + "\n"
        try:
            cast("Any", self._process.stdin).write(request.encode())
            cast("Any", self._process.stdin).flush()
        except OSError:
            return Given("ended", "", "")
        answer = self._line(timeout_s)
        if answer is None:
            return Given("ended" if self._process.poll() is not None else "timeout", "", "")
        return _given(answer)

    def end(self) -> None:
        """Stop the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was left to be written to a process that ended
                    stream.close()
        self._alone.cleanup()

    def _line(self, timeout_s: float) -> dict[str, Any] | None:
        """The next line of the process as JSON; None where none came in time or the process ended."""
        stream, until = cast("Any", self._process.stdout), time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in self._read:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return None
                read = os.read(stream.fileno(), 65536)
                if not read:
                    self._process.wait()
                    return None
                self._read += read
        line, self._read = self._read.split(b"\n", 1)
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:  # the function wrote where the two programs speak: it has no answer
            self._process.kill()
            self._process.wait()
            return None
        return answer


def _given(answer: Mapping[str, Any]) -> Given:
    if answer["outcome"] != "returned":
        return Given("raised", "", str(answer["detail"]))
    try:
        return Given("returned", canonical_bytes(answer["value"]).decode("utf-8"), "")
    except CanonError:
        return Given("raised", "", "returned a value without a canonical form")
