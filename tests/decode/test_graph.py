"""The executor over a fixed cache against the loop, on the CPU: the same step without a graph around it."""

import dataclasses

import pytest
import torch

from harness.decode import graph
from harness.decode.fixed import FixedBatch, FixedCache
from harness.decode.graph import Execute, ModuleStep, choose_best, execute_rows
from harness.decode.loop import LoopContract
from harness.errors import DecodeError
from harness.model.rng import rng_states
from harness.prompts.build import padded

from .rows import MIXED, SMOKE, Spy, decode, ignore

PLAIN = Execute(captured=False, look=16)


def execute(model, loaded, rows, budget, *, step=None, choose=choose_best, how=PLAIN, tick=ignore):
    """Rows through the executor under nano's IDs."""
    ids = loaded.profile.special_ids
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=budget)
    step = step or ModuleStep(model)
    return execute_rows(model, rows, contract=contract, step=step, choose=choose, how=how, tick=tick)


def same(looped, executed):
    """Everything but the cache's class."""
    return dataclasses.replace(looped, cache="") == dataclasses.replace(executed.looped, cache="")


@pytest.fixture(scope="module")
def mixed_executed(shared, loaded, mixed):
    """The mixed batch at 128 tokens. Read only."""
    return execute(shared, loaded, mixed, 128)


@pytest.mark.parametrize("source", SMOKE)
def test_the_loops_tokens(shared, loaded, many_prompts, source):
    """Every cell of nano-behavior's smoke grid, float32 on the CPU: rows, ends, columns attended to, positions held."""
    budget = loaded.protocol.grids["smoke"].max_new_tokens
    rows = padded(many_prompts[source], loaded.profile.special_ids.pad)
    executed = execute(shared, loaded, rows, budget)
    assert same(decode(shared, loaded, rows, budget), executed)
    assert executed.argmax == executed.looped.checks.rows_checked
    assert (executed.looped.cache, executed.columns) == ("FixedCache", 2048)


def test_rows_that_end_apart(shared, loaded, mixed, mixed_executed):
    """Finished rows are fed PAD with mask 0, and the result is the loop's."""
    assert same(decode(shared, loaded, mixed, 128), mixed_executed)
    assert [len(row) for row in mixed_executed.looped.rows] == list(MIXED.values())


@pytest.mark.parametrize("look", [1, 7, 500])
def test_the_hosts_looks_change_nothing(shared, loaded, mixed, look):
    """Three rows that end at 27, 39 and 72 of 128 tokens; ticks are the steps of the result, in order."""
    rows = tuple(one[:3] for one in mixed)
    ticks, wanted = [], []
    found = execute(shared, loaded, rows, 128, how=Execute(captured=False, look=look), tick=ticks.append)
    assert same(decode(shared, loaded, rows, 128, tick=wanted.append), found)
    assert ticks == wanted == list(range(1, 73))


@pytest.mark.parametrize("budget", [1, 2, 27, 28])
def test_budgets(shared, loaded, mixed, budget):
    """One token needs the prompt's forward alone; 27 end a row at its EOS exactly."""
    assert same(decode(shared, loaded, mixed, budget), execute(shared, loaded, mixed, budget))


def test_inputs_of_each_step(shared, loaded, mixed):
    """IDs and positions are the loop's; the added scores are open exactly where the loop's mask is 1."""
    with Spy(shared.model) as theirs:
        decode(shared, loaded, mixed, 48)
    seen = []
    step = ModuleStep(shared)

    class Watched:
        name = "watched"
        begin = step.begin

        def __call__(self, batch):
            now = batch.inputs
            seen.append((now.ids.clone(), now.positions.clone(), now.bias.clone(), int(now.slot)))
            return step(batch)

    execute(shared, loaded, mixed, 48, step=Watched())
    assert len(seen) == len(theirs.calls) - 1 == 47
    for (ids, positions, bias, slot), call in zip(seen, theirs.calls[1:], strict=True):
        mask = call["attention_mask"]
        assert torch.equal(ids, call["input_ids"])
        assert torch.equal(positions, call["position_ids"])
        assert slot == mask.shape[1] - 1
        assert torch.equal((bias[:, 0, 0] == 0).long()[:, : slot + 1], mask)
        assert (bias[:, 0, 0, slot + 1 :] == torch.finfo(torch.float32).min).all()


def test_a_row_that_is_left_live_is_found(shared, loaded, mixed, mixed_executed, monkeypatch):
    """The control: a finished row whose columns stay at mask 1 has other columns attended to."""
    original = FixedBatch.take

    def leaking(self, logits, best, chosen):
        live = self.inputs.live.clone()
        original(self, logits, best, chosen)
        self.inputs.mask.scatter_(1, self.inputs.slot.expand(self.rows, 1), torch.ones_like(live).long()[:, None])

    monkeypatch.setattr(FixedBatch, "take", leaking)
    assert execute(shared, loaded, mixed, 128).looped.attended != mixed_executed.looped.attended


@pytest.mark.parametrize("at", [0, 5])
def test_logits_that_are_not_finite(shared, loaded, mixed, at):
    """Named by step and row, in a live step; a finished row's are nobody's."""
    step = ModuleStep(shared)

    class Poisoned:
        name = "poisoned"
        begin = step.begin

        def __init__(self, row, after):
            self.row, self.after, self.calls = row, after, 0

        def __call__(self, batch):
            logits = step(batch)
            self.calls += 1
            if self.calls > self.after:
                logits[self.row, 3] = float("nan")
            return logits

    with pytest.raises(DecodeError, match=f"step {at + 1}, row 2") as caught:
        execute(shared, loaded, mixed, 12, step=Poisoned(2, at))
    assert caught.value.kind == "non_finite"
    assert execute(shared, loaded, mixed, 60, step=Poisoned(0, 40)).looped.checks.steps == 60


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory. Tried"), MemoryError()], ids=repr)
def test_memory_is_one_word(shared, loaded, mixed, error):
    """From any step."""

    def refuse(logits, best, batch):
        raise error

    with pytest.raises(DecodeError) as caught:
        execute(shared, loaded, mixed, 4, choose=refuse)
    assert caught.value.kind == "out_of_memory"


def test_no_generator_is_touched(shared, loaded, mixed):
    """States before and after."""
    before = rng_states()
    execute(shared, loaded, mixed, 8)
    assert rng_states() == before


def test_misuse(shared, loaded, mixed):
    """A closed model, no budget, no look, a capture without a CUDA device."""
    with pytest.raises(RuntimeError, match="closed"):
        execute(dataclasses.replace(shared, model=None), loaded, mixed, 4, step=ModuleStep(shared))
    with pytest.raises(RuntimeError, match="at least one token, got 0"):
        execute(shared, loaded, mixed, 0)
    with pytest.raises(RuntimeError, match="at least one step, got 0"):
        execute(shared, loaded, mixed, 4, how=Execute(captured=False, look=0))
    with pytest.raises(RuntimeError, match="not on cpu"):
        execute(shared, loaded, mixed, 4, how=Execute(captured=True, look=1))


def test_a_cache_has_its_columns_from_the_start():
    """Only the slot's column is written; what a column holds before doesn't count."""
    slot = torch.tensor([2])
    cache = FixedCache([(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 4))], 5, slot)
    keys, values = cache.update(torch.full((1, 1, 1, 3), 7.0), torch.full((1, 1, 1, 4), 8.0), 0)
    assert keys[0, 0, :, 0].tolist() == [1, 1, 7, 0, 0]
    assert values[0, 0, :, 0].tolist() == [1, 1, 8, 0, 0]
    assert int(cache.get_seq_length()) == 2
    assert graph.ended([4, 1, 5], 1) == (4, 1)
