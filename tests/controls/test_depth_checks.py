"""Each check over a depth run, held against one planted fault at a time, as `test_checks.py` does.

The faults are in `faults_of_depth.py`, `faults_of_depth_sums.py` and `faults_of_depth_apart.py`.
"""

import pytest

from harness.errors import HarnessError
from harness.protocols.load import load_protocol

from .damage import DEPTH_CHECKS, Case
from .faults_of_depth import FAULTS as OF_A_RUN
from .faults_of_depth_apart import FAULTS as APART
from .faults_of_depth_sums import FAULTS as SUMS
from .planting import Fault, covers, parts, spelled
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
    named = {str(at): depth_case.source(at) for at in (0, 1)}
    fault.plant(depth_case)
    try:
        red = depth_case.red(fault.gate)
    except HarnessError as error:
        red = {"whole": str(error)}
    rows = [spelled(row, named) for row in fault.rows]
    assert red, "the gate passes"
    assert all(any(covers(row, name) for row in rows) for name in red), red
    assert all(any(covers(row, name) for name in red) for row in rows), red
    words = [spelled(word, named) for word in fault.words]
    assert all(word in message for word in words for message in red.values()), red
    assert all(part in message for name, message in red.items() for part in parts(name)), red


def test_every_registered_gate_has_a_fault() -> None:
    """No gate of the nano depth protocol is without a control; registration's are `test_checks.py`'s."""
    registered = {gate.id for gate in load_protocol("nano-depth").protocol.gates}
    assert registered == {fault.gate for fault in FAULTS} | {"registration"} == set(DEPTH_CHECKS)
