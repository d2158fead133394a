"""The logits of one step with every token before it given: by `generate`, by the own loop, or in one forward.

The tokens are forced where each program chooses them, so that its forwards are those of a run which had chosen them by
itself: the same cache, mask, positions and finished rows. The executor over a fixed cache has a module of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from harness.decode.contract import contract_config
from harness.decode.loop import Live, Rows, decode_rows, forward_names, positions
from harness.decode.taped import loop_contract
from harness.decode.watch import StepWatch, generate_rows
from harness.errors import DecodeError
from harness.model.load import LoadedModel
from harness.records.decoding import DecodeContract
from harness.records.profile import SpecialIds

Program = Literal["generate", "own_loop", "whole"]


@dataclass(frozen=True, slots=True)
class Forced:
    """Left-padded prompts and their mask, int [rows, width]; each row's tokens before `step`, fewer for one that ended.

    At least one row has `step` of them: the others' logits are theirs only where they haven't ended.
    """

    ids: Rows
    mask: Rows
    tokens: Sequence[Sequence[int]]
    step: int


class _Forcing(StepWatch):
    """Behind the scores of a `generate` call: leaves one ID a row in each step before the last, and keeps the last."""

    def __init__(self, forced: Forced, pad: int) -> None:
        super().__init__(no_tick)
        self.logits: torch.Tensor | None = None
        self._forced, self._pad = forced, pad

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [rows, vocabulary] of the step; those of forced steps come back with one finite number a row."""
        step = len(self.argmax)
        super().__call__(input_ids, scores)
        if step == self._forced.step:
            self.logits = scores.to(dtype=torch.float32, copy=True)
            return scores
        tokens = torch.tensor(given(self._forced, step, self._pad), device=scores.device)
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens[:, None], 0.0)


def step_logits(
    loaded: LoadedModel, forced: Forced, *, program: Program, contract: DecodeContract, ids: SpecialIds
) -> torch.Tensor:
    """Logits float32 [rows, vocabulary] of the step, on the model's device.

    `contract` is what `generate` is called under, greedy. DecodeError: `out_of_memory`; `exception` where all rows end
    before the step.
    """
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    if program == "generate":
        return _by_generate(loaded, forced, contract, ids)
    return _by_loop(loaded, forced, ids) if program == "own_loop" else _whole(loaded, forced, ids)


def _by_generate(loaded: LoadedModel, forced: Forced, contract: DecodeContract, ids: SpecialIds) -> torch.Tensor:
    watch = _Forcing(forced, ids.pad)
    loaded.model.generation_config = contract_config(contract, ids, forced.step + 1)
    generate_rows(loaded, forced.ids, forced.mask, watch)
    return reached(watch.logits, forced.step)


def _by_loop(loaded: LoadedModel, forced: Forced, ids: SpecialIds) -> torch.Tensor:
    kept: list[torch.Tensor] = []

    def choose(logits: torch.Tensor, step: int, live: Live) -> torch.Tensor:
        del live
        if step == forced.step:
            kept.append(logits)
        return torch.tensor(given(forced, step, ids.pad))

    decode_rows(
        loaded, (forced.ids, forced.mask), contract=loop_contract(ids, forced.step + 1), choose=choose, tick=no_tick
    )
    return reached(kept[0] if kept else None, forced.step)


def _whole(loaded: LoadedModel, forced: Forced, ids: SpecialIds) -> torch.Tensor:
    """One forward over prompts and tokens, without a cache; a finished row ends in PAD with mask 0."""
    rows = [
        list(one) + _filled(tokens, forced.step, ids.pad) for one, tokens in zip(forced.ids, forced.tokens, strict=True)
    ]
    flags = [
        list(one) + [1] * len(tokens) + [0] * (forced.step - len(tokens))
        for one, tokens in zip(forced.mask, forced.tokens, strict=True)
    ]
    mask = torch.tensor(flags, dtype=torch.long, device=loaded.device)
    kept: dict[str, Any] = {"logits_to_keep": 1} if forward_names(loaded.model).keeps else {}
    with torch.inference_mode():
        output = loaded.model(
            input_ids=torch.tensor(rows, dtype=torch.long, device=loaded.device),
            attention_mask=mask,
            position_ids=positions(mask),
            use_cache=False,
            return_dict=True,
            **kept,
        )
    logits: torch.Tensor = output.logits[:, -1].to(device=loaded.device, dtype=torch.float32, copy=True)
    return logits


def given(forced: Forced, step: int, pad: int) -> list[int]:
    """The ID that each row is given in a step; PAD for one that has ended, which nobody reads."""
    return [tokens[step] if step < len(tokens) else pad for tokens in forced.tokens]


def _filled(tokens: Sequence[int], step: int, pad: int) -> list[int]:
    return [*tokens, *[pad] * (step - len(tokens))]


def reached(logits: torch.Tensor | None, step: int) -> torch.Tensor:
    """The step's logits; DecodeError where there are none, because every row ended before."""
    if logits is None:
        raise DecodeError(
            f"step {step}",
            kind="exception",
            expected="a row that goes on to it",
            found="all rows ended before",
            todo="The forced tokens end every row: no run under these conditions has the step.",
        )
    return logits


def no_tick(step: int) -> None:
    """Nobody watches."""
    del step
