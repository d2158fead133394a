"""Resampling of a domain's tasks (R08 7.2): one matrix of indices for all conditions and outcomes, and its bands.

Sums are integers and a percentile is a fraction of two of them, so only the last step rounds: to binary64, once.
docs/task-statistics.md says how another implementation gets the same matrix and the same bands.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from harness.canon import sha256_hex
from harness.records.taped import BootstrapRule

Integers = NDArray[np.int64]


def resampled_tasks(rule: BootstrapRule, tasks: int) -> Integers:
    """Task indices [resamples, tasks], int64, from 0: which task stands in each place of each resample."""
    drawn = np.random.RandomState(rule.seed).randint(0, tasks, size=(rule.resamples, tasks))
    return drawn.astype(np.int64)


def resampled_sums(indices: Integers, values: Integers) -> Integers:
    """Sums [resamples, columns], int64, of the tasks that each resample took; `values` [tasks, columns], int64.

    A task brings all its columns: resamples are paired over conditions and outcomes.
    """
    resamples, tasks = indices.shape
    first = np.arange(resamples, dtype=np.int64)[:, None] * tasks
    times = np.bincount((indices + first).ravel(), minlength=resamples * tasks).reshape(resamples, tasks)
    return times.astype(np.int64) @ values


def percentiles(rule: BootstrapRule, sums: Integers, tasks: int) -> tuple[float, ...]:
    """The rule's percentiles of the means sum / tasks, linear between values; `sums` [resamples], any order."""
    ordered = np.sort(sums)
    return tuple(_percentile(ordered, Fraction(str(percent)), tasks) for percent in rule.percentiles)


def _percentile(ordered: Integers, percent: Fraction, tasks: int) -> float:
    """At place (n - 1) x percent / 100 of n ordered values: the linear method, Hyndman and Fan's type 7."""
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    below, above = int(ordered[low]), int(ordered[min(low + 1, len(ordered) - 1)])
    return float((below + (place - low) * (above - below)) / tasks)


def indices_sha256(indices: Integers) -> str:
    """SHA-256 of the matrix, row after row, int64 little-endian."""
    return sha256_hex(np.ascontiguousarray(indices, dtype="<i8").tobytes())
