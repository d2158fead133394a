"""One step down the ladder of placements (R05 3): an attempt's files moved aside, the next placement proved.

What the attempt left lies in attempts/ and is no result; the next lower placement must give the last smoke's cells in
a fresh process. A step that was interrupted is never completed: the run refuses to go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock

from harness.checks.attempts import compare, holds
from harness.errors import HarnessError, JournalError, PlacementError, SessionError, StorageError
from harness.evidence import RunEvidence
from harness.journal.attempts import (
    ATTEMPTS,
    FOLDER,
    LEFT,
    OUT_OF_MEMORY,
    attempt_folder,
    attempts_of,
    check_folder,
    out_of_memory_of,
    set_aside,
)
from harness.journal.folder import RunFolder, journals, write_record
from harness.protocols.grids import placement_rule
from harness.protocols.load import LoadedProtocol
from harness.records.attempts import (
    Attempt,
    Attempts,
    ExactRequest,
    NextPlacement,
    NoPlacement,
    NotGenerated,
    OutOfMemory,
    PlacementCheck,
    RoundedRequest,
    WhileDecoding,
)
from harness.records.protocol import LadderProtocol, Placement
from harness.run.child import replace_request, run_apart
from harness.run.progress import Sink
from harness.run.request import Request

LOCK = "ladder"
Checks = tuple[PlacementCheck, ...]
Following = NextPlacement | NoPlacement


@dataclass(frozen=True, slots=True)
class Ground:
    """What a descent stands on. `smoke`: the folder of the smoke run that this run noted. `close`: given the folder of
    a part made apart (its journals landed), writes what a run of this protocol holds besides and its run.json.
    """

    smoke: RunFolder
    close: Callable[[RunFolder], object]


@dataclass(frozen=True, slots=True)
class Descent:
    """One run that may go down its protocol's ladder; `request` as it was asked for at first."""

    loaded: LoadedProtocol
    request: Request
    folder: RunFolder
    ground: Ground
    sink: Sink

    @property
    def due(self) -> Request:
        """The request under the placement that is due."""
        return effective_request(self.loaded, self.request, self.folder)


def effective_request(loaded: LoadedProtocol, request: Request, folder: RunFolder) -> Request:
    """The request under the placement at which the folder's run has arrived; unchanged where memory never ran out.

    JournalError where the run was asked for under a placement that it never was at.
    """
    made = attempts_of(folder)
    if not made:
        return request
    tried, last = [one.placement for one in made], made[-1]
    arrived = last.next.id if isinstance(last.next, NextPlacement) else last.placement
    if request.placement.id not in (*tried, arrived):
        raise JournalError(
            str(folder.file(ATTEMPTS)),
            expected=f"a run asked for under placement {tried[0]}",
            found=request.placement.id,
            todo="Judge this run with its own options, or start a new one.",
        )
    return request if request.placement.id == arrived else under(loaded, request, arrived)


def under(loaded: LoadedProtocol, request: Request, placement_id: str) -> Request:
    """The request under another registered placement, on that placement's device."""
    placement = registered(loaded, placement_id)
    device = loaded.protocol.execution.device if placement.gpu_memory == "none" else "cuda"
    execution = msgspec.structs.replace(request.execution, device=device)
    return replace_request(request, placement=placement, execution=execution)


def registered(loaded: LoadedProtocol, placement_id: str) -> Placement:
    """The protocol's placement of that ID."""
    return next(one for one in loaded.protocol.placements if one.id == placement_id)


def require_going_on(descent: Descent) -> None:
    """Every attempt that was moved aside is recorded, and there is a placement left."""
    made = attempts_of(descent.folder)
    recorded = [attempt_folder(descent.folder, one.number, one.placement).path.name for one in made]
    aside = [path.name for path in set_aside(descent.folder)]
    if recorded != aside:
        raise SessionError(
            str(descent.folder.path / FOLDER),
            expected=f"the recorded attempts {recorded}",
            found=f"{aside}: a step down the ladder was interrupted",
            todo="Nothing of it is reused and its evidence stays: start a new run.",
        )
    if made and isinstance(made[-1].next, NoPlacement):
        raise exhausted(descent.loaded, made)


def step_down(descent: Descent) -> None:
    """Move the attempt aside, prove the next placement, record both. Under the ladder's lock, without a model here.

    PlacementError where no placement is left: what was tried is recorded all the same.
    """
    if not descent.folder.file(OUT_OF_MEMORY).exists():
        return  # another process did it while this one waited
    require_going_on(descent)
    made = attempts_of(descent.folder)
    placement, failure = descent.due.placement.id, out_of_memory_of(descent.folder)
    if failure.placement != placement:
        raise JournalError(
            str(descent.folder.file(OUT_OF_MEMORY)),
            expected=f"a failure of placement {placement}",
            found=failure.placement,
            todo="Start a new run.",
        )
    aside = _move_aside(descent, len(made) + 1, placement)
    _wait_for_models(descent.folder)
    attempt = Attempt(
        number=len(made) + 1,
        placement=placement,
        units_landed=len(list(journals(aside))),
        out_of_memory=failure,
        checks=(),
        next=NoPlacement(reason="the step down was interrupted"),
    )
    _prove_and_record(descent, made, attempt)


def _prove_and_record(descent: Descent, made: tuple[Attempt, ...], attempt: Attempt) -> None:
    """A check that can't be made is no verdict on its placement: the run ends there, and the record says so."""
    checks: list[PlacementCheck] = []
    following: Following = attempt.next
    try:
        following = _prove_next(descent, made, attempt, checks)
    except HarnessError as error:
        following = NoPlacement(reason=f"a check couldn't be made ({type(error).__name__})")
        raise
    finally:
        attempt = msgspec.structs.replace(attempt, checks=tuple(checks), next=following)
        record = Attempts(schema=1, protocol_digest=descent.loaded.digest, attempts=(*made, attempt))
        write_record(descent.folder.file(ATTEMPTS), record)
    if isinstance(following, NoPlacement):
        raise exhausted(descent.loaded, record.attempts)


def _move_aside(descent: Descent, number: int, placement: str) -> RunFolder:
    """Everything that the attempt left, its out-of-memory record last; with every lock that landing a unit needs."""
    request = descent.request
    keys = descent.loaded.units(request.grid, request.domains)
    held: list[FileLock] = []
    target = attempt_folder(descent.folder, number, placement)
    try:
        for name in ("attempt", *(key.name for key in keys)):
            lock = descent.folder.lock(name)
            lock.acquire()
            held.append(lock)
        target.path.mkdir(parents=True)
        for name in LEFT:
            if (path := descent.folder.file(name)).exists():
                path.rename(target.file(name))
    except OSError as error:
        raise _unmoved(target.path, error) from error
    finally:
        for lock in reversed(held):
            lock.release()
    return target


def _unmoved(path: Path, error: OSError) -> StorageError:
    return StorageError(
        str(path),
        expected="a folder for the attempt that ran out of memory",
        found=error.strerror or type(error).__name__,
        todo="Mend the disk and start a new run.",
    )


def _wait_for_models(folder: RunFolder) -> None:
    """Every other process of the folder has released its model: each holds a lock while it has one."""
    for path in sorted((folder.path / "locks").glob("model-*.lock")):
        with FileLock(path):
            pass


def _prove_next(
    descent: Descent, made: tuple[Attempt, ...], attempt: Attempt, checks: list[PlacementCheck]
) -> Following:
    """Try the placements below in order until one passes the placement gate; what was tried is added to `checks`."""
    ladder = _ladder(descent.loaded)
    if attempt.placement not in ladder:
        return NoPlacement(reason=f"{attempt.placement} isn't on the ladder {', '.join(ladder)}")
    lower = ladder[ladder.index(attempt.placement) + 1 :]
    reference = RunEvidence(descent.loaded, _last_smoke(descent, made))
    for placement in lower:
        checks.append(_check(descent, reference, attempt.number, placement))
        if checks[-1].passed:
            return NextPlacement(id=placement)
    if not lower:
        return NoPlacement(reason=f"{attempt.placement} is the last of the ladder")
    return NoPlacement(reason=f"none of {', '.join(lower)} passed the placement gate")


def _check(descent: Descent, reference: RunEvidence, number: int, placement: str) -> PlacementCheck:
    """The smoke grid under the placement, by a fresh process that can't read this run, beside the last smoke's."""
    rule = placement_rule(descent.loaded.protocol)
    part = check_folder(descent.folder, number, placement)
    request = replace_request(
        under(descent.loaded, descent.request, placement),
        grid=rule.grid,
        run_id=f"{descent.request.run_id}/{FOLDER}/{part.path.name}",
    )
    smoke = reference.run_sha256
    descent.sink(f"{descent.request.protocol}: out of memory; placement {placement} over grid {rule.grid}")
    try:
        run_apart(request, part, forbidden=descent.folder.path)
    except JournalError:
        if not part.file(OUT_OF_MEMORY).exists():
            raise
        failed = NotGenerated(out_of_memory=out_of_memory_of(part))
        return PlacementCheck(placement=placement, smoke_run_sha256=smoke, result=failed, passed=False)
    finally:
        descent.sink("")
    descent.ground.close(part)
    result = compare(reference, RunEvidence(descent.loaded, part), rule)
    return PlacementCheck(placement=placement, smoke_run_sha256=smoke, result=result, passed=holds(result))


def _last_smoke(descent: Descent, made: tuple[Attempt, ...]) -> RunFolder:
    """The smoke run that the run stands on, or the check by which it arrived at its placement."""
    if not made or not isinstance(made[-1].next, NextPlacement):
        return descent.ground.smoke
    return check_folder(descent.folder, made[-1].number, made[-1].next.id)


def exhausted(loaded: LoadedProtocol, made: tuple[Attempt, ...]) -> PlacementError:
    """No placement is left: everything that was tried, in one line."""
    tried = [
        word for attempt in made for word in (_told(attempt.out_of_memory, attempt), *map(_tested, attempt.checks))
    ]
    last = made[-1].next
    why = last.reason if isinstance(last, NoPlacement) else "none"
    return PlacementError(
        f"placements of {loaded.protocol.id}",
        expected="one with memory for the whole grid",
        found=f"{'; '.join(tried)}; {why}",
        todo="Nothing of these attempts is a result: free memory and start a new run.",
    )


def _told(failure: OutOfMemory, attempt: Attempt | None = None) -> str:
    stage, asked = failure.stage, failure.requested
    where = stage.source_id if isinstance(stage, WhileDecoding) else "its load"
    size = f" asked for {asked.words}" if isinstance(asked, ExactRequest | RoundedRequest) else ""
    landed = f" after {attempt.units_landed} units" if attempt else ""
    return f"{failure.placement} ran out of memory in {where}{size}{landed}"


def _tested(check: PlacementCheck) -> str:
    result = check.result
    if isinstance(result, NotGenerated):
        return f"check: {_told(result.out_of_memory)}"
    proof = "" if result.two_maps else ", under the map of that smoke"
    return f"check: {check.placement} gave {result.equal}/{result.of} cells of the last smoke{proof}"


def _ladder(loaded: LoadedProtocol) -> tuple[str, ...]:
    protocol = loaded.protocol
    return protocol.placement_ladder if isinstance(protocol, LadderProtocol) else ()
