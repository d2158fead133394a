"""Each check over a completion run, held against one planted fault at a time, as `test_checks.py` does.

The faults are in `faults_of_completion.py`.
"""

import msgspec
import pytest

from harness.checks.completion import baseline_prefix
from harness.evidence import RunEvidence, guarded
from harness.protocols.grids import RowKey
from harness.protocols.load import load_protocol
from harness.records.run import Baseline
from harness.records.sandbox import LimitsInForce

from .damage import COMPLETION_CHECKS, Case, read
from .faults_of_completion import FAULTS
from .planting import Fault, turns_red
from .planting_completion import FLAGS, frozen


@pytest.mark.parametrize("gate", sorted(set(COMPLETION_CHECKS) - {"registration"}))
def test_the_undamaged_run_has_no_red_row(completion_case: Case, gate: str) -> None:
    """Without a fault the check finds nothing, so that what a control finds is its fault."""
    if gate.startswith("frozen"):
        frozen(lambda case: None)(completion_case)
    assert completion_case.red(gate) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_is_red(completion_case: Case, fault: Fault) -> None:
    """The fault makes exactly the named rows red; each message names source and condition and says what was found."""
    turns_red(completion_case, fault)


def test_every_registered_gate_has_a_fault() -> None:
    """No gate of the nano completion protocol is without a control; registration's are `test_checks.py`'s."""
    registered = {gate.id for gate in load_protocol("nano-completion").protocol.gates}
    assert registered == {fault.gate for fault in FAULTS} | {"registration"} == set(COMPLETION_CHECKS)


def test_every_flag_has_a_fault() -> None:
    """A flag that the record gains must be planted."""
    assert set(FLAGS) == set(LimitsInForce.__struct_fields__)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generated_ids": (), "length": 0}, "expected tokens of the baseline, found none"),
        ({"condition": "s9_x"}, "expected tokens of the baseline, found none"),
        ({"generated_ids": (7,)}, "generated_ids from step 0 of 1: expected [7]"),
    ],
)
def test_a_registered_baseline_that_compares_nothing(
    completion_case: Case, changes: dict[str, object], words: str
) -> None:
    """A prefix of no token holds for every output, so it holds for none; one token is compared as it is."""
    main = completion_case.main()
    registered = main.registered_baseline
    cells = tuple(
        msgspec.structs.replace(cell, **changes) if cell.condition == "s0_x" else cell for cell in registered.cells
    )
    found = guarded(baseline_prefix, against(main, msgspec.structs.replace(registered, cells=cells)), row_of(main))
    assert found
    assert all(words in line for line in found)


@pytest.mark.parametrize(("budget", "holds"), [(4, True), (5, False), (512, False)])
def test_the_baselines_budget_bounds_the_prefix(completion_case: Case, budget: int, holds: bool) -> None:
    """The first min(baseline budget, baseline length) tokens: a difference at step 4 is past a budget of 4."""
    completion_case.edit("run.json", lambda run: run["units"][0]["cells"][4]["generated_ids"].__setitem__(4, 300))
    main = completion_case.main()
    registered = msgspec.structs.replace(main.registered_baseline, max_new_tokens=budget)
    assert (guarded(baseline_prefix, against(main, registered), row_of(main)) == ()) is holds


def test_the_pool_of_tests_is_read_and_never_written(completion_case: Case) -> None:
    """The run's tasks hold prompt, entry point and the digest of tests, and no other field."""
    tasks = read(completion_case.run / "tasks.json")
    assert {name for task in tasks.values() for name in task} == {"prompt", "entry_point", "tests_sha256"}


def against(main: RunEvidence, baseline: Baseline) -> RunEvidence:
    """The run against another registered baseline."""
    return RunEvidence(main.loaded, main.folder, baseline_source=lambda keys: baseline)


def row_of(main: RunEvidence) -> RowKey:
    """The row of code s0_x."""
    return RowKey(main.keys[0], "s0_x")
