"""The bootstrap of one domain at Round 08's size, beside `scipy.stats.bootstrap` on the same contrasts.

10,000 resamples of 32 tasks, 4 conditions x 3 outcomes in one matrix, and the bands of 4 contrasts x 3 outcomes. scipy
resamples each contrast alone. Medians over interleaved rounds; the goal is 0.2 s, and it is not asserted.
"""

import json
import statistics
import time

import numpy as np
import pytest

from harness.files import write_atomic
from harness.ledgers.bootstrap import indices_sha256, percentiles, resampled_sums, resampled_tasks
from harness.places import places
from harness.protocols.load import read_protocol

ROUNDS, GOAL, TASKS, OUTCOMES = 9, 0.2, 32, 3
PROTOCOL = read_protocol(places().protocols / "nano-task-crn" / "protocol.toml")


@pytest.fixture(scope="module")
def values():
    """[tasks, conditions x outcomes]: success and EOS 0 or 1, lengths up to 512; columns by outcome, then condition."""
    state, conditions = np.random.RandomState(8), len(PROTOCOL.conditions)
    flags = state.randint(0, 2, size=(TASKS, 2 * conditions))
    return np.concatenate([flags, state.randint(1, 513, size=(TASKS, conditions))], axis=1).astype(np.int64)


@pytest.fixture(scope="module")
def sides():
    """(left, right) column of each contrast of each outcome."""
    names = [one.id for one in PROTOCOL.conditions]
    return [
        (outcome * len(names) + names.index(one.left), outcome * len(names) + names.index(one.right))
        for outcome in range(OUTCOMES)
        for one in PROTOCOL.contrasts
    ]


def harness(values, sides):
    """Matrix, its digest, sums and all bands, as one domain of a run has them."""
    rule = PROTOCOL.bootstrap
    indices = resampled_tasks(rule, TASKS)
    indices_sha256(indices)
    sums = resampled_sums(indices, values)
    return [percentiles(rule, sums[:, right] - sums[:, left], TASKS) for left, right in sides]


def scipy_bands(values, sides):
    """The same contrasts by the library: percentile method, each with resamples of its own from the same seed."""
    bootstrap = pytest.importorskip("scipy.stats").bootstrap
    found = []
    for left, right in sides:
        differences = (values[:, right] - values[:, left]).astype(np.float64)
        made = bootstrap(
            (differences,), np.mean, n_resamples=PROTOCOL.bootstrap.resamples, method="percentile", axis=-1,
            confidence_level=0.95, rng=np.random.default_rng(PROTOCOL.bootstrap.seed),
        )  # fmt: skip
        drawn = made.bootstrap_distribution
        found.append((made.confidence_interval.low, float(np.percentile(drawn, 50)), made.confidence_interval.high))
    return found


def seconds(way, *arguments):
    """What a way gives and its wall time."""
    start = time.perf_counter()
    found = way(*arguments)
    return found, time.perf_counter() - start


@pytest.mark.bench
def test_the_bootstrap_of_a_domain(values, sides, capsys, record_property):
    """Both bands of a contrast lie close together, by other resamples; medians after one warm-up of each."""
    pytest.importorskip("scipy.stats")
    bands, others = harness(values, sides), scipy_bands(values, sides)
    for (left, right), one, other in zip(sides, bands, others, strict=True):
        spread = float(np.std(values[:, right] - values[:, left])) / TASKS**0.5
        assert one == pytest.approx(other, abs=0.25 * spread + 1e-9)
    rounds = [(seconds(harness, values, sides)[1], seconds(scipy_bands, values, sides)[1]) for _ in range(ROUNDS)]
    own, library = (statistics.median(one[way] for one in rounds) for way in (0, 1))
    found = {"harness_s": own, "scipy_s": library, "ratio": own / library, "goal_s": GOAL, "rounds": ROUNDS}
    for name, value in found.items():
        record_property(name, f"{value:.4g}")
    write_atomic(places().reports / "bench" / "bootstrap.json", json.dumps(found, indent=1).encode())
    with capsys.disabled():
        print(
            f"\nbootstrap of a domain: harness {own:.4f} s (goal {GOAL}, not asserted), scipy {library:.4f} s, ratio "
            f"{own / library:.3f}; {PROTOCOL.bootstrap.resamples} x {TASKS} x {values.shape[1]} columns, "
            f"{len(sides)} bands, {ROUNDS} interleaved rounds"
        )
