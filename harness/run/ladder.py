"""Going down the ladder of placements after an out-of-memory (R05 3): generate, stop, step down, generate again.

Nothing of a stopped attempt is reused. Knows no allocator and no map: placements are the protocol's, failures are
records, a step down is `harness.run.descent`'s.
"""

import traceback

from harness.errors import DecodeError, HarnessError, PlacementError
from harness.journal.attempts import OUT_OF_MEMORY, AttemptOverError
from harness.journal.folder import RunFolder
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import LadderProtocol
from harness.run.descent import LOCK, Descent, Ground, effective_request, require_going_on, step_down
from harness.run.progress import Sink, quiet
from harness.run.request import Request
from harness.run.start import generate_run

__all__ = ["Ground", "effective_request", "generate_down_the_ladder", "has_ladder"]


def has_ladder(loaded: LoadedProtocol, tier: str) -> bool:
    """Whether a run of the tier goes down a ladder: its protocol registers one, and a gate of the tier judges it."""
    judged = any(gate.id == "placement_attempts" and tier in gate.tiers for gate in loaded.protocol.gates)
    return isinstance(loaded.protocol, LadderProtocol) and judged


def generate_down_the_ladder(
    loaded: LoadedProtocol, request: Request, folder: RunFolder, ground: Ground, *, sink: Sink = quiet
) -> None:
    """Land the whole grid under the request's placement or, memory having run out, under the next that proves itself.

    Several processes may call it for one folder. Raises what `generate_run` raises; PlacementError where no placement
    is left, with all that were tried; SessionError where an earlier step down was interrupted.
    """
    if not has_ladder(loaded, request.tier):
        raise RuntimeError(f"{loaded.protocol.id} has no ladder in tier {request.tier}")
    folder.create()
    descent = Descent(loaded, request, folder, ground, sink)
    while not _generated(descent):
        _free_memory()
        with folder.lock(LOCK):
            step_down(descent)


def _generated(descent: Descent) -> bool:
    """Whether the grid landed under the placement that is due; False where memory ran out, here or in another process.

    The error's frames hold the model: they are cleared, so that it is really gone before anything else is loaded.
    """
    with descent.folder.lock(LOCK):
        require_going_on(descent)
        due = descent.due
    try:
        generate_run(descent.loaded, due, descent.folder, sink=descent.sink)
    except HarnessError as error:
        if not _ended_by_memory(descent.folder, error):
            raise
        _clear(error)
        return False
    return True


def _ended_by_memory(folder: RunFolder, error: HarnessError) -> bool:
    if isinstance(error, DecodeError):
        return error.kind == "out_of_memory"
    loading = isinstance(error, PlacementError) and folder.file(OUT_OF_MEMORY).exists()
    return loading or isinstance(error, AttemptOverError)


def _clear(error: BaseException) -> None:
    hidden: BaseException | None = error
    while hidden is not None:
        traceback.clear_frames(hidden.__traceback__)
        hidden = hidden.__cause__ or hidden.__context__


def _free_memory() -> None:
    from harness.model.memory import release  # noqa: PLC0415 - loads torch, which the attempt has loaded already

    release()
