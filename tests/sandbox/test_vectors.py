"""Every line of the vectors against a real engine, what its note says, and what is left afterwards."""

import json
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from harness.records.sandbox import Execution, Task

pytestmark = pytest.mark.docker

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def executed(run_all):
    """All vectors' executions by ID."""
    return run_all((one["id"], one["candidate"], task(one)) for one in VECTORS)


def task(one) -> Task:
    """A vector's task."""
    return Task(id=one["id"], prompt=one["prompt"], entry_point=one["entry_point"], test=one["test"])


@pytest.mark.parametrize("one", [pytest.param(one, id=one["id"]) for one in VECTORS])
def test_a_vector_has_one_of_its_outcomes(executed, one):
    """And a pass always has nonce and exit code."""
    evidence = executed[one["id"]].evidence
    assert evidence.outcome in one["outcomes"], evidence.detail
    assert (evidence.outcome == "passed") == (evidence.nonce_returned and evidence.exit_code == 0)


def test_nothing_is_left(executed, engine, api, processes_left):
    """No container and no process; the engine still answers."""
    engine.execute("def triple(n):\n    return 1\n", task(VECTORS[0]))
    engine._removals.submit(lambda: None).result()  # removals run behind, one after another
    assert api.containers(all=True, filters={"label": engine.label}) == []
    assert processes_left() == []
    assert api.ping()


def test_an_output_flood_costs_the_host_nothing(engine):
    """Megabytes are counted, the record stays small, and fewer bytes are held than came."""
    one = next(one for one in VECTORS if one["id"] == "output-flood")
    tracemalloc.start()  # what this execution holds, whatever the process held before
    try:
        flood = engine.execute(one["candidate"], task(one))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert flood.observation.output_cut
    assert flood.observation.output_bytes > 1 << 20
    assert len(msgspec.json.encode(flood)) < 4096
    assert peak < 8 << 20, (peak, flood.observation.output_bytes)


def test_memory_is_told_apart(executed):
    """By the kernel's count of kills, not by a guess."""
    assert executed["memory-bomb"].evidence.detail == "oom_kill"


def test_the_checkers_memory_cannot_be_opened(executed):
    """The candidate tried, went on, and returned None: the test's own assertion judged it."""
    assert executed["write-checker-memory"].evidence.outcome == "assertion_failed"


def test_a_record_comes_back_from_its_bytes(executed):
    """Encoded, decoded, equal."""
    one = executed["getcwd"]
    assert msgspec.json.decode(msgspec.json.encode(one), type=Execution, strict=True) == one


def test_the_same_execution_has_the_same_evidence(executed, engine):
    """Times differ, evidence doesn't."""
    again = engine.execute(VECTORS[-1]["candidate"], task(VECTORS[-1]))
    assert again.evidence == executed[VECTORS[-1]["id"]].evidence
    assert again.evidence_sha256 == executed[VECTORS[-1]["id"]].evidence_sha256
