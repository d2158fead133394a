"""Decoding with the token's choice passed in (R08 2 and 4): fixed left-padded rows, KV cache, one forward a step.

Inputs are those of transformers' `generate`: the 2D mask grows by a column a step, positions count a row's unmasked
tokens from 0 (padding stands at 0), the last position's logits go to float32. What differs is the registered contract
of a finished row: after its EOS it is fed PAD with mask 0 while the others go on. The EOS is its own token, mask 1.

One kernel for all steps: `generate` swaps `grouped_mm` experts for `batched_mm` while it decodes on an accelerator,
this loop leaves the pinned implementation in place.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.decode.watch import Tick
from harness.errors import DecodeError
from harness.model.load import LoadedModel
from harness.model.memory import is_out_of_memory, out_of_memory
from harness.records.tapes import Finished, LoopChecks, NotFinished

Rows = Sequence[Sequence[int]]
Live = tuple[bool, ...]
# Logits float32 [rows, vocabulary] on the model's device, step from 0, rows not yet finished -> int64 [rows] of IDs.
# What is chosen for a finished row is not used.
Choose = Callable[[torch.Tensor, int, Live], torch.Tensor]


@dataclass(frozen=True, slots=True)
class LoopContract:
    """What ends a row, what a finished row is fed, and how many tokens a row may have."""

    eos: int
    pad: int
    max_new_tokens: int


@dataclass(frozen=True, slots=True)
class LoopedRows:
    """Each row's IDs, up to and including the first EOS; how it ended; its columns with mask 1 in the last forward.

    `cache`: class of the cache that the model gave back; `cached`: positions that it holds after the last forward.
    """

    rows: tuple[tuple[int, ...], ...]
    finish: tuple[Finished | NotFinished, ...]
    attended: tuple[int, ...]
    checks: LoopChecks
    cache: str
    cached: int


def choose_argmax(logits: torch.Tensor, step: int, live: Live) -> torch.Tensor:
    """Greedy: the first ID of the largest logit."""
    del step, live
    return logits.argmax(dim=-1)


def decode_rows(
    loaded: LoadedModel, padded: tuple[Rows, Rows], *, contract: LoopContract, choose: Choose, tick: Tick
) -> LoopedRows:
    """Decode left-padded rows in one batch, never split, until all ended or the budget is reached.

    `padded`: IDs and mask, both int [rows, width], PAD with mask 0 on the left. `tick` is called after each step,
    counted from 1. Raises DecodeError (`out_of_memory`, `non_finite`).
    """
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    if contract.max_new_tokens < 1:
        raise RuntimeError(f"a budget is at least one token, got {contract.max_new_tokens}")
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the libraries' deprecations aren't this run's business
        try:
            batch = _Batch(loaded, padded, contract)
            _run(batch, choose, tick)
            return batch.result()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise out_of_memory("generation", error) from error


def _run(batch: "_Batch", choose: Choose, tick: Tick) -> None:
    for step in range(batch.contract.max_new_tokens):
        logits = batch.forward()
        live = batch.live
        batch.take(choose(logits, step, live), step)
        tick(step + 1)
        if not any(batch.live) or step + 1 == batch.contract.max_new_tokens:
            return
        batch.extend(live)


class _Batch:
    """A batch under way: inputs on the model's device, what was emitted on the host."""

    def __init__(self, loaded: LoadedModel, padded: tuple[Rows, Rows], contract: LoopContract) -> None:
        ids, mask = padded
        self.contract = contract
        self.live: Live = (True,) * len(ids)
        self._model, self._device = loaded.model, loaded.device
        self._names = forward_names(loaded.model)
        self._inputs = torch.tensor(ids, dtype=torch.long, device=loaded.device)
        self._mask = torch.tensor(mask, dtype=torch.long, device=loaded.device)
        self._positions = positions(self._mask)
        self._cache: Any = None
        self._rows: list[list[int]] = [[] for _ in ids]
        self._finish: list[Finished | NotFinished] = [NotFinished() for _ in ids]
        self._finite: list[torch.Tensor] = []  # bool [rows] a step, left where it was computed until the batch is done
        self._fed: list[int] = []

    def forward(self) -> torch.Tensor:
        """Logits of the last position, float32 [rows, vocabulary] on the model's device."""
        arguments = {"input_ids": self._inputs, "attention_mask": self._mask, "position_ids": self._positions}
        kept = {"logits_to_keep": 1} if self._names.keeps else {}
        cache = {} if self._cache is None else {self._names.cache: self._cache}
        output = self._model(**arguments, **kept, **cache, use_cache=True, return_dict=True)
        self._cache = getattr(output, self._names.cache)
        logits: torch.Tensor = output.logits[:, -1].to(device=self._device, dtype=torch.float32, copy=True)
        self._finite.append(torch.isfinite(logits).all(dim=-1))
        return logits

    def take(self, chosen: torch.Tensor, step: int) -> None:
        """Emit the step's IDs for the live rows. The host has to know them: the next mask depends on who ended."""
        tokens: list[int] = chosen.tolist()
        if len(tokens) != len(self.live):
            raise RuntimeError(f"a chooser gives one ID a row, {len(self.live)}, got {len(tokens)}")
        self._fed = [token if live else self.contract.pad for token, live in zip(tokens, self.live, strict=True)]
        ends = [live and token == self.contract.eos for token, live in zip(tokens, self.live, strict=True)]
        for row, (token, live) in enumerate(zip(tokens, self.live, strict=True)):
            if live:
                self._rows[row].append(token)
            if ends[row]:
                self._finish[row] = Finished(step=step)
        self.live = tuple(live and not end for live, end in zip(self.live, ends, strict=True))

    def extend(self, was_live: Live) -> None:
        """The next forward's inputs: the emitted IDs, or PAD with mask 0 for rows finished before this step."""
        self._inputs = torch.tensor(self._fed, dtype=torch.long, device=self._device)[:, None]
        self._mask = torch.cat([self._mask, self._mask.new_tensor(mask_column(was_live))[:, None]], dim=1)
        self._positions = positions(self._mask)[:, -1:]

    def result(self) -> LoopedRows:
        """What the batch gave, after the finite flags were judged."""
        counts = torch.tensor([len(row) for row in self._rows])
        live = torch.arange(len(self._finite)) < counts[:, None]
        require_finite(torch.stack(self._finite, 1).cpu(), live)
        checked = int(live.sum())
        return LoopedRows(
            rows=tuple(tuple(row) for row in self._rows),
            finish=tuple(self._finish),
            attended=tuple(self._mask.sum(dim=1).tolist()),
            checks=LoopChecks(steps=len(self._finite), rows_checked=checked, finite=checked),
            cache=type(self._cache).__name__,
            cached=cached_positions(self._cache),
        )


def mask_column(was_live: Live) -> list[int]:
    """Mask of the column that a step appends: 1 for a row that emitted its own token in it, EOS included."""
    return [int(live) for live in was_live]


def positions(mask: torch.Tensor) -> torch.Tensor:
    """Int64 [rows, width]: each token's place among its row's unmasked ones, from 0; 0 where masked."""
    return (mask.cumsum(-1) - 1).masked_fill(mask == 0, 0)


def cached_positions(cache: Any) -> int:
    """Positions that a cache holds: of a cache object, or of layers of (keys, values), each [.., positions, size]."""
    return int(cache.get_seq_length() if hasattr(cache, "get_seq_length") else cache[0][0].shape[-2])


@dataclass(frozen=True, slots=True)
class ForwardNames:
    """What a model's forward calls its cache, and whether it can compute the last position's logits alone."""

    cache: str
    keeps: bool


def forward_names(model: Any) -> ForwardNames:
    """Read from the class's signature: `past_key_values` until transformers 5, and `cache` in later ones."""
    known = inspect.signature(type(model).forward).parameters
    return ForwardNames("cache" if "cache" in known else "past_key_values", "logits_to_keep" in known)


def require_finite(finite: torch.Tensor, live: torch.Tensor) -> None:
    """Bool [rows, steps] flags hold in every live step; DecodeError (`non_finite`) names the earliest that doesn't."""
    wrong = torch.nonzero(live & ~finite)
    if wrong.numel():
        row, step = (int(value) for value in wrong[wrong[:, 1].argmin()])
        raise DecodeError(
            f"step {step}, row {row}",
            kind="non_finite",
            expected="finite logits",
            found=f"{len(wrong)} steps of rows without them",
            todo="Check kernels, dtype and weights; nothing of this unit is kept.",
        )
