"""The bootstrap (R08 7.2): its matrix by another generator, its bands by a plain loop, and what unpairs them."""

from fractions import Fraction
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ledgers.bootstrap import indices_sha256, percentiles, resampled_sums, resampled_tasks

from .tasks import RULE

REGISTERED = "c446c44bf9766ad6b248a2031b2333695645a49421b94fa129df0fdabe5ca19b"
replace = msgspec.structs.replace


def plain_matrix(seed, resamples, tasks):
    """The matrix without numpy: MT19937 seeded by one word, each word masked, and dropped where it is too large."""
    state = [seed]
    for place in range(1, 624):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + place) & 0xFFFFFFFF)
    words = Random()
    words.setstate((3, (*state, 624), None))
    mask = (1 << (tasks - 1).bit_length()) - 1
    rows = []
    for _ in range(resamples):
        row = []
        while len(row) < tasks:
            index = words.getrandbits(32) & mask if mask else 0
            if index < tasks:
                row.append(index)
        rows.append(row)
    return rows


def plain_band(matrix, values, percents):
    """Percentiles of the resampled means by loops over exact fractions."""
    means = sorted(Fraction(sum(values[task] for task in row), len(values)) for row in matrix)
    found = []
    for percent in percents:
        place = Fraction(str(percent)) * (len(means) - 1) / 100
        low = place.numerator // place.denominator
        high = min(low + 1, len(means) - 1)
        found.append(float(means[low] + (place - low) * (means[high] - means[low])))
    return tuple(found)


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 5, 31, 32, 33])
def test_the_matrix_has_another_source(tasks):
    """Numpy's is the one that the page describes: by Python's own MT19937, row after row."""
    rule = replace(RULE, resamples=200)
    assert resampled_tasks(rule, tasks).tolist() == plain_matrix(RULE.seed, 200, tasks)


def test_the_registered_matrix():
    """10,000 resamples of 32 tasks under the registered seed: shape, range and digest."""
    found = resampled_tasks(RULE, 32)
    assert (found.shape, found.dtype) == ((10_000, 32), np.dtype("int64"))
    assert (found.min(), found.max()) == (0, 31)
    assert indices_sha256(found) == REGISTERED


def test_the_matrix_is_made_afresh():
    """Neither an earlier domain nor numpy's own state changes it, and it changes neither."""
    np.random.seed(3)
    state = np.random.get_state()[1].tolist()
    first = resampled_tasks(RULE, 32)
    assert np.random.get_state()[1].tolist() == state
    assert np.array_equal(resampled_tasks(RULE, 32), first)
    assert not np.array_equal(resampled_tasks(replace(RULE, seed=RULE.seed + 1), 32), first)


def test_the_digest_sees_one_index():
    """The control: another index or another order of rows is another matrix; how it lies in memory is nothing."""
    found = resampled_tasks(replace(RULE, resamples=5), 4)
    assert indices_sha256(found.astype(np.int32)) == indices_sha256(found)
    assert indices_sha256(np.asfortranarray(found)) == indices_sha256(found)
    changed = found.copy()
    changed[0, 0] = (changed[0, 0] + 1) % 4
    assert len({indices_sha256(one) for one in (found, found[::-1], changed)}) == 3


@given(
    values=st.lists(st.integers(-512, 512), min_size=1, max_size=12),
    resamples=st.integers(1, 60),
    percents=st.lists(st.floats(0, 100), min_size=1, max_size=4).map(tuple),
)
@settings(max_examples=60)
def test_bands_are_those_of_a_plain_loop(values, resamples, percents):
    """The same index matrix, one list at a time, exact to the last bit; numpy's own method agrees up to rounding."""
    rule = replace(RULE, resamples=resamples, percentiles=percents)
    matrix = resampled_tasks(rule, len(values))
    sums = resampled_sums(matrix, np.array([values], dtype=np.int64).T)[:, 0]
    found = percentiles(rule, sums, len(values))
    assert found == plain_band(matrix.tolist(), values, percents)
    assert found == pytest.approx(np.percentile(sums / len(values), percents, method="linear"), rel=1e-12, abs=1e-9)


def test_a_task_brings_all_its_columns():
    """The sums of a difference are the differences of the sums: conditions and outcomes are resampled together."""
    values = np.random.RandomState(1).randint(0, 2, size=(32, 2))
    matrix = resampled_tasks(RULE, 32)
    sums = resampled_sums(matrix, values)
    paired = resampled_sums(matrix, (values[:, 1] - values[:, 0])[:, None])[:, 0]
    assert np.array_equal(sums[:, 1] - sums[:, 0], paired)


def test_an_unpaired_resample_is_another_band():
    """The control: conditions that agree on every task differ in no resample, unless their tasks are drawn apart."""
    values = np.array([0, 1] * 16, dtype=np.int64)
    both = np.stack([values, values], axis=1)
    matrix, apart = (resampled_tasks(replace(RULE, seed=seed), 32) for seed in (RULE.seed, RULE.seed + 1))
    paired = resampled_sums(matrix, both)
    assert percentiles(RULE, paired[:, 1] - paired[:, 0], 32) == (0.0, 0.0, 0.0)
    unpaired = resampled_sums(apart, both)[:, 1] - paired[:, 0]
    low, _, high = percentiles(RULE, unpaired, 32)
    assert low < 0 < high
