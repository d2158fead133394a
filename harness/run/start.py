"""The one door to generation: variables that torch reads at load are set, then what loads torch is imported."""

from typing import TYPE_CHECKING

from harness.journal.assemble import verify_units
from harness.journal.folder import RunFolder
from harness.model.process import set_before_torch
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import Execution, Placement
from harness.run.progress import Sink, quiet
from harness.run.request import Request

if TYPE_CHECKING:
    from harness.run.produce import Ready


def require_device(execution: Execution, placement: Placement) -> None:
    """ModelError where the registered device isn't here, before anything else is done. The CPU always is."""
    if execution.device == "cuda":
        set_before_torch(execution, placement)
        from harness.model.load import device_of  # noqa: PLC0415 - loads torch

        device_of(execution)


def generate_run(
    loaded: LoadedProtocol, request: Request, folder: RunFolder, *, sink: Sink = quiet, ready: "Ready | None" = None
) -> None:
    """Land every unit of the request's grid (see `harness.run.produce.produce`). A complete run is only verified."""
    folder.create()
    keys = loaded.units(request.grid, request.domains)
    if all(folder.journal(key).exists() for key in keys):
        verify_units(folder, keys, loaded)
        return
    set_before_torch(request.execution, request.placement)
    from harness.run.produce import alone, produce  # noqa: PLC0415 - loads torch

    produce(loaded, request, folder, sink=sink, ready=ready or alone)
