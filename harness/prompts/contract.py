"""The prompt contract: what must hold of every batch, checked on the IDs and not on how they were made.

Pure functions; each raises PromptError naming source, cell, expected and found. The checks don't trust
`harness.prompts.build`: hash, length, edit and position are worked out again from the IDs.
"""

from harness.canon import ids_sha256
from harness.errors import PromptError
from harness.prompts.records import IdRows, PromptBatch, PromptCell
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.boundary import SpecialPlaces, layout, special_places
from harness.records.profile import SpecialIds
from harness.records.prompt import Condition, EditedBoundary
from harness.records.protocol import BoundaryProtocol
from harness.records.run import Edit

TODO = "The prompt contract is registered: find what changed in texts, template or tokenizer."


def require(condition: bool, where: str, *, expected: object, found: object) -> None:  # noqa: FBT001  reads as a sentence
    """Raise PromptError unless `condition` holds."""
    if not condition:
        raise PromptError(where, expected=str(expected), found=str(found), todo=TODO)


def check_texts(protocol: BoundaryProtocol, tokenizer: PromptTokenizer, *, source_id: str, text: str) -> None:
    """No text around or in the source holds a special token's text, and the source survives tokenisation.

    A special token's text inside a message would become the token itself: a second BOS or EOS (R04 2).
    """
    named = {
        "source text": text,
        "prompt.system_text": protocol.prompt.system_text,
        "prompt.one_shot_question": protocol.prompt.one_shot_question,
        "prompt.one_shot_answer": protocol.prompt.one_shot_answer,
        **{f"domains.{domain.name}.content": domain.content for domain in protocol.domains},
    }
    for name, value in named.items():
        held = [special for special in tokenizer.added_texts if special in value]
        require(not held, f"{source_id}: {name}", expected="no special token's text", found=held)
    check_round_trip(tokenizer, text, where=f"{source_id}: source text")


def check_round_trip(tokenizer: PromptTokenizer, text: str, *, where: str) -> tuple[int, ...]:
    """The IDs of a text, once decoding them was seen to give the text back."""
    ids = tokenizer.encode(text)
    back = tokenizer.decode(ids)
    require(back == text, f"{where}: decode(encode(text))", expected=_around(text, back), found=_around(back, text))
    return ids


def check_batch(protocol: BoundaryProtocol, special: SpecialIds, batch: PromptBatch) -> None:
    """The whole contract of a batch: order, hashes, edits, special tokens, alignment and padding (R04 2, 6.3, 6.4)."""
    order = [condition.id for condition in protocol.conditions]
    found = [cell.condition for cell in batch.cells]
    require(found == order, f"{batch.source_id}: order of cells", expected=order, found=found)
    boundary_ids = {boundary.name: boundary.id for boundary in protocol.boundaries}
    for condition, cell in zip(protocol.conditions, batch.cells, strict=True):
        where = f"{batch.source_id} {cell.condition}"
        check_identity(cell, where)
        check_edits(cell, condition, boundary_ids[condition.boundary], special, where=where)
        check_special_tokens(cell, special, protocol.prompt.edited_boundary, where=where)
    check_levels(protocol, batch)
    check_tails(batch)
    check_width(batch)


def check_identity(cell: PromptCell, where: str) -> None:
    """Hash and length are those of the IDs."""
    require(cell.length == len(cell.ids), f"{where}: length", expected=len(cell.ids), found=cell.length)
    digest = ids_sha256(cell.ids)
    require(cell.sha256 == digest, f"{where}: sha256", expected=digest, found=cell.sha256)


def check_edits(cell: PromptCell, condition: Condition, boundary_id: int, special: SpecialIds, *, where: str) -> None:
    """Official cells have no edit, the others exactly one: EOS at the boundary became the boundary's ID (R04 6.4)."""
    require(len(cell.edits) == condition.edits, f"{where}: edits", expected=condition.edits, found=len(cell.edits))
    position = cell.boundary_position
    inside = 0 < position < cell.length
    require(inside, f"{where}: boundary_position", expected=f"1..{cell.length - 1}", found=position)
    require(
        cell.ids[position] == boundary_id, f"{where}: ID at {position}", expected=boundary_id, found=cell.ids[position]
    )
    edit = Edit(position=position, official=special.eos, replaced=boundary_id)
    require(all(one == edit for one in cell.edits), f"{where}: edit", expected=edit, found=cell.edits)


def check_special_tokens(cell: PromptCell, special: SpecialIds, rule: EditedBoundary, *, where: str) -> None:
    """BOS and EOS stand where the rule puts them in an official prompt; an edit takes one EOS, and may put one BOS."""
    position = cell.boundary_position
    if rule == "assistant_history_end":
        places = SpecialPlaces(bos=(0,), eos=(position,), boundary=position)
    else:
        places = _turns(cell, special, rule, where)
    bos_at, eos_at = places.edited(cell.ids[position], special)
    for name, token, expected in (("EOS", special.eos, eos_at), ("BOS", special.bos, bos_at)):
        found = [place for place, one in enumerate(cell.ids) if one == token]
        require(found == expected, f"{where}: positions of {name}", expected=expected, found=found)


def _turns(cell: PromptCell, special: SpecialIds, rule: EditedBoundary, where: str) -> SpecialPlaces:
    """The places of the official prompt that the cell was made from: its own IDs, with EOS back at the boundary."""
    position = cell.boundary_position
    found = special_places(rule, (*cell.ids[:position], special.eos, *cell.ids[position + 1 :]), special)
    if found is None or found.boundary != position:
        at = [place for place, one in enumerate(cell.ids) if one in (special.bos, special.eos)]
        expected = f"{layout(rule)}, the boundary at {position}"
        raise PromptError(f"{where}: turns", expected=expected, found=f"BOS and EOS at {at}", todo=TODO)
    return found


def check_levels(protocol: BoundaryProtocol, batch: PromptBatch) -> None:
    """At one system level the cells are equally long and differ at the boundary only, so the target's place is one."""
    first: dict[bool, PromptCell] = {}
    for condition, cell in zip(protocol.conditions, batch.cells, strict=True):
        base = first.setdefault(condition.system, cell)
        where = f"{batch.source_id} {cell.condition}"
        require(
            cell.length == base.length,
            f"{where}: length",
            expected=f"{base.length} as {base.condition}",
            found=cell.length,
        )
        at = base.boundary_position
        require(cell.boundary_position == at, f"{where}: boundary_position", expected=at, found=cell.boundary_position)
        pairs = zip(base.ids, cell.ids, strict=True)
        differs = [place for place, (left, right) in enumerate(pairs) if left != right and place != at]
        require(
            not differs,
            f"{where}: target and context",
            expected=f"the IDs of {base.condition}",
            found=f"others at {differs}",
        )


def check_tails(batch: PromptBatch) -> None:
    """After the boundary all cells are the same: only the system text makes the levels differ in length (R04 6.3)."""
    base = batch.cells[0]
    tail = base.ids[base.boundary_position + 1 :]
    for cell in batch.cells:
        own = cell.ids[cell.boundary_position + 1 :]
        where = f"{batch.source_id} {cell.condition}: IDs after the boundary"
        require(own == tail, where, expected=f"those of {base.condition} ({len(tail)})", found=f"others ({len(own)})")


def check_width(batch: PromptBatch) -> None:
    """The batch is as wide as its longest cell, and left padding absorbs exactly the rest (R04 2)."""
    width = max(cell.length for cell in batch.cells)
    require(batch.width == width, f"{batch.source_id}: width", expected=width, found=batch.width)
    expected = tuple(width - cell.length for cell in batch.cells)
    require(batch.padding == expected, f"{batch.source_id}: padding", expected=expected, found=batch.padding)


def check_padded(batch: PromptBatch, ids: IdRows, mask: IdRows, *, pad_id: int) -> None:
    """Rows are PAD x padding then the cell, mask 0 then 1: no token of a prompt is masked, no padding is seen."""
    count = len(batch.cells)
    require(len(ids) == len(mask) == count, f"{batch.source_id}: rows", expected=count, found=(len(ids), len(mask)))
    for row, (cell, padding) in enumerate(zip(batch.cells, batch.padding, strict=True)):
        where = f"{batch.source_id} {cell.condition}"
        require(
            mask[row] == (0,) * padding + (1,) * cell.length,
            f"{where}: mask",
            expected=f"{padding} zeros, then {cell.length} ones",
            found=mask[row],
        )
        require(
            ids[row][padding:] == cell.ids, f"{where}: row", expected="the cell's IDs after padding", found="others"
        )
        pads = ids[row][:padding]
        require(pads == (pad_id,) * padding, f"{where}: padding", expected=f"{padding} times {pad_id}", found=pads)


def _around(text: str, other: str) -> str:
    """A few characters of `text` from its first difference to `other`, with the place."""
    place = next(
        (at for at, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), min(len(text), len(other))
    )
    return f"{text[place : place + 20]!r} at character {place}"
