from typing import Any

import msgspec
import pytest

from harness.canon import ids_sha256
from harness.errors import PromptError
from harness.prompts.build import padded
from harness.prompts.contract import check_batch, check_padded, check_round_trip
from harness.prompts.records import PromptBatch, PromptCell
from harness.prompts.tokenizer import PromptTokenizer
from harness.records.protocol import Protocol
from harness.records.run import Edit

replace = msgspec.structs.replace
SOURCE = "gsm8k/test/1069"


def with_ids(cell: PromptCell, ids: tuple[int, ...], **fields: Any) -> PromptCell:
    """The cell with other IDs, hash and length made to agree with them."""
    return replace(cell, ids=ids, sha256=ids_sha256(ids), length=len(ids), **fields)


def put(cell: PromptCell, at: int, token: int) -> PromptCell:
    """The cell with one ID replaced."""
    at %= cell.length
    return with_ids(cell, (*cell.ids[:at], token, *cell.ids[at + 1 :]))


def moved(cell: PromptCell, by: int) -> PromptCell:
    """The cell with its boundary said to be elsewhere."""
    return replace(cell, boundary_position=cell.boundary_position + by)


def other_edit(cell: PromptCell) -> PromptCell:
    """The cell with an edit that names another original ID."""
    return replace(cell, edits=(replace(cell.edits[0], official=3),))


# fault: (row of the damaged cell, how, message)
CELL_FAULTS = {
    "hash": (0, lambda c: replace(c, sha256="0" * 64), f"{SOURCE} s0_eos: sha256: expected .*, found 0000"),
    "length": (1, lambda c: replace(c, length=5), f"{SOURCE} s1_eos: length: expected .*, found 5"),
    "edit in an official cell": (
        0,
        lambda c: replace(c, edits=(Edit(position=1, official=257, replaced=257),)),
        "s0_eos: edits: expected 0, found 1",
    ),
    "no edit": (4, lambda c: replace(c, edits=()), "s0_x: edits: expected 1, found 0"),
    "two edits": (4, lambda c: replace(c, edits=c.edits * 2), "s0_x: edits: expected 1, found 2"),
    "edit of another ID": (4, other_edit, "s0_x: edit: expected Edit"),
    "other ID at the boundary": (
        6,
        lambda c: put(c, c.boundary_position, 3),
        r"s0_period: ID at \d+: expected .*, found 3",
    ),
    "boundary elsewhere": (0, lambda c: moved(c, 1), "s0_eos: ID at"),
    "boundary outside": (0, lambda c: moved(c, 10**6), "s0_eos: boundary_position: expected 1.."),
    "second EOS": (0, lambda c: put(c, -1, 257), r"s0_eos: positions of EOS: expected \[\d+\], found \[\d+, \d+\]"),
    "EOS left in an edited cell": (
        4,
        lambda c: put(c, -1, 257),
        r"s0_x: positions of EOS: expected \[\], found \[\d+\]",
    ),
    "second BOS": (0, lambda c: put(c, 3, 256), r"s0_eos: positions of BOS: expected \[0\], found \[0, 3\]"),
    "third BOS": (2, lambda c: put(c, 3, 256), r"s0_bos: positions of BOS: expected \[0, \d+\], found \[0, 3, \d+\]"),
    "no BOS": (5, lambda c: put(c, 0, 3), r"s1_x: positions of BOS: expected \[0\], found \[\]"),
    "other context": (
        4,
        lambda c: put(c, 3, 3),
        r"s0_x: target and context: expected the IDs of s0_eos, found others at \[3\]",
    ),
    "other target": (7, lambda c: put(c, -20, 3), r"s1_period: target and context: expected the IDs of s1_eos"),
    "longer": (4, lambda c: with_ids(c, (*c.ids, 3)), r"s0_x: length: expected \d+ as s0_eos"),
}


@pytest.mark.parametrize("fault", CELL_FAULTS)
def test_a_cell_that_breaks_the_contract_is_refused(
    fault: str, batch: PromptBatch, protocol: Protocol, tokenizer: PromptTokenizer
):
    """Each clause of the prompt contract turns red for a planted fault, and names source and cell."""
    row, damage, message = CELL_FAULTS[fault]
    cells = (*batch.cells[:row], damage(batch.cells[row]), *batch.cells[row + 1 :])
    with pytest.raises(PromptError, match=message):
        check_batch(protocol, tokenizer.special_ids, replace(batch, cells=cells))


BATCH_FAULTS = {
    "order": (lambda b: {"cells": b.cells[::-1]}, "order of cells"),
    "a cell less": (lambda b: {"cells": b.cells[:-1]}, "order of cells"),
    "width": (lambda b: {"width": b.width + 1}, r"width: expected \d+, found"),
    "padding": (lambda b: {"padding": (0,) * 8}, r"padding: expected .*, found \(0, 0, 0"),
}


@pytest.mark.parametrize("fault", BATCH_FAULTS)
def test_a_batch_that_breaks_the_contract_is_refused(
    fault: str, batch: PromptBatch, protocol: Protocol, tokenizer: PromptTokenizer
):
    """Order of cells, width and left padding are part of the contract."""
    damage, message = BATCH_FAULTS[fault]
    with pytest.raises(PromptError, match=message):
        check_batch(protocol, tokenizer.special_ids, replace(batch, **damage(batch)))


def test_levels_that_differ_after_the_boundary_are_refused(
    batch: PromptBatch, protocol: Protocol, tokenizer: PromptTokenizer
):
    """Were a whole level changed alike, the other level shows it: only the system text may differ (R04 6.3)."""
    cells = tuple(put(cell, -20, 3) if cell.condition.startswith("s1") else cell for cell in batch.cells)
    with pytest.raises(PromptError, match="s1_eos: IDs after the boundary: expected those of s0_eos"):
        check_batch(protocol, tokenizer.special_ids, replace(batch, cells=cells))


PADDED_FAULTS = {
    "masked token": (lambda ids, mask: (ids, ((0,) * 200 + mask[0][200:], *mask[1:])), "s0_eos: mask: expected"),
    "seen padding": (lambda ids, mask: (ids, ((1,) * len(mask[0]), *mask[1:])), "s0_eos: mask: expected"),
    "mask by ID": (
        lambda ids, mask: (ids, (tuple(int(one != 257) for one in ids[0]), *mask[1:])),
        "s0_eos: mask: expected",
    ),
    "right padding": (lambda ids, mask: ((ids[0][::-1], *ids[1:]), mask), "s0_eos: row: expected"),
    "other padding": (
        lambda ids, mask: (((3, *ids[0][1:]), *ids[1:]), mask),
        r"s0_eos: padding: expected \d+ times 257",
    ),
    "a row less": (lambda ids, mask: (ids[1:], mask), "rows: expected 8, found"),
}


@pytest.mark.parametrize("fault", PADDED_FAULTS)
def test_rows_that_break_left_padding_are_refused(fault: str, batch: PromptBatch):
    """A masked token, a seen padding, a mask made from IDs or another padding is found."""
    damage, message = PADDED_FAULTS[fault]
    ids, mask = damage(*padded(batch, 257))
    with pytest.raises(PromptError, match=message):
        check_padded(batch, ids, mask, pad_id=257)


class Stripping:
    """A tokenizer that loses spaces, as some libraries do with the wrong decoder."""

    def encode(self, text: str) -> tuple[int, ...]:
        """UTF-8 bytes."""
        return tuple(text.encode())

    def decode(self, ids: tuple[int, ...]) -> str:
        """The text, spaces lost."""
        return bytes(ids).decode().replace(" ", "")


def test_a_text_that_does_not_come_back_is_refused():
    """decode(encode(x)) == x is asserted, and the first difference is shown."""
    with pytest.raises(PromptError, match=r"src: decode.*expected ' b' at character 1, found 'b' at character 1"):
        check_round_trip(Stripping(), "a b", where="src")
