"""Ordered routes of a gate and what is kept of them (R05 depth 7.1). Knows no model and no condition.

A token's route: its top-k experts by weight descending, equal weights by the lower expert ID. So the order in which a
library returns them never matters. Expert IDs as int16, weights as float32 in the same order.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.errors import DecodeError, ModelError
from harness.records.depth import RouteFacts
from harness.trace.encoding import Matrix, Numbers, RowMoments, row_moments, statistics, tensor_sha256


@dataclass(frozen=True)
class Routes:
    """Ordered routes over some tokens: int16 and float32 [tokens, top_k], out of `count` experts."""

    count: int
    experts: NDArray[np.int16]
    weights: NDArray[np.float32]

    def rows(self, start: int, end: int) -> "Routes":
        """Those of tokens [start, end), without a copy."""
        return Routes(self.count, self.experts[start:end], self.weights[start:end])

    @cached_property
    def load(self) -> NDArray[np.int64]:
        """Tokens that chose each expert, over all places of the routes: int64 [count]."""
        return np.bincount(self.experts.reshape(-1), minlength=self.count)

    @cached_property
    def weighted_load(self) -> NDArray[np.float64]:
        """Sum of each expert's weights, added one by one in float64: by token, within a token by rank."""
        places, weights = self.experts.reshape(-1), self.weights.reshape(-1)
        return np.bincount(places, weights=weights, minlength=self.count).astype(np.float64, copy=False)


def order_routes(weights: Numbers, experts: Numbers, *, count: int, where: str) -> Routes:
    """Routes of float32 weights and integer expert IDs, both [tokens, top_k], in whatever order they came.

    DecodeError (`non_finite`): a weight isn't finite. ModelError naming `where`: IDs that no route can have.
    """
    if weights.dtype != np.float32 or weights.ndim != 2 or weights.shape != experts.shape:
        raise RuntimeError(f"weights {weights.dtype}{weights.shape} against experts {experts.shape}")
    if not np.isfinite(weights).all():
        raise DecodeError(
            where,
            kind="non_finite",
            expected="finite weights",
            found="NaN or an infinity",
            todo="Check kernels, dtype and weights; nothing of this source is kept.",
        )
    _require_ids(experts, count, where)
    order = np.lexsort((experts, -weights), axis=-1)
    return Routes(
        count,
        np.take_along_axis(experts, order, axis=-1).astype(np.int16),
        np.take_along_axis(weights, order, axis=-1),
    )


def _require_ids(experts: Numbers, count: int, where: str) -> None:
    ascending = np.sort(experts, axis=-1)
    outside = experts.size > 0 and (ascending[:, 0].min() < 0 or ascending[:, -1].max() >= count)
    if count > np.iinfo(np.int16).max or outside or (ascending[:, 1:] == ascending[:, :-1]).any():
        raise ModelError(
            where,
            expected=f"distinct expert IDs below {count} in each token's choice, and at most 32767 experts",
            found="others",
            todo="The module isn't the gate it was taken for.",
        )


def weight_moments(routes: Routes, where: str) -> RowMoments:
    """The moments of each token's weights."""
    return row_moments(Matrix("float32", routes.weights), where)


def route_facts(routes: Routes, moments: RowMoments) -> RouteFacts:
    """What is kept of the routes over a scope, given its weights' moments; the load's entropy is in nats."""
    load = routes.load.tolist()
    return RouteFacts(
        tokens=len(routes.experts),
        top_k=routes.experts.shape[1],
        routes_sha256=tensor_sha256(Matrix("int16", routes.experts)),
        weights_sha256=tensor_sha256(Matrix("float32", routes.weights)),
        load=tuple(load),
        weighted_load=tuple(routes.weighted_load.tolist()),
        experts_used=sum(1 for tokens in load if tokens),
        load_entropy=entropy(load),
        weight_statistics=statistics(moments),
    )


def entropy(load: list[int]) -> float:
    """Shannon entropy in nats of counts taken as shares; 0 where a single expert has all."""
    counts = np.array([tokens for tokens in load if tokens], dtype=np.float64)
    shares = counts / np.add.reduce(counts)
    return float(0.0 - np.add.reduce(shares * np.log(shares)))
