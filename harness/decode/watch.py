"""One call of transformers' `generate` over left-padded rows, watched in every step without waiting for the device.

What both greedy and sampled decoding need: the watcher of the model's own scores, the call, and judging its flags when
the batch has returned.
"""

import warnings
from collections.abc import Callable, Sequence

import torch
from transformers import LogitsProcessor, LogitsProcessorList

from harness.errors import DecodeError
from harness.model.load import LoadedModel
from harness.model.memory import is_out_of_memory, out_of_memory

Tick = Callable[[int], None]


class StepWatch(LogitsProcessor):  # type: ignore[misc]
    """Sees the scores [rows, vocabulary] of each step, changes nothing, and tells the progress line."""

    def __init__(self, tick: Tick) -> None:
        self.finite: list[torch.Tensor] = []
        self.argmax: list[torch.Tensor] = []
        self._tick = tick

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Note one step's scores, float [rows, vocabulary]; they go on unchanged."""
        del input_ids
        self.finite.append(torch.isfinite(scores).all(dim=-1))
        self.argmax.append(scores.argmax(dim=-1))
        self._tick(len(self.argmax))
        return scores


def generate_rows(
    loaded: LoadedModel, ids: Sequence[Sequence[int]], mask: Sequence[Sequence[int]], watch: StepWatch
) -> torch.Tensor:
    """The IDs int64 [rows, steps] that one call emits after the prompts, on the CPU; rows in order, never split.

    The budget is the model's own config's. DecodeError `out_of_memory`; whatever else the library raises goes on.
    """
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    input_ids = torch.tensor(ids, dtype=torch.long, device=loaded.device)
    attention_mask = torch.tensor(mask, dtype=torch.long, device=loaded.device)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        try:
            output = loaded.model.generate(
                input_ids,
                attention_mask=attention_mask,
                generation_config=loaded.model.generation_config,
                logits_processor=LogitsProcessorList([watch]),
            )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise out_of_memory("generation", error) from error
    generated: torch.Tensor = output[:, input_ids.shape[1] :].cpu()
    return generated


def finished_steps(generated: torch.Tensor, eos: int) -> torch.Tensor:
    """Bool [rows, steps] of int64 [rows, steps]: steps after a row's first EOS, whose logits are nobody's."""
    ends = (generated == eos).long()
    return torch.cumsum(ends, dim=1) - ends > 0


def require_watched(generated: torch.Tensor, watched: torch.Tensor, *, kind: str) -> None:
    """DecodeError unless the call emitted one ID for each row of each watched step."""
    if generated.shape != watched.shape:
        raise DecodeError(
            "generation",
            kind=kind,
            expected=f"one emitted ID for each of {watched.shape[1]} watched steps",
            found=f"{generated.shape[1]} IDs",
            todo="The library emits without asking: this isn't the contract's decoding.",
        )


def require_steps(holds: torch.Tensor, *, kind: str, expected: str) -> None:
    """DecodeError that names the earliest place where bool [rows, steps] isn't True."""
    wrong = torch.nonzero(~holds)
    if wrong.numel():
        row, step = (int(value) for value in wrong[wrong[:, 1].argmin()])
        raise DecodeError(
            f"step {step}, row {row}",
            kind=kind,
            expected=expected,
            found=f"{len(wrong)} steps of rows without it",
            todo="Check kernels, dtype and weights; nothing of this unit is kept.",
        )


def trim(row: list[int], eos: int) -> tuple[int, ...]:
    """A row's IDs up to and including its first EOS; padding is dropped."""
    return tuple(row[: row.index(eos) + 1]) if eos in row else tuple(row)
