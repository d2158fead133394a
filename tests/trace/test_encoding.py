"""Canonical bytes and statistics against slow references, and what changes a digest."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.errors import DecodeError
from harness.trace import encoding
from harness.trace.encoding import Matrix, row_moments, statistics, tensor_sha256, upcast
from harness.trace.host import as_matrix

from . import slow

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def matrix(dtype, shape=(5, 7), seed=3):
    """A seeded matrix and its numbers as Python floats."""
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DTYPES[dtype])
    return as_matrix(tensor, "here"), tensor.double().tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_digest_is_of_header_and_bytes(dtype):
    """Against struct, one number at a time."""
    found, rows = matrix(dtype)
    assert tensor_sha256(found) == slow.sha256(dtype, rows)


def test_the_digest_of_routes():
    """int16, as routes are."""
    rows = [[1, -2, 300], [63, 0, 5]]
    assert tensor_sha256(Matrix("int16", np.array(rows, dtype=np.int16))) == slow.sha256("int16", rows)


@pytest.mark.parametrize("dtype", DTYPES)
def test_upcasting_is_exact(dtype):
    """Every number, also in bfloat16."""
    found, rows = matrix(dtype)
    assert upcast(found).tolist() == rows


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(np.asfortranarray, id="fortran"),
        pytest.param(lambda one: np.repeat(one, 2, axis=1)[:, ::2], id="strided"),
        pytest.param(lambda one: np.vstack([one, one])[: len(one)], id="view"),
    ],
)
def test_the_layout_in_memory_does_not_matter(layout):
    """C order is of the numbers, not of the buffer."""
    found, _ = matrix("float32")
    assert tensor_sha256(Matrix("float32", layout(found.stored))) == tensor_sha256(found)


def test_big_endian_buffers_are_turned(monkeypatch):
    """On such a machine the bytes are swapped before they are hashed."""
    found, _ = matrix("float32")
    monkeypatch.setattr(encoding.sys, "byteorder", "big")
    turned = Matrix("float32", found.stored.byteswap())
    assert tensor_sha256(turned) == slow.sha256("float32", upcast(found).tolist())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda m: Matrix("float16", m.stored.view(np.float16)), id="dtype"),
        pytest.param(lambda m: Matrix("bfloat16", m.stored), id="rows"),
        pytest.param(lambda m: Matrix("bfloat16", m.stored.reshape(4, 6)), id="shape"),
        pytest.param(lambda m: Matrix("bfloat16", m.stored.T.copy()), id="transposed"),
        pytest.param(lambda m: Matrix("bfloat16", m.stored[::-1].copy()), id="row order"),
    ],
)
def test_header_and_order_are_in_the_digest(other):
    """The same bits under another dtype, shape or order have another digest; under the same one, the same."""
    found, _ = matrix("bfloat16", (6, 4))
    same = (other(found).dtype, other(found).shape) == (found.dtype, found.shape)
    equal = tensor_sha256(other(found)) == tensor_sha256(found)
    assert equal == (same and np.array_equal(other(found).stored, found.stored))


@settings(max_examples=30, deadline=None)
@given(row=st.integers(0, 4), column=st.integers(0, 6), bit=st.integers(0, 15))
def test_one_bit_changes_the_digest(row, column, bit):
    """Any bit of any number."""
    found, _ = matrix("bfloat16")
    flipped = found.stored.copy()
    flipped[row, column] ^= 1 << bit
    assert tensor_sha256(Matrix("bfloat16", flipped)) != tensor_sha256(found)


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        ("float32", np.zeros((2, 2), np.float64)),
        ("float64", np.zeros((2, 2), np.float64)),
        ("float32", np.zeros(2, np.float32)),
    ],
    ids=["other dtype", "no encoding", "one dimension"],
)
def test_numbers_that_are_not_the_dtypes_are_misuse(dtype, stored):
    """The name and the buffer must agree, in two dimensions."""
    with pytest.raises(RuntimeError, match="isn't stored as"):
        Matrix(dtype, stored)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.floats(-1e4, 1e4, width=32)))
def test_statistics_are_those_of_the_numbers(numbers):
    """Against fsum, within the rounding of float64."""
    found = statistics(row_moments(Matrix("float32", numbers), "here"))
    wanted = slow.statistics([float(one) for one in numbers.reshape(-1)])
    values = found.mean, found.standard_deviation, found.root_mean_square, found.minimum, found.maximum
    assert values == pytest.approx(wanted, rel=1e-11, abs=1e-11 * (1 + abs(wanted[2])))


def test_a_constant_has_no_deviation():
    """Exactly none: deviations are taken from the mean, never as a difference of large sums."""
    found = statistics(row_moments(Matrix("float32", np.full((3, 4), 1e4, np.float32)), "here"))
    assert (found.mean, found.standard_deviation) == (1e4, 0.0)


@pytest.mark.parametrize("at_once", [1, 7, 50, 1 << 20])
def test_how_many_rows_are_worked_on_at_once_does_not_matter(monkeypatch, at_once):
    """The moments are the same bit for bit."""
    found, _ = matrix("bfloat16", (40, 33))
    wanted = row_moments(found, "here")
    monkeypatch.setattr(encoding, "_AT_ONCE", at_once)
    again = row_moments(found, "here")
    assert [getattr(again, name).tobytes() for name in ("mean", "deviations", "minimum", "maximum")] == [
        getattr(wanted, name).tobytes() for name in ("mean", "deviations", "minimum", "maximum")
    ]


def test_a_scope_has_the_statistics_of_its_own_rows():
    """Rows cut from the whole's moments give what the rows alone give."""
    found, _ = matrix("bfloat16", (40, 33))
    narrow = statistics(row_moments(found, "here").rows(5, 19))
    assert narrow == statistics(row_moments(found.rows(5, 19), "here"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(value):
    """With the stage's name, whatever else is in the tensor."""
    numbers = np.ones((3, 3), np.float32)
    numbers[1, 2] = value
    with pytest.raises(DecodeError, match="layer_03: expected finite numbers, found NaN or an infinity") as caught:
        row_moments(Matrix("float32", numbers), "layer_03")
    assert caught.value.kind == "non_finite"


def test_statistics_over_nothing_are_misuse():
    """No scope is empty."""
    with pytest.raises(RuntimeError, match="no numbers"):
        statistics(row_moments(Matrix("float32", np.ones((3, 2), np.float32)), "here").rows(1, 1))
