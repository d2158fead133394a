"""The baseline of a sampling port: a greedy run in an environment of which only the decoding contract is another."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from harness.canon import digest
from harness.checks.completion import baseline_prompts
from harness.evidence import RunEvidence
from harness.protocols.grids import RowKey
from harness.records.run import Environment

from .damage_sampling import SampledCase

replace = msgspec.structs.replace


def as_port(case: SampledCase, change: Callable[[Environment], Environment] = lambda found: found) -> RunEvidence:
    """The run as a port, in a changed environment, its baseline the same greedy run as a port's."""
    evidence = case.main()
    baseline = replace(evidence.registered_baseline, port=True)
    run: Any = evidence.run
    environment = change(evidence.environment)
    evidence.__dict__.update(
        spec=replace(evidence.spec, port=True),
        run=replace(run, baseline=baseline, environment_sha256=digest(environment)),
        registered_baseline=baseline,
        environment=environment,
    )
    return evidence


def red(evidence: RunEvidence) -> list[str]:
    """What is found in the cells of the run."""
    conditions = [one.id for one in evidence.loaded.protocol.conditions]
    rows = [RowKey(unit, condition) for unit in evidence.keys for condition in conditions]
    return [line for row in rows for line in baseline_prompts(evidence, row)]


def test_a_port_stands_on_a_greedy_run_of_its_environment(sampling_case: SampledCase) -> None:
    """R07 3: same weights, software and machine; that one run decodes greedily and the other samples is registered."""
    evidence = as_port(sampling_case)
    assert evidence.registered_baseline.environment_sha256 != evidence.run.environment_sha256
    assert red(evidence) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda found: replace(found, packages=found.packages | {"torch": "0"}),
        lambda found: replace(found, checkpoint=dict.fromkeys(found.checkpoint, "0" * 64)),
        lambda found: replace(found, threads=found.threads + 1),
        lambda found: replace(found, generation_config=found.generation_config | {"min_length": "3"}),
    ],
    ids=["other software", "other weights", "other threads", "a setting that no contract has"],
)
def test_another_environment_is_found(sampling_case: SampledCase, change: Callable[[Environment], Environment]) -> None:
    """Everything else in the environment must be the baseline's, in every cell."""
    found = red(as_port(sampling_case, change))
    assert len(found) == 16
    assert all("baseline environment: expected" in line for line in found)
