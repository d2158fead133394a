"""A study's prompts (kind `study`): each cell's IDs are the rendered prompt's with the registered edits, and no others.

The prompt is rendered anew from inputs, messages and the model's own template, and every place is proven again.
"""

from collections.abc import Sequence

from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.prompts.records import PromptBatch, StudyCell
from harness.protocols.grids import RowKey
from harness.records.protocol import StudyProtocol
from harness.records.study import CellEdits, StudyEvidence


def edit_contract(evidence: RunEvidence, row: RowKey) -> Differences:
    """The cell's prompt IDs and its recorded edits are those that its condition's messages and edits give now."""
    unit, cell = evidence.batch(row), evidence.cell(row)
    if not isinstance(evidence.loaded.protocol, StudyProtocol) or not isinstance(unit, StudyEvidence):
        raise RuntimeError(f"{evidence.loaded.protocol.id} has no placed edits")
    made = _made(evidence.registered_prompts(unit.domain)[unit.source_id], row)
    recorded = [one for one in unit.edited if one.condition == row.item]
    undone = _without_edits(evidence, row)
    pairs: list[tuple[str, object, object]] = [
        ("prompt IDs", made.ids, cell.prompt_ids),
        ("edits", [made.edited], recorded),
        ("edits by ID", made.edits, cell.edits),
    ]
    if undone is not None:
        pairs.append(("IDs without the edits", undone, _undo(cell.prompt_ids, recorded)))
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def _made(batch: PromptBatch, row: RowKey) -> StudyCell:
    return next(cell for cell in batch.cells if isinstance(cell, StudyCell) and cell.condition == row.item)


def _undo(prompt: tuple[int, ...], recorded: Sequence[CellEdits]) -> tuple[int, ...]:
    """The edited prompt with every edit taken back, by its record alone."""
    ids = list(prompt)
    # In ascending order: what stands before a position is official again by then.
    for one in (span for cell in recorded for span in cell.edits):
        ids[one.position : one.position + len(one.put)] = one.official
    return tuple(ids)


def _without_edits(evidence: RunEvidence, row: RowKey) -> tuple[int, ...] | None:
    """The prompt IDs of the condition that has the same messages and no edit, where the study registers one."""
    protocol = evidence.loaded.protocol
    if not isinstance(protocol, StudyProtocol):
        return None
    own = next(one for one in protocol.conditions if one.id == row.item)
    plain = [one.id for one in protocol.conditions if one.messages == own.messages and not one.edits]
    return evidence.cell(RowKey(row.unit, plain[0])).prompt_ids if plain and own.edits else None
