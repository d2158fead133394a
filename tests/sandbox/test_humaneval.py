"""The positive control: what is right passes and what is empty fails, on every HumanEval task."""

import gzip
import json
import os
from pathlib import Path

import pytest

from harness.records.sandbox import Task

pytestmark = [pytest.mark.docker, pytest.mark.inputs]


@pytest.fixture(scope="module")
def rows():
    """The registered file's lines."""
    with gzip.open(Path(os.environ["HARNESS_INPUTS"]) / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture(scope="module")
def outcomes(rows, run_all):
    """Outcomes by task, with a body in place of the canonical one or with that."""

    def find(body):
        jobs = ((row["task_id"], row["prompt"] + (body or row["canonical_solution"]), task(row)) for row in rows)
        return {key: one.evidence.outcome for key, one in run_all(jobs).items()}

    return find


def task(row) -> Task:
    """A line's task."""
    return Task(id=row["task_id"], prompt=row["prompt"], entry_point=row["entry_point"], test=row["test"])


def test_every_canonical_solution_passes(outcomes):
    """164 of 164, imports and helpers of every prompt included."""
    found = outcomes(None)
    assert len(found) == 164
    assert [key for key, outcome in found.items() if outcome != "passed"] == []


def test_no_empty_body_passes(outcomes):
    """164 of 164 fail, each with a verdict on the candidate."""
    found = outcomes("    pass\n")
    assert len(found) == 164
    assert [key for key, outcome in found.items() if outcome not in ("assertion_failed", "runtime_error")] == []
