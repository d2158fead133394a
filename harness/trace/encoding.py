"""Canonical bytes of a tensor [rows, columns], its SHA-256, and its statistics in float64. Knows no model.

Bytes: the ASCII header `dtype|rows,columns`, directly followed by the numbers in C order, little-endian, as they are
stored (bfloat16 as its two bytes). No header can be read two ways: a longer one asks for more bytes than are left.

Statistics: every number is upcast to float64, which is exact. Per row, numpy's pairwise sum over the columns gives the
mean, and another over the squared deviations from it; rows are then joined by numpy's pairwise sum over the rows. No
step depends on threads, on how many rows are worked on at once, or on what else is in the batch.
"""

import hashlib
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import DecodeError
from harness.records.depth import TensorFacts, TensorStatistics

Numbers = NDArray[Any]
Float64 = NDArray[np.float64]

# How each dtype is stored here: numpy has no bfloat16, so its bits travel as uint16.
STORED = {"bfloat16": np.uint16, "float16": np.float16, "float32": np.float32, "int16": np.int16}
_AT_ONCE = 1 << 15  # numbers upcast at a time: 256 KiB of float64 stay in a core's cache


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers [rows, columns] under their dtype's name, stored as `STORED` says."""

    dtype: str
    stored: Numbers

    def __post_init__(self) -> None:
        if self.dtype not in STORED or self.stored.dtype != STORED[self.dtype] or self.stored.ndim != 2:
            raise RuntimeError(f"{self.dtype!r} isn't stored as {self.stored.dtype}{list(self.stored.shape)}")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.stored.shape[0], self.stored.shape[1]

    def rows(self, start: int, end: int) -> "Matrix":
        """Rows [start, end), without a copy."""
        return Matrix(self.dtype, self.stored[start:end])


def tensor_sha256(matrix: Matrix) -> str:
    """Lower-case hex SHA-256 of the canonical bytes."""
    rows, columns = matrix.shape
    found = hashlib.sha256(f"{matrix.dtype}|{rows},{columns}".encode("ascii"))
    found.update(_little_endian(matrix.stored).data)
    return found.hexdigest()


def _little_endian(stored: Numbers) -> Numbers:
    """The same array where it lies so already, else a copy."""
    data = np.ascontiguousarray(stored)
    return data if sys.byteorder == "little" else data.byteswap()


def upcast(matrix: Matrix) -> Float64:
    """Float64 [rows, columns], every value exact."""
    if matrix.dtype == "bfloat16":  # the upper half of a float32
        bits = matrix.stored.astype(np.uint32)
        bits <<= 16
        return bits.view(np.float32).astype(np.float64)
    return matrix.stored.astype(np.float64)


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Of each row: mean, sum of squared deviations from it, smallest and largest number; float64 [rows]."""

    columns: int
    mean: Float64
    deviations: Float64
    minimum: Float64
    maximum: Float64

    def rows(self, start: int, end: int) -> "RowMoments":
        """Those of rows [start, end): no number is read again for a narrower scope."""
        cut = slice(start, end)
        return RowMoments(self.columns, self.mean[cut], self.deviations[cut], self.minimum[cut], self.maximum[cut])


def row_moments(matrix: Matrix, where: str) -> RowMoments:
    """The moments of every row; DecodeError (`non_finite`) naming `where` for NaN and infinities."""
    rows, columns = matrix.shape
    mean, deviations, minimum, maximum = np.empty((4, rows), dtype=np.float64)
    step = max(1, _AT_ONCE // max(1, columns))
    with np.errstate(invalid="ignore", over="ignore"):  # what isn't finite is refused below, for all rows at once
        for start in range(0, rows, step):
            cut = slice(start, start + step)
            block = upcast(matrix.rows(start, start + step))
            np.minimum.reduce(block, axis=1, out=minimum[cut])
            np.maximum.reduce(block, axis=1, out=maximum[cut])
            np.divide(np.add.reduce(block, axis=1), columns, out=mean[cut])
            block -= mean[cut, None]
            block *= block
            np.add.reduce(block, axis=1, out=deviations[cut])
    return finite(RowMoments(columns, mean, deviations, minimum, maximum), where)


def finite(moments: RowMoments, where: str) -> RowMoments:
    """The moments themselves; DecodeError (`non_finite`) naming `where` for NaN and infinities."""
    if not (np.isfinite(moments.minimum).all() and np.isfinite(moments.maximum).all()):
        raise _not_finite(where)
    return moments


def _not_finite(where: str) -> DecodeError:
    return DecodeError(
        where,
        kind="non_finite",
        expected="finite numbers",
        found="NaN or an infinity",
        todo="Check kernels, dtype and weights; nothing of this source is kept.",
    )


def statistics(moments: RowMoments) -> TensorStatistics:
    """Over all numbers of the rows (one at least); the standard deviation is the population's."""
    rows = len(moments.mean)
    if rows == 0 or moments.columns == 0:
        raise RuntimeError("statistics over no numbers")
    mean = float(np.add.reduce(moments.mean)) / rows
    between = moments.mean - mean
    variance = float(np.add.reduce(moments.deviations)) / (rows * moments.columns)
    variance += float(np.add.reduce(between * between)) / rows
    return TensorStatistics(
        mean=mean,
        standard_deviation=math.sqrt(variance),
        root_mean_square=math.sqrt(variance + mean * mean),
        minimum=float(np.minimum.reduce(moments.minimum)),
        maximum=float(np.maximum.reduce(moments.maximum)),
    )


def tensor_facts(matrix: Matrix, moments: RowMoments) -> TensorFacts:
    """Shape, dtype, digest and statistics of a tensor whose rows have these moments."""
    return TensorFacts(
        shape=matrix.shape, dtype=matrix.dtype, sha256=tensor_sha256(matrix), statistics=statistics(moments)
    )
