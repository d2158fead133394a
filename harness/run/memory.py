"""Noting that memory ran out, at the top of the run folder, before the error goes on. The first note stays.

A run of a protocol that resumes makes the unit again and leaves no such note: it has its failure record.
"""

from harness.errors import DecodeError
from harness.journal.attempts import OUT_OF_MEMORY, require_on
from harness.journal.folder import RunFolder, write_record
from harness.journal.requested import first_line, requested_of
from harness.model.load import LoadOutOfMemoryError
from harness.model.memory import memory_at_failure
from harness.model.process import now_us, process_identity
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.records.attempts import OutOfMemory, WhileDecoding, WhileLoading
from harness.run.engine import Engine


def note_in_unit(folder: RunFolder, engine: Engine, key: UnitKey, error: DecodeError) -> None:
    """A unit ran out of memory. To be called while holding the unit's lock."""
    stage = WhileDecoding(
        source_id=key.source_id, replicate=key.replicate, placement=engine.placement, process=engine.model.process
    )
    _note(folder, engine.loaded, failure(engine.loaded, engine.placement.id, stage, error.found))


def note_while_loading(
    folder: RunFolder, loaded: LoadedProtocol, placement: str, number: int, error: LoadOutOfMemoryError
) -> None:
    """The model of attempt `number` couldn't be loaded; AttemptOverError where that attempt has ended meanwhile."""
    process = process_identity(now_us())
    stage = WhileLoading(pid=process.pid, started_us=process.started_us)
    with folder.lock("attempt"):
        require_on(folder, number, placement)
        _note(folder, loaded, failure(loaded, placement, stage, error.found))


def failure(loaded: LoadedProtocol, placement: str, stage: WhileLoading | WhileDecoding, message: str) -> OutOfMemory:
    """The record of one refused allocation, with this process's peaks."""
    said = first_line(message)
    return OutOfMemory(
        schema=1,
        protocol_digest=loaded.digest,
        placement=placement,
        stage=stage,
        requested=requested_of(said),
        message=said,
        memory_bytes=memory_at_failure(),
    )


def _note(folder: RunFolder, loaded: LoadedProtocol, record: OutOfMemory) -> None:
    if loaded.protocol.resume:
        return
    with folder.lock("oom"):
        if not folder.file(OUT_OF_MEMORY).exists():
            write_record(folder.file(OUT_OF_MEMORY), record)
