"""Frozen snapshots through syrupy: one canonical JSON file a unit, under the top-level snapshots/ folder.

A session never writes one: `--snapshot-update` is refused, freezing is `python -m harness snapshots accept RUN`.
"""

from pathlib import Path
from typing import Any

import pytest
from syrupy.data import SnapshotCollections
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from harness.evidence import RunEvidence
from harness.ledgers.executions import read_executions
from harness.places import places
from harness.plugin.collect import GateRow
from harness.plugin.session import gate_session
from harness.protocols.grids import UnitKey
from harness.snapshots.content import snapshot_bytes, tensor_snapshot, unit_snapshot, verdict_snapshot
from harness.snapshots.store import FROZEN_TIER, tensors_name, verdicts_name


class FrozenUnitExtension(SingleFileSnapshotExtension):
    """Names are `<results>/<unit>`; the file is snapshots/<results>/formal/<unit>.json."""

    file_extension = "json"
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **_: Any) -> str:
        """Canonical content, indented, one line a field."""
        return snapshot_bytes(data).decode("ascii")

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: Any = 0) -> str:
        """The given name, as it is."""
        del test_location
        return str(index)

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """The top-level folder."""
        del test_location
        return str(places().snapshots)

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: Any) -> str:
        """`<results>/formal/<unit>`"""
        del test_location
        results, unit = str(index).split("/")
        return str(Path(results) / FROZEN_TIER / unit)

    def discover_snapshots(self, **_: Any) -> SnapshotCollections:
        """None to call unused: a replay has a part, other protocols' are there too, and `read_frozen` lists all."""
        return SnapshotCollections()

    def is_snapshot_location(self, *, location: str) -> bool:
        """Unit files only; the index isn't a snapshot."""
        return location.endswith(".json") and Path(location).name != "index.json"


def frozen_assertion(request: pytest.FixtureRequest, gate_row: GateRow) -> tuple[dict[str, Any], str]:
    """The unit's content in this session's run, and the snapshot's name."""
    evidence, key = _run_and_unit(request, gate_row)
    return unit_snapshot(evidence.batch(gate_row.row), evidence.ledger), f"{evidence.loaded.results}/{key.name}"


def verdicts_assertion(request: pytest.FixtureRequest, gate_row: GateRow) -> tuple[dict[str, Any], str]:
    """The verdicts on the unit's programs in this session's run, and the snapshot's name."""
    evidence, key = _run_and_unit(request, gate_row)
    content = verdict_snapshot(evidence.unit(gate_row.row), evidence.ledger, read_executions(evidence.folder))
    return content, f"{evidence.loaded.results}/{verdicts_name(key)}"


def tensors_assertion(request: pytest.FixtureRequest, gate_row: GateRow) -> tuple[dict[str, Any], str]:
    """The digests of the unit's tensors in this session's run, and the snapshot's name."""
    evidence, key = _run_and_unit(request, gate_row)
    return tensor_snapshot(evidence.trace(gate_row.row)), f"{evidence.loaded.results}/{tensors_name(key)}"


def _run_and_unit(request: pytest.FixtureRequest, gate_row: GateRow) -> tuple[RunEvidence, UnitKey]:
    if gate_row.row.unit is None:
        raise RuntimeError(f"row {gate_row.row} has no unit")
    evidence: RunEvidence = gate_session(request.config).stages(gate_row.protocol).evidence("run")
    return evidence, gate_row.row.unit
