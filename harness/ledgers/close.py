"""Closing a run: run.json from its journals, ledger and statistics from run.json, observations beside them."""

from pathlib import Path
from typing import Any

import msgspec

from harness.canon import canonical_bytes
from harness.files import write_atomic
from harness.journal.assemble import assemble, read_units
from harness.journal.folder import RunFolder, read_record, write_once
from harness.ledgers.behavior import ledger
from harness.ledgers.statistics import statistics
from harness.protocols.load import LoadedProtocol
from harness.records.run import Run


def close_run(folder: RunFolder, loaded: LoadedProtocol) -> Run:
    """Assemble, write what follows from the journals; a run.json that differs from them is a JournalError."""
    with folder.lock("close"):
        run = assemble(folder, loaded)
        write_once(folder.file("run.json"), run, what="assembled run")
        book = ledger(loaded.protocol, run)
        write_once(folder.file("ledger.json"), book, what="ledger")
        write_once(folder.file("statistics.json"), statistics(loaded.protocol, book), what="statistics")
        write_atomic(folder.file("observations.json"), canonical_bytes(observations(folder, loaded)))
    return run


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
