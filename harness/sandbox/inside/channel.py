"""The checker's side of everything that the candidate's processes can reach: two pipes, their output, their ends.

One thread and no lock: whoever waits for a reply also reads output and buries children meanwhile, so that no process
of the candidate's waits for the checker. It knows frames as bytes, no values and no verdict.
"""

# ruff: noqa: PLC0415 - a module that is rarely needed is imported where it is: every container pays for a start

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` brings `enum`: a third of all that is imported here
import os
import select
import time

from harness.sandbox.inside import codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUTPUT_KEPT = 1 << 20  # bytes of the candidate's output that are hashed; the rest is counted
PIPE_BYTES = 1 << 16  # what a pipe holds: all that was printed before a reply
PATIENCE_S = 0.5  # a closed pipe may be the first sign of a process that is ending


class BrokenError(Exception):
    """There will be no reply. `str()` is a fixed word that says why."""


class Channel:
    """Frames to and from the candidate's process, its output counted and hashed, its end noticed."""

    def __init__(self, pid: int, calls: int, replies: int, output: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.seen = 0
        self._calls, self._replies, self._output = calls, replies, output
        self._wake = -1
        self._closed = False
        self._buffer = bytearray()
        self._kept: Any = None  # a running SHA-256 once there is output
        self._cpu_ns = 0

    def watch(self) -> None:
        """Wake at every signal, and at every child's end."""
        self._wake, woken = os.pipe()
        for fd in (self._wake, woken, self._calls, self._replies, self._output):
            os.set_blocking(fd, False)
        _signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, _nothing)

    def ask(self, data: bytes) -> bytes:
        """The one frame that answers a frame. Raises BrokenError: an end, a closed pipe, a frame nobody asked for."""
        self.require_silence()
        self._send(codec.frame(data))
        return self._receive()

    def require_silence(self) -> None:
        """BrokenError where the candidate has said something without being asked."""
        self._gather()
        if self._buffer:
            raise BrokenError("unasked_frame")

    def reap(self) -> None:
        """Bury every ended child, orphans too; remember how the candidate's own process ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status
                self._cpu_ns = int((usage.ru_utime + usage.ru_stime) * 1e9)

    def end(self) -> str:
        """What the end of its process, or of its pipe, was: a signal, an exit, or a pipe closed by a living process."""
        patience = time.monotonic() + PATIENCE_S
        while self.status is None and time.monotonic() < patience:
            time.sleep(0.005)
            self.reap()
        if self.status is None:
            return "channel_closed"
        if os.WIFSIGNALED(self.status):
            return f"signal_{os.WTERMSIG(self.status)}"
        return f"exit_{os.WEXITSTATUS(self.status)}"

    def cpu_ns(self) -> int:
        """CPU time of the candidate's process, running or ended."""
        if self.status is None:
            try:
                return time.clock_gettime_ns((~self.pid << 3) | 2)  # the kernel's name for a process's CPU clock
            except OSError:
                self.reap()
        return self._cpu_ns

    def output_sha256(self) -> str:
        """Of the output's first OUTPUT_KEPT bytes; empty where there was none."""
        return str(self._kept.hexdigest()) if self._kept is not None else ""

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._wait(self._calls)
            if self.status is not None:
                raise BrokenError(self.end())
            try:
                view = view[os.write(self._calls, view[:PIPE_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError:  # the other end is closed
                raise BrokenError(self.end()) from None

    def _receive(self) -> bytes:
        while True:
            data = self._whole_frame()
            if data is not None:
                self._drain()
                return data
            if not self._closed and self.status is None:
                self._wait()
                continue
            before = len(self._buffer)
            self._gather()  # a process may have answered and ended
            if len(self._buffer) == before:
                raise BrokenError(self.end())

    def _whole_frame(self) -> bytes | None:
        """The buffer's frame, if it is whole; anything behind it was not asked for."""
        if len(self._buffer) < 4:
            return None
        size = int.from_bytes(self._buffer[:4], "big")
        if size > codec.FRAME_LIMIT:
            raise BrokenError("malformed_frame")
        if len(self._buffer) < 4 + size:
            return None
        if len(self._buffer) > 4 + size:
            raise BrokenError("unasked_frame")
        data = bytes(self._buffer[4:])
        self._buffer.clear()
        return data

    def _wait(self, writable: int | None = None) -> None:
        """Sleep until something can be done, then read what there is: replies, output, ended children."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if not self._closed:
            poll.register(self._replies, select.POLLIN)
        if self._output >= 0:
            poll.register(self._output, select.POLLIN)
        if writable is not None:
            poll.register(writable, select.POLLOUT)
        ready = {fd for fd, _ in poll.poll()}
        if self._replies in ready:
            self._gather()
        if self._output in ready:
            self._read_output()
        if self._wake in ready:
            _read_some(self._wake, 512)
            self.reap()

    def _gather(self) -> None:
        """Take what the reply pipe holds, up to one frame's limit and a little more."""
        while not self._closed and len(self._buffer) <= codec.FRAME_LIMIT + PIPE_BYTES:
            data = _read_some(self._replies, PIPE_BYTES)
            if data is None:
                return
            self._closed = not data
            self._buffer += data

    def _drain(self) -> None:
        """Read what was printed before a reply: a pipe never holds more than this."""
        limit = self.seen + PIPE_BYTES
        while self.seen < limit and self._read_output():
            pass

    def _read_output(self) -> bool:
        """Count and hash some of the candidate's output; whether there was any."""
        if self._output < 0:
            return False
        data = _read_some(self._output, PIPE_BYTES)
        if data == b"":
            os.close(self._output)
            self._output = -1
        if not data:
            return False
        if self._kept is None:
            import hashlib

            self._kept = hashlib.sha256()
        self._kept.update(data[: max(OUTPUT_KEPT - self.seen, 0)])
        self.seen += len(data)
        return True


def _nothing(*_: object) -> None:
    """A handler, so that the signal is delivered at all."""


def _read_some(fd: int, size: int) -> bytes | None:
    """What a pipe holds now: none where it holds nothing, empty at its end."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None
