"""What each draw could have given: the watcher behind the warpers, and the generator that the draws came from.

The library draws once a step for the whole batch, from the softmax of the scores that leave the last warper. An ID is
drawable where that probability is above 0.
"""

from dataclasses import dataclass, field

import torch
from transformers import LogitsProcessor

from harness.decode.watch import require_steps, require_watched
from harness.errors import DecodeError
from harness.records.sampling import TorchGenerator


@dataclass(slots=True)
class Drawn:
    """Of each step: flags, bool [rows] each, and the IDs that were judged, int64 [rows], on their own device."""

    drawable: list[torch.Tensor] = field(default_factory=list)
    several: list[torch.Tensor] = field(default_factory=list)
    ids: list[torch.Tensor] = field(default_factory=list)


class NucleusWatch(LogitsProcessor):  # type: ignore[misc]
    """Sees the warped scores [rows, vocabulary] of each step and changes nothing.

    Which ID a step drew is known at the next one, so one step's probabilities are held, and no more.
    """

    def __init__(self) -> None:
        self.drawn = Drawn()
        self._held: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Judge the ID that the step before drew, int64 [rows, width so far]; hold this step's probabilities."""
        if self._held is not None:
            self._judge(input_ids[:, -1])
        self._held = torch.softmax(scores, dim=-1)
        self.drawn.several.append((self._held > 0).sum(dim=-1) > 1)
        return scores

    def end(self, generated: torch.Tensor) -> torch.Tensor:
        """Judge the last step by int64 [rows, steps]; its probabilities have the shape and dtype of every draw.

        DecodeError where the call was for other rows, or returned another ID than the one that it drew and judged.
        """
        if self._held is None:
            raise _unseen(generated.shape[1])
        if len(generated) != len(self._held):
            raise _split(len(generated), len(self._held))
        self._judge(generated[:, -1].to(self._held.device))
        judged = torch.stack(self.drawn.ids, 1).cpu()
        require_watched(generated, judged, kind="not_drawable")
        require_steps(judged == generated, kind="not_drawable", expected="the ID that the call drew")
        return self._held

    def _judge(self, emitted: torch.Tensor) -> None:
        if self._held is None:
            raise RuntimeError("no step was seen")
        self.drawn.ids.append(emitted)
        self.drawn.drawable.append(self._held.gather(1, emitted[:, None]).squeeze(1) > 0)


def generator_of(device: torch.device) -> TorchGenerator:
    """The generator that a draw on this device comes from, by its name in the records."""
    return "torch_cuda" if device.type == "cuda" else "torch_cpu"


def generator_state(device: torch.device) -> torch.Tensor:
    """The state of the default generator of this device, uint8 [bytes] on the CPU."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def require_draws(before: torch.Tensor, after: torch.Tensor, *, like: torch.Tensor, draws: int) -> None:
    """DecodeError unless so many draws for probabilities shaped like float [rows, columns] lead from state to state.

    What a draw takes from a generator may depend on shape, dtype and device, never on the probabilities. A draw by
    anybody else, or one that is missing, leaves another state.
    """
    shadow = torch.Generator(device=like.device)
    shadow.set_state(before)
    weights = torch.ones_like(like)
    for _ in range(draws):
        torch.multinomial(weights, num_samples=1, generator=shadow)
    if not torch.equal(shadow.get_state(), after):
        raise DecodeError(
            "generation",
            kind="foreign_draw",
            expected=f"the generator's state after {draws} draws for {like.shape[0]} rows",
            found="another state",
            todo="Find what else draws during the call; nothing of this unit is kept.",
        )


def _split(rows: int, drawn: int) -> DecodeError:
    return DecodeError(
        "generation",
        kind="not_drawable",
        expected=f"draws for all {rows} rows at once",
        found=f"draws for {drawn}",
        todo="A batch is one call and is never split: this isn't the contract's decoding.",
    )


def _unseen(steps: int) -> DecodeError:
    return DecodeError(
        "generation",
        kind="not_drawable",
        expected="a watched step for every draw",
        found=f"{steps} steps of which none was seen",
        todo="The library draws without its warpers: this isn't the contract's decoding.",
    )
