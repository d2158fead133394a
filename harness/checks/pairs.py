"""Checks of two runs: placement equivalence, independent replay, row determinism, and what one process drew twice.

Each first proves that the two really are two. A pair that can't prove it fails on every row. The proof rests on
observations (processes, model loads, moments), which no digest covers: whoever forges all of them isn't found out here.
"""

from collections.abc import Sequence

import msgspec

from harness.canon import text_sha256
from harness.checks import taped_replay
from harness.checks.generation import greedy_steps, output_identity, rng_untouched
from harness.checks.prompts import batch_alignment, prompt_hashes
from harness.checks.sampled_run import drawn_as_registered
from harness.checks.sampling import replay_exact
from harness.checks.taped_run import drawn_under_tape
from harness.checks.whole import layer_offloaded, offload_wanted, on_device
from harness.compare import common_prefix
from harness.evidence import Differences, PairEvidence, RunEvidence, VariantEvidence, cell_name, differs
from harness.protocols.grids import RowKey
from harness.records.protocol import PairRule
from harness.records.run import ProcessIdentity, UnitObservation
from harness.records.sampling import SampledEvidence
from harness.records.taped_study import TapedUnit

Pairs = Sequence[tuple[str, object, object]]


def placement_equivalence(pair: PairEvidence, row: RowKey) -> Differences:
    """R04 8, R05 3: two different device maps, a layer really offloaded in one, all registered fields equal.

    The layer is one with routed experts; of a dense model, any.

    Two maps are different where they put other bytes on the devices, however finely their modules are listed.
    """
    one, other = pair.first.placement, pair.second.placement
    if pair.first.spec.placement == pair.rule.right:
        one, other = other, one
    same = one.device_map == other.device_map or one.parameter_bytes == other.parameter_bytes
    pairs: Pairs = (
        ("placement", pair.rule.left, one.id),
        ("placement", pair.rule.right, other.id),
        ("device maps", "two different maps", "the same map twice" if same else "two different maps"),
        (offload_wanted(pair.first), True, layer_offloaded(pair.first, one, other)),
        ("environment", pair.first.run.environment_sha256, pair.second.run.environment_sha256),
        *on_device(pair.second),
    )
    return (*made_apart(pair, row), *_differences(row, pairs), *same_cell(pair, row))


def independent_replay(pair: PairEvidence, row: RowKey) -> Differences:
    """R04 4 and 6.7: a fresh process, the same environment and placement, all registered fields equal."""
    one, other = pair.first, pair.second
    pairs: Pairs = (
        ("environment", one.run.environment_sha256, other.run.environment_sha256),
        ("placement", one.placement, other.placement),
    )
    return (*made_apart(pair, row), *other_hash_seed(pair, row), *_differences(row, pairs), *same_cell(pair, row))


def same_process_replay(pair: PairEvidence, row: RowKey) -> Differences:
    """R07 7.1 (3): the same process drew the cell twice, in two calls, and every registered field is the same."""
    one, other = (side.observation(row) for side in (pair.first, pair.second))
    pairs: Pairs = (
        ("process", one.process, other.process),
        ("calls", 2, len({call_of(one), call_of(other)})),
        ("one after the other", True, one.finished_us <= other.finished_us),
        ("run folders", 2, len({pair.first.folder.path.resolve(), pair.second.folder.path.resolve()})),
        ("grid", pair.rule.grid, pair.second.run.grid),
        ("protocol", pair.first.run.protocol_digest, pair.second.run.protocol_digest),
        ("environment", pair.first.run.environment_sha256, pair.second.run.environment_sha256),
        ("placement", pair.first.placement, pair.second.placement),
        ("part of this run", pair.part_id, pair.second.spec.run_id),
    )
    return (*_differences(row, pairs), *second_holds(pair, row), *same_cell(pair, row))


def row_determinism(evidence: VariantEvidence, row: RowKey) -> Differences:
    """Ours: with the variant's threads and processes, read back, every registered field is the same."""
    pair, variant = evidence.pairs[row.variant], evidence.variants[row.variant]
    first, second = pair.first, pair.second
    usual = (first.loaded.protocol.execution.threads, 1)
    pairs: Pairs = (
        ("threads", variant.threads, second.environment.threads),
        ("processes that made units", variant.workers, len({process.model_load_id for process in second.processes})),
        ("a variant", True, (variant.threads, variant.workers) != usual),
        ("placement", first.placement, second.placement),
        (
            "environment apart from threads",
            first.environment,
            msgspec.structs.replace(second.environment, threads=first.environment.threads),
        ),
    )
    return (*made_apart(pair, row), *_differences(row, pairs), *same_cell(pair, row))


def made_apart(pair: PairEvidence, row: RowKey) -> Differences:
    """The two runs are two, and what is required of the first one's cell holds of the second's."""
    return (*proven_apart(pair, row), *second_holds(pair, row))


def other_hash_seed(pair: PairEvidence, row: RowKey) -> Differences:
    """No process of the second run hashes a text as one of the first does, so no set has one order in both (R05 10)."""
    shared = {one.str_hash for one in pair.first.processes} & {one.str_hash for one in pair.second.processes}
    pairs: Pairs = (("Python's hash seed", "another", "the same" if shared else "another"),)
    return _differences(row, pairs)


def proven_apart(pair: PairEvidence, row: RowKey) -> Differences:
    """The two runs share no process, model load or call; the second has the rule's grid and is the children's."""
    one, other = pair.first, pair.second
    loads = len(_loads(one.processes) & _loads(other.processes))
    pids, started = {process.pid for process in other.processes}, f"the started children {sorted(pair.pids)}"
    pairs: Pairs = (
        ("run folders", 2, pair.folders),
        ("shared processes", [], sorted(_starts(pair.first.processes) & _starts(pair.second.processes))),
        ("model loads", "none shared", f"{loads} shared: the run itself" if loads else "none shared"),
        ("calls", "two", "the same one twice" if _call(one, row) == _call(other, row) else "two"),
        ("processes", started, started if pids <= set(pair.pids) else f"{sorted(pids)}"),
        ("protocol", one.run.protocol_digest, other.run.protocol_digest),
        ("grid", pair.rule.grid, other.run.grid),
        ("port", one.run.port, other.run.port),
        ("part of this run", pair.part_id, other.spec.run_id),
        ("start after the run's own", True, _first_start(other) > _first_start(one)),
        ("failures, also in attempts that were moved aside", [], pair.second_failures),
    )
    return _differences(row, pairs)


def second_holds(pair: PairEvidence, row: RowKey) -> Differences:
    """What is required of every run's cell is required of the second's too, not only that the two agree."""
    other = pair.second
    return (*prompt_hashes(other, row), *output_identity(other, row), *unit_holds(other, row))


def unit_holds(evidence: RunEvidence, row: RowKey) -> Differences:
    """What is required of every generated unit, by how it was generated; found once for all cells of a unit."""
    unit = RowKey(row.unit, "")
    if unit not in evidence.found:
        evidence.found[unit] = _unit_holds(evidence, unit)
    return evidence.found[unit]


def _unit_holds(evidence: RunEvidence, unit: RowKey) -> Differences:
    found = batch_alignment(evidence, unit)
    if isinstance(evidence.batch(unit), SampledEvidence):
        return (*found, *drawn_as_registered(evidence, unit))
    if isinstance(evidence.batch(unit), TapedUnit):
        return (*found, *drawn_under_tape(evidence, unit), *rng_untouched(evidence, unit))
    return (*found, *greedy_steps(evidence, unit), *rng_untouched(evidence, unit))


def _first_start(evidence: RunEvidence) -> int:
    return min((process.started_us for process in evidence.processes), default=0)


def _starts(processes: Sequence[ProcessIdentity]) -> set[tuple[int, int]]:
    return {(process.started_us, process.model_loaded_us) for process in processes}


def _loads(processes: Sequence[ProcessIdentity]) -> set[str]:
    return {process.model_load_id for process in processes}


def _call(evidence: RunEvidence, row: RowKey) -> tuple[int, int]:
    return call_of(evidence.observation(row))


def call_of(observation: UnitObservation) -> tuple[int, int]:
    """What no two calls have in common: how long one took and when it ended."""
    return observation.wall_ns, observation.finished_us


def same_cell(pair: PairEvidence, row: RowKey) -> Differences:
    """Every registered field of the cell, its IDs among them, is equal in both runs; IDs say where they part."""
    if not isinstance(pair.rule, PairRule):
        raise RuntimeError("cells are compared over registered fields, and this rule has none")
    found = [] if "generated_ids" in pair.rule.fields else [differs(cell_name(row), "generated_ids compared", "not")]
    units = pair.first.batch(row), pair.second.batch(row)
    if isinstance(units[0], SampledEvidence) and isinstance(units[1], SampledEvidence):
        return (*found, *replay_exact(units[0], units[1], row.item, pair.rule.fields))
    if isinstance(units[0], TapedUnit) or isinstance(units[1], TapedUnit):
        return (*found, *taped_replay.replay_exact(pair.first, pair.second, row, pair.rule.fields))
    one, other = pair.first.cell(row), pair.second.cell(row)
    for name in pair.rule.fields:
        left, right = getattr(one, name), getattr(other, name)
        if left != right and name == "generated_ids":
            found.append(_parting(row, left, right))
        elif left != right:
            found.append(differs(f"{cell_name(row)} {name}", *_shown(name, left, right)))
    return tuple(found)


def _parting(row: RowKey, left: tuple[int, ...], right: tuple[int, ...]) -> str:
    step = common_prefix(left, right)
    where = f"{cell_name(row)} generated_ids from step {step}"
    return differs(where, list(left[step : step + 4]), list(right[step : step + 4]))


def _shown(name: str, left: object, right: object) -> tuple[object, object]:
    """Model text isn't shown, only its digest."""
    return (text_sha256(str(left)), text_sha256(str(right))) if name == "text_escaped" else (left, right)


def _differences(row: RowKey, pairs: Pairs) -> Differences:
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)
