"""The baseline that a request is held against: the run that a port names, or the protocol's frozen one."""

from collections.abc import Sequence
from pathlib import Path

from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.run import Baseline
from harness.run.request import Request
from harness.snapshots.baseline import baseline_of_port, frozen_baseline


def named_or_frozen(loaded: LoadedProtocol, request: Request, keys: Sequence[UnitKey], tree: Places) -> Baseline:
    """Its cells of the units; ProtocolError where it is owed, SnapshotError where altered."""
    if request.baseline is not None:
        return baseline_of_port(loaded, keys, RunFolder(Path(request.baseline)), tree)
    return frozen_baseline(loaded, keys, tree)
