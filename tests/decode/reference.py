"""The sampler in float64 numpy, written from clause 4.3 alone, and the band in which float32 may choose otherwise.

The band, in probability: a score s = logit / temperature is rounded to float32 once and s - max(s) once more, so each
probability is off by at most a factor 1 + 4 max|s| 2**-24; exp, division, the float32 sum over the row and the rounding
of the cumulative sum add less than 64 units of 2**-24.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reference:
    """A row's float64 scores [vocabulary] and band; `kept` as top-p decides in float64, ties by ID.

    `margin` is how far that decision is from another one, in probability.
    """

    scores: np.ndarray
    kept: np.ndarray
    margin: float
    band: float

    @property
    def sure(self) -> bool:
        """Whether float32 must remove as many as float64 does."""
        return self.margin > self.band

    def same_support(self, kept: np.ndarray) -> bool:
        """Whether another support is this one but for the choice among equal scores."""
        return np.array_equal(np.sort(self.scores[kept]), np.sort(self.scores[self.kept]))

    def accepts(self, token: int, u: float, kept: np.ndarray) -> bool:
        """Whether the ID is drawn from the support `kept` at some u within the band."""
        low, high = (self.draw(value, kept) for value in (max(u - self.band, 2.0**-80), min(u + self.band, 1.0)))
        return bool(kept[token]) and low <= token <= high

    def draw(self, u: float, kept: np.ndarray) -> int:
        """The first surviving ID whose CDF element is at least u."""
        weights = np.where(kept, np.exp(self.scores - self.scores.max()), 0.0)
        cdf = np.cumsum(weights / weights.sum())
        return int(min(np.searchsorted(cdf, u, side="left"), np.flatnonzero(kept)[-1]))


def reference(logits: np.ndarray, temperature: float = 0.3, top_p: float = 0.95) -> Reference:
    """From float32 logits [vocabulary]."""
    scores = logits.astype(np.float64) / temperature
    order = np.argsort(scores, kind="stable")
    weights = np.exp(scores - scores.max())
    below = np.cumsum(weights[order] / weights.sum())
    removed = below <= 1 - top_p
    removed[-1] = False
    kept = np.zeros(len(scores), dtype=bool)
    kept[order[~removed]] = True
    margin = float(np.abs(below[:-1] - (1 - top_p)).min(initial=1.0))
    return Reference(scores, kept, margin, float((4 * np.abs(scores).max() + 64) * 2.0**-24))
