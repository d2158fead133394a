"""Checks of units under a tape: they hold for any rows that agree with their tape, and each altered field is told."""

from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pregate_support.taped import BUDGET, COLUMNS, CONDITIONS, CONTRACT, SOURCE, TAPE, taped_unit

from harness.checks import taped
from harness.checks.cells import parted_cells
from harness.checks.taped_replay import replay_exact
from harness.protocols.check_taped_study import CROSS_PROCESS, SAME_PROCESS
from harness.protocols.grids import RowKey, UnitKey
from harness.records.run import StateHash
from harness.records.tapes import EdgeDistance, Finished, NotFinished
from harness.tapes.consumed import registered_consumption
from harness.tapes.tape import Tape

replace = msgspec.structs.replace
LENGTHS = st.lists(st.integers(1, BUDGET), min_size=4, max_size=4)
OTHER = Tape(TAPE.registered_id, "T1")


def all_lines(unit, tape=TAPE):
    """What every check of one unit says."""
    lines = [
        *taped.taped_contract(unit, CONTRACT, tape=tape, columns=COLUMNS),
        *taped.shared_uniforms(unit, CONDITIONS, tape),
        *taped.taped_steps(unit),
    ]
    for condition in CONDITIONS:
        lines += [*taped.tape_account(unit, condition, tape), *taped.finished_rows(unit, condition)]
    return lines


def with_row(unit, place=2, **changes):
    """One row's account with changed fields."""
    rows = list(unit.tape.rows)
    rows[place] = replace(rows[place], **changes)
    return replace(unit, tape=replace(unit.tape, rows=tuple(rows)))


def with_batch(unit, **changes):
    """How the unit was drawn, with changed fields."""
    return replace(unit, tape=replace(unit.tape, **changes))


def with_checks(unit, **changes):
    """The step checks with changed fields."""
    return replace(unit, checks=replace(unit.checks, **changes))


@given(LENGTHS)
def test_rows_that_agree_with_their_tape_hold(lengths):
    """Whatever their lengths: ended at once, cut, all together or all apart."""
    assert all_lines(taped_unit(lengths)) == []


@given(LENGTHS, st.integers(0, 3))
def test_a_row_at_the_wrong_step_is_told(lengths, place):
    """R08 4.2: u of the next step instead of this one's, in one row."""
    unit = taped_unit(lengths)
    longer = registered_consumption(TAPE, SOURCE, lengths[place] + 1)
    late = replace(longer, count=lengths[place], first_z=longer.first_z[1:], first_u=longer.first_u[1:])
    wrong = with_row(unit, place, consumed=late)
    assert taped.shared_uniforms(wrong, CONDITIONS, TAPE)
    assert taped.tape_account(wrong, CONDITIONS[place], TAPE)
    others = [name for at, name in enumerate(CONDITIONS) if at != place]
    assert [line for name in others for line in taped.tape_account(wrong, name, TAPE)] == []


@given(LENGTHS)
def test_a_pooled_tape_is_told(lengths):
    """T1's unit with T0's values, by T1's name, in every row."""
    unit, first = taped_unit(lengths, label="T1"), taped_unit(lengths)
    rows = tuple(
        replace(row, consumed=other.consumed) for row, other in zip(unit.tape.rows, first.tape.rows, strict=True)
    )
    wrong = with_batch(unit, rows=rows)
    assert all_lines(unit, OTHER) == []
    assert all(taped.tape_account(wrong, condition, OTHER) for condition in CONDITIONS)
    assert taped.shared_uniforms(wrong, CONDITIONS, OTHER)


@given(LENGTHS, st.integers(1, 3))
def test_a_finished_row_that_consumes_is_told(lengths, more):
    """It read values while the others went on."""
    unit = taped_unit(lengths)
    consumed = registered_consumption(TAPE, SOURCE, lengths[2] + more)
    wrong = with_row(unit, consumed=consumed)
    assert taped.finished_rows(wrong, CONDITIONS[2])
    assert taped.tape_account(wrong, CONDITIONS[2], TAPE)
    assert taped.taped_steps(wrong)


@given(LENGTHS, st.integers(0, 3), st.integers(-3, 3).filter(bool))
def test_another_mask_is_told(lengths, place, by):
    """A row whose finished columns were attended to, or that attended to too few."""
    unit = taped_unit(lengths)
    wrong = with_row(unit, place, attended=unit.tape.rows[place].attended + by)
    assert len(taped.finished_rows(wrong, CONDITIONS[place])) == 1
    assert len(taped.tape_account(wrong, CONDITIONS[place], TAPE)) == 1


FAULTS = {
    "condition": (lambda u: with_row(u, condition="s0_bos"), "one row with one account"),
    "tape": (lambda u: with_row(u, tape="T1"), "tape: expected 'T0', found 'T1'"),
    "tape_sha256": (lambda u: with_row(u, tape_sha256="0"), "tape_sha256: expected"),
    "sampler": (lambda u: with_row(u, sampler=replace(CONTRACT.sampler, top_p=1.0)), "s0_period sampler: expected"),
    "consumed": (lambda u: with_row(u, consumed=u.tape.rows[0].consumed), "consumed.count: expected 5, found 6"),
    "gaps": (lambda u: with_row(u, gaps=1), "gap_steps: expected 1 steps, found 0"),
    "gap_steps": (lambda u: with_row(u, gap_steps=(2,)), "gap_steps: expected 0 steps, found 1"),
    "gap_steps out of order": (lambda u: with_row(u, gaps=2, gap_steps=(3, 2)), "expected ascending steps below 5"),
    "a gap step that is none": (lambda u: with_row(u, gaps=1, gap_steps=(1,)), "ID of gap step 1: expected 2047"),
    "boundary_ties": (lambda u: with_row(u, boundary_ties=6), "boundary_ties: expected 0 to 5, found 6"),
    "nearest_edge": (lambda u: with_row(u, nearest_edge=EdgeDistance(distance=1.0)), "a distance in [0, 1), found 1.0"),
    "finish": (lambda u: with_row(u, finish=NotFinished()), "end: expected Finished(step=4), found NotFinished()"),
    "another finish": (lambda u: with_row(u, finish=Finished(step=3)), "end: expected Finished(step=4)"),
    "attended": (lambda u: with_row(u, attended=99), "columns attended to in the last forward: expected 12, found 99"),
    "label": (lambda u: with_batch(u, label="T1"), "tape: expected ('T0'"),
    "sha256": (lambda u: with_batch(u, sha256="0"), "tape: expected ('T0'"),
    "batch sampler": (lambda u: with_batch(u, sampler=replace(CONTRACT.sampler, rule="icdf-v1")), "sampler: expected"),
    "columns": (lambda u: with_batch(u, columns=2000), "columns: expected 2048, found 2000"),
    "cached": (lambda u: with_batch(u, cached=1), "positions in the cache: expected 13, found 1"),
    "rows": (lambda u: with_batch(u, rows=u.tape.rows[::-1]), "rows: expected"),
    "replicate": (lambda u: replace(u, replicate="T1"), "replicate: expected T0, found T1"),
    "steps": (lambda u: with_checks(u, steps=5), "steps: expected 6, found 5"),
    "rows_checked": (lambda u: with_checks(u, rows_checked=14), "row steps checked: expected 15, found 14"),
    "finite": (lambda u: with_checks(u, finite=14), "row steps with finite logits: expected 15, found 14"),
    "argmax": (lambda u: with_checks(u, argmax=16), "that drew the argmax, at most: expected True, found False"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_altered_field_is_told(fault):
    """Field by field of a row's account, of the batch and of its step checks."""
    change, words = FAULTS[fault]
    lines = all_lines(change(taped_unit()))
    assert any(words in line for line in lines), lines


def test_a_gap_that_drew_the_last_column_holds():
    """R08 4.3 as published: the last ID, flagged in its step, counted in its row."""
    unit = taped_unit()
    cells = list(unit.cells)
    cells[2] = replace(cells[2], generated_ids=(320, COLUMNS - 1, 322, 323, 1))
    flagged = with_row(replace(unit, cells=tuple(cells)), gaps=1, gap_steps=(1,))
    assert taped.tape_account(flagged, CONDITIONS[2], TAPE) == ()


def test_two_tapes_that_part():
    """Other values and other outputs."""
    one, other = taped_unit(), taped_unit(label="T1", first=500)
    assert taped.tapes_part([one], [other]) == ()
    assert parted_cells({SOURCE: one}, {SOURCE: other}) == (3, 4)  # a lone EOS is the same under both


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (taped_unit(), taped_unit(label="T1"), "4 cells of two tapes: expected one or more that part, found none"),
        (taped_unit(), taped_unit(first=500), "tapes: expected 2, found 1"),
        (taped_unit(), taped_unit(first=500), "first values, none shared"),
        (taped_unit(), replace(taped_unit(label="T1", first=500), source_id="other"), "sources of two tapes"),
    ],
    ids=["same outputs", "same tape", "same values", "another source"],
)
def test_two_tapes_that_are_none(first, second, words):
    """R08 5.1: the same tape twice, or no parting anywhere."""
    assert any(words in line for line in taped.tapes_part([first], [second]))


def test_no_units_are_no_two_tapes():
    """Nothing compared isn't nothing different."""
    assert taped.tapes_part([], []) != ()


def side(unit, **environment):
    """What a replay's field reads of a run."""
    own = {"checkpoint": {"model": "0"}, "generation_config": {"top_p": "0.95"}} | environment
    profile = SimpleNamespace(revision="r1")
    return SimpleNamespace(
        batch=lambda row: unit, environment=SimpleNamespace(**own), loaded=SimpleNamespace(profile=profile)
    )


def with_cell(unit, **changes):
    """The third cell with changed fields."""
    cells = list(unit.cells)
    cells[2] = replace(cells[2], **changes)
    return replace(unit, cells=tuple(cells))


ROW = RowKey(UnitKey("code", 0, SOURCE, "T0"), "s0_period")
PARTED = {
    "protocol": lambda u: side(replace(u, protocol_digest="0")),
    "model_revision": lambda u: side(u, checkpoint={"model": "1"}),
    "generation_contract": lambda u: side(u, generation_config={"top_p": "1.0"}),
    "tape": lambda u: side(with_row(u, tape="T1")),
    "prompt_sha256": lambda u: side(with_cell(u, prompt_sha256="0")),
    "uniforms_sha256": lambda u: side(with_row(u, consumed=u.tape.rows[0].consumed)),
    "generated_ids": lambda u: side(with_cell(u, generated_ids=(320, 321, 7))),
    "text": lambda u: side(with_cell(u, text_escaped="x")),
    "eos": lambda u: side(with_cell(u, eos=False)),
    "truncated": lambda u: side(with_cell(u, truncated=True)),
    "rng_before": lambda u: side(replace(u, rng_before=replace(u.rng_before, python=StateHash(sha256="0")))),
}


def test_a_replay_that_is_exact():
    """All eleven fields."""
    assert replay_exact(side(taped_unit()), side(taped_unit()), ROW, CROSS_PROCESS) == ()
    assert set(PARTED) == set(CROSS_PROCESS) >= set(SAME_PROCESS)


@pytest.mark.parametrize("field", CROSS_PROCESS)
def test_a_field_that_differs_is_the_only_one_told(field):
    """Each of the eleven by its name, and no other."""
    found = replay_exact(side(taped_unit()), PARTED[field](taped_unit()), ROW, CROSS_PROCESS)
    assert [line.split(":")[0].split()[-1] for line in found] == [field]


@pytest.mark.parametrize("field", CROSS_PROCESS)
def test_a_field_that_is_not_registered_is_not_compared(field):
    """But generated IDs always are: a replay without them is told as such."""
    fields = tuple(name for name in CROSS_PROCESS if name != field)
    found = replay_exact(side(taped_unit()), PARTED[field](taped_unit()), ROW, fields)
    assert [line for line in found if "generated_ids compared" not in line] == []
    assert bool(found) == (field == "generated_ids")


def test_ids_are_shown_from_where_they_part():
    """And text by its digest alone."""
    found = replay_exact(side(taped_unit()), PARTED["generated_ids"](taped_unit()), ROW, ("generated_ids",))
    assert found == ("code/0000 T0 s0_period generated_ids: expected [322, 323, 1] from step 2, found [7]",)
    text = replay_exact(side(taped_unit()), PARTED["text"](taped_unit()), ROW, ("generated_ids", "text"))
    assert "found x" not in text[0]


def test_a_side_without_the_account_is_told():
    """A cell whose row left no account can't be exact."""
    unit = taped_unit()
    without = with_batch(unit, rows=unit.tape.rows[:1])
    found = replay_exact(side(unit), side(without), ROW, CROSS_PROCESS)
    assert found == ("code/0000 T0 s0_period: expected a cell with its account on each side, found 1 and 0",)
