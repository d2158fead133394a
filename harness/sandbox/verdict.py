"""From what a container left to an outcome: the checker's lines, the exit code, the engine's word on memory.

Pure: no engine, no time. A pass needs the nonce and exit code 0; a container that ended without the nonce has judged
nothing, so its candidate never passes, and only a container that never started a candidate is no verdict at all.
"""

from typing import NamedTuple

import msgspec

from harness.canon import sha256_hex
from harness.records.base import Record
from harness.records.sandbox import Outcome

LINES_LIMIT = 1 << 20  # bytes that a container may say; a probe says the most, the checker a few hundred
READY, STARTED, UNFIT = b"ready", b"started", b"unfit "


class Verdict(Record):
    """The checker's last line."""

    nonce: str
    outcome: Outcome
    detail: str
    wall_ns: int
    cpu_ns: int
    output_bytes: int
    output_sha256: str
    output_cut: bool


class Ending(NamedTuple):
    """How a container ended: all that it said, its exit code, whether it ran out of memory, and who ended it.

    `exit_code`: none where the engine doesn't know one or the container was ended from outside. `overdue`: the host
    had to end it, after the deadline and its grace. `lost`: the engine went away or lost the container (a word).
    """

    said: bytes
    exit_code: int | None
    oom_killed: bool
    overdue: bool
    lost: str


class Judged(NamedTuple):
    """An outcome and what it rests on. `verdict`: the checker's own line, where it came with the nonce."""

    outcome: Outcome
    detail: str
    nonce_returned: bool
    verdict: Verdict | None


def judge(ending: Ending, nonce: str) -> Judged:
    """The outcome of one container."""
    verdict = _verdict(ending.said, nonce)
    if verdict is not None and (verdict.outcome != "passed" or ending.exit_code == 0):
        # A verdict that arrived stands, also where the engine went away after it; a pass waits for its exit code.
        return Judged(verdict.outcome, verdict.detail, verdict.outcome == "passed", verdict)
    if ending.lost:
        return Judged("infrastructure", ending.lost, nonce_returned=verdict is not None, verdict=verdict)
    if ending.oom_killed:
        return Judged("out_of_memory", "oom_kill", nonce_returned=verdict is not None, verdict=verdict)
    return _without(ending, verdict)


def _without(ending: Ending, verdict: Verdict | None) -> Judged:
    """No verdict, and neither engine nor memory is why."""
    started = STARTED in ending.said.split(b"\n")
    if not started:
        return Judged("infrastructure", _unfit(ending.said), nonce_returned=False, verdict=None)
    if ending.overdue:
        return Judged("timeout", "overdue", nonce_returned=False, verdict=None)
    return Judged("runtime_error", "checker_died", nonce_returned=verdict is not None, verdict=verdict)


def _unfit(said: bytes) -> str:
    first = said.split(b"\n", 1)[0]
    if first.startswith(UNFIT) and first.isascii():
        return "unfit_" + first[len(UNFIT) :].decode("ascii")[:40]
    return "container_not_started"


def _verdict(said: bytes, nonce: str) -> Verdict | None:
    """The line that carries the nonce, if it is the checker's third and last."""
    lines = said.split(b"\n")
    if lines[0] != READY:
        return None
    try:
        found = msgspec.json.decode(lines[-2] if len(lines) > 1 else b"", type=Verdict, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.nonce == nonce and found.detail.isascii() else None


def kept_sha256(verdict: Verdict | None) -> str:
    """SHA-256 of the candidate's kept output; the checker says nothing of an empty one."""
    return verdict.output_sha256 if verdict is not None and verdict.output_sha256 else sha256_hex(b"")
