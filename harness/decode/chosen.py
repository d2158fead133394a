"""What a step's logits give, and what each of two tokens has in it: by argmax, at a tape's u, or by a seeded draw."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from harness.canon import sha256_hex
from harness.decode.icdf import InverseCdf
from harness.errors import DecodeError
from harness.records.tapes import EdgeDistance, NoEdge


@dataclass(frozen=True, slots=True)
class Share:
    """A token's part of the CDF (a tape's alone) and its probability after the warpers; all 0 where none is drawn."""

    lower: float
    upper: float
    probability: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ID that a row gets, what the asked IDs have, and the distance of u to the nearer end of its interval."""

    token: int
    shares: tuple[Share, ...]
    edge: EdgeDistance | NoEdge


@dataclass(frozen=True, slots=True)
class RowLogits:
    """A row's logits by SHA-256 of their float32, little-endian; of each asked ID its logit and its rank from 0."""

    sha256: str
    logits: tuple[float, ...]
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SeededDraw:
    """A sampled contract's warpers, the run seed, and the draws that were made since it was set."""

    seed: int
    temperature: float
    top_k: int
    top_p: float
    before: int


def row_logits(logits: torch.Tensor, row: int, asked: Sequence[int]) -> RowLogits:
    """Of float32 logits [rows, vocabulary]; DecodeError (`non_finite`) for a row that has no order."""
    one = logits[row].cpu()
    if not bool(torch.isfinite(one).all()):
        todo = "Check kernels, dtype and weights."
        raise DecodeError(f"row {row}", kind="non_finite", expected="finite logits", found="others", todo=todo)
    return RowLogits(
        sha256=sha256_hex(one.numpy().astype("<f4").tobytes()),
        logits=tuple(float(one[token]) for token in asked),
        ranks=tuple(int((one > one[token]).sum()) for token in asked),
    )


def by_argmax(logits: torch.Tensor, row: int, asked: Sequence[int]) -> Chosen:
    """Of float32 logits [rows, vocabulary]."""
    return Chosen(int(logits[row].argmax()), tuple(Share(0.0, 0.0, 0.0) for _ in asked), NoEdge())


def at_u(logits: torch.Tensor, row: int, asked: Sequence[int], *, sampler: InverseCdf, u: float) -> Chosen:
    """The tape's draw of one row, which is its own whatever rows stand beside it. DecodeError (`non_finite`)."""
    warped = sampler.warp(logits[row : row + 1])
    (drawn,) = sampler.draw_from(warped, u)
    cdf, probabilities = sampler.cumulative(warped)[0].double(), warped.probabilities[0].double()
    shares = (
        Share(float(cdf[token - 1]) if token else 0.0, float(cdf[token]), float(probabilities[token]))
        for token in asked
    )
    return Chosen(drawn.token, tuple(shares), drawn.edge)


def by_seed(logits: torch.Tensor, row: int, asked: Sequence[int], *, draw: SeededDraw) -> Chosen:
    """The library's draw for all rows at once; what the draws before took from the generator depends on shape alone."""
    scores = logits
    for warper in _warpers(draw):
        scores = warper(None, scores)
    probabilities = torch.softmax(scores, dim=-1)
    generator = torch.Generator(device=logits.device).manual_seed(draw.seed)
    weights = torch.ones_like(probabilities)
    for _ in range(draw.before):
        torch.multinomial(weights, num_samples=1, generator=generator)
    token = int(torch.multinomial(probabilities, num_samples=1, generator=generator)[row, 0])
    return Chosen(token, tuple(Share(0.0, 0.0, float(probabilities[row, one])) for one in asked), NoEdge())


def _warpers(draw: SeededDraw) -> list[TemperatureLogitsWarper | TopKLogitsWarper | TopPLogitsWarper]:
    """In the library's order; one that would change nothing isn't applied there either."""
    warpers: list[TemperatureLogitsWarper | TopKLogitsWarper | TopPLogitsWarper] = []
    if draw.temperature != 1.0:
        warpers.append(TemperatureLogitsWarper(draw.temperature))
    if draw.top_k:
        warpers.append(TopKLogitsWarper(draw.top_k))
    if draw.top_p < 1.0:
        warpers.append(TopPLogitsWarper(draw.top_p))
    return warpers
