"""A source's batch of prompts: a system level is tokenised once, its cells are that list with at most one ID replaced.

The replaced ID is the historical boundary: the EOS that ends the one-shot answer (R04 2), where the protocol's rule
says that it stands and the text before it shows that it does. A batch holds no gold answer. Padding exists only here
and in `padded`, from lengths alone: EOS is also PAD, so an ID never tells them apart.
"""

from dataclasses import dataclass

from harness.canon import ids_sha256
from harness.errors import PromptError
from harness.inputs.sources import SourceText, registered_domain
from harness.prompts.contract import check_batch, check_padded, check_round_trip, check_texts, require
from harness.prompts.records import PaddedRows, PromptBatch, PromptCell, batch_of
from harness.prompts.render import RenderedPrompt, render_prompt
from harness.prompts.study import study_batch
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.boundary import layout, special_places
from harness.records.profile import SpecialIds
from harness.records.prompt import Boundary, Condition, EditedBoundary
from harness.records.protocol import BoundaryProtocol, Protocol, StudyDesign
from harness.records.run import Edit
from harness.records.sources import Domain


def build_batch(protocol: Protocol, tokenizer: PromptTokenizer, source: SourceText) -> PromptBatch:
    """All cells of one source, in the protocol's order of conditions, checked against the prompt contract.

    Raises PromptError naming source and cell.
    """
    if isinstance(protocol, StudyDesign):
        return study_batch(protocol, tokenizer, source)
    if isinstance(protocol, BoundaryProtocol):
        return _boundary_batch(protocol, tokenizer, source)
    raise RuntimeError(f"{protocol.id} is of no family that has prompts")


def _boundary_batch(protocol: BoundaryProtocol, tokenizer: PromptTokenizer, source: SourceText) -> PromptBatch:
    domain = registered_domain(protocol, source.domain)
    check_texts(protocol, tokenizer, source_id=source.source_id, text=source.text)
    special = tokenizer.special_ids
    levels = {
        system: _level(protocol, tokenizer, domain=domain, source=source, system=system)
        for system in dict.fromkeys(condition.system for condition in protocol.conditions)
    }
    rule = protocol.prompt.edited_boundary
    boundaries = {boundary.name: boundary for boundary in protocol.boundaries}
    cells = tuple(
        make_cell(
            levels[condition.system],
            condition,
            boundaries[condition.boundary],
            place=Place(rule, special, source.source_id),
        )
        for condition in protocol.conditions
    )
    batch = batch_of(source, cells)
    check_batch(protocol, special, batch)
    return batch


def render_source(
    protocol: BoundaryProtocol, tokenizer: PromptTokenizer, source: SourceText, *, system: bool
) -> RenderedPrompt:
    """The rendered text of a source at one system level, with the source's character span in it."""
    return render_prompt(
        tokenizer, protocol, domain=registered_domain(protocol, source.domain), text=source.text, system=system
    )


@dataclass(frozen=True, slots=True)
class Place:
    """How the boundary is found: the protocol's rule, the special IDs, and the source that a message names."""

    rule: EditedBoundary
    special: SpecialIds
    source_id: str


def make_cell(official: tuple[int, ...], condition: Condition, boundary: Boundary, *, place: Place) -> PromptCell:
    """One cell from its level's official IDs: nothing replaced for eos, exactly the boundary's ID otherwise."""
    position, eos = _boundary_position(official, place, condition.id), place.special.eos
    edit = Edit(position=position, official=eos, replaced=boundary.id)
    edits = () if boundary.id == eos else (edit,)
    ids = (*official[:position], boundary.id, *official[position + 1 :])
    return PromptCell(
        condition=condition.id,
        ids=ids,
        boundary_position=position,
        edits=edits,
        sha256=ids_sha256(ids),
        length=len(ids),
    )


def padded(batch: PromptBatch, pad_id: int) -> PaddedRows:
    """The batch as it enters the model: ids and mask, both cells x width; left padding is `pad_id` with mask 0.

    The mask is made from lengths, so an EOS inside a prompt is never masked though PAD is the same ID.
    """
    ids = tuple((pad_id,) * (batch.width - cell.length) + cell.ids for cell in batch.cells)
    mask = tuple((0,) * (batch.width - cell.length) + (1,) * cell.length for cell in batch.cells)
    check_padded(batch, ids, mask, pad_id=pad_id)
    return ids, mask


def _level(
    protocol: BoundaryProtocol, tokenizer: PromptTokenizer, *, domain: Domain, source: SourceText, system: bool
) -> tuple[int, ...]:
    rendered = render_prompt(tokenizer, protocol, domain=domain, text=source.text, system=system)
    where = f"{source.source_id} rendered with system={system}"
    ids = check_round_trip(tokenizer, rendered.text, where=where)
    place = Place(protocol.prompt.edited_boundary, tokenizer.special_ids, source.source_id)
    before = tokenizer.decode(ids[: _boundary_position(ids, place, f"rendered with system={system}")])
    answer = protocol.prompt.one_shot_answer
    require(
        before.endswith(answer), f"{where}: text before the boundary", expected=answer, found=before[-len(answer) :]
    )
    return ids


def _boundary_position(ids: tuple[int, ...], place: Place, what: str) -> int:
    found = special_places(place.rule, ids, place.special)
    if found is None:
        at = {
            name: [position for position, token in enumerate(ids) if token == one]
            for name, one in (("BOS", place.special.bos), ("EOS", place.special.eos))
        }
        raise PromptError(
            f"{place.source_id} {what}: official prompt",
            expected=layout(place.rule),
            found=", ".join(f"{name} at positions {positions}" for name, positions in at.items()),
            todo="Use the official chat template with exactly one assistant turn.",
        )
    return found.boundary
