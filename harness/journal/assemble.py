"""Assembling run.json: exactly the grid's units, each verified against what the run is, in the grid's order.

A pure function of the folder's records; two runs that made the same evidence give the same bytes.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.canon import digest
from harness.errors import JournalError
from harness.journal.folder import TODO, RunFolder, journals, read_journal, read_record
from harness.journal.naming import result_name
from harness.protocols.grids import UnitKey, grid_blocks
from harness.protocols.load import LoadedProtocol
from harness.records.depth import DepthRun, TraceBaseline, TraceEvidence
from harness.records.kinds import AnyJournal, AnyRun, AnyUnit, journal_type, run_type
from harness.records.protocol import (
    AnyProtocol,
    DepthProtocol,
    JudgedProtocol,
    StudyProtocol,
    TapedProtocol,
    TaskCrnProtocol,
)
from harness.records.run import (
    AssembledRun,
    Baseline,
    CodeTask,
    Environment,
    PlacementFacts,
    Run,
    RunSpec,
    UnitEvidence,
)
from harness.records.study import FunctionScore
from harness.records.taped import RunBlock

ANSWERS, SCORES = "answers.json", "scores.json"
AnyBaseline = TypeVar("AnyBaseline", bound=Baseline)


def read_spec(folder: RunFolder) -> RunSpec:
    """What the run was asked for."""
    return read_record(folder.file("spec.json"), RunSpec, what="run request")


def read_environment(folder: RunFolder) -> Environment:
    """The environment that the run was made in."""
    return read_record(folder.file("environment.json"), Environment, what="environment record")


def read_placement(folder: RunFolder) -> PlacementFacts:
    """Where the parameters were."""
    return read_record(folder.file("placement.json"), PlacementFacts, what="placement record")


def read_units(folder: RunFolder, loaded: LoadedProtocol) -> dict[UnitKey, AnyJournal]:
    """Every journal of the run by identity, verified; a stranger, a missing or a foreign unit is a JournalError."""
    spec = read_spec(folder)
    require_spec(folder, spec, loaded)
    keys = loaded.units(spec.grid, spec.domains)
    expected = {folder.journal(key): key for key in keys}
    found = set(journals(folder))
    _require_exact(folder, set(expected), found)
    return {key: verified_journal(folder, key, loaded, spec) for key in keys}


def require_spec(folder: RunFolder, spec: RunSpec, loaded: LoadedProtocol) -> None:
    """The request is one of this protocol and agrees with what was read back; JournalError names the field."""
    registered = tuple(name for name in loaded.domains if name in spec.domains)
    pairs: tuple[tuple[str, object, object], ...] = (
        ("protocol", loaded.protocol.id, spec.protocol),
        ("registered_id", loaded.protocol.registered_id, spec.registered_id),
        ("protocol_digest", loaded.digest, spec.protocol_digest),
        ("grid", True, spec.grid in loaded.protocol.grids or f"unknown grid {spec.grid}"),
        ("tier", True, spec.tier in loaded.protocol.tier_grids or f"unknown tier {spec.tier}"),
        ("domains", registered if spec.port else loaded.domains, spec.domains),
        ("deviations", spec.deviations if spec.port else (), spec.deviations),
        ("placement", read_placement(folder).id, spec.placement),
        ("threads", read_environment(folder).threads, spec.threads),
    )
    for name, expected, found in pairs:
        if expected != found:
            where = f"{folder.file('spec.json')}: {name}"
            raise JournalError(where, expected=str(expected), found=str(found), todo=TODO)


def verify_units(folder: RunFolder, keys: tuple[UnitKey, ...], loaded: LoadedProtocol) -> None:
    """The named units are this run's and unaltered; JournalError names the unit and the field."""
    spec = read_spec(folder)
    require_spec(folder, spec, loaded)
    for key in keys:
        verified_journal(folder, key, loaded, spec)


def verified_journal(folder: RunFolder, key: UnitKey, loaded: LoadedProtocol, spec: RunSpec) -> AnyJournal:
    """One journal, checked against protocol, environment, placement, grid, source and conditions."""
    journal: AnyJournal = read_journal(folder.journal(key), journal_type(loaded.protocol))
    evidence = journal.evidence
    wanted = made_in(folder, spec) | {
        "domain": key.domain,
        "index": key.index,
        "source_id": key.source_id,
        "replicate": key.replicate,
        "source_text_sha256": loaded.source(key.source_id).text_sha256,
    }
    if isinstance(evidence, UnitEvidence):
        wanted["max_new_tokens"] = loaded.protocol.grids[spec.grid].max_new_tokens
    if isinstance(loaded.protocol, TapedProtocol):
        _require_prompts(folder, key, loaded, evidence)
    for name, value in wanted.items():
        if getattr(evidence, name) != value:
            raise JournalError(
                f"{folder.journal(key)}: {name}", expected=str(value), found=str(getattr(evidence, name)), todo=TODO
            )
    conditions = [condition.id for condition in loaded.protocol.conditions]
    rows = [cell.condition for cell in evidence.cells]
    if rows != conditions:
        raise JournalError(f"{folder.journal(key)}: rows", expected=str(conditions), found=str(rows), todo=TODO)
    return journal


def made_in(folder: RunFolder, spec: RunSpec) -> dict[str, Any]:
    """Fields of a unit's evidence that say which run made it, as the folder's own records have them."""
    return {
        "protocol_digest": spec.protocol_digest,
        "environment_sha256": digest(read_environment(folder)),
        "placement_sha256": digest(read_placement(folder)),
        "grid": spec.grid,
    }


def _require_prompts(folder: RunFolder, key: UnitKey, loaded: LoadedProtocol, evidence: AnyUnit) -> None:
    """R08 5.2: a unit isn't taken up again before its prompts were seen to be the manifest's."""
    registered = loaded.source(key.source_id).prompts
    for cell in evidence.cells:
        expected = registered[cell.condition].sha256 if cell.condition in registered else "no such condition"
        if cell.prompt_sha256 != expected:
            where = f"{folder.journal(key)}: prompt of {cell.condition}"
            raise JournalError(where, expected=expected, found=cell.prompt_sha256, todo=TODO)


def read_gold(folder: RunFolder) -> dict[str, str]:
    """gold.json: final numbers by source ID, as evaluators read them from the registered inputs."""
    return read_record(folder.file("gold.json"), dict[str, str], what="gold numbers")


def read_baseline(folder: RunFolder, kind: type[AnyBaseline]) -> AnyBaseline:
    """baseline.json: the cells of the earlier run, as they were read from its frozen or judged records."""
    return read_record(folder.file("baseline.json"), kind, what="baseline")


def baseline_name(folder: RunFolder) -> str:
    """The run that a folder's baseline is of, by its digest; none for a run that is held against no baseline."""
    path = folder.file("baseline.json")
    return str(read_record(path, dict[str, Any], what="baseline").get("run_sha256")) if path.exists() else "none"


def read_tasks(folder: RunFolder) -> dict[str, CodeTask]:
    """tasks.json: the code tasks of the run's sources by source ID, as the registered inputs hold them."""
    return read_record(folder.file("tasks.json"), dict[str, CodeTask], what="code tasks")


def read_answers(folder: RunFolder) -> dict[str, str]:
    """answers.json: expected texts by source ID, as the registered inputs hold them for text judges."""
    return read_record(folder.file(ANSWERS), dict[str, str], what="expected texts")


def read_scores(folder: RunFolder) -> tuple[FunctionScore, ...]:
    """scores.json: what the author's functions gave for the run's cells, in the grid's order."""
    return read_record(folder.file(SCORES), tuple[FunctionScore, ...], what="scores")


def assemble(folder: RunFolder, loaded: LoadedProtocol) -> AnyRun:
    """The run's record from its journals, of the protocol's kind: with its gold numbers, its baseline, its tasks."""
    units = [journal.evidence for journal in read_units(folder, loaded).values()]
    head = _head(folder, loaded)
    if isinstance(loaded.protocol, DepthProtocol):
        traced = tuple(unit for unit in units if isinstance(unit, TraceEvidence))
        return DepthRun(**head, baseline=read_baseline(folder, TraceBaseline), units=traced)
    head |= {"gold": read_gold(folder), "units": tuple(unit for unit in units if isinstance(unit, UnitEvidence))}
    if not isinstance(loaded.protocol, JudgedProtocol):
        return Run(**head)
    head["tasks"] = read_tasks(folder)
    if isinstance(loaded.protocol, TaskCrnProtocol):
        head["blocks"] = run_blocks(loaded.protocol, head["grid"], len(head["domains"]))
    elif isinstance(loaded.protocol, StudyProtocol):
        head |= {"answers": read_answers(folder), "scores": read_scores(folder)}
    else:
        head["baseline"] = read_baseline(folder, Baseline)
    kind: Any = run_type(loaded.protocol)
    run: AnyRun = kind(**head)
    return run


def run_blocks(protocol: TaskCrnProtocol, grid: str, domains: int) -> tuple[RunBlock, ...]:
    """The grid's blocks with their units and cells over so many domains; which cell is in which follows from them."""
    counts = ((block, domains * len(block.indices) * len(block.replicates)) for block in grid_blocks(protocol, grid))
    return tuple(
        RunBlock(**msgspec.structs.asdict(block), units=units, cells=units * len(protocol.conditions))
        for block, units in counts
    )


def _head(folder: RunFolder, loaded: LoadedProtocol) -> dict[str, Any]:
    """What every kind of run begins with, by field."""
    spec = read_spec(folder)
    head = AssembledRun(
        schema=1,
        protocol=loaded.protocol.id,
        registered_id=loaded.protocol.registered_id,
        protocol_digest=spec.protocol_digest,
        result_name=result_name(loaded.protocol.result_name, port=spec.port, deviations=spec.deviations),
        grid=spec.grid,
        port=spec.port,
        deviations=spec.deviations,
        domains=spec.domains,
        environment_sha256=digest(read_environment(folder)),
        placement=read_placement(folder),
    )
    return {name: getattr(head, name) for name in head.__struct_fields__}


def read_run(folder: RunFolder, protocol: AnyProtocol) -> AnyRun:
    """run.json as it was assembled, of the protocol's kind."""
    run: AnyRun = read_record(folder.file("run.json"), run_type(protocol), what="assembled run")
    return run


def units_by_key(units: Iterable[AnyUnit]) -> dict[tuple[str, str], AnyUnit]:
    """Units by (source ID, replicate); a unit that occurs twice is a JournalError."""
    result: dict[tuple[str, str], AnyUnit] = {}
    for unit in units:
        identity = (unit.source_id, unit.replicate)
        if identity in result:
            raise JournalError(f"unit {identity}", expected="once", found="twice", todo=TODO)
        result[identity] = unit
    return result


def _require_exact(folder: RunFolder, expected: set[Path], found: set[Path]) -> None:
    missing, strangers = sorted(map(str, expected - found)), sorted(map(str, found - expected))
    if missing or strangers:
        raise JournalError(
            str(folder.path),
            expected=f"the journals of {len(expected)} units",
            found=f"{len(found)}: missing {missing or 'none'}, not of this grid {strangers or 'none'}",
            todo="Resume the run where the protocol allows it, or start a new one.",
        )
