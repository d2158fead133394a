"""One unit under a tape (R08 2 and 4): the own loop over fixed rows, the registered sampler, every row's account.

And the same loop with argmax, which is held against transformers' `generate`.
"""

from dataclasses import dataclass
from typing import Any

import torch

from harness.decode.icdf import InverseCdf
from harness.decode.loop import Choose, Live, LoopContract, LoopedRows, Rows, choose_argmax, decode_rows
from harness.decode.tape import TapeChooser
from harness.decode.watch import Tick
from harness.model.load import LoadedModel
from harness.records.profile import SpecialIds
from harness.records.run import StepChecks
from harness.records.taped import TapedBatch
from harness.tapes.tape import Tape


@dataclass(frozen=True, slots=True)
class TapedRows:
    """Generated IDs of each row, up to and including the first EOS; what was checked; how the unit was drawn."""

    rows: tuple[tuple[int, ...], ...]
    checks: StepChecks
    tape: TapedBatch


@dataclass(frozen=True, slots=True)
class TapedCall:
    """Whose rows they are: tape, source, conditions in row order; and what ends a row."""

    tape: Tape
    source_id: str
    conditions: tuple[str, ...]
    contract: LoopContract


class _Counting:
    """A chooser that is watched: columns of the logits, and the row steps whose choice is the argmax."""

    def __init__(self, choose: Choose) -> None:
        self.columns = self.argmax = 0
        self._choose = choose

    def __call__(self, logits: torch.Tensor, step: int, live: Live) -> torch.Tensor:
        chosen = self._choose(logits, step, live)
        same = (logits.argmax(dim=-1).cpu() == chosen.cpu()).tolist()
        self.columns = logits.shape[-1]
        self.argmax += sum(one and is_live for one, is_live in zip(same, live, strict=True))
        return chosen


def loop_contract(ids: SpecialIds, max_new_tokens: int) -> LoopContract:
    """What ends a row, what a finished one is fed, and the budget."""
    return LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=max_new_tokens)


def adopt_taped(sampler: InverseCdf, contract: LoopContract) -> dict[str, Any]:
    """What a run draws with, read back from the sampler's own warpers and from the loop's contract."""
    return {
        "strategy": "tape",
        **sampler.settings(),
        "eos_token_id": contract.eos,
        "pad_token_id": contract.pad,
    }


def adopt_argmax(contract: LoopContract) -> dict[str, Any]:
    """The same of the loop that chooses the argmax."""
    return {"strategy": "argmax", "eos_token_id": contract.eos, "pad_token_id": contract.pad}


def decode_taped(
    loaded: LoadedModel, padded: tuple[Rows, Rows], *, sampler: InverseCdf, call: TapedCall, tick: Tick
) -> TapedRows:
    """Draw all rows of a unit at the tape's u, step by step. DecodeError (`out_of_memory`, `non_finite`)."""
    chooser = TapeChooser(sampler, call.tape, call.source_id, rows=len(call.conditions))
    watched = _Counting(chooser)
    looped = decode_rows(loaded, padded, contract=call.contract, choose=watched, tick=tick)
    batch = TapedBatch(
        label=call.tape.label,
        sha256=call.tape.sha256,
        sampler=sampler.contract,
        columns=watched.columns,
        cache=looped.cache,
        cached=looped.cached,
        rows=chooser.row_tapes(looped, call.conditions),
    )
    return TapedRows(looped.rows, _checks(looped, watched), batch)


def decode_argmax(
    loaded: LoadedModel, padded: tuple[Rows, Rows], *, contract: LoopContract, tick: Tick
) -> tuple[tuple[tuple[int, ...], ...], StepChecks]:
    """The same loop, greedy: rows as `decode_greedy` gives them, and what was checked."""
    watched = _Counting(choose_argmax)
    looped = decode_rows(loaded, padded, contract=contract, choose=watched, tick=tick)
    return looped.rows, _checks(looped, watched)


def _checks(looped: LoopedRows, watched: _Counting) -> StepChecks:
    checks = looped.checks
    return StepChecks(steps=checks.steps, rows_checked=checks.rows_checked, finite=checks.finite, argmax=watched.argmax)
