"""Checks over the rows of a run under tapes (R08 5): what `harness.checks.taped` says of its units and cells.

And what is judged of the run as a whole: its sampler on known distributions, its blocks, the prompts of the whole grid.
"""

import json

from harness.canon import canonical_bytes
from harness.checks import taped
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.journal.assemble import run_blocks
from harness.journal.folder import SYNTHETIC, read_record
from harness.prompts.manifest import differences
from harness.protocols.grids import RowKey
from harness.records.graph import GraphEvidence
from harness.records.protocol import TapedProtocol, TaskCrnProtocol
from harness.records.taped import TapedRun
from harness.records.taped_study import TapedUnit
from harness.records.tapes import SyntheticDraws
from harness.tapes.synthetic import synthetic_differences
from harness.tapes.tape import Tape


def registered_prompts(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 5.1: the prompt that the chat renderer gives now has the manifest's hash, for every source of the grid."""
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    batch = evidence.registered_prompts(row.unit.domain)[row.unit.source_id]
    found = differences(evidence.loaded.source(row.unit.source_id), batch)
    return tuple(
        differs(f"{cell_name(row)} {one.field}", one.expected, one.found)
        for one in found
        if one.condition in ("", row.item)
    )


def taped_contract(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 2 and 4.3: tape, sampler, columns and cache of the unit are the registered ones."""
    columns = evidence.loaded.profile.shape.vocabulary_columns
    unit = _unit(evidence, row)
    found = taped.taped_contract(unit, _protocol(evidence).decode, tape=tape_of(evidence, row), columns=columns)
    return (*found, *_ran(evidence, row))


def _ran(evidence: RunEvidence, row: RowKey) -> Differences:
    """Of an executed unit: the step that really ran, and whether it was replayed from a graph, are what was read back.

    And these are what is registered: `decode_contract` says so of a run, `graph_equivalence` of a part.
    """
    unit, effective = _unit(evidence, row), evidence.environment.generation_config
    if not isinstance(unit, GraphEvidence):
        return ()
    ran, steps = unit.tape.ran, unit.checks.steps
    told = {name: json.dumps(getattr(ran, name)) for name in ("step", "captured", "look")}
    found = [
        differs(f"{cell_name(row)} {name}", effective.get(name, "not read back"), value)
        for name, value in told.items()
        if effective.get(name) != value
    ]
    enough = ran.replays >= steps - 1 if ran.captured else ran.replays == 0
    expected = f"{steps - 1} or more" if ran.captured else 0
    return (*found, *(() if enough else (differs(f"{cell_name(row)} replays", expected, ran.replays),)))


def tape_account(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 4.3: the cell's account is what tape, source and its generated IDs say."""
    return taped.tape_account(_unit(evidence, row), row.item, tape_of(evidence, row))


def shared_uniforms(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 4.2 and 5.1: the conditions of the unit read the same value in each step."""
    conditions = [condition.id for condition in evidence.loaded.protocol.conditions]
    return taped.shared_uniforms(_unit(evidence, row), conditions, tape_of(evidence, row))


def finished_rows(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 2: PAD is EOS, and a finished row's further columns are masked. A study's model may have a PAD of its own."""
    ids = evidence.loaded.profile.special_ids
    same = ids.pad == ids.eos or not isinstance(evidence.loaded.protocol, TaskCrnProtocol)
    alias = () if same else (differs("PAD", ids.eos, ids.pad),)
    return (*alias, *taped.finished_rows(_unit(evidence, row), row.item))


def taped_steps(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 5.1: logits finite in every step of every row that was live; one value consumed for each ID."""
    return taped.taped_steps(_unit(evidence, row))


def tapes_part(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 5.1: the first two tapes part in at least one cell, over the sources that have both."""
    del row
    names = evidence.loaded.protocol.grids[evidence.spec.grid].replicates[:2]
    units = [unit for unit in evidence.run.units if isinstance(unit, TapedUnit)]
    sides = [[unit for unit in units if unit.replicate == name] for name in names]
    if len(sides) != 2:
        return (differs("tapes", "two or more", len(sides)),)
    both = {unit.source_id for unit in sides[1]}  # a formal grid has more sources under its first tape
    return taped.tapes_part([unit for unit in sides[0] if unit.source_id in both], sides[1])


def synthetic_cdf(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 5.1: the run's own sampler drew on known distributions what they owe, top-p's filtered IDs among them."""
    draws = read_record(evidence.folder.file(SYNTHETIC), SyntheticDraws, what="synthetic draws")
    contract = _protocol(evidence).decode.sampler
    found = synthetic_differences(contract.rule, draws.outcomes)
    other = () if draws.sampler == contract else (differs(f"{row.item} sampler", contract, draws.sampler),)
    return (*other, *(f"{row.item} {line}" for line in found))


def blocks_apart(evidence: RunEvidence, row: RowKey) -> Differences:
    """R08 1.2 and 5.2: the run's blocks are the registered ones, each unit is in exactly one, none is pooled."""
    run, protocol = evidence.run, evidence.loaded.protocol
    if not isinstance(run, TapedRun) or not isinstance(protocol, TaskCrnProtocol):
        raise RuntimeError(f"{protocol.id} has no blocks")
    wanted = run_blocks(protocol, run.grid, len(run.domains))
    found = [] if wanted == run.blocks else [differs(f"{row.item} blocks", _plain(wanted), _plain(run.blocks))]
    for block in wanted:
        inside = [one for one in run.units if one.index in block.indices and one.replicate in block.replicates]
        cells = sum(len(unit.cells) for unit in inside)
        if (len(inside), cells) != (block.units, block.cells):
            where = f"{row.item} {block.role} block"
            found.append(differs(where, f"{block.units} units, {block.cells} cells", f"{len(inside)}, {cells}"))
    total = sum(block.units for block in wanted)
    return (*found, *(() if total == len(run.units) else (differs(f"{row.item} units", total, len(run.units)),)))


def drawn_under_tape(evidence: RunEvidence, row: RowKey) -> Differences:
    """Everything that is required of one unit and its rows by itself, for a run that stands beside another."""
    found = [line for check in (taped_contract, shared_uniforms, taped_steps) for line in check(evidence, row)]
    for cell in evidence.batch(row).cells:
        own = RowKey(row.unit, cell.condition)
        found += [*tape_account(evidence, own), *finished_rows(evidence, own)]
    return tuple(found)


def tape_of(evidence: RunEvidence, row: RowKey) -> Tape:
    """The tape that the row's unit must have been drawn under: by registered ID and the key's replicate."""
    if row.unit is None:
        raise RuntimeError(f"row {row} has no unit")
    return Tape(evidence.loaded.protocol.registered_id, row.unit.replicate)


def _plain(record: object) -> str:
    return canonical_bytes(record).decode("utf-8")


def _unit(evidence: RunEvidence, row: RowKey) -> TapedUnit:
    unit = evidence.batch(row)
    if not isinstance(unit, TapedUnit):
        raise RuntimeError(f"{evidence.loaded.protocol.id} draws under no tape")
    return unit


def _protocol(evidence: RunEvidence) -> TapedProtocol:
    if not isinstance(evidence.loaded.protocol, TapedProtocol):
        raise RuntimeError(f"{evidence.loaded.protocol.id} draws under no tape")
    return evidence.loaded.protocol
