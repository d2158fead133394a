"""Checks of two runs made apart: placement equivalence, independent replay, row determinism.

Each first proves that the two really are two. A pair that can't prove it fails on every row.
"""

from harness.errors import JournalError
from harness.evidence import Differences, PairEvidence, RunEvidence, VariantEvidence, cell_name, differs
from harness.protocols.grids import RowKey
from harness.records.run import CellRecord


def placement_equivalence(pair: PairEvidence, row: RowKey) -> Differences:
    """R04 8, R05 3: two different device maps, an MoE layer really offloaded in one, all registered fields equal."""
    one, other = pair.first.placement, pair.second.placement
    found = list(made_apart(pair, row))
    for side, facts in ((pair.rule.left, one), (pair.rule.right, other)):
        if facts.id != side:
            found.append(differs(f"{cell_name(row)} placement", side, facts.id))
    if one.device_map == other.device_map:
        found.append(differs(f"{cell_name(row)} device maps", "two different maps", "the same map twice"))
    if not one.offloaded_moe_layers and not other.offloaded_moe_layers:
        found.append(differs(f"{cell_name(row)} offloaded MoE layers", "at least one on one side", "none"))
    return (*found, *same_cell(pair, row))


def independent_replay(pair: PairEvidence, row: RowKey) -> Differences:
    """R04 4 and 6.7: a fresh process, the same environment and placement, all registered fields equal."""
    found = list(made_apart(pair, row))
    one, other = pair.first, pair.second
    if one.run.environment_sha256 != other.run.environment_sha256:
        found.append(differs(f"{cell_name(row)} environment", one.run.environment_sha256, other.run.environment_sha256))
    if one.placement != other.placement:
        found.append(differs(f"{cell_name(row)} placement", one.placement.id, other.placement.id))
    return (*found, *same_cell(pair, row))


def row_determinism(evidence: VariantEvidence, row: RowKey) -> Differences:
    """Ours: with the variant's threads and processes, read back, every registered field is the same."""
    pair, variant = evidence.pairs[row.variant], evidence.variants[row.variant]
    workers = len({process.pid for process in pair.second.processes})
    pairs = (
        ("threads", variant.threads, pair.second.environment.threads),
        ("processes that made units", variant.workers, workers),
    )
    found = [differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other]
    return (*made_apart(pair, row), *found, *same_cell(pair, row))


def made_apart(pair: PairEvidence, row: RowKey) -> Differences:
    """The two runs share no process and no model load, and the second is the children's that the parent started."""
    one, other = pair.first, pair.second
    loads = {process.model_load_id for process in one.processes} & {
        process.model_load_id for process in other.processes
    }
    pids = {process.pid for process in other.processes}
    found = []
    if one.folder.path.resolve() == other.folder.path.resolve():
        found.append(differs(f"{cell_name(row)} runs", "two run folders", "one folder twice"))
    if loads:
        found.append(differs(f"{cell_name(row)} model loads", "none shared", f"{len(loads)} shared: the run itself"))
    if not pids <= set(pair.pids):
        found.append(differs(f"{cell_name(row)} processes", f"the started children {sorted(pair.pids)}", sorted(pids)))
    if one.run.protocol_digest != other.run.protocol_digest:
        found.append(differs(f"{cell_name(row)} protocol", one.run.protocol_digest, other.run.protocol_digest))
    return tuple(found)


def same_cell(pair: PairEvidence, row: RowKey) -> Differences:
    """Every registered field of the cell is equal in both runs; IDs say where they part."""
    one, other = _cell(pair.first, row), _cell(pair.second, row)
    found = []
    for name in pair.rule.fields:
        left, right = getattr(one, name), getattr(other, name)
        if left == right:
            continue
        if name == "generated_ids":
            step = next(
                (at for at, two in enumerate(zip(left, right, strict=False)) if two[0] != two[1]),
                min(len(left), len(right)),
            )
            found.append(
                differs(
                    f"{cell_name(row)} {name} from step {step}",
                    list(left[step : step + 4]),
                    list(right[step : step + 4]),
                )
            )
        else:
            found.append(differs(f"{cell_name(row)} {name}", left, right))
    return tuple(found)


def _cell(evidence: RunEvidence, row: RowKey) -> CellRecord:
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    unit = evidence.units.get((row.unit.source_id, row.unit.replicate))
    if unit is None:
        raise JournalError(
            f"{evidence.folder.path}: {row.unit.source_id}",
            expected="a unit",
            found="none",
            todo="Start the run again.",
        )
    return next(cell for cell in unit.cells if cell.condition == row.item)
