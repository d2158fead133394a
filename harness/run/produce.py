"""Producing a run: every unit of a grid is claimed, generated and landed, by one process or by several.

A finished unit stays valid whatever happens to the rest. Where the protocol doesn't resume, a unit whose worker died
ends the run, and memory that ran out ends the attempt for every process of the folder: oom.json says so (R05 3).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from filelock import Timeout

from harness.decode.synthetic import synthetic_draws
from harness.errors import DecodeError, HarnessError, SessionError, StorageError
from harness.gold import registered_gold
from harness.journal.assemble import verify_units
from harness.journal.attempts import attempt_number, require_on
from harness.journal.folder import SYNTHETIC, RunFolder, write_journal, write_once, write_record
from harness.model.load import LoadOutOfMemoryError
from harness.model.memory import is_out_of_memory, out_of_memory
from harness.places import places
from harness.prompts.registered import SourceBatch
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.kinds import AnyUnit
from harness.records.protocol import GenerationProtocol
from harness.records.run import Failure, ProcessIdentity, UnitObservation
from harness.run.again import SAME_PROCESS, again_engine, key_again, same_process_rule
from harness.run.engine import Engine, open_engine
from harness.run.memory import note_in_unit, note_while_loading
from harness.run.prepare import prepare
from harness.run.progress import Progress, Sink, quiet
from harness.run.request import Request, spec_of
from harness.run.working_tree import working_tree

Ready = Callable[[str], None]


def alone(load_id: str) -> None:
    """There is nobody to wait for."""
    del load_id


@dataclass(slots=True)
class Work:
    """What the units of one process share."""

    loaded: LoadedProtocol
    folder: RunFolder
    tokenizer: PromptTokenizer
    batches: dict[str, SourceBatch]
    engine: Engine
    progress: Progress
    attempt: int
    again: Engine | None
    tree: dict[str, str] = field(default_factory=lambda: working_tree(places().root))


def produce(
    loaded: LoadedProtocol, request: Request, folder: RunFolder, *, sink: Sink = quiet, ready: Ready = alone
) -> None:
    """Land every unit of the request's grid in the folder. `ready` is called once this process could start.

    Raises the HarnessError that stopped it; what generation did wrong is kept under failures/.
    """
    with at_work(loaded, request, folder, sink=sink) as work:
        ready(work.engine.model.process.model_load_id)
        _land_all(work, loaded.units(request.grid, request.domains))
        work.progress.close()


@contextmanager
def at_work(loaded: LoadedProtocol, request: Request, folder: RunFolder, *, sink: Sink = quiet) -> Iterator[Work]:
    """A loaded model and what the folder's run is, written or agreed with; released at the end."""
    number = attempt_number(folder, request.placement.id)
    keys = loaded.units(request.grid, request.domains)
    tokenizer, batches = prepare(loaded, request)
    with folder.lock(f"model-{os.getpid()}"):  # whoever needs the memory can wait until no process has a model
        engine = _open(loaded, request, folder, number)
        try:
            generates = isinstance(loaded.protocol, GenerationProtocol)
            gold = registered_gold(loaded, [Path(one) for one in request.inputs], keys) if generates else None
            grid = loaded.protocol.grids[request.grid]
            progress = Progress(
                sink,
                f"{request.protocol} {request.grid}",
                len(keys),
                len(loaded.protocol.conditions),
                grid.max_new_tokens,
            )
            work = Work(loaded, folder, tokenizer, batches, engine, progress, number, None)
            _begin(work, keys, gold)
            yield work
        finally:
            engine.close()


def _open(loaded: LoadedProtocol, request: Request, folder: RunFolder, number: int) -> Engine:
    try:
        return open_engine(loaded, request)
    except LoadOutOfMemoryError as error:
        note_while_loading(folder, loaded, request.placement.id, number, error)
        raise


def _begin(work: Work, keys: tuple[UnitKey, ...], gold: dict[str, str] | None) -> None:
    """Write what the run is, or agree with what it is; and verify the units that are there.

    Under the lock that moving an attempt aside needs, so that nothing of an attempt that is over gets into the next.
    """
    folder, engine = work.folder, work.engine
    with folder.lock("attempt"):
        require_on(folder, work.attempt, engine.request.placement.id)
        spec = spec_of(engine.request, engine.loaded, engine.deviations)
        write_once(folder.file("spec.json"), spec, what="run request")
        write_once(folder.file("environment.json"), engine.environment, what="environment")
        write_once(folder.file("placement.json"), engine.placement, what="placement")
        if gold is not None:
            write_once(folder.file("gold.json"), gold, what="gold numbers")
        if engine.sampler is not None:
            write_once(folder.file(SYNTHETIC), synthetic_draws(engine.sampler), what="synthetic draws")
        if (rule := same_process_rule(work.loaded, engine.request)) is not None:
            work.again = again_engine(engine, folder, rule)
            write_once(folder.part(SAME_PROCESS).file("gold.json"), gold, what="gold numbers")
        begun = tuple(key for key in keys if folder.journal(key).exists())
        if begun:
            verify_units(folder, begun, work.loaded)


def _land_all(work: Work, keys: tuple[UnitKey, ...]) -> None:
    waiting = []
    for key in keys:
        lock = work.folder.lock(key.name)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting.append(key)
            continue
        try:
            land(work, key)
        finally:
            lock.release()
    for key in waiting:
        _land_after_another(work, key)


def _land_after_another(work: Work, key: UnitKey) -> None:
    with work.folder.lock(key.name):  # waits until the other worker has landed the unit, or has died
        require_on(work.folder, work.attempt, work.engine.request.placement.id)
        if not work.folder.journal(key).exists() and not work.loaded.protocol.resume:
            raise SessionError(
                f"unit {key.name}",
                expected="its journal from the worker that claimed it",
                found="none: the worker died",
                todo="This protocol doesn't resume: start the whole run again.",
            )
        land(work, key)


def land(work: Work, key: UnitKey) -> None:
    """Make the unit and land it, unless it is there. Called under the unit's lock where others share the folder."""
    require_on(work.folder, work.attempt, work.engine.request.placement.id)
    if work.folder.journal(key).exists():
        work.progress.end_unit()
        return
    work.progress.start_unit(key.source_id)
    evidence, observation = _make(work, work.engine, key)
    _land_again(work, key)  # first, so that a unit that has landed has its replay, whoever looks
    _note_memory(work)  # and what its process held, however that ends
    write_journal(work.folder, key, evidence, observation)
    work.progress.end_unit()


def _land_again(work: Work, key: UnitKey) -> None:
    """The same unit drawn again by this process, where the protocol asks for it; the unit's lock covers both."""
    rule = same_process_rule(work.loaded, work.engine.request)
    if work.again is None or rule is None:
        return
    again = key_again(work.loaded, work.engine.request, rule, key)
    if again is not None:
        write_journal(work.folder.part(SAME_PROCESS), again, *_make(work, work.again, again))


def _make(work: Work, engine: Engine, key: UnitKey) -> tuple[AnyUnit, UnitObservation]:
    """One unit; what generation did wrong is kept under failures/ before it is raised."""
    try:
        return engine.make_unit(key, work.batches[key.source_id], work.tokenizer, work.progress)
    except StorageError:
        raise
    except DecodeError as error:
        _fail(work, key, error)
        raise
    except HarnessError as error:
        _record_failure(work, key, "exception", str(error))
        raise
    except Exception as error:  # whatever a library raises is this unit's failure, recorded under its name
        raise _failed(work, key, error) from error


def _failed(work: Work, key: UnitKey, error: Exception) -> DecodeError:
    """What a library raised, as the unit's failure. Memory can also run out around the generation call."""
    if is_out_of_memory(error):
        refused = out_of_memory("generation", error)
        _fail(work, key, refused)
        return refused
    _record_failure(work, key, "exception", f"{type(error).__name__}: {error}")
    return DecodeError(
        f"unit {key.name}",
        kind="exception",
        expected="a generation call that returns",
        found=f"{type(error).__name__}: {error}",
        todo="See failures/ in the run folder.",
    )


def _fail(work: Work, key: UnitKey, error: DecodeError) -> None:
    _record_failure(work, key, error.kind, str(error))
    if error.kind == "out_of_memory":
        note_in_unit(work.folder, work.engine, key, error)


def _record_failure(work: Work, key: UnitKey, kind: str, message: str) -> None:
    failure = msgspec.convert(
        {
            "schema": 1,
            "protocol_digest": work.loaded.digest,
            "source_id": key.source_id,
            "replicate": key.replicate,
            "kind": kind,
            "message": message.encode("ascii", "backslashreplace").decode("ascii"),
            "process": msgspec.to_builtins(work.engine.model.process),
        },
        Failure,
    )
    write_record(work.folder.failure(key), failure)


def _note_memory(work: Work) -> None:
    """workers/<pid>-<load>.json: peaks so far, load time and working tree of this process. An observation."""
    engine = work.engine
    process: ProcessIdentity = engine.model.process
    note = {
        "process": process,
        "memory_bytes": engine.memory(),
        "model_load_ns": engine.model.load_ns,
        "working_tree": work.tree,
    }
    write_record(work.folder.path / "workers" / f"{process.pid}-{process.model_load_id}.json", _observable(note))


def _observable(note: dict[str, object]) -> dict[str, object]:
    return {name: msgspec.to_builtins(value) for name, value in note.items()}
