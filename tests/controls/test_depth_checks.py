"""Each check over a depth run, held against one planted fault at a time, as `test_checks.py` does.

The faults are in `faults_of_depth.py`, `faults_of_depth_sums.py` and `faults_of_depth_apart.py`.
"""

import pytest

from harness.protocols.load import load_protocol

from .damage import DEPTH_CHECKS, Case
from .faults_of_depth import FAULTS as OF_A_RUN
from .faults_of_depth_apart import FAULTS as APART
from .faults_of_depth_sums import FAULTS as SUMS
from .planting import Fault, turns_red
from .planting_completion import frozen

FAULTS = (*OF_A_RUN, *SUMS, *APART)


@pytest.mark.parametrize("gate", sorted(set(DEPTH_CHECKS) - {"registration"}))
def test_the_undamaged_run_has_no_red_row(depth_case: Case, gate: str) -> None:
    """Without a fault the check finds nothing, so that what a control finds is its fault."""
    if gate.startswith("frozen"):
        frozen(lambda case: None)(depth_case)
    assert depth_case.red(gate) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_is_red(depth_case: Case, fault: Fault) -> None:
    """The fault makes exactly the named rows red; each message names source and condition and says what was found."""
    turns_red(depth_case, fault)


def test_every_registered_gate_has_a_fault() -> None:
    """No gate of the nano depth protocol is without a control; registration's are `test_checks.py`'s."""
    registered = {gate.id for gate in load_protocol("nano-depth").protocol.gates}
    assert registered == {fault.gate for fault in FAULTS} | {"registration"} == set(DEPTH_CHECKS)
