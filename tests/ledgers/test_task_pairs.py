"""Pairs within a unit (R08 1.1, 4.2): where two rows part, and the proof that they read the same numbers."""

import hashlib

import msgspec
import pytest
from pregate_support.books import Said

from harness.errors import JournalError, ProtocolError
from harness.ledgers.task import task_ledger
from harness.ledgers.task_statistics import task_statistics
from harness.records.task_ledger import Diverged, NotDiverged, NotShared, SharedUniforms
from harness.tapes.consumed import registered_consumption
from harness.tapes.tape import Tape

from .tasks import CONTRASTS, REGISTERED_ID, TaskBuilder, task_protocol

replace = msgspec.structs.replace
SAID = {
    "s0_eos": Said("so 12"),
    "s1_eos": Said("so 13"),
    "s0_period": Said("so 12"),
    "s1_period": Said("s", eos=False),
}


@pytest.fixture(scope="module")
def tasks():
    """A builder of one task a domain and one tape."""
    return TaskBuilder(task_protocol(tasks=1, diagnostic=()))


@pytest.fixture(scope="module")
def unit(tasks):
    """The one unit of mathematics."""
    return tasks.drawn("math", 0, SAID)


def book_of(tasks, unit):
    """The ledger of a run of one unit."""
    return task_ledger(tasks.protocol, tasks.task_run((unit,)), {})


def z_sha256(steps, source_id="math/0000", label="T0"):
    """SHA-256 over the z of steps 0 to steps - 1, from the clause's own words."""
    data = b""
    for step in range(steps):
        name = f"{REGISTERED_ID}\0uniform\0{label}\0{source_id}\0{step}"
        data += hashlib.sha256(name.encode()).digest()[:8]
    return hashlib.sha256(data).hexdigest()


def test_a_pair_for_every_contrast(tasks, unit):
    """In the protocol's order, with its sides."""
    found = [(row.contrast, row.left, row.right) for row in book_of(tasks, unit).pairs]
    assert found == [(one.id, one.left, one.right) for one in CONTRASTS]


@pytest.mark.parametrize(
    ("contrast", "divergence", "before", "steps"),
    [
        ("period_at_s0", NotDiverged(), 6, 6),
        ("system_at_eos", Diverged(step=4), 4, 6),
        ("period_at_s1", Diverged(step=1), 1, 1),
        ("system_at_period", Diverged(step=1), 1, 1),
    ],
)
def test_where_two_rows_part(tasks, unit, contrast, divergence, before, steps):
    """Counted from 0; the numbers shared before it and in all common steps are the tape's."""
    (row,) = [one for one in book_of(tasks, unit).pairs if one.contrast == contrast]
    assert row.divergence == divergence
    assert row.uniforms == SharedUniforms(before=before, steps=steps, sha256=z_sha256(steps))


def faulty(unit, condition="s1_eos", **changed):
    """The unit with another account of one row's consumed values."""
    rows = tuple(
        replace(row, consumed=replace(row.consumed, **changed)) if row.condition == condition else row
        for row in unit.tape.rows
    )
    return replace(unit, tape=replace(unit.tape, rows=rows))


def other_row(unit, condition="s1_eos", **changed):
    """The unit with other fields of one row's tape."""
    rows = tuple(replace(row, **changed) if row.condition == condition else row for row in unit.tape.rows)
    return replace(unit, tape=replace(unit.tape, rows=rows))


def shorter(unit, condition="s1_eos"):
    """The unit with a cell whose length isn't that of its tokens."""
    cells = tuple(
        replace(cell, generated_ids=cell.generated_ids[:-1]) if cell.condition == condition else cell
        for cell in unit.cells
    )
    return replace(unit, cells=cells)


OTHER = Tape(REGISTERED_ID, "T1")
FAULTS = {
    "a token too few": shorter,
    "count": lambda unit: faulty(unit, count=5),
    "first_z": lambda unit: faulty(unit, first_z=("0" * 16, *unit.tape.rows[1].consumed.first_z[1:])),
    "first_u": lambda unit: faulty(unit, first_u=("0x0.0p+0", *unit.tape.rows[1].consumed.first_u[1:])),
    "sha256": lambda unit: faulty(unit, sha256="0" * 64),
    "tape": lambda unit: other_row(unit, tape="T1"),
    "tape_sha256": lambda unit: other_row(unit, tape_sha256=OTHER.sha256),
    "another tape's values": lambda unit: other_row(unit, consumed=registered_consumption(OTHER, "math/0000", 6)),
    "another source's values": lambda unit: other_row(
        unit, consumed=registered_consumption(Tape(REGISTERED_ID, "T0"), "math/0001", 6)
    ),
    "another ID's values": lambda unit: other_row(
        unit, consumed=registered_consumption(Tape("another", "T0"), "math/0000", 6)
    ),
    "a value too few": lambda unit: other_row(
        unit, consumed=registered_consumption(Tape(REGISTERED_ID, "T0"), "math/0000", 5)
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_row_that_read_other_numbers_is_seen(tasks, unit, fault):
    """In both contrasts of the row and in no other; each difference names the row."""
    pairs = {row.contrast: row.uniforms for row in book_of(tasks, FAULTS[fault](unit)).pairs}
    broken = {name for name, found in pairs.items() if isinstance(found, NotShared)}
    assert broken == {"period_at_s1", "system_at_eos"}
    assert all(one.startswith("s1_eos: ") for name in broken for one in pairs[name].differences)


@pytest.mark.parametrize("changed", [{"label": "T1"}, {"sha256": OTHER.sha256}])
def test_a_unit_under_another_tape_is_seen(tasks, unit, changed):
    """The unit's replicate says which tape; a batch that says another proves nothing in any of its contrasts."""
    broken = replace(unit, tape=replace(unit.tape, **changed))
    assert all(isinstance(row.uniforms, NotShared) for row in book_of(tasks, broken).pairs)


def test_a_replicate_that_is_no_tape_is_refused(tasks, unit):
    """There is nothing to make its numbers from."""
    protocol = tasks.protocol
    grids = {**protocol.grids, "formal": replace(protocol.grids["formal"], replicates=("R0",))}
    blocks = {**protocol.grid_blocks, "formal": (replace(protocol.grid_blocks["formal"][0], replicates=("R0",)),)}
    run = tasks.task_run((replace(unit, replicate="R0"),))
    with pytest.raises(ProtocolError, match=r"^tape: expected T0, T1"):
        task_ledger(replace(protocol, grids=grids, grid_blocks=blocks), run, {})


def test_no_statistic_is_made_of_unproven_pairs(tasks, unit):
    """The ledger says it in its row; the statistics stop there and name it."""
    good = book_of(tasks, unit)
    assert task_statistics(tasks.protocol, good).pairing == "shared uniform numbers"
    bad = book_of(tasks, faulty(unit, sha256="0" * 64))
    with pytest.raises(JournalError, match=r"^ledger: pair math/0000, T0, period_at_s1: .*s1_eos: consumed.sha256"):
        task_statistics(tasks.protocol, bad)
