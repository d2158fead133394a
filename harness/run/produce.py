"""Producing a run: every unit of a grid is claimed, generated and landed, by one process or by several.

A finished unit stays valid whatever happens to the rest. Where the protocol doesn't resume, a unit whose worker died
ends the run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import Timeout

from harness.errors import DecodeError, HarnessError, SessionError, StorageError
from harness.gold import registered_gold
from harness.journal.assemble import verify_units
from harness.journal.folder import RunFolder, write_journal, write_once, write_record
from harness.places import places
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.run import Failure, ProcessIdentity
from harness.run.engine import Engine, open_engine
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
    batches: dict[str, PromptBatch]
    engine: Engine
    progress: Progress


def produce(
    loaded: LoadedProtocol, request: Request, folder: RunFolder, *, sink: Sink = quiet, ready: Ready = alone
) -> None:
    """Land every unit of the request's grid in the folder. `ready` is called once this process could start.

    Raises the HarnessError that stopped it; what generation did wrong is kept under failures/.
    """
    keys = loaded.units(request.grid, request.domains)
    tokenizer, batches = prepare(loaded, request)
    engine = open_engine(loaded, request)
    try:
        gold = registered_gold(loaded, [Path(one) for one in request.inputs], keys)
        _register(folder, engine, gold)
        ready(engine.model.process.model_load_id)
        grid = loaded.protocol.grids[request.grid]
        progress = Progress(
            sink, f"{request.protocol} {request.grid}", len(keys), len(loaded.protocol.conditions), grid.max_new_tokens
        )
        _land_all(Work(loaded, folder, tokenizer, batches, engine, progress), keys)
        progress.close()
        _note_memory(folder, engine)
    finally:
        engine.close()


def _register(folder: RunFolder, engine: Engine, gold: dict[str, str]) -> None:
    spec = spec_of(engine.request, engine.loaded, engine.deviations)
    write_once(folder.file("spec.json"), spec, what="run request")
    write_once(folder.file("environment.json"), engine.environment, what="environment")
    write_once(folder.file("placement.json"), engine.placement, what="placement")
    write_once(folder.file("gold.json"), gold, what="gold numbers")


def _land_all(work: Work, keys: tuple[UnitKey, ...]) -> None:
    begun = [key for key in keys if work.folder.journal(key).exists()]
    if begun:
        verify_units(work.folder, tuple(begun), work.loaded)
    waiting = []
    for key in keys:
        lock = work.folder.lock(key.name)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting.append(key)
            continue
        try:
            _land(work, key)
        finally:
            lock.release()
    for key in waiting:
        _land_after_another(work, key)


def _land_after_another(work: Work, key: UnitKey) -> None:
    with work.folder.lock(key.name):  # waits until the other worker has landed the unit, or has died
        if not work.folder.journal(key).exists() and not work.loaded.protocol.resume:
            raise SessionError(
                f"unit {key.name}",
                expected="its journal from the worker that claimed it",
                found="none: the worker died",
                todo="This protocol doesn't resume: start the whole run again.",
            )
        _land(work, key)


def _land(work: Work, key: UnitKey) -> None:
    if work.folder.journal(key).exists():
        work.progress.end_unit()
        return
    work.progress.start_unit(key.source_id)
    try:
        evidence, observation = work.engine.make_unit(key, work.batches[key.source_id], work.tokenizer, work.progress)
    except StorageError:
        raise
    except DecodeError as error:
        _record_failure(work, key, error.kind, str(error))
        raise
    except HarnessError as error:
        _record_failure(work, key, "exception", str(error))
        raise
    except Exception as error:  # whatever a library raises is this unit's failure, recorded under its name
        _record_failure(work, key, "exception", f"{type(error).__name__}: {error}")
        raise DecodeError(
            f"unit {key.name}",
            kind="exception",
            expected="a generation call that returns",
            found=f"{type(error).__name__}: {error}",
            todo="See failures/ in the run folder.",
        ) from error
    write_journal(work.folder, key, evidence, observation)
    work.progress.end_unit()


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


def _note_memory(folder: RunFolder, engine: Engine) -> None:
    process: ProcessIdentity = engine.model.process
    note = {
        "process": process,
        "memory_bytes": engine.memory(),
        "model_load_ns": engine.model.load_ns,
        "working_tree": working_tree(places().root),
    }
    write_record(folder.path / "workers" / f"{process.pid}-{process.model_load_id}.json", _observable(note))


def _observable(note: dict[str, object]) -> dict[str, object]:
    return {name: msgspec.to_builtins(value) for name, value in note.items()}
