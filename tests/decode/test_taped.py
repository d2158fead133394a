"""One unit under a tape on the real model, and faults in the drawing itself: what its records say to the checks.

The unit's four rows are real prompts that end apart. Each fault is one that a program could really have.
"""

import msgspec
import pytest
import torch
from pregate_support.taped import CONTRACT, SAMPLER, TAPE, taped_unit

from harness.canon import ids_sha256
from harness.checks import taped
from harness.checks.generation import registered_taped
from harness.decode import loop
from harness.decode.icdf import InverseCdf
from harness.decode.synthetic import synthetic_draws
from harness.decode.tape import TapeChooser
from harness.decode.taped import TapedCall, adopt_argmax, adopt_taped, decode_argmax, decode_taped, loop_contract
from harness.model.rng import rng_states, seed_generators
from harness.records.taped import TapedEvidence
from harness.tapes.synthetic import synthetic_differences

from .rows import ignore

BUDGET = 96
SOURCE = "code/0000"
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")
replace = msgspec.structs.replace


def draw(model, loaded, rows, *, sampler=None) -> TapedEvidence:
    """The rows drawn under T0, as the engine draws a unit, generators and all."""
    contract = loop_contract(loaded.profile.special_ids, BUDGET)
    call = TapedCall(tape=TAPE, source_id=SOURCE, conditions=CONDITIONS, contract=contract)
    seed_generators(0)
    before = rng_states()
    drawn = decode_taped(model, rows, sampler=sampler or InverseCdf(SAMPLER), call=call, tick=ignore)
    after = rng_states()
    cells = [
        replace(
            cell,
            prompt_ids=tuple(token for token, live in zip(ids, mask, strict=True) if live),
            left_padding=mask.count(0),
            generated_ids=generated,
            generated_sha256=ids_sha256(generated),
            eos=generated[-1] == contract.eos,
            truncated=generated[-1] != contract.eos,
            length=len(generated),
        )
        for cell, ids, mask, generated in zip(taped_unit().cells, *map(list, rows), drawn.rows, strict=True)
    ]
    return replace(
        taped_unit(),
        source_id=SOURCE,
        max_new_tokens=BUDGET,
        cells=tuple(cells),
        checks=drawn.checks,
        tape=drawn.tape,
        rng_before=before,
        rng_after=after,
    )


def red(unit, columns=2048) -> set[str]:
    """The checks that aren't silent about the unit, by name."""
    found = {
        "taped_contract": taped.taped_contract(unit, CONTRACT, tape=TAPE, columns=columns),
        "shared_uniforms": taped.shared_uniforms(unit, CONDITIONS, TAPE),
        "taped_steps": taped.taped_steps(unit),
        "tape_account": [line for name in CONDITIONS for line in taped.tape_account(unit, name, TAPE)],
        "finished_rows": [line for name in CONDITIONS for line in taped.finished_rows(unit, name)],
        "rng_untouched": [] if unit.rng_before == unit.rng_after else ["a generator moved"],
    }
    return {name for name, lines in found.items() if lines}


@pytest.fixture(scope="module")
def rows(mixed):
    """IDs and mask as lists, [4, width] each."""
    ids, mask = mixed
    return [list(row) for row in ids], [list(row) for row in mask]


@pytest.fixture(scope="module")
def drawn(shared, loaded, rows) -> TapedEvidence:
    """The unit as it must be. Read only."""
    return draw(shared, loaded, rows)


def test_a_unit_as_registered_is_green(drawn):
    """Rows end apart, so that a finished row is fed PAD while another goes on."""
    lengths = [cell.length for cell in drawn.cells]
    assert len(set(lengths)) > 1
    assert red(drawn) == set()
    assert 0 < drawn.checks.argmax < drawn.checks.rows_checked == sum(lengths)
    assert (drawn.tape.columns, drawn.tape.cache) == (2048, "DynamicCache")


def test_the_same_unit_again(shared, loaded, rows, drawn):
    """The same tokens and accounts, in another call of the same process."""
    assert draw(shared, loaded, rows) == drawn


def test_what_is_read_back_is_what_draws(loaded):
    """By the names that the decoding contract's check asks for, from the warpers and the loop themselves."""
    ids = loaded.profile.special_ids
    assert adopt_taped(InverseCdf(SAMPLER), loop_contract(ids, 1)) == registered_taped(CONTRACT, ids)
    hot = InverseCdf(SAMPLER)
    hot._temperature.temperature = 1.0
    assert adopt_taped(hot, loop_contract(ids, 1))["temperature"] == 1.0
    assert adopt_argmax(loop_contract(ids, 1)) == {
        "strategy": "argmax",
        "eos_token_id": ids.eos,
        "pad_token_id": ids.pad,
    }


def test_a_row_that_leaks_attention(monkeypatch, shared, loaded, rows):
    """R08 2: PAD of a finished row with mask 1."""
    monkeypatch.setattr(loop, "mask_column", lambda was_live: [1] * len(was_live))
    assert red(draw(shared, loaded, rows)) == {"tape_account", "finished_rows"}


def test_a_finished_row_that_still_consumes(monkeypatch, shared, loaded, rows):
    """R08 4.2: no paired output after EOS: the chooser draws for every row in every step."""
    original = TapeChooser.__call__
    monkeypatch.setattr(
        TapeChooser, "__call__", lambda self, logits, step, live: original(self, logits, step, (True,) * 4)
    )
    assert red(draw(shared, loaded, rows)) == {"tape_account", "finished_rows", "taped_steps"}


def test_a_shared_number_at_the_wrong_step(monkeypatch, shared, loaded, rows):
    """R08 4.2: every row reads the next step's u from the second step on."""
    original = TapeChooser.__call__
    late = lambda self, logits, step, live: original(self, logits, step + (step > 0), live)  # noqa: E731
    monkeypatch.setattr(TapeChooser, "__call__", late)
    assert red(draw(shared, loaded, rows)) == {"tape_account", "shared_uniforms"}


def test_a_generator_that_is_consumed(monkeypatch, shared, loaded, rows, drawn):
    """R08 5.1: the tape decides every token, and something draws from torch's generator all the same."""
    original = InverseCdf.draw

    def drawing(self, logits, u):
        torch.rand(1)
        return original(self, logits, u)

    monkeypatch.setattr(InverseCdf, "draw", drawing)
    found = draw(shared, loaded, rows)
    assert red(found) == {"rng_untouched"}
    assert found.cells == drawn.cells


def test_a_generator_in_place_of_the_tape(monkeypatch, shared, loaded, rows, drawn):
    """The account is the tape's, the numbers are torch's: other tokens, and the generator moved."""
    original = InverseCdf.draw
    monkeypatch.setattr(InverseCdf, "draw", lambda self, logits, u: original(self, logits, float(torch.rand(()))))
    found = draw(shared, loaded, rows)
    assert red(found) == {"rng_untouched"}
    assert found.cells != drawn.cells


def test_a_filtered_token_that_is_not_flagged(monkeypatch):
    """R08 4.3 and 5.1: the synthetic table has draws inside the gap: a sampler that doesn't say so is told there."""
    original = InverseCdf.draw_from

    def silent(self, warped, u):
        return tuple(type(one)(one.token, False, one.boundary_tie, one.edge) for one in original(self, warped, u))

    assert synthetic_differences("icdf-r08", synthetic_draws(InverseCdf(SAMPLER)).outcomes) == ()
    monkeypatch.setattr(InverseCdf, "draw_from", silent)
    found = synthetic_differences("icdf-r08", synthetic_draws(InverseCdf(SAMPLER)).outcomes)
    assert [line.split(":")[0] for line in found] == ["gap_inside", "gap_top"]


def test_a_call_without_a_cache(monkeypatch, shared, loaded, rows, drawn):
    """Each forward over the last token alone, its cache thrown away: the positions that it holds tell."""
    original = loop._Batch.forward

    def forgetting(self):
        self._cache = None
        return original(self)

    monkeypatch.setattr(loop._Batch, "forward", forgetting)
    found = draw(shared, loaded, rows)
    assert "taped_contract" in red(found)
    assert found.tape.cached < drawn.tape.cached


def test_argmax_at_wrong_positions_is_not_generates(monkeypatch, shared, loaded, rows):
    """R08 4: what the loop's gate is there for. Positions that count padding too are the same to rotary embeddings,
    which see distances alone; positions that run twice as fast are not.
    """
    contract = loop_contract(loaded.profile.special_ids, BUDGET)
    right, checks = decode_argmax(shared, rows, contract=contract, tick=ignore)
    assert checks.argmax == checks.rows_checked == sum(map(len, right))
    original = loop.positions
    monkeypatch.setattr(loop, "positions", lambda mask: 2 * original(mask))
    wrong, _ = decode_argmax(shared, rows, contract=contract, tick=ignore)
    assert wrong != right
