"""A run folder, or a part of one, as a side: journals under their digests, the run's own records beside them.

A run that ended before it was assembled has what landed. Files that changed after they were judged are refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.canon import digest
from harness.checks.taped_graph import PARTS as GRAPH_PARTS
from harness.checks.taped_loop import PARTS
from harness.difference.leaves import leaves
from harness.difference.side import (
    VERIFY,
    Identity,
    Registered,
    Side,
    SideUnit,
    planned_cells,
    registered,
    require_planned,
    units_once,
)
from harness.errors import ComparisonError
from harness.files import file_sha256
from harness.journal.assemble import made_in, read_environment, read_placement, read_run, read_spec, units_by_key
from harness.journal.folder import RunFolder, journals, read_journal, read_record
from harness.ledgers.book import AnyLedger, ledger_type
from harness.ledgers.executions import read_executions
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.protocols.loops import part_protocol
from harness.records.audit import Audit
from harness.records.completion import CodeAccount
from harness.records.depth import TraceEvidence
from harness.records.graph import GraphBatch
from harness.records.kinds import AnyUnit, journal_type
from harness.records.protocol import AnyProtocol, GraphTaskProtocol, TapedProtocol
from harness.records.run import RunSpec, UnitEvidence, UnitObservation
from harness.records.sampling import SampledEvidence
from harness.records.sandbox import Execution
from harness.records.taped_study import TapedUnit
from harness.records.task_ledger import TaskCode
from harness.snapshots.content import (
    bare_snapshot,
    origins_of,
    tensor_snapshot,
    trace_snapshot,
    unit_snapshot,
    verdict_snapshot,
)
from harness.snapshots.judgements import altered_since_judged
from harness.snapshots.store import JUDGEMENTS, read_audit

RUN, LEDGER, AUDIT = "run.json", "ledger.json", "audit.json"
NONE = "none"
BUDGET = "parameters.max_new_tokens"  # the unit says it itself
# What judges outputs and makes none: file -> fields of it, all where none is named. An author's functions are the
# protocol's, by digest; what they gave is in the accounts.
JUDGING: Mapping[str, tuple[str, ...]] = {
    "gold.json": (),
    "tasks.json": (),
    "answers.json": (),
    "baseline.json": ("run_sha256",),
    "sandbox.json": ("image_id", "python", "harness_sha256", "limits"),
}


def run_side(path: Path, tree: Places) -> Side:
    """A run as a side; HarnessError naming what can't be read, what doesn't agree, or what was altered."""
    folder = RunFolder(path)
    audit = _audit(folder)
    spec = read_spec(folder)
    found = _loop(path, registered(spec.protocol, spec.protocol_digest, path, tree))
    observed = _journals(folder, spec, found.kind)
    evidence = units_by_key(unit for unit, _ in observed)
    run_sha256 = _require_assembled(folder, found.kind, evidence)
    units = units_once(path, _units(folder, found.kind, observed, run_sha256))
    planned = None if found.loaded is None else planned_cells(found.loaded, spec.grid, spec.domains)
    if planned is not None:
        require_planned(path, units, planned)
    environment = read_environment(folder)
    return Side(
        kind="run",
        path=path,
        name=spec.run_id,
        protocol=spec.protocol,
        digest=spec.protocol_digest,
        registered=found,
        tier=spec.tier,
        grid=spec.grid,
        port=spec.port,
        deviations=spec.deviations,
        run_sha256=run_sha256,
        environment_sha256=digest(environment),
        environment=environment,
        placement=read_placement(folder),
        checkpoint=environment.checkpoint,
        state="not judged" if audit is None else "passed" if audit.passed else "not passed",
        units=units,
        planned=planned,
        judging=_judging(folder),
        origins=frozenset(),
        judge=None if audit is None else audit.judge,
    )


def _audit(folder: RunFolder) -> Audit | None:
    """What a session said of the run, or of the run that it is a part of; ComparisonError for what changed since."""
    whole = next((one for one in (folder.path, *folder.path.parents[:2]) if _was_judged(one)), None)
    if whole is None:
        return None
    own = f"{whole.name}/" + "".join(f"{name}/" for name in folder.path.relative_to(whole).parts)
    said = altered_since_judged(RunFolder(whole))
    altered = [one for one in said if one.startswith(own) or not one.startswith(f"{whole.name}/")]
    if altered:
        raise ComparisonError(
            str(folder.path),
            expected="the files that were judged",
            found=f"{len(altered)} altered: {altered[0]}",
            todo=VERIFY,
        )
    return read_audit(RunFolder(whole)) if (whole / AUDIT).is_file() else None


def _was_judged(path: Path) -> bool:
    return (path / AUDIT).is_file() or (path / JUDGEMENTS).is_dir()


def _loop(path: Path, found: Registered) -> Registered:
    """A part that shows how a task run decodes is made under a protocol that its program derives."""
    parts = GRAPH_PARTS if isinstance(found.kind, GraphTaskProtocol) else PARTS
    program = next((program for program, name in parts.items() if name == path.name), None)
    if program is None or not isinstance(found.kind, TapedProtocol):
        return found
    if found.loaded is None:
        raise ComparisonError(str(path), expected="its protocol under its digest", found=found.why, todo=VERIFY)
    derived = part_protocol(found.loaded, program)
    return Registered(derived.protocol, derived, "")


Observed = list[tuple[AnyUnit, UnitObservation]]


def _journals(folder: RunFolder, spec: RunSpec, kind: AnyProtocol) -> Observed:
    """Every unit that landed, each digest verified, each made in this run."""
    found: Observed = []
    wanted = made_in(folder, spec)
    for path in journals(folder):
        journal = read_journal(path, journal_type(kind))
        for name, value in wanted.items():
            if getattr(journal.evidence, name) != value:
                said = getattr(journal.evidence, name)
                raise ComparisonError(f"{path}: {name}", expected=str(value), found=str(said), todo=VERIFY)
        found.append((journal.evidence, journal.observation))
    if not found:
        raise ComparisonError(str(folder.path), expected="units", found="no journal", todo="Name a run that has any.")
    return found


def _require_assembled(folder: RunFolder, kind: AnyProtocol, units: Mapping[Identity, AnyUnit]) -> str:
    """SHA-256 of run.json, which holds exactly the journals' units; `none` where there is no run.json."""
    path = folder.file(RUN)
    if not path.is_file():
        return NONE
    if units_by_key(read_run(folder, kind).units) != units:
        raise ComparisonError(str(path), expected="the units of the journals", found="others", todo=VERIFY)
    return file_sha256(path, what="assembled run")


def _units(folder: RunFolder, kind: AnyProtocol, observed: Observed, run_sha256: str) -> list[SideUnit]:
    book = _ledger(folder, kind, run_sha256)
    executions = read_executions(folder)
    return [_unit(unit, one, book, executions) for unit, one in observed]


def _ledger(folder: RunFolder, kind: AnyProtocol, run_sha256: str) -> AnyLedger | None:
    path = folder.file(LEDGER)
    if not path.is_file():
        return None
    book: AnyLedger = read_record(path, ledger_type(kind), what="ledger")
    if book.run_sha256 != run_sha256:
        raise ComparisonError(f"{path}: run_sha256", expected=run_sha256, found=book.run_sha256, todo=VERIFY)
    return book


def _unit(
    unit: AnyUnit, observed: UnitObservation, book: AnyLedger | None, executions: Mapping[str, Execution]
) -> SideUnit:
    traced = isinstance(unit, TraceEvidence)
    if isinstance(unit, TraceEvidence):
        plain = trace_snapshot(unit)
    else:
        plain = bare_snapshot(unit) if book is None else unit_snapshot(unit, book)
    call = [observed.process, observed.wall_ns, observed.finished_us]
    return SideUnit(
        key=UnitKey(unit.domain, unit.index, unit.source_id, unit.replicate),
        plain=plain,
        verdicts={} if book is None else _verdicts(unit, book, executions),
        tensors=tensor_snapshot(unit) if isinstance(unit, TraceEvidence) else None,
        accounts=book is not None or traced,
        rows={cell.condition: cell for cell in unit.cells},
        drawn=_drawn(unit),
        tapes={row.condition: row for row in unit.tape.rows} if isinstance(unit, TapedUnit) else {},
        origin=origins_of([observed.process])[0],
        call=digest(call),
    )


def _verdicts(unit: AnyUnit, book: AnyLedger, executions: Mapping[str, Execution]) -> dict[str, dict[str, Any]]:
    """By condition, of a unit whose cells are programs."""
    rows = (row for row in book.cells if (row.source_id, row.replicate) == (unit.source_id, unit.replicate))
    judged = any(isinstance(getattr(row, "code", None), CodeAccount | TaskCode) for row in rows)
    if not judged or not isinstance(unit, UnitEvidence):
        return {}
    return {one["condition"]: one for one in verdict_snapshot(unit, book, executions)["cells"]}


def _drawn(unit: AnyUnit) -> dict[str, str]:
    """How a unit's tokens were chosen, read back from the call: what isn't a count or a result."""
    if isinstance(unit, SampledEvidence):
        batch = unit.sampling
        told: dict[str, Any] = {
            "seeds": batch.seeds,
            "generator": batch.generator,
            "columns": batch.columns,
            "parameters": batch.parameters,
            "processors": batch.processors,
            "state_before": getattr(unit.rng_before, batch.generator),
        }
    elif isinstance(unit, TapedUnit):
        tape = unit.tape
        told = {
            "label": tape.label,
            "sha256": tape.sha256,
            "sampler": tape.sampler,
            "columns": tape.columns,
            "cache": tape.cache,
            **({"ran": _executed(tape)} if isinstance(tape, GraphBatch) else {}),
        }
    else:
        return {}
    found = leaves(msgspec.to_builtins(told))
    return {name: value for name, value in found.items() if name != BUDGET}


def _executed(tape: GraphBatch) -> dict[str, Any]:
    """How steps ran; how many were replayed follows from where the rows ended."""
    return {name: value for name, value in msgspec.to_builtins(tape.ran).items() if name != "replays"}


def _value(value: object) -> str:
    """A word as it is; anything larger by its digest."""
    return value if isinstance(value, str) else digest(value)


def _judging(folder: RunFolder) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, fields in JUDGING.items():
        path = folder.file(name)
        if path.is_file():
            plain = read_record(path, dict[str, Any], what=name)
            kept = {field: plain.get(field) for field in fields} if fields else plain
            found |= {f"{path.stem}.{field}": _value(value) for field, value in kept.items()}
    return found
