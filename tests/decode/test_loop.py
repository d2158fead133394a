"""The loop against `generate`: the same inputs, logits and tokens; and what happens to a row that has finished."""

import dataclasses

import msgspec
import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from harness.decode import loop
from harness.decode.greedy import adopt_contract, decode_greedy
from harness.decode.loop import LoopContract, choose_argmax, decode_rows, forward_names, positions
from harness.errors import DecodeError
from harness.model.load import load_model
from harness.model.rng import rng_states
from harness.prompts.build import padded
from harness.records.tapes import Finished, NotFinished
from harness.tapes.account import attended_columns

from .rows import MIXED, SMOKE, Spy, decode, ignore


def greedy(model, loaded, rows, budget):
    """The same rows through `generate`."""
    adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, budget)
    return decode_greedy(model, *rows, eos=loaded.profile.special_ids.eos, tick=ignore)


@pytest.fixture(scope="session")
def watched(shared, loaded, mixed):
    """The mixed batch decoded at 128 tokens, and what every forward was given. Read only."""
    with Spy(shared.model) as spy:
        found = decode(shared, loaded, mixed, 128)
    return found, spy.calls


@pytest.mark.parametrize("source", SMOKE)
def test_argmax_gives_generates_tokens(shared, loaded, many_prompts, source):
    """Every cell of nano-behavior's smoke grid."""
    budget = loaded.protocol.grids["smoke"].max_new_tokens
    rows = padded(many_prompts[source], loaded.profile.special_ids.pad)
    found, wanted = decode(shared, loaded, rows, budget), greedy(shared, loaded, rows, budget)
    assert (len(found.rows), found.rows) == (len(loaded.protocol.conditions), wanted.rows)
    assert (found.checks.steps, found.checks.rows_checked) == (wanted.checks.steps, wanted.checks.rows_checked)


def test_the_smoke_sources_are_the_grids(loaded):
    """The cells above are all there are."""
    found = {one.source_id for one in loaded.manifest.sources if one.index < loaded.protocol.grids["smoke"].per_domain}
    assert found == set(SMOKE)


def test_rows_that_end_apart_give_generates_tokens(shared, loaded, mixed, watched):
    """Though finished rows are fed with mask 0 here and with mask 1 there."""
    found, wanted = watched[0], greedy(shared, loaded, mixed, 128)
    assert found.rows == wanted.rows
    assert [len(row) for row in found.rows] == list(MIXED.values())
    assert found.finish == tuple(Finished(step=count - 1) if count < 128 else NotFinished() for count in MIXED.values())
    assert found.checks.rows_checked == sum(MIXED.values()) == wanted.checks.rows_checked


def test_rows_do_not_depend_on_finished_ones(shared, loaded, mixed, watched):
    """Each row of the mixed batch alone, and the batch backwards (float32 on the CPU)."""
    together = watched[0].rows
    assert decode(shared, loaded, (mixed[0][::-1], mixed[1][::-1]), 128).rows == together[::-1]
    for row in range(len(together)):
        assert (
            decode(shared, loaded, (mixed[0][row : row + 1], mixed[1][row : row + 1]), 128).rows
            == together[row : row + 1]
        )


class Scores(LogitsProcessor):
    """What `generate` chooses from."""

    def __init__(self):
        self.seen = []

    def __call__(self, input_ids, scores):
        """Note one step."""
        del input_ids
        self.seen.append(scores.clone())
        return scores


def test_logits_are_generates_bit_by_bit(shared, loaded, many_prompts):
    """Every step of every row, float32, while all rows live."""
    rows = padded(many_prompts["nano-math/0128"], loaded.profile.special_ids.pad)
    adopt_contract(shared, loaded.protocol.decode, loaded.profile.special_ids, 32)
    watch, seen = Scores(), []

    def choose(logits, step, live):
        seen.append(logits)
        return choose_argmax(logits, step, live)

    with torch.inference_mode():
        shared.model.generate(
            torch.tensor(rows[0]),
            attention_mask=torch.tensor(rows[1]),
            generation_config=shared.model.generation_config,
            logits_processor=LogitsProcessorList([watch]),
        )
    decode(shared, loaded, rows, 32, choose)
    assert {one.dtype for one in seen} == {torch.float32}
    assert torch.equal(torch.stack(seen), torch.stack(watch.seen))


def test_inputs_are_generates(shared, loaded, mixed, watched):
    """IDs, mask and positions of every forward: the same for a row until it has finished, none more and none less."""
    with Spy(shared.model) as theirs:
        greedy(shared, loaded, mixed, 128)
    assert len(watched[1]) == len(theirs.calls) == 128
    for step, (one, other) in enumerate(zip(watched[1], theirs.calls, strict=True)):
        live = [row for row, length in enumerate(MIXED.values()) if step < length]
        for name in ("input_ids", "attention_mask", "position_ids"):
            assert torch.equal(one[name][live], other[name][live]), (step, name)
        assert one["logits_to_keep"] == other["logits_to_keep"]


def test_a_finished_row_is_fed_pad_with_mask_zero(loaded, mixed, watched):
    """R08 2: from the step after its EOS on; the EOS itself has mask 1. The others' columns all have mask 1."""
    width, pad = len(mixed[0][0]), loaded.profile.special_ids.pad
    found, calls = watched
    last = calls[-1]["attention_mask"]
    for row, ids in enumerate(found.rows):
        fed = [int(call["input_ids"][row, 0]) for call in calls[1:]]
        assert fed == [*ids, *[pad] * 128][:127]
        assert last[row, width:].tolist() == [1] * min(len(ids), 127) + [0] * max(127 - len(ids), 0)
        assert last[row, :width].tolist() == list(mixed[1][row])


def test_attended_columns_are_read_back(mixed, watched):
    """What the record holds is the last forward's mask, and what lengths say."""
    found, calls = watched
    assert found.attended == tuple(calls[-1]["attention_mask"].sum(-1).tolist())
    assert found.attended == tuple(
        attended_columns(prompt=sum(mask), length=len(ids), steps=found.checks.steps)
        for mask, ids in zip(mixed[1], found.rows, strict=True)
    )


def test_a_mask_left_at_one_is_found(shared, loaded, mixed, watched, monkeypatch):
    """The control: no live row's token shows it, the columns that were attended do."""
    sound = watched[0]
    monkeypatch.setattr(loop, "mask_column", lambda live: [1] * len(live))
    faulty = decode(shared, loaded, mixed, 128)
    assert faulty.rows == sound.rows
    wrong = [row for row in range(len(sound.rows)) if faulty.attended[row] != sound.attended[row]]
    assert wrong == [row for row, length in enumerate(MIXED.values()) if length < 127]


def test_it_stops_when_all_ended(shared, loaded, many_prompts):
    """And no forward is run whose logits nobody would choose from."""
    rows = padded(many_prompts["nano-english/016"], loaded.profile.special_ids.pad)
    ticks = []
    with Spy(shared.model) as spy:
        found = decode(shared, loaded, rows, 128, tick=ticks.append)
    assert {len(row) for row in found.rows} == {27}
    assert found.checks.steps == len(spy.calls) == 27
    assert ticks == list(range(1, 28))


def test_offloaded_layers_give_the_same_tokens(loaded, checkpoint, mixed, watched):
    """The last two layers, norm and head come from disk through accelerate's hooks."""
    placement = next(one for one in loaded.protocol.placements if one.id == "nano-disk")
    model = load_model(loaded.profile, loaded.protocol.execution, placement, checkpoint)
    try:
        found = decode(model, loaded, mixed, 128)
    finally:
        model.close()
    assert found == watched[0]


def test_eos_at_the_last_allowed_step_is_an_end(shared, loaded, many_prompts):
    """And one step earlier the budget has cut the row."""
    rows = padded(many_prompts["nano-english/016"], loaded.profile.special_ids.pad)
    assert set(decode(shared, loaded, rows, 27).finish) == {Finished(step=26)}
    assert set(decode(shared, loaded, rows, 26).finish) == {NotFinished()}


@pytest.mark.parametrize("budget", [1, 2])
def test_a_small_budget(shared, loaded, many_prompts, budget):
    """The first token comes from the prompt's own forward."""
    rows = padded(many_prompts["nano-math/0128"], loaded.profile.special_ids.pad)
    with Spy(shared.model) as spy:
        found = decode(shared, loaded, rows, budget)
    assert (len(spy.calls), {len(row) for row in found.rows}) == (budget, {budget})
    assert found.attended == tuple(sum(mask) + budget - 1 for mask in rows[1])


def test_generators_are_untouched(shared, loaded, mixed):
    """Python, NumPy, torch CPU and CUDA."""
    before = rng_states()
    decode(shared, loaded, mixed, 32)
    assert rng_states() == before


def test_positions_count_unmasked_tokens():
    """Left padding and a finished row's columns stand at 0."""
    mask = torch.tensor([[0, 0, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]])
    assert positions(mask).tolist() == [[0, 0, 0, 1, 2, 0], [0, 1, 2, 3, 4, 5]]


class Poison:
    """A forward hook that makes one row's logits NaN in one forward."""

    def __init__(self, model, row, step):
        self._row, self._step, self._seen = row, step, 0
        self._handle = model.register_forward_hook(self)

    def __call__(self, module, inputs, output):
        """Alter the forward's output in place."""
        del module, inputs
        if self._seen == self._step:
            output.logits[self._row, -1, 3] = float("nan")
        self._seen += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._handle.remove()


@pytest.mark.parametrize(("row", "step"), [(0, 0), (1, 5), (3, 100), (0, 26)])
def test_a_live_row_that_is_not_finite_is_named(shared, loaded, mixed, row, step):
    """Also in the step that draws EOS."""
    with (
        Poison(shared.model, row, step),
        pytest.raises(DecodeError, match=f"step {step}, row {row}: expected finite logits, found") as caught,
    ):
        decode(shared, loaded, mixed, 128)
    assert caught.value.kind == "non_finite"


def test_a_finished_row_is_aside(shared, loaded, mixed, watched):
    """Row 0 ends at step 26: after it its logits are nobody's."""
    with Poison(shared.model, 0, 27):
        assert decode(shared, loaded, mixed, 128) == watched[0]


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB\nmore"), MemoryError()], ids=["device", "host"]
)
def test_memory_that_runs_out_has_one_word(shared, loaded, mixed, error):
    """In the forward or in the chooser."""

    def refuse(logits, step, live):
        raise error

    with pytest.raises(DecodeError, match="generation: expected memory for the whole batch") as caught:
        decode(shared, loaded, mixed, 4, refuse)
    assert caught.value.kind == "out_of_memory"
    assert caught.value.__cause__ is error


def test_another_error_stays_itself(shared, loaded, mixed):
    """It isn't called memory."""

    def refuse(logits, step, live):
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        decode(shared, loaded, mixed, 4, refuse)


def test_misuse(shared, loaded, mixed):
    """A closed model, no budget, a chooser that forgets rows."""
    contract = LoopContract(eos=1, pad=1, max_new_tokens=4)
    with pytest.raises(RuntimeError, match="closed"):
        decode_rows(
            dataclasses.replace(shared, model=None), mixed, contract=contract, choose=choose_argmax, tick=ignore
        )
    with pytest.raises(RuntimeError, match="at least one token, got 0"):
        decode(shared, loaded, mixed, 0)
    with pytest.raises(RuntimeError, match="one ID a row, 4, got 1"):
        decode(shared, loaded, mixed, 4, lambda logits, *_: logits.argmax(-1)[:1])


def test_names_of_forward_are_read():
    """Until transformers 5 a cache is `past_key_values`, and all logits are computed."""

    class Later:
        def forward(self, input_ids, cache=None, logits_to_keep=0, **kwargs): ...

    class Earlier:
        def forward(self, input_ids, past_key_values=None): ...

    assert (forward_names(Later()).cache, forward_names(Later()).keeps) == ("cache", True)
    assert (forward_names(Earlier()).cache, forward_names(Earlier()).keeps) == ("past_key_values", False)


def test_checks_are_a_record(shared, loaded, mixed):
    """Counts as they go into evidence."""
    checks = decode(shared, loaded, mixed, 4).checks
    assert msgspec.to_builtins(checks) == {"steps": 4, "rows_checked": 16, "finite": 16}
