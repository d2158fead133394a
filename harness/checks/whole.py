"""Checks of a run as a whole: where its model was, and that each record in its folder follows from its journals.

Not judged, since nothing follows from them: observations (remade whenever a run is closed), child logs, locks and the
run's own label in spec.json. The audit record holds the digests of all but the locks.
"""

import re
from typing import Any

from harness.canon import canonical_bytes, sha256_hex
from harness.evidence import Differences, RunEvidence, differs
from harness.files import read_bytes
from harness.gold import recorded_tasks
from harness.journal.assemble import assemble
from harness.journal.folder import read_record
from harness.journal.naming import result_name
from harness.ledgers.book import ledger_of, statistics_of
from harness.ledgers.executions import read_executions
from harness.protocols.grids import RowKey
from harness.protocols.maps import map_difference, map_field
from harness.records.kinds import JudgedRun
from harness.records.protocol import Placement
from harness.records.run import Failure, PlacementFacts, Run, RunSpec
from harness.records.sampling import SampledRun
from harness.records.study import StudyRun
from harness.records.taped import TapedRun

_LAYER = re.compile(r"model\.layers\.(\d+)")


def placement_recorded(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 1 and 6.6: the record has device map, bytes, offload facts and memory; they are the registered ones."""
    facts, spec = evidence.placement, evidence.spec
    placed = {placement.id: placement for placement in evidence.loaded.protocol.placements}
    registered = placed.get(spec.placement)
    pairs: list[tuple[str, object, object]] = [
        ("placement", spec.placement, facts.id),
        ("placement in run.json", facts, evidence.run.placement),
        ("parameter bytes", True, sum(facts.parameter_bytes.values()) > 0),
        ("model loads that made units and left no memory", [], _without_memory(evidence)),
        *_coherent(facts, evidence.loaded.profile.shape.dense_layers),
        *on_device(evidence),
    ]
    if registered is not None and not _listed_map(spec, facts, registered):
        pairs += _as_registered(facts, registered)
    elif not spec.port:
        pairs.append(("placement", sorted(placed), spec.placement))
    return tuple(differs(f"{row.item} {name}", one, other) for name, one, other in pairs if one != other)


def layer_offloaded(evidence: RunEvidence, *places: PlacementFacts) -> bool:
    """Whether a layer is really offloaded in one of the placements: one with routed experts; of a dense model, any."""
    if evidence.loaded.profile.shape.routed_experts:
        return any(one.offloaded_moe_layers for one in places)
    return any(_LAYER.fullmatch(name) for one in places for name in one.offloaded)


def offload_wanted(evidence: RunEvidence) -> str:
    """What that is called in a message."""
    kind = "an MoE layer" if evidence.loaded.profile.shape.routed_experts else "a layer"
    return f"{kind} offloaded on one side"


def _listed_map(spec: RunSpec, facts: PlacementFacts, registered: Placement) -> bool:
    """Whether the map as read back is the one that a port lists as its deviation from the registered one."""
    different = map_difference(registered, facts.device_map)
    listed = {(one.field, one.registered, one.actual) for one in spec.deviations if spec.port}
    return different is not None and (map_field(registered.id), *different) in listed


def _coherent(facts: PlacementFacts, dense_layers: int) -> tuple[tuple[str, object, object], ...]:
    """What the facts say of each other: the MoE layers and the bytes follow from the modules offloaded."""
    modules, mapped = sorted(facts.offloaded), {*facts.device_map}
    layers = sorted(int(match[1]) for name in facts.offloaded if (match := _LAYER.fullmatch(name)))
    away = any(place.startswith("offloaded:") for place in facts.parameter_bytes)
    return (
        ("device map", True, bool(facts.device_map)),
        ("dispatched", len(set(facts.device_map.values())) > 1, facts.dispatched),
        ("offloaded modules in the device map", modules, [name for name in modules if name in mapped]),
        ("offloaded MoE layers", [layer for layer in layers if layer >= dense_layers], [*facts.offloaded_moe_layers]),
        ("offloaded bytes", bool(facts.offloaded), away),
    )


def on_device(evidence: RunEvidence) -> tuple[tuple[str, object, object], ...]:
    """What isn't offloaded lies on the registered kind of device: by the map, and by where the bytes are.

    Nothing is asked of a port's own placement.
    """
    facts, protocol = evidence.placement, evidence.loaded.protocol
    registered = next((one for one in protocol.placements if one.id == evidence.spec.placement), None)
    if registered is None:
        return ()
    wanted = [protocol.execution.device if registered.gpu_memory == "none" else "cuda"]
    mapped = {place for place in facts.device_map.values() if place != registered.offload_device}
    held = {place for place in facts.parameter_bytes if not place.startswith("offloaded:")}
    found = (
        (name, sorted({one.partition(":")[0] for one in there})) for name, there in (("map", mapped), ("bytes", held))
    )
    return tuple((f"devices of the {name}", wanted, kinds) for name, kinds in found)


def _as_registered(facts: PlacementFacts, registered: Placement) -> list[tuple[str, object, object]]:
    pairs: list[tuple[str, object, object]] = [
        ("offloaded modules", sorted(registered.offloaded), sorted(facts.offloaded))
    ]
    if registered.device_map == "single":
        return [*pairs, ("devices", 1, len(facts.device_map))]
    away = sorted(name for name, place in facts.device_map.items() if place == registered.offload_device)
    stay = sorted(set(facts.device_map) - set(away))
    return [
        *pairs,
        ("modules mapped to the offload device", sorted(registered.offloaded), away),
        ("modules mapped to the execution device", sorted(registered.resident), stay),
    ]


def _without_memory(evidence: RunEvidence) -> list[str]:
    """Model loads that made units and left no peak memory. A process notes it before each unit lands."""
    noted = set()
    for path in sorted((evidence.folder.path / "workers").glob("*.json")):
        note = read_record(path, dict[str, Any], what="memory note")
        process, memory = note.get("process"), note.get("memory_bytes")
        if not isinstance(process, dict) or not isinstance(memory, dict):
            continue
        if all(isinstance(size, int) for size in memory.values()) and memory.get("rss", 0) > 0:
            noted.add(process.get("model_load_id"))
    return sorted({process.model_load_id for process in evidence.processes} - noted)


def assembled_run(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 5, R05 4: run.json, ledger.json and statistics.json are byte for byte what journals and verdicts give."""
    spec = evidence.spec
    result = result_name(evidence.loaded.protocol.result_name, port=spec.port, deviations=spec.deviations)
    planned = {(key.source_id, key.replicate) for key in evidence.keys}
    pairs: tuple[tuple[str, object, object], ...] = (
        ("units", [key.source_id for key in evidence.keys], [unit.source_id for unit in evidence.run.units]),
        ("protocol digest", evidence.loaded.digest, evidence.run.protocol_digest),
        ("name of the result", result, evidence.run.result_name),
        ("sources whose gold number isn't the registered one", [], _other_gold(evidence)),
        ("sources whose code task isn't the registered one", [], _other_tasks(evidence)),
        ("sources whose expected text isn't the registered one", [], _other_answers(evidence)),
        ("failures of other units", [], [_identity(one) for one in evidence.failures if _identity(one) not in planned]),
    )
    found = tuple(differs(f"{row.item} {what}", one, other) for what, one, other in pairs if one != other)
    return (*records_follow(evidence, row), *found)


def records_follow(evidence: RunEvidence, row: RowKey) -> Differences:
    """The three records' bytes, made again from the journals alone; a session asks it once more before its audit."""
    run = assemble(evidence.folder, evidence.loaded)
    protocol = evidence.loaded.protocol
    book = ledger_of(protocol, run, read_executions(evidence.folder))
    records = {"run.json": run, "ledger.json": book, "statistics.json": statistics_of(protocol, book)}
    made = {name: sha256_hex(canonical_bytes(record)) for name, record in records.items()}
    stored = {name: _stored(evidence, name) for name in made}
    return tuple(differs(f"{row.item} {name}", made[name], stored[name]) for name in made if made[name] != stored[name])


def _stored(evidence: RunEvidence, name: str) -> str:
    return sha256_hex(read_bytes(evidence.folder.file(name), what=name))


def _other_gold(evidence: RunEvidence) -> list[str]:
    if not isinstance(evidence.run, Run | SampledRun | TapedRun):
        return []
    registered, recorded = evidence.registered_gold, evidence.run.gold
    return sorted(name for name in {*registered, *recorded} if registered.get(name) != recorded.get(name))


def _other_tasks(evidence: RunEvidence) -> list[str]:
    if not isinstance(evidence.run, JudgedRun):
        return []
    registered, recorded = recorded_tasks(evidence.registered_tasks), evidence.run.tasks
    return sorted(name for name in {*registered, *recorded} if registered.get(name) != recorded.get(name))


def _other_answers(evidence: RunEvidence) -> list[str]:
    if not isinstance(evidence.run, StudyRun):
        return []
    registered, recorded = evidence.registered_answers, evidence.run.answers
    return sorted(name for name in {*registered, *recorded} if registered.get(name) != recorded.get(name))


def _identity(failure: Failure) -> tuple[str, str]:
    return failure.source_id, failure.replicate
