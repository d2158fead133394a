"""Tasks under tapes are what they say: shared numbers, the registered sampler, finished rows, blocks kept apart."""

import pytest

from harness.checks.taped_run import (
    blocks_apart,
    finished_rows,
    registered_prompts,
    shared_uniforms,
    synthetic_cdf,
    tape_account,
    taped_contract,
    taped_steps,
    tapes_part,
)
from harness.plugin.session import Judged


@pytest.mark.gate("registered_prompts", registered_prompts)
def test_rendered_prompt_is_the_manifests(judged: Judged) -> None:
    """R08 5.1: every prompt of the whole formal grid, rendered anew by the chat renderer, has the manifest's hash."""
    assert not judged.differences, judged.message


@pytest.mark.gate("taped_contract", taped_contract)
def test_unit_is_drawn_as_registered(judged: Judged) -> None:
    """R08 2 and 4.3: tape, sampler, all columns of the logits, one cache that held every position."""
    assert not judged.differences, judged.message


@pytest.mark.gate("tape_account", tape_account)
def test_rows_account_is_its_tapes(judged: Judged) -> None:
    """R08 4.3: first eight values and the hash of all that were consumed, made again from tape, source and step."""
    assert not judged.differences, judged.message


@pytest.mark.gate("shared_uniforms", shared_uniforms)
def test_conditions_read_the_same_numbers(judged: Judged) -> None:
    """R08 4.2 and 5.1: in step t the four conditions of a source read the same z; shared is u, not the token."""
    assert not judged.differences, judged.message


@pytest.mark.gate("finished_rows", finished_rows)
def test_finished_row_is_masked_and_consumes_nothing(judged: Judged) -> None:
    """R08 2: PAD = EOS with mask 0 while other rows go on: the columns that the row's last forward attended to."""
    assert not judged.differences, judged.message


@pytest.mark.gate("taped_steps", taped_steps)
def test_every_step_is_finite_and_drawn_once(judged: Judged) -> None:
    """R08 5.1: no NaN in any step of a live row; one value for each emitted ID, EOS included."""
    assert not judged.differences, judged.message


@pytest.mark.gate("tapes_part", tapes_part)
def test_two_tapes_part_somewhere(judged: Judged) -> None:
    """R08 5.1: at least one trajectory under T1 isn't T0's."""
    assert not judged.differences, judged.message


@pytest.mark.gate("synthetic_cdf", synthetic_cdf)
def test_sampler_draws_what_known_distributions_owe(judged: Judged) -> None:
    """R08 5.1: CDF edges, clamped u, IDs that top-p filtered, by the sampler that drew this run."""
    assert not judged.differences, judged.message


@pytest.mark.gate("blocks_apart", blocks_apart)
def test_blocks_are_the_registered_ones(judged: Judged) -> None:
    """R08 1.2 and 5.2: primary and diagnostic cells, each in its block and counted there alone."""
    assert not judged.differences, judged.message
