"""Each check over a task run, held against one planted fault at a time, as `test_checks.py` does."""

import pytest

from .damage_tapes import TAPED_CHECKS, TapedCase
from .planting_completion import frozen


@pytest.mark.parametrize("gate", sorted(set(TAPED_CHECKS) - {"registration"}))
def test_the_undamaged_run_has_no_red_row(tasks_case: TapedCase, gate: str) -> None:
    """Without a fault the check finds nothing, so that what a control finds is its fault."""
    if gate.startswith("frozen"):
        frozen(lambda case: None)(tasks_case)
    assert tasks_case.red(gate) == {}
