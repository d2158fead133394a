"""Greedy decoding through transformers `generate` (R04 4), watched in every step.

The watcher never waits for the device within the loop: it keeps each step's finite flags and argmax IDs where they
were computed and judges them when the batch has returned.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from harness.errors import DecodeError
from harness.model.load import LoadedModel
from harness.model.memory import is_out_of_memory, out_of_memory
from harness.records.profile import SpecialIds
from harness.records.protocol import DecodeContract
from harness.records.run import StepChecks

Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Generated IDs of each row, up to and including the first EOS, padding dropped; and what was checked."""

    rows: tuple[tuple[int, ...], ...]
    checks: StepChecks


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


def contract_config(contract: DecodeContract, ids: SpecialIds, max_new_tokens: int) -> GenerationConfig:
    """The contract as an explicit generation config: nothing is left to a checkpoint's or a library's default."""
    return GenerationConfig(
        do_sample=contract.do_sample,
        num_beams=contract.num_beams,
        use_cache=contract.use_cache,
        temperature=contract.temperature,
        top_k=contract.top_k,
        top_p=contract.top_p,
        repetition_penalty=contract.repetition_penalty,
        max_new_tokens=max_new_tokens,
        bos_token_id=ids.bos,
        eos_token_id=ids.eos,
        pad_token_id=ids.pad,
    )


READ_BACK = (
    "do_sample",
    "num_beams",
    "use_cache",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "min_length",
    "suppress_tokens",
    "begin_suppress_tokens",
    "bad_words_ids",
    "sequence_bias",
    "exponential_decay_length_penalty",
    "min_p",
    "stop_strings",
    "max_time",
    "watermarking_config",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "penalty_alpha",
    "guidance_scale",
    "renormalize_logits",
    "cache_implementation",
)


# In a generation config's own list of what isn't default, but no setting of the contract: the grid has the budget.
NO_SETTING = ("max_new_tokens", "transformers_version")


def adopt_contract(
    loaded: LoadedModel, contract: DecodeContract, ids: SpecialIds, max_new_tokens: int
) -> dict[str, Any]:
    """Make the contract the model's own generation config, so that no merge can bring another back; read it back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers warns that greedy ignores temperature: the contract says so
        loaded.model.generation_config = contract_config(contract, ids, max_new_tokens)
    effective = loaded.model.generation_config
    others = {name: value for name, value in effective.to_diff_dict().items() if name not in (*READ_BACK, *NO_SETTING)}
    return {name: getattr(effective, name, None) for name in READ_BACK} | others


def decode_greedy(
    loaded: LoadedModel, ids: Sequence[Sequence[int]], mask: Sequence[Sequence[int]], *, eos: int, tick: Tick
) -> DecodedRows:
    """Decode left-padded rows (equal length, int) in one batch, never split, order kept.

    `adopt_contract` must have been called: the budget is the adopted config's. Raises DecodeError (`out_of_memory`,
    `non_finite`, `not_argmax`).
    """
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    input_ids = torch.tensor(ids, dtype=torch.long, device=loaded.device)
    attention_mask = torch.tensor(mask, dtype=torch.long, device=loaded.device)
    watch = StepWatch(tick)
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
    generated = output[:, input_ids.shape[1] :].cpu()
    checks = judge_steps(generated, torch.stack(watch.argmax, 1).cpu(), torch.stack(watch.finite, 1).cpu(), eos=eos)
    return DecodedRows(tuple(_trim(row, eos) for row in generated.tolist()), checks)


def judge_steps(generated: torch.Tensor, argmax: torch.Tensor, finite: torch.Tensor, *, eos: int) -> StepChecks:
    """Check int64 [rows, steps] against the watched argmax and bool [rows, steps] finite flags; finished rows aside."""
    finished = torch.cumsum((generated == eos).long(), dim=1) - (generated == eos).long() > 0
    live = ~finished
    if generated.shape != argmax.shape:
        raise DecodeError(
            "generation",
            kind="not_argmax",
            expected=f"one emitted ID for each of {argmax.shape[1]} watched steps",
            found=f"{generated.shape[1]} IDs",
            todo="The library emits without asking: this isn't the contract's decoding.",
        )
    _require(finite | finished, "non_finite", "finite logits")
    _require((generated == argmax) | finished, "not_argmax", "the argmax of the step's logits")
    live_count = int(live.sum())
    return StepChecks(steps=generated.shape[1], rows_checked=live_count, finite=live_count, argmax=live_count)


def _require(holds: torch.Tensor, kind: str, expected: str) -> None:
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


def _trim(row: list[int], eos: int) -> tuple[int, ...]:
    return tuple(row[: row.index(eos) + 1]) if eos in row else tuple(row)
