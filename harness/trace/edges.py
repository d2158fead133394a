"""A stage or a gate on an edge: the target tokens of two cells against each other (R05 depth 8 and 9).

Rows are joined by their place in the target, whose token IDs are the same in every cell. Sums are numpy's pairwise ones
in float64, over the columns of a row and then over rows. Knows no condition.

A row of zeros has no direction: against another row of zeros its cosine is 1, against any other row 0. Relative L2
against a target of zeros is 0 where both are, and else has no value: a DecodeError.
"""

from collections.abc import Sequence

import numpy as np

from harness.errors import DecodeError
from harness.records.depth import GateEdge, StageEdge
from harness.trace.encoding import Float64, Matrix, Numbers, upcast
from harness.trace.routes import Routes

Pairs = Sequence[tuple[int, int]]


def stage_edges(stage: str, targets: Sequence[Matrix], pairs: Pairs) -> list[StageEdge]:
    """A stage on edges between cells, left being A: target rows [target tokens, columns], as many in each cell."""
    if len({(one.shape, one.dtype) for one in targets}) != 1 or targets[0].shape[0] == 0:
        raise RuntimeError(f"{stage}: {', '.join(f'{one.dtype}{one.shape}' for one in targets)} against each other")
    left, right = (np.array(side, dtype=np.intp) for side in zip(*pairs, strict=True))
    numbers = np.stack([upcast(one) for one in targets])
    norms = _sums(numbers * numbers)
    product = numbers[left] * numbers[right]
    cosines = _cosines(_sums(product), norms[left], norms[right])
    np.subtract(numbers[right], numbers[left], out=product)
    np.multiply(product, product, out=product)
    exact = _whole_rows(np.stack([_bits(one) for one in targets]), left, right)
    rows = targets[0].shape[0]
    columns = (exact, _sums(cosines).tolist(), _sums(_sums(product)).tolist(), _sums(norms[left]).tolist())
    return [
        StageEdge(
            stage=stage,
            rows=rows,
            exact_rows=whole,
            cosine=cosine / rows,
            relative_l2=relative_l2(stage, difference, length),
            cosine_sum=cosine,
            difference_squared=difference,
            left_squared=length,
        )
        for whole, cosine, difference, length in zip(*columns, strict=True)
    ]


def _sums(numbers: Numbers) -> Float64:
    """Over the last axis, which lies in one piece: numpy's pairwise sum of each."""
    return np.asarray(np.add.reduce(numbers, axis=-1), dtype=np.float64)


def _bits(matrix: Matrix) -> Numbers:
    """Stored bits as integers: -0 isn't 0, and a number equals itself."""
    return matrix.stored.view(f"u{matrix.stored.itemsize}")


def _whole_rows(values: Numbers, left: Numbers, right: Numbers) -> list[int]:
    """Rows that are equal in every column, edge by edge, out of [cells, rows, columns]."""
    return np.count_nonzero((values[left] == values[right]).all(axis=-1), axis=-1).tolist()  # type: ignore[no-any-return]


def _cosines(dot: Float64, left: Float64, right: Float64) -> Float64:
    """Of rows with these squared norms. sqrt(x * x) is x in binary64, so equal rows give exactly 1."""
    norm = np.sqrt(left * right)
    none = norm == 0
    cosines = np.divide(dot, norm, out=np.zeros_like(dot), where=~none)
    cosines[none & (left == right)] = 1.0
    return np.clip(cosines, -1.0, 1.0)


def relative_l2(stage: str, difference: float, left: float) -> float:
    """|B - A| / |A| of two squared Frobenius norms; DecodeError (`non_finite`) where it has no value."""
    if left == 0.0 and difference > 0.0:
        raise DecodeError(
            stage,
            kind="non_finite",
            expected="a left side that isn't zero throughout",
            found="zeros in every target row",
            todo="The relative difference has no value: check weights and dtype.",
        )
    return float(np.sqrt(difference / left)) if left else 0.0


def gate_edges(gate: str, targets: Sequence[Routes], pairs: Pairs) -> list[GateEdge]:
    """A gate on edges between cells: routes of the target tokens [target tokens, top_k], as many in each cell."""
    if len({(one.experts.shape, one.count) for one in targets}) != 1 or len(targets[0].experts) == 0:
        raise RuntimeError(f"{gate}: {', '.join(str(one.experts.shape) for one in targets)} against each other")
    left, right = (np.array(side, dtype=np.intp) for side in zip(*pairs, strict=True))
    ordered = np.stack([one.experts for one in targets])
    columns = (
        _whole_rows(ordered, left, right),
        _whole_rows(np.sort(ordered, axis=-1), left, right),
        _total_variations(gate, np.stack([one.load for one in targets]), left, right),
        _total_variations(gate, np.stack([one.weighted_load for one in targets]), left, right),
    )
    return [
        GateEdge(
            gate=gate,
            tokens=ordered.shape[1],
            ordered_exact=in_order,
            set_exact=as_sets,
            load_total_variation=load,
            weighted_load_total_variation=weighted,
        )
        for in_order, as_sets, load, weighted in zip(*columns, strict=True)
    ]


def _total_variations(gate: str, loads: Numbers, left: Numbers, right: Numbers) -> list[float]:
    """Half the sum of |p - q| over the experts, p and q being shares of each side's own total."""
    totals = _sums(loads)
    if (totals <= 0.0).any():
        raise DecodeError(
            gate,
            kind="non_finite",
            expected="a load above zero in every cell",
            found=f"{int((totals <= 0.0).sum())} cells without",
            todo="Shares of nothing have no value: check the gate's weights.",
        )
    shares = loads / totals[:, None]
    return (_sums(np.abs(shares[left] - shares[right])) / 2).tolist()  # type: ignore[no-any-return]
