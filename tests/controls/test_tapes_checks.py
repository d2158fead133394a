"""Each check over a task run, held against one planted fault at a time, as `test_checks.py` does.

The faults are in `faults_of_tapes.py`, `faults_of_tapes_books.py` and `faults_of_tapes_apart.py`.
"""

import pytest

from harness.protocols.load import load_protocol
from harness.records.protocol import TaskCrnProtocol

from .damage_tapes import TAPED_CHECKS, TapedCase
from .faults_of_tapes import FAULTS as DRAWN
from .faults_of_tapes_apart import FAULTS as APART
from .faults_of_tapes_apart import REGISTERED
from .faults_of_tapes_books import FAULTS as BOOKS
from .planting import Fault, turns_red
from .planting_completion import frozen

FAULTS = (*DRAWN, *BOOKS, *APART)


@pytest.mark.parametrize("gate", sorted(set(TAPED_CHECKS) - {"registration"}))
def test_the_undamaged_run_has_no_red_row(tasks_case: TapedCase, gate: str) -> None:
    """Without a fault the check finds nothing, so that what a control finds is its fault."""
    if gate.startswith("frozen"):
        frozen(lambda case: None)(tasks_case)
    assert tasks_case.red(gate) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_is_red(tasks_case: TapedCase, fault: Fault) -> None:
    """The fault makes exactly the named rows red; each message names source, tape and condition, and what was found."""
    named = {str(at): tasks_case.name(at) for at in range(6)}
    named |= {"code": tasks_case.source(0), "math": tasks_case.source(3)}
    of_a_unit = all(row.endswith(":*") for row in fault.rows)  # what is said of a unit names no condition
    turns_red(tasks_case, fault, named, said=2 if of_a_unit else None)


@pytest.mark.parametrize("protocol", ["nano-task-crn", "deepseek-task-crn"])
def test_every_registered_gate_has_a_fault(protocol: str) -> None:
    """No gate of a task protocol is without a control; registration's are `test_checks.py`'s."""
    loaded = load_protocol(protocol).protocol
    assert isinstance(loaded, TaskCrnProtocol)
    registered = {gate.id for gate in loaded.gates}
    required = {"loop_equivalence"} if loaded.loop_equivalence == "required" else set()
    covered = {fault.gate for fault in FAULTS} | {"registration"}
    assert covered == set(TAPED_CHECKS)
    assert registered == covered - ({"loop_equivalence"} - required)


@pytest.mark.parametrize("protocol", ["nano-task-crn", "deepseek-task-crn"])
def test_every_field_of_a_replay_has_a_fault(protocol: str) -> None:
    """R08 5.1 and 5.3: seven fields in the same process and under another placement, eleven in a fresh process."""
    registered = load_protocol(protocol).protocol
    assert isinstance(registered, TaskCrnProtocol)
    assert registered.same_process_replay.fields == REGISTERED["same_process"]
    assert registered.placement_equivalence.fields == REGISTERED["placement"]
    assert registered.independent_replay.fields == REGISTERED["replay"]
    faults = {fault.name for fault in APART}
    assert {f"{name} ({part})" for part, names in REGISTERED.items() for name in names} <= faults
