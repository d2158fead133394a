"""From what a container left to an outcome, without one."""

import json

import pytest

from harness.sandbox.verdict import Ending, judge

NONCE = "ab" * 32
FIELDS = {
    "nonce": NONCE,
    "outcome": "passed",
    "detail": "",
    "wall_ns": 1,
    "cpu_ns": 1,
    "output_bytes": 0,
    "output_sha256": "",
    "output_cut": False,
}


def said(head=b"ready\nstarted\n", **changes):
    """A checker's lines."""
    return head + json.dumps(FIELDS | changes).encode() + b"\n"


def ending(lines, *, exit_code=0, oom_killed=False, overdue=False, lost=""):
    """How a container ended."""
    return Ending(lines, exit_code=exit_code, oom_killed=oom_killed, overdue=overdue, lost=lost)


def test_a_pass_needs_nonce_and_exit_code():
    """Both there: passed."""
    found = judge(ending(said()), NONCE)
    assert (found.outcome, found.nonce_returned) == ("passed", True)


@pytest.mark.parametrize(
    ("end", "outcome", "detail"),
    [
        pytest.param(ending(said(), exit_code=1), "runtime_error", "checker_died", id="pass with another exit code"),
        pytest.param(ending(said(nonce="0" * 64)), "runtime_error", "checker_died", id="another nonce"),
        pytest.param(ending(b"ready\nstarted\npassed\n"), "runtime_error", "checker_died", id="exit 0 and a word"),
        pytest.param(ending(b"ready\nstarted\n"), "runtime_error", "checker_died", id="exit 0 alone"),
        pytest.param(ending(said(extra=1)), "runtime_error", "checker_died", id="an unknown field"),
        pytest.param(ending(said(wall_ns="1")), "runtime_error", "checker_died", id="a field of another type"),
        pytest.param(ending(said(outcome="fine")), "runtime_error", "checker_died", id="an unknown outcome"),
        pytest.param(ending(said()[:-1]), "runtime_error", "checker_died", id="no end of line"),
        pytest.param(
            ending(said(outcome="timeout", detail="call"), exit_code=1), "timeout", "call", id="a verdict stands"
        ),
        pytest.param(
            ending(said(outcome="timeout", detail="call"), exit_code=None, lost="engine_lost"),
            "timeout",
            "call",
            id="a verdict stands when the engine goes after it",
        ),
        pytest.param(
            ending(said(), exit_code=None, lost="engine_lost"),
            "infrastructure",
            "engine_lost",
            id="a pass without exit code doesn't",
        ),
        pytest.param(
            ending(b"ready\nstarted\n", exit_code=137, oom_killed=True), "out_of_memory", "oom_kill", id="memory"
        ),
        pytest.param(ending(b"ready\n", exit_code=137, oom_killed=True), "out_of_memory", "oom_kill", id="payload"),
        pytest.param(
            ending(b"ready\nstarted\n", exit_code=None, overdue=True), "timeout", "overdue", id="ended by the host"
        ),
        pytest.param(ending(b"ready\n", exit_code=1), "infrastructure", "container_not_started", id="never started"),
        pytest.param(ending(b"", exit_code=None, lost="engine_lost"), "infrastructure", "engine_lost", id="no engine"),
        pytest.param(
            ending(b"unfit no_ctypes\n", exit_code=2),
            "infrastructure",
            "unfit_no_ctypes",
            id="a Python that can't hide",
        ),
        pytest.param(
            ending(b"\xff\n" + said(head=b""), exit_code=0),
            "infrastructure",
            "container_not_started",
            id="garbage first",
        ),
    ],
)
def test_everything_else_is_no_pass(end, outcome, detail):
    """Exit code 0 or printed text alone is never a pass; only a lost or unstarted container is no verdict."""
    found = judge(end, NONCE)
    assert (found.outcome, found.detail) == (outcome, detail)
