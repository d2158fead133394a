"""The canonical encoding beside rfc8785's own, over every frozen record of the tree."""

import json
import time
from statistics import median

import pytest
import rfc8785

from harness.canon import canonical_bytes
from harness.places import places

ROUNDS = 9
pytestmark = pytest.mark.bench


def seconds(encode, values):
    """Wall time of encoding all of them once."""
    begun = time.perf_counter()
    for value in values:
        encode(value)
    return time.perf_counter() - begun


def test_frozen_records_beside_rfc8785():
    """Prints the median time of each and their ratio, in interleaved rounds."""
    values = [json.loads(path.read_bytes()) for path in sorted(places().snapshots.rglob("*.json"))]
    assert values
    assert [canonical_bytes(value) for value in values] == [rfc8785.dumps(value) for value in values]
    rounds = [(seconds(canonical_bytes, values), seconds(rfc8785.dumps, values)) for _ in range(ROUNDS)]
    ours, theirs = (median(times) for times in zip(*rounds, strict=True))
    print(f"{len(values)} records: {ours:.3f} s, rfc8785 {theirs:.3f} s, ratio {median(a / b for a, b in rounds):.2f}")
