"""Sampling checks over a run's rows (R07 2, 4, 5, 7): what `harness.checks.sampling` says of its units and cells."""

from typing import Literal

from harness.checks import sampling
from harness.checks.generation import gpus_listed
from harness.evidence import Differences, RunEvidence, differs
from harness.protocols.grids import RowKey
from harness.records.protocol import SamplingProtocol
from harness.records.sampling import SampledContract, SampledEvidence

HOST = {"cpu", "disk", "meta"}


def sampling_parameters(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 2: parameters and processors of the batch's own call are the contract's; top-k is off."""
    ids = evidence.loaded.profile.special_ids
    return sampling.effective_parameters(_unit(evidence, row), _contract(evidence), ids)


def seed_identity(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 5: base seed and run seed follow from registered ID, replicate and source."""
    registered = evidence.loaded.protocol.registered_id
    return sampling.seed_identity(_unit(evidence, row), _contract(evidence), registered)


def seeded_state(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 5: every generator, CPU and CUDA, was where the run seed puts it just before the call."""
    held = sampling.seeded_state(_unit(evidence, row), gpus=len(evidence.environment.gpus))
    return (*gpus_listed(evidence, row), *held)


def drawn_generator(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 5: one draw a step, from the execution device's generator and from no other."""
    return sampling.drawn_generator(_unit(evidence, row), device_of(evidence))


def sampled_steps(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 7.1 (2): in every step logits were finite and the emitted ID had a probability after the warpers."""
    return sampling.sampled_steps(_unit(evidence, row))


def draw_shape(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 4 and 10: the rows of a batch in their permanent order, one draw for all of them."""
    conditions = [condition.id for condition in evidence.loaded.protocol.conditions]
    return sampling.draw_shape(_unit(evidence, row), conditions, evidence.loaded.profile.shape.vocabulary_columns)


def replicates_part(evidence: RunEvidence, row: RowKey) -> Differences:
    """R07 7.1 (4): the first two replicates, under other seeds, part in at least one cell."""
    del row
    names = evidence.loaded.protocol.grids[evidence.spec.grid].replicates[:2]
    units = [unit for unit in evidence.run.units if isinstance(unit, SampledEvidence)]
    sides = [[unit for unit in units if unit.replicate == name] for name in names]
    if len(sides) != 2:
        return (differs("replicates", "two or more", len(sides)),)
    return sampling.replicates_part(*sides)


def drawn_as_registered(evidence: RunEvidence, row: RowKey) -> Differences:
    """Everything that is required of one batch by itself, for a run that stands beside another."""
    checks = (sampling_parameters, seed_identity, seeded_state, drawn_generator, sampled_steps, draw_shape)
    return tuple(line for check in checks for line in check(evidence, row))


def device_of(evidence: RunEvidence) -> Literal["cpu", "cuda"]:
    """The device that the model executed on, from where its modules really were."""
    return "cpu" if {*evidence.placement.device_map.values()} <= HOST else "cuda"


def _unit(evidence: RunEvidence, row: RowKey) -> SampledEvidence:
    unit = evidence.batch(row)
    if not isinstance(unit, SampledEvidence):
        raise RuntimeError(f"{evidence.loaded.protocol.id} samples nothing")
    return unit


def _contract(evidence: RunEvidence) -> SampledContract:
    if not isinstance(evidence.loaded.protocol, SamplingProtocol):
        raise RuntimeError(f"{evidence.loaded.protocol.id} samples nothing")
    return evidence.loaded.protocol.decode
