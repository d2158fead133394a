"""Closing a run: run.json from its journals; ledger and statistics from run.json and the sandbox's records."""

from pathlib import Path
from typing import Any

import msgspec

from harness.canon import canonical_bytes
from harness.files import write_atomic
from harness.journal.assemble import assemble, read_units
from harness.journal.folder import RunFolder, read_record, write_once
from harness.ledgers.book import ledger_of, statistics_of
from harness.ledgers.executions import read_executions
from harness.protocols.load import LoadedProtocol
from harness.records.kinds import AnyRun


def close_run(folder: RunFolder, loaded: LoadedProtocol) -> AnyRun:
    """Assemble the run and write what follows from it (`close_generation`, then `close_books`)."""
    run = close_generation(folder, loaded)
    close_books(folder, loaded, run)
    return run


def close_generation(folder: RunFolder, loaded: LoadedProtocol) -> AnyRun:
    """Write run.json from the journals; one that differs from them is a JournalError."""
    with folder.lock("close"):
        run = assemble(folder, loaded)
        write_once(folder.file("run.json"), run, what="assembled run")
        write_atomic(folder.file("observations.json"), canonical_bytes(observations(folder, loaded)))
    return run


def close_books(folder: RunFolder, loaded: LoadedProtocol, run: AnyRun) -> None:
    """Write ledger and statistics, once every program that the run executes has its verdict."""
    with folder.lock("close"):
        book = ledger_of(loaded.protocol, run, read_executions(folder))
        write_once(folder.file("ledger.json"), book, what="ledger")
        write_once(folder.file("statistics.json"), statistics_of(loaded.protocol, book), what="statistics")


def observations(folder: RunFolder, loaded: LoadedProtocol) -> dict[str, object]:
    """How the run was made: wall times, tokens, processes, memory, paths. Evidence of how, never of what."""
    units = read_units(folder, loaded)
    notes = sorted((folder.path / "workers").glob("*.json"))
    workers = [read_record(path, dict[str, Any], what="worker's note") for path in notes]
    return {
        "folder": str(Path(folder.path).resolve()),
        "units": {key.name: msgspec.to_builtins(journal.observation) for key, journal in units.items()},
        "generation_wall_ns": sum(journal.observation.wall_ns for journal in units.values()),
        "tokens": sum(journal.observation.tokens for journal in units.values()),
        "workers": workers,
    }
