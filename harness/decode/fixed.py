"""A batch in tensors whose shapes and addresses stay: inputs of the next forward, its cache, and what was emitted.

Columns are a prompt's width plus the budget, all there from the start. A column counts once its mask is 1; the others
get the smallest number of the dtype added to their scores, so that their weight is exactly 0. Everything that a step
changes is changed by operations on the device: no step needs the host.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from harness.decode.loop import LoopContract, positions

Layers = Sequence[tuple[torch.Tensor, torch.Tensor]]  # of each layer: keys and values, [rows, heads, width, size] each


@dataclass(slots=True)
class Inputs:
    """What the next forward reads and `take` changes in place.

    `ids` and `positions` int64 [rows, 1]; `mask` int64 [rows, columns]; `bias` [rows, 1, 1, columns] in the model's
    dtype; `slot` int64 [1], the column of `ids`; `step` int64 [1], that the next logits are of; `live` bool [rows];
    `attended` int64 [rows], columns with mask 1.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    bias: torch.Tensor
    slot: torch.Tensor
    step: torch.Tensor
    live: torch.Tensor
    attended: torch.Tensor

    def saved(self) -> dict[str, torch.Tensor]:
        """Copies of all of it."""
        return {one.name: getattr(self, one.name).clone() for one in fields(self)}

    def restore(self, saved: dict[str, torch.Tensor]) -> None:
        """As it was, at the same addresses."""
        for name, value in saved.items():
            getattr(self, name).copy_(value)


@dataclass(slots=True)
class Emitted:
    """Of each row and step, [rows, budget]: the ID (PAD once finished), finite logits, the choice is the argmax."""

    ids: torch.Tensor
    finite: torch.Tensor
    argmax: torch.Tensor


class FixedBatch:
    """A batch under way on one device."""

    def __init__(self, mask: torch.Tensor, contract: LoopContract, dtype: torch.dtype) -> None:
        rows, width = mask.shape
        budget, device = contract.max_new_tokens, mask.device
        self.contract, self.rows, self.width, self.columns = contract, rows, width, width + budget
        whole = torch.nn.functional.pad(mask, (0, budget))
        self._closed = torch.tensor(torch.finfo(dtype).min, dtype=dtype, device=device)
        self._open = torch.zeros((), dtype=dtype, device=device)
        self._pad = torch.tensor(contract.pad, device=device)
        self.inputs = Inputs(
            ids=torch.zeros(rows, 1, dtype=torch.long, device=device),
            positions=torch.zeros(rows, 1, dtype=torch.long, device=device),
            mask=whole,
            bias=torch.where(whole == 1, self._open, self._closed)[:, None, None, :].contiguous(),
            slot=torch.full((1,), width - 1, dtype=torch.long, device=device),
            step=torch.zeros(1, dtype=torch.long, device=device),
            live=torch.ones(rows, dtype=torch.bool, device=device),
            attended=mask.sum(1),
        )
        flags = torch.zeros(rows, budget, dtype=torch.bool, device=device)
        ids = torch.full((rows, budget), contract.pad, dtype=torch.long, device=device)
        self.emitted = Emitted(ids=ids, finite=flags, argmax=flags.clone())

    def prompt_positions(self) -> torch.Tensor:
        """Int64 [rows, width], as `generate` counts them."""
        return positions(self.inputs.mask[:, : self.width])

    def take(self, logits: torch.Tensor, best: torch.Tensor, chosen: torch.Tensor) -> None:
        """Emit the IDs that were chosen, int64 [rows], and make the inputs of the next forward.

        `logits` float32 [rows, vocabulary], `best` their argmax. A finished row is fed PAD with mask 0 at position 0;
        an EOS has mask 1.
        """
        now, out = self.inputs, self.emitted
        tokens, live = torch.where(now.live, chosen, self._pad), now.live.clone()
        column = now.step.expand(self.rows, 1)
        out.ids.scatter_(1, column, tokens[:, None])
        out.finite.scatter_(1, column, torch.isfinite(logits).all(dim=-1, keepdim=True))
        out.argmax.scatter_(1, column, (best == chosen)[:, None])
        now.slot += 1
        now.step += 1
        slot = now.slot.expand(self.rows, 1)
        now.ids.copy_(tokens[:, None])
        now.positions.copy_((now.attended * live)[:, None])
        now.mask.scatter_(1, slot, live.long()[:, None])
        now.bias[:, 0, 0].scatter_(1, slot, torch.where(live, self._open, self._closed)[:, None])
        now.attended += live
        now.live &= chosen != self.contract.eos


class FixedCache:
    """Keys and values of all layers, [rows, heads, columns, size], written at the batch's slot: what `update` is."""

    is_compileable = False

    def __init__(self, layers: Layers, columns: int, slot: torch.Tensor) -> None:
        self._layers = [tuple(_widened(one, columns) for one in layer) for layer in layers]
        self._slot = slot

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one column of a layer; give back all of its columns."""
        kept_keys, kept_values = self._layers[layer_idx]
        kept_keys.index_copy_(2, self._slot, keys)
        kept_values.index_copy_(2, self._slot, values)
        return kept_keys, kept_values

    def get_seq_length(self, layer_idx: int = 0) -> torch.Tensor:
        """Columns before the one that is written next, int64 [1] on the device."""
        del layer_idx
        return self._slot


def _widened(kept: torch.Tensor, columns: int) -> torch.Tensor:
    whole = kept.new_zeros(*kept.shape[:2], columns, kept.shape[-1])
    whole[:, :, : kept.shape[2]] = kept
    return whole
