"""Tensors of a forward as numbers on the CPU. The copy is made in the hook; waiting for it is the worker's.

From a CUDA device the copy runs on the forward's own stream into pinned memory, so the hook waits for nothing and the
forward can't overwrite what is still to be copied. On the CPU the selected rows are a copy of their own.
"""

from collections.abc import Callable
from typing import Any

import torch

from harness.errors import ModelError
from harness.trace.encoding import STORED, Matrix, Numbers

NAMES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32"}

Fetch = Callable[[], torch.Tensor]


def fetch(tensor: torch.Tensor) -> Fetch:
    """Start copying a tensor that nothing else writes to; calling the result waits and gives it on the CPU."""
    if tensor.device.type != "cuda":
        return lambda: tensor
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record()

    def wait() -> torch.Tensor:
        arrived.synchronize()
        return host

    return wait


def as_matrix(tensor: torch.Tensor, where: str) -> Matrix:
    """A CPU tensor [rows, columns] as stored numbers, without a copy; ModelError for a dtype that has no encoding."""
    name = NAMES.get(tensor.dtype)
    if name is None:
        raise ModelError(where, expected=" or ".join(NAMES.values()), found=str(tensor.dtype), todo="Check the dtype.")
    bits = tensor.view(torch.int16) if name == "bfloat16" else tensor
    return Matrix(name, bits.detach().numpy().view(STORED[name]))


def as_numbers(tensor: torch.Tensor | None) -> Numbers | None:
    """A CPU tensor of a gate as float32 or integers; bfloat16 and float16 are upcast, which is exact."""
    if tensor is None:
        return None
    plain: Any = tensor.float() if tensor.is_floating_point() else tensor
    return plain.detach().numpy()  # type: ignore[no-any-return]
