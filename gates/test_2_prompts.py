"""The prompts that the model was given are the registered ones and differ only as registered."""

import pytest

from harness.checks.completion import baseline_prompts
from harness.checks.prompts import batch_alignment, prompt_hashes, single_id_contract
from harness.plugin.session import Judged


@pytest.mark.gate("prompt_hashes", prompt_hashes)
def test_prompt_hash_is_the_manifests(judged: Judged) -> None:
    """R04 5: SHA-256 over the canonical list of the cell's prompt IDs."""
    assert not judged.differences, judged.message


@pytest.mark.gate("baseline_prompts", baseline_prompts)
def test_prompt_hash_is_the_baselines(judged: Judged) -> None:
    """R05 2: the same prompt as in the baseline, which is the registered one and another run."""
    assert not judged.differences, judged.message


@pytest.mark.gate("single_id_contract", single_id_contract)
def test_cell_differs_from_official_by_its_registered_edit(judged: Judged) -> None:
    """R04 2 and 6.4: official cells by none, the others by exactly one ID, at the historical boundary."""
    assert not judged.differences, judged.message


@pytest.mark.gate("batch_alignment", batch_alignment)
def test_batch_is_aligned(judged: Judged) -> None:
    """R04 2 and 6.3: equal length within a system level, one last column, left padding, BOS where it belongs."""
    assert not judged.differences, judged.message
