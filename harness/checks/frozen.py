"""Snapshot and smoke checks: what this run stands on was made apart from it."""

import json
from dataclasses import dataclass
from typing import Any

from harness.canon import sha256_hex
from harness.checks.whole import records_follow
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.files import read_bytes
from harness.journal.assemble import baseline_name
from harness.journal.attempts import attempts_of
from harness.journal.folder import RunFolder
from harness.ledgers.executions import read_executions
from harness.protocols.grids import RowKey, gate_rows
from harness.protocols.maps import map_field
from harness.records.audit import Audit, SmokeReference
from harness.records.run import CellRecord, Deviation, PromptRow
from harness.snapshots.content import containers_of, origins_of, snapshot_bytes, unit_snapshot, verdict_snapshot
from harness.snapshots.store import Frozen, altered_files, judgement_digests, links, read_audit, verdicts_name


@dataclass(frozen=True)
class SnapshotEvidence:
    """A run and the frozen results that it is held against."""

    run: RunEvidence
    frozen: Frozen


@dataclass(frozen=True)
class SmokeEvidence:
    """The smoke record that was found or made, and the run that stands on it."""

    run: RunEvidence
    reference: SmokeReference
    folder: RunFolder


@dataclass(frozen=True)
class RegistrationEvidence:
    """The protocol's identities as found: name -> (registered, found); a port's deviations are allowed by name."""

    identities: dict[str, tuple[str, str]]
    deviations: tuple[Deviation, ...]


def frozen_snapshots(evidence: SnapshotEvidence, row: RowKey) -> Differences:
    """R04 8: the unit equals its frozen snapshot, which comes from another run of the same protocol.

    A unit made by one of the accepted run's model loads is that run's own, also in a run resumed from it.
    """
    run, frozen = evidence.run, evidence.frozen
    found = []
    if set(origins_of([run.observation(row).process])) & set(frozen.index.origins):
        found.append(differs(f"{cell_name(row)} snapshot", "one of another run", "this run's own: nothing to compare"))
    if frozen.index.protocol_digest != run.loaded.digest:
        found.append(differs(f"{cell_name(row)} protocol digest", frozen.index.protocol_digest, run.loaded.digest))
    if row.unit is None or row.unit.name not in frozen.index.units:
        return (*found, differs(cell_name(row), "a frozen snapshot", "none"))
    content = unit_snapshot(run.batch(row), run.ledger)
    stored = read_bytes(frozen.file(row.unit), what="snapshot")
    if stored != snapshot_bytes(content):
        found.append(_first_difference(row, stored, snapshot_bytes(content)))
    return tuple(found)


def frozen_verdicts(evidence: SnapshotEvidence, row: RowKey) -> Differences:
    """R05 6: the verdicts on the unit's programs equal the frozen ones, which another run's executions gave."""
    run, frozen = evidence.run, evidence.frozen
    if row.unit is None or verdicts_name(row.unit) not in frozen.index.units:
        return (differs(cell_name(row), "frozen verdicts", "none"),)
    executions, unit = read_executions(run.folder), run.unit(row)
    containers = containers_of(executions.values())
    own = {*origins_of([run.observation(row).process]), *containers} & set(frozen.index.origins)
    where = f"{cell_name(row)} verdicts"
    found = [differs(where, "another run's", "the frozen run's own: nothing to compare")] if own else []
    made = snapshot_bytes(verdict_snapshot(unit, run.ledger, executions))
    stored = read_bytes(frozen.verdicts(row.unit), what="frozen verdicts")
    return (*found, _first_difference(row, stored, made)) if stored != made else tuple(found)


def _first_difference(row: RowKey, stored: bytes, made: bytes) -> str:
    """The first line that differs, and the condition of the cell that it is in."""
    try:
        one, other = json.loads(stored), json.loads(made)
        pairs = list(zip(one.pop("cells"), other.pop("cells"), strict=True))
    except (ValueError, KeyError, AttributeError):
        return differs(f"{cell_name(row)} snapshot", f"{len(stored)} bytes", f"{len(made)} bytes that no snapshot has")
    for left, right in pairs:
        if left != right:
            return _line(f"{cell_name(row)} {right.get('condition')} snapshot", left, right)
    return _line(f"{cell_name(row)} snapshot", one, other)


def _line(where: str, one: dict[str, Any], other: dict[str, Any]) -> str:
    lines = zip(*(snapshot_bytes(content).decode("ascii").splitlines() for content in (one, other)), strict=False)
    for left, right in lines:
        if left != right:
            shown = (sha256_hex(line.encode()) if '"text_escaped":' in line else line.strip() for line in (left, right))
            return differs(where, *(line[:200] for line in shown))
    return differs(where, "the frozen bytes", "the same content in other bytes")


def smoke_passed(evidence: SmokeEvidence, row: RowKey) -> Differences:
    """R04 3: a passed smoke run of the same protocol digest, environment and port state, complete and unaltered."""
    audit: Audit = read_audit(evidence.folder)
    run = evidence.run
    noted = evidence.reference.audit_sha256 in judgement_digests(evidence.folder)
    registered = _smoke_rows(run)
    pairs: tuple[tuple[str, object, object], ...] = (
        ("audit record that this run noted", True, noted),
        ("tier", "smoke", audit.tier),
        ("protocol digest", run.loaded.digest, audit.protocol_digest),
        ("passed", True, audit.passed),
        ("gates", registered, {gate.id: gate.registered for gate in audit.gates}),
        ("rows passed", registered, {gate.id: gate.passed for gate in audit.gates}),
        ("open books", (), audit.books),
        ("environment", run.run.environment_sha256, audit.environment_sha256),
        ("port", run.spec.port, audit.port),
        ("deviations", _of_any_placement(run.spec.deviations), _of_any_placement(audit.deviations)),
        ("baseline", baseline_name(run.folder), baseline_name(evidence.folder)),
        ("run", evidence.reference.run_sha256, audit.run_sha256),
        ("run.json", audit.run_sha256, audit.files.get("run.json", "none")),
        ("files altered after the audit", [], altered_files(evidence.folder, audit)),
        ("run folder", True, evidence.folder.path.resolve() != run.folder.path.resolve()),
    )
    found = tuple(differs(f"{row.item} smoke {name}", one, other) for name, one, other in pairs if one != other)
    return found or _smoke_holds(evidence, row)


def _smoke_holds(evidence: SmokeEvidence, row: RowKey) -> Differences:
    """The smoke run is what its own journals give, lies where runs lie, and its cells begin as this run's do."""
    run, reference = evidence.run, evidence.reference
    smoke = RunEvidence(run.loaded, evidence.folder)
    pairs: tuple[tuple[str, object, object], ...] = (
        ("folder", run.folder.path.resolve().parent / reference.run_id, evidence.folder.path.resolve()),
        ("links", (), links(evidence.folder)),
        ("run.json that was noted", reference.run_sha256, smoke.run_sha256),
        ("placement", _first_placement(run), smoke.placement.id),
        ("cells that part from this run's", [], _parting(run, smoke)),
    )
    found = tuple(differs(f"{row.item} smoke {name}", one, other) for name, one, other in pairs if one != other)
    return (*found, *(f"smoke: {line}" for line in records_follow(smoke, row)))


def _of_any_placement(deviations: tuple[Deviation, ...]) -> tuple[Deviation, ...]:
    """Without a placement's own map: a run that went down the ladder ended under another than it began with."""
    return tuple(one for one in deviations if not one.field.startswith(map_field("")))


def _first_placement(run: RunEvidence) -> str:
    """The placement that the run began under: its own, or that of the first attempt that ran out of memory."""
    tried = attempts_of(run.folder)
    return tried[0].placement if tried else run.placement.id


def _parting(run: RunEvidence, smoke: RunEvidence) -> list[str]:
    parting = []
    for unit in smoke.run.units:
        here = run.units.get((unit.source_id, unit.replicate))
        cells = {cell.condition: cell for cell in here.cells} if here else {}
        parting += [
            f"{unit.source_id} {cell.condition}" for cell in unit.cells if not _begins(cells.get(cell.condition), cell)
        ]
    return parting


def _begins(here: PromptRow | None, smoke: PromptRow) -> bool:
    """Whether this run's cell begins as the smoke run's did: generated tokens within the smaller budget, or a trace."""
    if isinstance(here, CellRecord) and isinstance(smoke, CellRecord):
        return smoke.generated_ids == here.generated_ids[: len(smoke.generated_ids)]
    return here == smoke


def _smoke_rows(run: RunEvidence) -> dict[str, int]:
    """The rows of every gate that the protocol registers for smoke, over the run's domains."""
    protocol, profile = run.loaded.protocol, run.loaded.profile
    return {
        gate.id: len(gate_rows(protocol, profile, gate, run.loaded.units(gate.tiers["smoke"].grid, run.spec.domains)))
        for gate in protocol.gates
        if "smoke" in gate.tiers
    }


def registration(evidence: RegistrationEvidence, row: RowKey) -> Differences:
    """R04 6.1 and 6.2: the file or identity is the registered one; a port's deviation is listed, not hidden."""
    if row.item not in evidence.identities:
        return (differs(row.item, "a registered identity", "none found"),)
    expected, found = evidence.identities[row.item]
    listed = {deviation.field: deviation for deviation in evidence.deviations}
    deviation = listed.get(f"checkpoint.{row.item}")
    allowed = deviation is not None and (deviation.registered, deviation.actual) == (expected, found)
    return () if expected == found or allowed else (differs(row.item, expected, found),)
