"""Generators after a seed: what torch and NumPy hold is what is computed without them, for any seed of 64 bits."""

import random

import numpy as np
import pytest
import torch

from harness.canon import sha256_hex
from harness.model.rng import rng_states, seed_generators
from harness.protocols.generators import numpy_seed, seeded_states, torch_cpu_state, torch_cuda_state
from harness.records.run import NoDevice, StateHash

SEEDS = (0, 1, 2**32 - 1, 2**32, 2_101_325_316, 0x1269BB104D26AE9C, 2**63 - 2, 2**63, 2**64 - 1)


@pytest.fixture
def no_device(monkeypatch):
    """A machine without CUDA, whatever this one has."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.parametrize("seed", SEEDS, ids=hex)
def test_a_seed_gives_the_states_that_are_computed_without_torch(seed, no_device):
    """All four, after a process that had drawn from each."""
    random.random(), np.random.standard_normal(), torch.randn(3)
    seed_generators(seed)
    assert rng_states() == seeded_states(seed, gpus=0)


@pytest.mark.parametrize("seed", SEEDS, ids=hex)
def test_torchs_state_is_computed_byte_for_byte(seed):
    """5,056 bytes: not only their hash."""
    torch.manual_seed(seed)
    assert torch.get_rng_state().numpy().tobytes() == torch_cpu_state(seed)


def test_no_two_seeds_share_a_state():
    """Each generator's hash is another one for each seed."""
    states = [seeded_states(seed, gpus=1) for seed in SEEDS]
    for name in states[0].__struct_fields__:
        assert len({getattr(one, name).sha256 for one in states}) == len(SEEDS)


def test_torchs_cpu_generator_draws_by_the_low_32_bits_alone():
    """Two seeds that share them differ in the state's own copy of the seed, and in no draw."""
    torch.manual_seed(7)
    drawn = torch.rand(5)
    torch.manual_seed(2**40 + 7)
    assert torch.equal(torch.rand(5), drawn)
    assert torch_cpu_state(7) != torch_cpu_state(2**40 + 7)


def test_a_short_seed_of_numpy_is_what_it_was():
    """Seeds of 32 bits go to NumPy as they are; a longer one is two words, low first."""
    assert numpy_seed(2**32 - 1) == 2**32 - 1
    assert numpy_seed(0x1269BB104D26AE9C) == [0x4D26AE9C, 0x1269BB10]
    seed_generators(5)
    drawn = np.random.random()
    np.random.seed(5)
    assert np.random.random() == drawn


def test_a_cuda_state_is_seed_and_offset():
    """16 bytes a device (as torch 2.11 has them on an H200), the same for each; without a device there is none."""
    assert torch_cuda_state(2**40 + 7).hex() == "0700000000010000" + "00" * 8
    two = sha256_hex(torch_cuda_state(9) * 2)
    assert seeded_states(9, gpus=2).torch_cuda == StateHash(sha256=two)
    assert seeded_states(9, gpus=0).torch_cuda == NoDevice()
