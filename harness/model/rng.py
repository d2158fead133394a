"""Every global generator's state: Python, NumPy, torch CPU, torch CUDA. Setting it, and hashing it without a change."""

import random

import numpy as np
import torch

from harness.canon import sha256_hex
from harness.protocols.generators import numpy_seed, numpy_sha256, python_sha256
from harness.records.run import NoDevice, RngStates, StateHash


def seed_generators(seed: int) -> None:
    """Set Python, NumPy, torch CPU and torch CUDA (all devices) to one state, whatever came before. 64 bits."""
    random.seed(seed)
    np.random.seed(numpy_seed(seed))
    torch.manual_seed(seed)  # CUDA's too


def rng_states() -> RngStates:
    """The four states now. On a machine without CUDA the CUDA state is a typed `no_device`."""
    return RngStates(
        python=StateHash(sha256=python_sha256(random.getstate())),
        numpy=StateHash(sha256=numpy_sha256(np.random.get_state(legacy=True))),
        torch_cpu=StateHash(sha256=sha256_hex(torch.get_rng_state().numpy().tobytes())),
        torch_cuda=_cuda_state(),
    )


def _cuda_state() -> StateHash | NoDevice:
    if not torch.cuda.is_available():
        return NoDevice()
    states = [state.cpu().numpy().tobytes() for state in torch.cuda.get_rng_state_all()]
    return StateHash(sha256=sha256_hex(b"".join(states)))
