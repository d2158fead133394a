"""Prompt checks (R04 2, 5, 6): hashes, the single-ID contract, alignment of a batch."""

from harness.canon import ids_sha256
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.protocols.boundary import layout, special_places
from harness.protocols.grids import RowKey
from harness.records.profile import SpecialIds
from harness.records.prompt import Condition, EditedBoundary
from harness.records.protocol import BoundaryProtocol, StudyDesign
from harness.records.run import PromptRow


def prompt_hashes(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 5: the cell's prompt hash is the manifest's, and its own prompt IDs give it."""
    cell = evidence.prompt(row, row.item)
    registered = evidence.loaded.source(evidence.batch(row).source_id).prompts[row.item]
    pairs = (
        ("prompt_sha256", registered.sha256, cell.prompt_sha256),
        ("hash of the prompt IDs", registered.sha256, ids_sha256(cell.prompt_ids)),
        ("prompt length", registered.length, len(cell.prompt_ids)),
    )
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def single_id_contract(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 2 and 6.4: against its level's official cell, exactly the registered number of IDs differs."""
    cell = evidence.prompt(row, row.item)
    condition = _condition(evidence, row.item)
    boundary = next(one for one in evidence.loaded.protocol.boundaries if one.name == condition.boundary)
    official = _official(evidence, row, condition)
    special, rule = evidence.loaded.profile.special_ids, _registered(evidence).prompt.edited_boundary
    if len(official.prompt_ids) != len(cell.prompt_ids):
        return (differs(f"{cell_name(row)} prompt length", len(official.prompt_ids), len(cell.prompt_ids)),)
    changed = [
        place for place, pair in enumerate(zip(official.prompt_ids, cell.prompt_ids, strict=True)) if pair[0] != pair[1]
    ]
    places = special_places(rule, official.prompt_ids, special)
    recorded = [(edit.position, edit.official, edit.replaced) for edit in cell.edits]
    wanted = [(places.boundary, special.eos, boundary.id)] if condition.edits and places is not None else []
    pairs = (
        ("BOS and EOS in the official prompt", layout(rule), layout(rule) if places is not None else "otherwise"),
        ("IDs that differ from the official prompt", condition.edits, len(changed)),
        ("recorded edits (position, official, replaced)", wanted, recorded),
        ("edited positions", [place for place, _, _ in wanted], changed),
        ("replaced by", [boundary.id] if condition.edits else [], [cell.prompt_ids[place] for place in changed]),
    )
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def batch_alignment(evidence: RunEvidence, row: RowKey) -> Differences:
    """R04 2 and 6.3: equal length within a level, one last column, BOS where it belongs, left padding only."""
    if isinstance(evidence.loaded.protocol, StudyDesign):
        return _left_padded(evidence, row)
    unit = evidence.batch(row)
    special, rule = evidence.loaded.profile.special_ids, evidence.loaded.protocol.prompt.edited_boundary
    width = max(len(cell.prompt_ids) for cell in unit.cells)
    found: list[str] = []
    for cell in unit.cells:
        where = f"{cell_name(row)} {cell.condition}"
        official = _official(evidence, row, _condition(evidence, cell.condition)).prompt_ids
        places = [place for place, token in enumerate(cell.prompt_ids) if token == special.bos]
        begins = (0,) if rule == "assistant_history_end" else _turn_begins(rule, official, special)
        expected_bos = sorted({*begins, *(edit.position for edit in cell.edits if edit.replaced == special.bos)})
        pairs = (
            ("length within its system level", len(official), len(cell.prompt_ids)),
            ("left padding", width - len(cell.prompt_ids), cell.left_padding),
            ("BOS positions", expected_bos, places),
        )
        found += [differs(f"{where} {name}", one, other) for name, one, other in pairs if one != other]
    return tuple(found)


def _left_padded(evidence: RunEvidence, row: RowKey) -> Differences:
    """A study's rows have no common length: each is padded on the left to the longest, and by nothing else."""
    unit = evidence.batch(row)
    width = max(len(cell.prompt_ids) for cell in unit.cells)
    return tuple(
        differs(f"{cell_name(row)} {cell.condition} left padding", width - len(cell.prompt_ids), cell.left_padding)
        for cell in unit.cells
        if width - len(cell.prompt_ids) != cell.left_padding
    )


def _turn_begins(rule: EditedBoundary, official: tuple[int, ...], special: SpecialIds) -> tuple[int, ...]:
    """Where the turns of an official prompt begin; nowhere where it isn't laid out in turns."""
    places = special_places(rule, official, special)
    return () if places is None else places.bos


def _condition(evidence: RunEvidence, name: str) -> Condition:
    return next(one for one in _registered(evidence).conditions if one.id == name)


def _registered(evidence: RunEvidence) -> BoundaryProtocol:
    protocol = evidence.loaded.protocol
    if isinstance(protocol, StudyDesign):
        raise RuntimeError(f"{protocol.id} has no historical boundary")
    return protocol


def _official(evidence: RunEvidence, row: RowKey, condition: Condition) -> PromptRow:
    name = next(one.id for one in _registered(evidence).conditions if one.system == condition.system and one.edits == 0)
    return evidence.prompt(row, name)
