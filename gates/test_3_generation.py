"""Generation returned, as the decoding contract says, without touching a generator."""

import pytest

from harness.checks.generation import (
    assembled_run,
    decode_contract,
    greedy_steps,
    normal_return,
    output_identity,
    placement_recorded,
    rng_untouched,
)
from harness.plugin.session import Judged


@pytest.mark.gate("normal_return", normal_return)
def test_call_returned(judged: Judged) -> None:
    """R04 6.5: no OOM, NaN or exception. Reaching the budget is a return and no completion."""
    assert not judged.differences, judged.message


@pytest.mark.gate("decode_contract", decode_contract)
def test_effective_generation_config_is_the_contract(judged: Judged) -> None:
    """R04 4: greedy, do_sample=false, use_cache=true, EOS and PAD of the tokenizer, read back from the model."""
    assert not judged.differences, judged.message


@pytest.mark.gate("greedy_steps", greedy_steps)
def test_every_step_is_finite_and_greedy(judged: Judged) -> None:
    """R04 4 and 6.5: every emitted ID was the argmax of finite logits; finished rows aside."""
    assert not judged.differences, judged.message


@pytest.mark.gate("output_identity", output_identity)
def test_output_agrees_with_itself(judged: Judged) -> None:
    """R04 5: IDs, text, hashes, EOS and length; a row without EOS has exactly the budget."""
    assert not judged.differences, judged.message


@pytest.mark.gate("rng_untouched", rng_untouched)
def test_generators_are_untouched(judged: Judged) -> None:
    """R04 4: Python, NumPy, torch CPU and torch CUDA states before and after the unit."""
    assert not judged.differences, judged.message


@pytest.mark.gate("placement_recorded", placement_recorded)
def test_placement_is_recorded_and_registered(judged: Judged) -> None:
    """R04 1 and 6.6: device map, bytes by device and offload facts, read back."""
    assert not judged.differences, judged.message


@pytest.mark.gate("assembled_run", assembled_run)
def test_run_is_what_its_journals_assemble_to(judged: Judged) -> None:
    """R04 5: exactly the grid's units, in order, byte for byte, under the registered name."""
    assert not judged.differences, judged.message
