"""The run against the frozen results of an accepted run, made apart from it."""

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.checks.depth_apart import frozen_tensors
from harness.checks.frozen import frozen_snapshots, frozen_verdicts
from harness.plugin.collect import GateRow
from harness.plugin.session import Judged
from harness.plugin.snapshots import FrozenUnitExtension, frozen_assertion, tensors_assertion, verdicts_assertion


@pytest.mark.gate("frozen_snapshots", frozen_snapshots)
def test_unit_is_the_frozen_one(
    judged: Judged, gate_row: GateRow, request: pytest.FixtureRequest, snapshot: SnapshotAssertion
) -> None:
    """R04 8: every cell's IDs, text, stop state and observations, byte for byte; the diff is the reader's to read."""
    assert not judged.differences, judged.message
    content, name = frozen_assertion(request, gate_row)
    assert content == snapshot(name=name, extension_class=FrozenUnitExtension)


@pytest.mark.gate("frozen_verdicts", frozen_verdicts)
def test_verdicts_are_the_frozen_ones(
    judged: Judged, gate_row: GateRow, request: pytest.FixtureRequest, snapshot: SnapshotAssertion
) -> None:
    """R05 6: outcome of every program of the unit, with the digests of program, task and tests."""
    assert not judged.differences, judged.message
    content, name = verdicts_assertion(request, gate_row)
    assert content == snapshot(name=name, extension_class=FrozenUnitExtension)


@pytest.mark.gate("frozen_tensors", frozen_tensors)
def test_tensor_digests_are_the_frozen_ones(
    judged: Judged, gate_row: GateRow, request: pytest.FixtureRequest, snapshot: SnapshotAssertion
) -> None:
    """R05 depth 10: every digest of the unit, in the environment that the frozen ones belong to."""
    assert not judged.differences, judged.message
    content, name = tensors_assertion(request, gate_row)
    assert content == snapshot(name=name, extension_class=FrozenUnitExtension)
