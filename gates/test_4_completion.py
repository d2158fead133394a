"""Whether an output ended, said that it was an answer, could be judged, was right: four accounts, none for another."""

import pytest

from harness.checks.completion import completion_state
from harness.checks.sandbox import sandbox_verdicts
from harness.plugin.session import Judged


@pytest.mark.gate("completion_state", completion_state)
def test_cell_has_one_completion_state(judged: Judged) -> None:
    """R05 2 and 4: one of five classes, as its accounts say; neither EOS nor the budget is a failure to investigate."""
    assert not judged.differences, judged.message


@pytest.mark.gate("sandbox_verdicts", sandbox_verdicts)
def test_program_was_judged_in_its_own_container(judged: Judged) -> None:
    """R05 6: the registered tests, a fresh container under the contract as read back, no infrastructure failure."""
    assert not judged.differences, judged.message
