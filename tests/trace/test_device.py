"""Sums made on the device are the host's: the same rows, on the CPU, by both."""

import numpy as np
import pytest
import torch

from harness.errors import DecodeError
from harness.trace import device
from harness.trace.batch import EdgeRows, lay_out
from harness.trace.edges import RowComparisons, compare_rows
from harness.trace.encoding import RowMoments, row_moments
from harness.trace.host import as_matrix
from harness.trace.stages import DeviceStage, HostStage, hidden_tasks

CLOSE = {"rtol": 1e-13, "atol": 1e-300}


def numbers(dtype, rows=48, columns=130, seed=1):
    """Seeded numbers of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn((rows, columns), generator=generator) * torch.logspace(-3, 3, rows)[:, None]
    return drawn.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_moments_of_rows(dtype):
    """Mean, deviations, smallest and largest of each row."""
    rows = numbers(dtype)
    wanted = row_moments(as_matrix(rows, "here"), "here")
    found = device.row_moments(rows).numpy()
    for place, name in enumerate(("mean", "deviations", "minimum", "maximum")):
        np.testing.assert_allclose(found[place], getattr(wanted, name), **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("at_once", [1, 1 << 23])
def test_comparisons_of_rows(dtype, at_once, monkeypatch):
    """However many edges are worked on at once; a row whose zero has another sign isn't exact."""
    monkeypatch.setattr(device, "AT_ONCE", at_once)
    rows = numbers(dtype)
    rows[16:32] = rows[:16]
    rows[17, 3] = 0.0
    rows[1, 3] = -0.0
    targets, pairs = [(0, 16), (16, 32), (32, 48)], [(0, 1), (0, 2), (2, 1)]
    matrix = as_matrix(rows, "here")
    wanted = compare_rows([matrix.rows(*one) for one in targets], pairs)
    sums, exact = device.compare_rows(rows, targets, pairs)
    assert exact.sum(dim=-1).tolist() == wanted.exact == [15, 0, 0]
    for place, name in enumerate(("dot", "left", "right", "difference")):
        np.testing.assert_allclose(sums[place].numpy(), getattr(wanted, name), rtol=1e-12, atol=1e-9)


def as_device(rows, batch, pairs):
    """A stage of these rows as a CUDA device would give it."""
    mean, deviations, minimum, maximum = device.row_moments(rows).numpy()
    sums, exact = device.compare_rows(rows, [cut.target for cut in batch.cuts], pairs)
    compared = RowComparisons(exact.sum(dim=-1).tolist(), *sums.numpy())
    moments = RowMoments(rows.shape[1], mean, deviations, minimum, maximum)
    return DeviceStage("layer_03", lambda: as_matrix(rows, "layer_03"), lambda: moments, lambda: compared, batch)


def layout():
    """Three rows of 16 tokens, no padding, and two edges."""
    from harness.records.depth import TargetTokens

    edges = [EdgeRows("a", 0, 1), EdgeRows("b", 2, 0)]
    targets = [TargetTokens(start=4, end=12, crossing=0)] * 3
    return lay_out([[5] * 16] * 3, [[1] * 16] * 3, targets, edges)


def results(stage, batch, parts):
    """What all tasks of a stage give, one after another."""
    return [one for task in hidden_tasks(stage, batch, parts) for one in task()]


def test_a_stage_on_a_device_gives_the_hosts_records():
    """Digests, shapes and exact rows the same; statistics to rounding."""
    rows, batch = numbers(torch.bfloat16), layout()
    host = results(HostStage("layer_03", lambda: as_matrix(rows, "layer_03")), batch, 2)
    made = results(as_device(rows, batch, [(0, 1), (2, 0)]), batch, 2)
    assert len(host) == len(made) == 5
    for one, other in zip(host[:3], made[:3], strict=True):
        for scope in ("target", "full"):
            left, right = getattr(one, scope), getattr(other, scope)
            assert (left.shape, left.dtype, left.sha256) == (right.shape, right.dtype, right.sha256)
            for name in left.statistics.__struct_fields__:
                assert getattr(right.statistics, name) == pytest.approx(getattr(left.statistics, name), rel=1e-12)
    for one, other in zip(host[3:], made[3:], strict=True):
        assert (one.stage, one.rows, one.exact_rows) == (other.stage, other.rows, other.exact_rows)
        for name in ("cosine", "relative_l2", "cosine_sum", "difference_squared", "left_squared"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-12)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 47])
def test_what_is_not_finite_is_refused(value, place):
    """Also where it lies outside every target: nothing of such a stage is kept."""
    rows, batch = numbers(torch.float32), layout()
    rows[place, 7] = value
    with pytest.raises(DecodeError, match="layer_03"):
        results(as_device(rows, batch, [(0, 1), (2, 0)]), batch, 1)
