"""Each check over a sampling run, held against one planted fault at a time, as `test_checks.py` does.

The faults are in `faults_of_sampling.py`, `faults_of_sampling_books.py` and `faults_of_sampling_apart.py`.
"""

import pytest

from harness.protocols.load import load_protocol
from harness.records.protocol import SamplingProtocol

from .damage_sampling import SAMPLING_CHECKS, SampledCase
from .faults_of_sampling import FAULTS as DRAWN
from .faults_of_sampling_apart import CELLS, EIGHT, FIVE, REGISTERED
from .faults_of_sampling_apart import FAULTS as APART
from .faults_of_sampling_books import FAULTS as BOOKS
from .planting import Fault, in_config, turns_red
from .planting_completion import frozen
from .planting_sampling import in_parameters
from .planting_sampling_books import other_program, own_execution

FAULTS = (*DRAWN, *BOOKS, *APART)


@pytest.mark.parametrize("gate", sorted(set(SAMPLING_CHECKS) - {"registration"}))
def test_the_undamaged_run_has_no_red_row(sampling_case: SampledCase, gate: str) -> None:
    """Without a fault the check finds nothing, so that what a control finds is its fault."""
    if gate.startswith("frozen"):
        frozen(lambda case: None)(sampling_case)
    assert sampling_case.red(gate) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_is_red(sampling_case: SampledCase, fault: Fault) -> None:
    """The fault makes exactly the named rows red; each message names source, replicate and condition, and what was
    found.
    """
    named = {str(at): sampling_case.name(at) for at in range(4)}
    named |= {"code": sampling_case.source(0), "math": sampling_case.source(2)}
    # CELLS: a batch's, not a cell's
    turns_red(sampling_case, fault, named, said=2 if fault.rows == CELLS else None)


@pytest.mark.parametrize("protocol", ["nano-cross-source-sampling", "nano-single-source-sampling"])
def test_every_registered_gate_has_a_fault(protocol: str) -> None:
    """No gate of a sampling protocol is without a control; registration's are `test_checks.py`'s."""
    registered = {gate.id for gate in load_protocol(protocol).protocol.gates}
    assert registered == {fault.gate for fault in FAULTS} | {"registration"} == set(SAMPLING_CHECKS)


@pytest.mark.parametrize("protocol", ["nano-cross-source-sampling", "nano-single-source-sampling"])
def test_every_field_of_a_replay_has_a_fault(protocol: str) -> None:
    """R07 7.1 (3) and 7.3: five fields in the same process and under another placement, eight in a fresh process."""
    registered = load_protocol(protocol).protocol
    assert isinstance(registered, SamplingProtocol)
    assert registered.same_process_replay.fields == registered.placement_equivalence.fields == FIVE
    assert registered.independent_replay.fields == EIGHT
    faults = {fault.name for fault in APART}
    assert {f"{name} ({part})" for part, names in REGISTERED.items() for name in names} <= faults


@pytest.mark.parametrize(
    ("plant", "red"),
    [(in_config(top_k="50"), "decode_contract"), (in_parameters(top_k="50"), "sampling_parameters")],
    ids=["the model's own config", "the call's config"],
)
def test_a_contract_and_a_call_that_disagree(sampling_case: SampledCase, plant: object, red: str) -> None:
    """R07 7.1 (5): the model's own config and the call's are two readings, and each has a gate that tells alone."""
    assert callable(plant)
    plant(sampling_case)
    found = [gate for gate in ("decode_contract", "sampling_parameters") if sampling_case.red(gate)]
    assert found == [red]


def test_two_programs_have_two_executions(sampling_case: SampledCase) -> None:
    """R07 8: a cell with another program and that program's own verdict is as good as the seven that share one."""
    other_program(own_execution)(sampling_case)
    assert sampling_case.red("sandbox_verdicts") == {}
