"""The states that generators have right after a seed, made without torch, and how a state is hashed.

So that a record's state before a batch can be held against its seed where no model can be imported. The layouts are
those of torch's serialised generators: CPU 5,056 bytes, CUDA 16 bytes a device; all numbers little-endian.
"""

import random
import struct
from functools import lru_cache
from typing import Any

import numpy as np

from harness.canon import sha256_hex
from harness.records.run import NoDevice, RngStates, StateHash

STATES = RngStates.__struct_fields__
WORD = 2**32
CPU_STATE_BYTES = 5056


@lru_cache(maxsize=1024)
def seeded_states(seed: int, *, gpus: int) -> RngStates:
    """The four states after `seed_generators(seed)` on a machine with so many CUDA devices."""
    return RngStates(
        python=StateHash(sha256=python_sha256(random.Random(seed).getstate())),  # noqa: S311 - a state to compare with
        numpy=StateHash(sha256=numpy_sha256(np.random.RandomState(numpy_seed(seed)).get_state(legacy=True))),
        torch_cpu=StateHash(sha256=sha256_hex(torch_cpu_state(seed))),
        torch_cuda=StateHash(sha256=sha256_hex(torch_cuda_state(seed) * gpus)) if gpus else NoDevice(),
    )


def numpy_seed(seed: int) -> int | list[int]:
    """What NumPy's global generator is seeded with: it takes 32 bits, so a longer seed is its two words, low first."""
    return seed if seed < WORD else [seed % WORD, seed // WORD]


def python_sha256(state: tuple[Any, ...]) -> str:
    """SHA-256 of a state of `random`, in its own notation."""
    return sha256_hex(repr(state).encode())


def numpy_sha256(state: Any) -> str:
    """SHA-256 of a legacy state of NumPy's generator: name, position, the number kept back, 624 words."""
    name, keys, position, has_gauss, gauss = state
    words = np.ascontiguousarray(keys, dtype="<u4").tobytes()
    return sha256_hex(f"{name}|{position}|{has_gauss}|{gauss!r}|".encode() + words)


def torch_cpu_state(seed: int) -> bytes:
    """Torch's CPU generator after `manual_seed`: seed, left 1, seeded 1, next 0, 624 words in 8 bytes each, zeros.

    The words follow from the low 32 bits of the seed alone: two run seeds that share them give the same draws.
    """
    _, words, *_ = np.random.RandomState(seed % WORD).get_state(legacy=True)
    head = struct.pack("<QiiQ", seed, 1, 1, 0) + np.ascontiguousarray(words, dtype="<u8").tobytes()
    return head.ljust(CPU_STATE_BYTES, b"\0")


def torch_cuda_state(seed: int) -> bytes:
    """Torch's generator of one CUDA device after `manual_seed`: seed and offset 0. All 64 bits of the seed count."""
    return struct.pack("<QQ", seed, 0)
