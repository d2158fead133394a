"""A small model's experts in two products: all of them for every row, weighed 0 where a row didn't choose them.

Where experts are so small that a call costs more than its numbers, one product over all of them is less than a call
each. The sum over experts is the second product's own. An unchosen expert whose output isn't finite makes the row so.
"""

from typing import Any

import torch
from torch.nn import functional


class AllExperts:
    """One MoE layer. `entry` [(experts * 2 + 2 * shared) * inner, hidden]; `out` [hidden, (experts + shared) * inner].

    Gates and ups of an expert stand together, those of the shared experts after all; copies of the module's weights.
    """

    def __init__(self, mlp: Any) -> None:
        experts, both = mlp.experts, mlp.shared_experts
        self._gate = mlp.gate
        self._count, twice, size = experts.gate_up_proj.shape
        self._inner = twice // 2
        gates_ups = experts.gate_up_proj.detach().reshape(-1, size)
        self._entry = torch.cat([gates_ups, both.gate_proj.weight.detach(), both.up_proj.weight.detach()])
        downs = experts.down_proj.detach().transpose(0, 1).reshape(size, -1)
        self._out = torch.cat([downs, both.down_proj.weight.detach()], dim=1)

    def __call__(self, normed: torch.Tensor) -> torch.Tensor:
        """[rows, hidden], the layer's whole MLP."""
        rows = len(normed)
        _, weights, ids = self._gate(normed)
        shares = normed.new_zeros(rows, self._count).scatter_(1, ids, weights.to(normed.dtype))
        made = functional.linear(normed, self._entry)
        routed, shared = made.tensor_split([self._count * 2 * self._inner], dim=1)
        gates, ups = routed.view(rows, self._count, 2, self._inner).unbind(2)
        chosen = functional.silu(gates).mul_(ups).mul_(shares[:, :, None]).view(rows, -1)
        gate, up = shared.chunk(2, dim=1)
        return functional.linear(torch.cat([chosen, functional.silu(gate).mul_(up)], dim=1), self._out)
