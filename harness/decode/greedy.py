"""Greedy decoding through transformers `generate` (R04 4), watched in every step.

The watcher never waits for the device within the loop: it keeps each step's finite flags and argmax IDs where they
were computed and judges them when the batch has returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.decode.contract import NO_SETTING, READ_BACK, adopt_config, contract_config
from harness.decode.watch import (
    StepWatch,
    Tick,
    finished_steps,
    generate_rows,
    require_steps,
    require_watched,
)
from harness.decode.watch import trim as _trim
from harness.model.load import LoadedModel
from harness.model.memory import is_out_of_memory
from harness.records.decoding import DecodeContract
from harness.records.profile import SpecialIds
from harness.records.run import StepChecks

__all__ = [
    "NO_SETTING",
    "READ_BACK",
    "DecodedRows",
    "StepWatch",
    "Tick",
    "adopt_contract",
    "contract_config",
    "decode_greedy",
    "is_out_of_memory",
    "judge_steps",
]


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Generated IDs of each row, up to and including the first EOS, padding dropped; and what was checked."""

    rows: tuple[tuple[int, ...], ...]
    checks: StepChecks


def adopt_contract(
    loaded: LoadedModel, contract: DecodeContract, ids: SpecialIds, max_new_tokens: int
) -> dict[str, Any]:
    """Make the contract the model's own generation config, so that no merge can bring another back; read it back."""
    return adopt_config(loaded, contract_config(contract, ids, max_new_tokens))


def decode_greedy(
    loaded: LoadedModel, ids: Sequence[Sequence[int]], mask: Sequence[Sequence[int]], *, eos: int, tick: Tick
) -> DecodedRows:
    """Decode left-padded rows (equal length, int) in one batch, never split, order kept.

    `adopt_contract` must have been called: the budget is the adopted config's. Raises DecodeError (`out_of_memory`,
    `non_finite`, `not_argmax`).
    """
    watch = StepWatch(tick)
    generated = generate_rows(loaded, ids, mask, watch)
    checks = judge_steps(generated, torch.stack(watch.argmax, 1).cpu(), torch.stack(watch.finite, 1).cpu(), eos=eos)
    return DecodedRows(tuple(_trim(row, eos) for row in generated.tolist()), checks)


def judge_steps(generated: torch.Tensor, argmax: torch.Tensor, finite: torch.Tensor, *, eos: int) -> StepChecks:
    """Check int64 [rows, steps] against the watched argmax and bool [rows, steps] finite flags; finished rows aside."""
    require_watched(generated, argmax, kind="not_argmax")
    finished = finished_steps(generated, eos)
    require_steps(finite | finished, kind="non_finite", expected="finite logits")
    require_steps((generated == argmax) | finished, kind="not_argmax", expected="the argmax of the step's logits")
    live_count = int((~finished).sum())
    return StepChecks(steps=generated.shape[1], rows_checked=live_count, finite=live_count, argmax=live_count)
