"""Generation returned, as the decoding contract says, without touching a generator."""

import pytest

from harness.checks.attempts import placement_attempts
from harness.checks.completion import baseline_prefix
from harness.checks.generation import decode_contract, greedy_steps, normal_return, output_identity, rng_untouched
from harness.checks.whole import assembled_run, placement_recorded
from harness.plugin.session import Judged


@pytest.mark.gate("normal_return", normal_return)
def test_call_returned(judged: Judged) -> None:
    """R04 6.5: no OOM, NaN or exception. Reaching the budget is a return and no completion."""
    assert not judged.differences, judged.message


@pytest.mark.gate("decode_contract", decode_contract)
def test_effective_generation_config_is_the_contract(judged: Judged) -> None:
    """R04 1 and 4: greedy, do_sample=false, use_cache=true, EOS and PAD, kernels and precision, as read back."""
    assert not judged.differences, judged.message


@pytest.mark.gate("greedy_steps", greedy_steps)
def test_every_step_is_finite_and_greedy(judged: Judged) -> None:
    """R04 4 and 6.5: every emitted ID was the argmax of finite logits; finished rows aside."""
    assert not judged.differences, judged.message


@pytest.mark.gate("output_identity", output_identity)
def test_output_agrees_with_itself(judged: Judged) -> None:
    """R04 5: text is what the IDs decode to; hashes, EOS and length; a row without EOS has exactly the budget."""
    assert not judged.differences, judged.message


@pytest.mark.gate("rng_untouched", rng_untouched)
def test_generators_are_untouched(judged: Judged) -> None:
    """R04 4: Python, NumPy, torch CPU and CUDA states are the registered seed's, before every unit and after it."""
    assert not judged.differences, judged.message


@pytest.mark.gate("placement_recorded", placement_recorded)
def test_placement_is_recorded_and_registered(judged: Judged) -> None:
    """R04 1 and 6.6: device map, bytes by device, offload facts and memory, read back; they agree with each other."""
    assert not judged.differences, judged.message


@pytest.mark.gate("baseline_prefix", baseline_prefix)
def test_output_begins_as_the_baselines_did(judged: Judged) -> None:
    """R05 2: the first min(128, baseline length) generated tokens, exactly."""
    assert not judged.differences, judged.message


@pytest.mark.gate("placement_attempts", placement_attempts)
def test_every_placement_tried_is_recorded(judged: Judged) -> None:
    """R05 3: what ran out of memory, and that the next placement passed the placement gate before the whole grid."""
    assert not judged.differences, judged.message


@pytest.mark.gate("assembled_run", assembled_run)
def test_run_is_what_its_journals_assemble_to(judged: Judged) -> None:
    """R04 5: exactly the grid's units, in order, by its registered name; run, ledger, statistics byte for byte."""
    assert not judged.differences, judged.message
