"""Counting: every numerator with its denominator, every sum with its number of terms. Knows no ledger."""

import math
from collections.abc import Iterable, Sequence, Sized

from harness.compare import TODO
from harness.errors import JournalError
from harness.records.ledger import Comparison, Count, EdgeSummary, Mean, Total, Undefined


def count(flags: Iterable[bool]) -> Count:
    """How many are true, of how many."""
    listed = list(flags)
    return Count(count=sum(listed), of=len(listed))


def total(values: Iterable[int]) -> Total:
    """Sum and number of terms."""
    listed = list(values)
    return Total(sum=sum(listed), n=len(listed))


def edge_summary(comparisons: Sequence[Comparison]) -> EdgeSummary:
    """Counts over units of one edge; the mean similarity is undefined where there is no unit."""
    return EdgeSummary(
        ids_exact=count(each.ids_exact for each in comparisons),
        common_prefix_tokens=total(each.common_prefix_tokens for each in comparisons),
        distance=total(each.distance for each in comparisons),
        similarity=mean([each.similarity for each in comparisons]),
    )


def mean(values: Sequence[float]) -> Mean | Undefined:
    """Mean of binary64 numbers by their exact sum, so that their order can't change it."""
    if not values:
        return Undefined(reason="no rows")
    return Mean(mean=math.fsum(values) / len(values), n=len(values))


def require_size(where: str, rows: Sized, *, planned: int) -> None:
    """JournalError unless a group has as many rows as the protocol's grid plans."""
    if len(rows) != planned:
        raise JournalError(where, expected=f"{planned} rows", found=str(len(rows)), todo=TODO)
