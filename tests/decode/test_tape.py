"""Tokens under a tape on the real model: one z a step for all rows, the account of each row, and faults in it."""

import msgspec
import pytest
import torch

from harness.canon import canonical_bytes, digest, ids_sha256
from harness.decode.icdf import InverseCdf
from harness.decode.loop import LoopedRows
from harness.decode.tape import TapeChooser, nearest_of
from harness.errors import DecodeError
from harness.model.rng import rng_states
from harness.records.run import CellRecord
from harness.records.tapes import EdgeDistance, Finished, LoopChecks, NoEdge, NotFinished, RowTape, StepDraw
from harness.tapes.account import account_differences
from harness.tapes.consumed import consumption_differences
from harness.tapes.tape import Tape, uniform

from .rows import decode
from .samplers import R08, RULES, V1, contract

TAPE, SOURCE, BUDGET = Tape("pregate-nano-tape-test-v1", "T0"), "nano-math/0123", 96
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")


class Listener:
    """A tape whose every answered z is noted with its step."""

    def __init__(self, tape=TAPE):
        self._tape, self.asked = tape, []
        self.label, self.sha256 = tape.label, tape.sha256

    def z(self, source_id, step):
        """The tape's own."""
        self.asked.append((source_id, step, self._tape.z(source_id, step)))
        return self.asked[-1][2]


def sample(shared, loaded, rows, tape=TAPE, sampler=R08, source=SOURCE):
    """The rows under a tape: what the loop gave, and the chooser."""
    chooser = TapeChooser(sampler, tape, source, rows=len(rows[0]))
    return decode(shared, loaded, rows, BUDGET, chooser), chooser


@pytest.fixture(scope="session")
def sampled(shared, loaded, mixed):
    """The mixed batch under T0, r08, with the generators' states around it. Read only."""
    before = rng_states()
    looped, chooser = sample(shared, loaded, mixed)
    return looped, chooser, (before, rng_states())


@pytest.fixture(scope="session")
def row_tapes(sampled):
    """Its accounts."""
    looped, chooser, _ = sampled
    return chooser.row_tapes(looped, CONDITIONS)


def cell(mixed, looped, row):
    """The CellRecord of a row."""
    ids = looped.rows[row]
    prompt = tuple(token for token, kept in zip(mixed[0][row], mixed[1][row], strict=True) if kept)
    return CellRecord(
        condition=CONDITIONS[row],
        prompt_ids=prompt,
        prompt_sha256=ids_sha256(prompt),
        left_padding=len(mixed[0][row]) - len(prompt),
        edits=(),
        generated_ids=ids,
        generated_sha256=ids_sha256(ids),
        text_escaped="",
        text_sha256="",
        eos=ids[-1] == 1,
        truncated=ids[-1] != 1,
        length=len(ids),
    )


def differences(row_tape, mixed, looped, row):
    """An account against its cell."""
    given = cell(mixed, looped, row)
    return account_differences(row_tape, given, tape=TAPE, source_id=SOURCE, steps=looped.checks.steps)


def test_rows_end_apart(sampled):
    """What the tests below need: rows that end at different steps."""
    assert len({len(row) for row in sampled[0].rows}) > 2


def test_no_generator_is_asked(sampled):
    """R08 5.1: Python, NumPy, torch CPU and CUDA."""
    before, after = sampled[2]
    assert before == after


def test_all_rows_read_the_same_z_step_by_step(shared, loaded, mixed, sampled):
    """One z a step, asked once, at steps 0, 1, 2, ...; every row's account is a beginning of that one sequence."""
    listener = Listener()
    looped, chooser = sample(shared, loaded, mixed, tape=listener)
    assert looped.rows == sampled[0].rows
    assert [(source, step) for source, step, _ in listener.asked] == [(SOURCE, at) for at in range(looped.checks.steps)]
    zs = [f"{z:016x}" for *_, z in listener.asked]
    for account, ids in zip(chooser.row_tapes(looped, CONDITIONS), looped.rows, strict=True):
        assert account.consumed.count == len(ids)
        assert list(account.consumed.first_z) == zs[:8]
        assert consumption_differences(account.consumed, TAPE, SOURCE, len(ids)) == ()


@pytest.mark.parametrize("row", range(4))
def test_an_account_agrees_with_its_cell(mixed, sampled, row_tapes, row):
    """Every field that a cell determines, and a canonical form that reads back."""
    assert differences(row_tapes[row], mixed, sampled[0], row) == ()
    assert msgspec.json.decode(canonical_bytes(row_tapes[row]), type=RowTape, strict=True) == row_tapes[row]


@pytest.mark.parametrize("row", range(4))
def test_draws_are_the_rows_own(sampled, row_tapes, row):
    """One draw a generated token, its ID that token; totals are the draws'."""
    looped, chooser, _ = sampled
    draws = chooser.draws(row)
    assert [one.token for one in draws] == list(looped.rows[row])
    assert [one.step for one in draws] == list(range(len(draws)))
    edges = [one.edge.distance for one in draws if isinstance(one.edge, EdgeDistance)]
    assert row_tapes[row].nearest_edge == (EdgeDistance(distance=min(edges)) if edges else NoEdge())
    assert (row_tapes[row].gaps, row_tapes[row].boundary_ties) == (0, sum(one.boundary_tie for one in draws))


def test_both_kinds_of_row_occur(row_tapes):
    """Rows that another u could have turned, and one whose every step had a single survivor."""
    assert {type(one.nearest_edge) for one in row_tapes} == {EdgeDistance, NoEdge}


def test_the_same_tape_gives_the_same_tokens(shared, loaded, mixed, sampled):
    """Again, and backwards: rows know nothing of each other (float32 on the CPU)."""
    again, chooser = sample(shared, loaded, mixed)
    assert again == sampled[0]
    turned, _ = sample(shared, loaded, (mixed[0][::-1], mixed[1][::-1]))
    assert turned.rows == again.rows[::-1]
    assert [chooser.draws(row) for row in range(4)] == [sampled[1].draws(row) for row in range(4)]


def test_v1_gives_r08s_tokens_where_there_is_no_gap(shared, loaded, mixed, sampled, row_tapes):
    """The two rules differ in a gap alone, and there was none."""
    assert [one.gaps for one in row_tapes] == [0] * 4
    assert sample(shared, loaded, mixed, sampler=V1)[0] == sampled[0]


@pytest.mark.parametrize(
    "other", [{"tape": Tape(TAPE.registered_id, "T1")}, {"source": "nano-math/0091"}], ids=["tape", "source"]
)
def test_another_tape_or_source_gives_other_tokens(shared, loaded, mixed, sampled, other):
    """R08 5.1: at least one trajectory forks; and every account says that it isn't T0's of this source."""
    looped, chooser = sample(shared, loaded, mixed, **other)
    assert looped.rows != sampled[0].rows
    for row, account in enumerate(chooser.row_tapes(looped, CONDITIONS)):
        found = {one.split(":")[0] for one in differences(account, mixed, looped, row)}
        assert {"consumed.first_z", "consumed.first_u", "consumed.sha256"} <= found
        assert ("tape" in found) is ("tape" in other)


class Skips(Listener):
    """From some step on, the next step's z."""

    def z(self, source_id, step):
        """One too far."""
        return super().z(source_id, step + (step >= 10))


def test_a_skipped_step_is_found(shared, loaded, mixed):
    """Beyond the first eight values only the hash can say so, and it does."""
    looped, chooser = sample(shared, loaded, mixed, tape=Skips())
    for row, account in enumerate(chooser.row_tapes(looped, CONDITIONS)):
        assert [one.split(":")[0] for one in differences(account, mixed, looped, row)] == ["consumed.sha256"]


FAULTS = {
    "condition": "other",
    "tape": "T1",
    "tape_sha256": "0" * 64,
    "finish": Finished(step=1),
    "attended": 1,
    "gap_steps": (2,),
    "boundary_ties": -1,
    "nearest_edge": EdgeDistance(distance=1.0),
}


@pytest.mark.parametrize(("field", "value"), FAULTS.items(), ids=FAULTS)
def test_an_altered_account_is_named(mixed, sampled, row_tapes, field, value):
    """One altered field, one difference, another digest."""
    bad = msgspec.structs.replace(row_tapes[1], **{field: value})
    assert [one.split(":")[0] for one in differences(bad, mixed, sampled[0], 1)] == [field]
    assert digest(bad) != digest(row_tapes[1])


@pytest.mark.parametrize(
    ("gaps", "steps", "found"),
    [
        (97, (), {"gaps", "gap_steps"}),
        (1, (), {"gap_steps"}),
        (2, (5, 3), {"gap_steps"}),
        (2, (3, 3), {"gap_steps"}),
        (1, (96,), {"gap_steps"}),
        (1, (-1,), {"gap_steps"}),
    ],
)
def test_gaps_and_their_steps_agree(mixed, sampled, row_tapes, gaps, steps, found):
    """As many ascending steps of the row as it has gaps."""
    bad = msgspec.structs.replace(row_tapes[1], gaps=gaps, gap_steps=steps)
    assert {one.split(":")[0] for one in differences(bad, mixed, sampled[0], 1)} == found


def test_v1_allows_no_gap(mixed, sampled, row_tapes):
    """Under icdf-v1 one is a contradiction, under icdf-r08 a count."""
    one = msgspec.structs.replace(row_tapes[0], gaps=1, gap_steps=(3,))
    assert differences(one, mixed, sampled[0], 0) == ()
    under_v1 = msgspec.structs.replace(one, sampler=contract("icdf-v1"))
    assert differences(under_v1, mixed, sampled[0], 0) == ("gaps: expected 0 to 0, found 1",)


def test_a_row_cut_by_the_budget_has_not_finished(sampled, row_tapes):
    """A typed absence, and a step for the others."""
    for ids, account in zip(sampled[0].rows, row_tapes, strict=True):
        assert account.finish == (Finished(step=len(ids) - 1) if ids[-1] == 1 else NotFinished())


class Gap(InverseCdf):
    """A sampler whose softmax falls short by a hundredth, so that gaps are met."""

    def warp(self, logits):
        """Every probability 1 % too small."""
        warped = super().warp(logits)
        warped.probabilities.mul_(0.99)
        return warped


@pytest.mark.parametrize("rule", RULES)
def test_gaps_are_counted(rule):
    """r08 flags and counts the steps in which the last ID was drawn though filtered; v1 has none."""
    chooser, logits = TapeChooser(Gap(contract(rule)), TAPE, SOURCE, rows=2), torch.zeros(2, 16)
    logits[:, -1] = -30.0
    steps = [step for step in range(400) if uniform(TAPE.z(SOURCE, step)) > 0.9901]
    chosen = [chooser(logits, step, (True, True)).tolist() for step in range(400)]
    gaps = [step for step, ids in enumerate(chosen) if ids == [15, 15]]
    assert gaps == (steps if rule == "icdf-r08" else [])
    assert [one.step for one in chooser.draws(0) if one.gap] == gaps
    assert steps
    finish = (NotFinished(), NotFinished())
    looped = LoopedRows((), finish, (0, 0), LoopChecks(steps=400, rows_checked=800, finite=800), "none", 0)
    for row in chooser.row_tapes(looped, ("s0_eos", "s1_eos")):
        assert (row.gaps, row.gap_steps) == (len(gaps), tuple(gaps))


def test_a_row_that_is_not_finite_is_named_with_its_step():
    """The sampler can't draw from it."""
    logits = torch.zeros(2, 16)
    logits[1, 3] = float("nan")
    with pytest.raises(DecodeError, match="step 7, sampler, row 0 of 1") as caught:
        TapeChooser(R08, TAPE, SOURCE, rows=2)(logits, 7, (False, True))
    assert caught.value.kind == "non_finite"


def test_a_finished_row_draws_nothing():
    """Its logits aren't looked at, whatever they are."""
    logits = torch.zeros(2, 16)
    logits[0] = float("nan")
    chooser = TapeChooser(R08, TAPE, SOURCE, rows=2)
    chooser(logits, 0, (False, True))
    assert (len(chooser.draws(0)), len(chooser.draws(1))) == (0, 1)


def test_the_nearest_edge_of_no_draw_or_of_certain_ones():
    """No edge is no distance."""
    certain = StepDraw(step=0, token=3, gap=False, boundary_tie=False, edge=NoEdge())
    near = msgspec.structs.replace(certain, step=1, edge=EdgeDistance(distance=0.25))
    assert nearest_of([]) == nearest_of([certain]) == NoEdge()
    assert nearest_of([certain, near]) == EdgeDistance(distance=0.25)
