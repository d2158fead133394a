"""The one door to generation: variables that torch reads at load are set, then what loads torch is imported."""

from typing import TYPE_CHECKING

from harness.journal.folder import RunFolder
from harness.model.process import set_before_torch
from harness.protocols.load import LoadedProtocol
from harness.run.progress import Sink, quiet
from harness.run.request import Request

if TYPE_CHECKING:
    from harness.run.produce import Ready


def generate_run(
    loaded: LoadedProtocol, request: Request, folder: RunFolder, *, sink: Sink = quiet, ready: "Ready | None" = None
) -> None:
    """Land every unit of the request's grid (see `harness.run.produce.produce`)."""
    set_before_torch(request.execution, request.placement)
    from harness.run.produce import alone, produce  # noqa: PLC0415 - loads torch

    produce(loaded, request, folder, sink=sink, ready=ready or alone)
