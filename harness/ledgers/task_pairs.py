"""Pairs of conditions within a unit (R08 1.1): where two rows part, and that they read the same numbers until then.

The z of every step follow from the tape's identity (R08 4.2), so the proof is that each row's own account of what it
consumed is what tape, source and its length say. Its differences stand in the row where it fails.
"""

from collections.abc import Iterator

from harness.compare import cells_by_condition, compare_ids
from harness.ledgers.drawn import drawn_by_condition
from harness.records.protocol import TaskCrnProtocol
from harness.records.run import CellRecord
from harness.records.taped import TapedEvidence, TaskContrast
from harness.records.tapes import ConsumedValues, RowTape
from harness.records.task_ledger import BlockRole, Diverged, NotDiverged, NotShared, SharedUniforms, TaskPairRow
from harness.tapes.consumed import consumption_differences
from harness.tapes.tape import Tape


def pair_rows(protocol: TaskCrnProtocol, unit: TapedEvidence, *, role: BlockRole) -> Iterator[TaskPairRow]:
    """A unit's registered contrasts in the protocol's order; ProtocolError where its replicate names no tape."""
    cells, drawn = cells_by_condition(protocol, unit), drawn_by_condition(protocol, unit)
    tape = Tape(protocol.registered_id, unit.replicate)
    faults = {name: _faults(unit, tape, drawn[name], cells[name]) for name in cells}
    for contrast in protocol.contrasts:
        left, right = cells[contrast.left], cells[contrast.right]
        comparison = compare_ids(left.generated_ids, right.generated_ids)
        before = comparison.common_prefix_tokens
        yield TaskPairRow(
            domain=unit.domain,
            index=unit.index,
            source_id=unit.source_id,
            replicate=unit.replicate,
            role=role,
            contrast=contrast.id,
            left=contrast.left,
            right=contrast.right,
            comparison=comparison,
            divergence=NotDiverged() if comparison.ids_exact else Diverged(step=before),
            uniforms=_uniforms(contrast, drawn, faults, before),
        )


def _uniforms(
    contrast: TaskContrast, drawn: dict[str, RowTape], faults: dict[str, tuple[str, ...]], before: int
) -> SharedUniforms | NotShared:
    """Where both accounts are the tape's, the shorter row's values are the beginning of the longer one's."""
    if found := (*faults[contrast.left], *faults[contrast.right]):
        return NotShared(differences=found)
    shorter = min((drawn[side].consumed for side in (contrast.left, contrast.right)), key=_count)
    return SharedUniforms(before=before, steps=shorter.count, sha256=shorter.sha256)


def _count(consumed: ConsumedValues) -> int:
    return consumed.count


def _faults(unit: TapedEvidence, tape: Tape, row: RowTape, cell: CellRecord) -> tuple[str, ...]:
    """What isn't as the unit's replicate, its source and the cell's length say."""
    pairs = (
        ("tape of the unit", tape.label, unit.tape.label),
        ("digest of the unit's tape", tape.sha256, unit.tape.sha256),
        ("tape", tape.label, row.tape),
        ("tape_sha256", tape.sha256, row.tape_sha256),
        ("tokens", cell.length, len(cell.generated_ids)),
    )
    found = [f"{name}: expected {one}, found {other}" for name, one, other in pairs if one != other]
    found += [f"consumed.{one}" for one in consumption_differences(row.consumed, tape, unit.source_id, cell.length)]
    return tuple(f"{cell.condition}: {one}" for one in found)
