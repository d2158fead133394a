"""What a run must be before its cells are frozen: whole, passed, unaltered, and following from its own journals.

An audit record is what a session said; here it is held against the protocol's rows and against records made again.
"""

from collections.abc import Iterator
from typing import Any

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import HarnessError, SnapshotError
from harness.evidence import RunEvidence
from harness.files import read_bytes
from harness.journal.assemble import assemble
from harness.ledgers.book import ledger_of, statistics_of
from harness.ledgers.executions import read_executions
from harness.protocols.grids import gate_rows
from harness.protocols.load import LoadedProtocol
from harness.records.audit import Audit

# What gates of these reaches need is there once a run was accepted.
FROZEN = ("snapshots", "tensors")
Pairs = Iterator[tuple[str, object, object]]


def require_acceptable(loaded: LoadedProtocol, evidence: RunEvidence, audit: Audit, *, unaltered: list[str]) -> None:
    """SnapshotError naming what the run isn't. `unaltered`: what was found altered since the audit (must be empty)."""
    if audit.tier != "formal":
        raise SnapshotError(
            f"{evidence.folder.path}: tier",
            expected="a formal run",
            found=f"a {audit.tier} run",
            todo=f"Make one: `pytest gates/ -m formal --protocol {loaded.protocol.id}`, and accept that.",
        )
    try:
        found = [f"{name}: {other}" for name, one, other in _pairs(loaded, evidence, audit) if one != other]
    except HarnessError as error:
        found = [str(error)]
    found += unaltered
    if found:
        raise SnapshotError(
            str(evidence.folder.path),
            expected="a passed, unaltered formal run of the registered protocol",
            found="; ".join(found)[:2000],
            todo="Only such a run can be frozen: judge it again with `pytest gates/ -m formal --run DIR`.",
        )


def _pairs(loaded: LoadedProtocol, evidence: RunEvidence, audit: Audit) -> Pairs:
    spec, run = evidence.spec, evidence.run
    yield "protocol digest", loaded.digest, audit.protocol_digest
    yield "passed", True, audit.passed
    for name, said in (("tier", audit.tier), ("tier of its request", spec.tier)):
        yield name, "formal", said
    for name, port in (("a port", audit.port), ("a port by its request", spec.port), ("a port by run.json", run.port)):
        yield name, False, port
    yield "run of the audit record", evidence.run_sha256, audit.run_sha256
    yield "run ID of the audit record", spec.run_id, audit.run_id
    yield "open books", (), audit.books
    yield "errors", 0, audit.errors
    yield "cases reported", audit.collected, audit.reported
    rows = registered_rows(loaded)
    yield "gates registered", rows, {gate.id: gate.registered for gate in audit.gates if gate.id in rows}
    yield "rows passed", rows, {gate.id: gate.passed for gate in audit.gates if gate.id in rows}
    yield from _records(loaded, evidence)


def registered_rows(loaded: LoadedProtocol) -> dict[str, int]:
    """Rows of every gate of the formal tier that needs no frozen results."""
    protocol, profile = loaded.protocol, loaded.profile
    return {
        gate.id: len(gate_rows(protocol, profile, gate, loaded.units(gate.tiers["formal"].grid, loaded.domains)))
        for gate in protocol.gates
        if "formal" in gate.tiers and gate.reach not in FROZEN
    }


def _records(loaded: LoadedProtocol, evidence: RunEvidence) -> Pairs:
    """The three records, made again from journals and executions."""
    folder = evidence.folder
    run = assemble(folder, loaded)
    book = ledger_of(loaded.protocol, run, read_executions(folder))
    made: dict[str, Any] = {
        "run.json": run,
        "ledger.json": book,
        "statistics.json": statistics_of(loaded.protocol, book),
    }
    for name, record in made.items():
        yield name, sha256_hex(canonical_bytes(record)), sha256_hex(read_bytes(folder.file(name), what=name))
