"""The sampler of clause 4.3: registered warpers, float32 softmax, float32 cumulative sum by token ID, inverse CDF of u.

Takes u; asks no generator. Two rules (DECISIONS: sampling): `icdf-r08` forces only the last CDF element to 1, so where
float32 leaves the survivors' sum below u it draws the last ID, which top-p filtered or which names no token: that
draw is flagged. `icdf-v1` forces 1 from the last surviving ID on and never draws a filtered one.

Why no other draw is filtered: a filtered ID adds 0, so its CDF element is its predecessor's (0 before the first
survivor); the first element >= u is never such a one, for u > 0. Everything is computed on the contract's device. On
the CPU torch adds up in float64 and rounds each element to float32; elsewhere that is asked for by name.
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

from harness.errors import DecodeError
from harness.records.tapes import EdgeDistance, NoEdge, SamplerContract

_ZERO, _ONE = torch.tensor(0.0), torch.tensor(1.0)
SMALLEST, LARGEST = torch.nextafter(_ZERO, _ONE), torch.nextafter(_ONE, _ZERO)  # float32: 2**-149 and 1 - 2**-24


@dataclass(frozen=True, slots=True)
class Warped:
    """Distributions of a batch of rows: `probabilities` float32 and `kept` bool, both [rows, vocabulary].

    `ties` bool [rows]: a filtered score equals a surviving one.
    """

    probabilities: torch.Tensor
    kept: torch.Tensor
    ties: torch.Tensor


@dataclass(frozen=True, slots=True)
class Drawn:
    """One row's draw; the fields are those of StepDraw."""

    token: int
    gap: bool
    boundary_tie: bool
    edge: EdgeDistance | NoEdge


class InverseCdf:
    """The sampler under a contract. Holds no state: the same logits and u give the same draw."""

    def __init__(self, contract: SamplerContract) -> None:
        self.contract = contract
        self._temperature = TemperatureLogitsWarper(contract.temperature)
        self._top_p = TopPLogitsWarper(contract.top_p, min_tokens_to_keep=contract.min_tokens_to_keep)

    def settings(self) -> dict[str, Any]:
        """What it draws with, read from the warpers that it applies."""
        return {
            "sampler_rule": self.contract.rule,
            "sampler_device": self.contract.device,
            "temperature": self._temperature.temperature,
            "top_p": self._top_p.top_p,
            "min_tokens_to_keep": self._top_p.min_tokens_to_keep,
        }

    def draw(self, logits: torch.Tensor, u: float) -> tuple[Drawn, ...]:
        """One draw a row from logits [rows, vocabulary], all rows at the same u, 0 <= u <= 1.

        DecodeError (`non_finite`) where a logit isn't finite: such a row has no distribution.
        """
        return self.draw_from(self.warp(logits), u)

    def warp(self, logits: torch.Tensor) -> Warped:
        """4.3: logits to float32 first, temperature, top-p, softmax in float32."""
        scores = logits.to(device=self.contract.device, dtype=torch.float32)
        _require_finite(scores)
        return self.warp_scores(scores)

    def warp_scores(self, scores: torch.Tensor) -> Warped:
        """The same of float32 scores where they are, whether finite or not: nothing here waits for a device."""
        scaled = self._temperature(None, scores)
        warped = self._top_p(None, scaled)
        kept = warped != -torch.inf
        lowest_kept = scaled.masked_fill(~kept, torch.inf).amin(-1)
        highest_filtered = scaled.masked_fill(kept, -torch.inf).amax(-1)
        probabilities = torch.softmax(warped, dim=-1, dtype=torch.float32)
        return Warped(probabilities, kept, lowest_kept == highest_filtered)

    def draw_from(self, warped: Warped, u: float) -> tuple[Drawn, ...]:
        """One draw a row from its distribution."""
        cdf, clamped = self.cumulative(warped), self.uniform(u)
        tokens = self.search(cdf, clamped)
        kept = warped.kept.gather(1, tokens[:, None])[:, 0].tolist()
        ties, edges = warped.ties.tolist(), nearest_edges(cdf, tokens, clamped)
        return tuple(
            Drawn(token, not survives, tie, edge)
            for token, survives, tie, edge in zip(tokens.tolist(), kept, ties, edges, strict=True)
        )

    def cumulative(self, warped: Warped) -> torch.Tensor:
        """CDF, float32 [rows, vocabulary], by token ID, with the rule's elements forced to 1."""
        cdf = summed(warped.probabilities)
        if self.contract.rule == "icdf-v1":
            return cdf.masked_fill(
                torch.arange(cdf.shape[-1], device=cdf.device) >= last_survivor(warped.kept)[:, None], 1.0
            )
        cdf[:, -1] = 1.0
        return cdf

    def uniform(self, u: float) -> torch.Tensor:
        """As float32, clamped into the open interval: where the cast lands on an end, its neighbour inside."""
        if not 0.0 <= u <= 1.0:
            raise RuntimeError(f"u is in [0, 1], got {u}")
        return torch.tensor(u, dtype=torch.float64).to(torch.float32).clamp(SMALLEST, LARGEST)

    def search(self, cdf: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Int64 [rows]: the first ID whose CDF element is at least u."""
        return torch.searchsorted(cdf, u.to(cdf.device).expand(len(cdf), 1).contiguous(), right=False)[:, 0]


def summed(probabilities: torch.Tensor) -> torch.Tensor:
    """Cumulative sum over columns, accumulated in float64 and rounded to float32: by torch itself on the CPU alone."""
    if probabilities.device.type == "cpu":
        return torch.cumsum(probabilities, dim=-1, dtype=torch.float32)
    return torch.cumsum(probabilities, dim=-1, dtype=torch.float64).to(torch.float32)


def last_survivor(kept: torch.Tensor) -> torch.Tensor:
    """Int64 [rows]: the highest ID that top-p kept; it keeps at least one."""
    return kept.shape[-1] - 1 - kept.flip(-1).long().argmax(-1)


def nearest_edges(cdf: torch.Tensor, tokens: torch.Tensor, u: torch.Tensor) -> tuple[EdgeDistance | NoEdge, ...]:
    """Each row's distance from u to the nearer end of its drawn interval, in float64; 0 and 1 are no edges."""
    padded = torch.nn.functional.pad(cdf, (1, 0))
    lower = padded.gather(1, tokens[:, None])[:, 0].double().tolist()
    upper = padded.gather(1, tokens[:, None] + 1)[:, 0].double().tolist()
    value = float(u)
    return tuple(nearest_edge(low, high, value) for low, high in zip(lower, upper, strict=True))


def nearest_edge(low: float, high: float, u: float) -> EdgeDistance | NoEdge:
    """Distance from u to the nearer end of an interval; 0 and 1 are no ends."""
    distances = [*([u - low] if low > 0 else []), *([high - u] if high < 1 else [])]
    return EdgeDistance(distance=min(distances)) if distances else NoEdge()


def _require_finite(scores: torch.Tensor) -> None:
    finite = torch.isfinite(scores).all(dim=-1)
    if not bool(finite.all()):
        row = int(torch.nonzero(~finite)[0, 0])
        raise DecodeError(
            f"sampler, row {row} of {len(finite)}",
            kind="non_finite",
            expected="finite logits",
            found=f"{int((~finite).sum())} rows without them",
            todo="Check kernels, dtype and weights; nothing of this unit is kept.",
        )
