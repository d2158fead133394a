"""Seeded sampling on the real model: what draws, from which state, and every way in which it could be another draw."""

import subprocess
import sys
import warnings

import msgspec
import pytest
import torch
import transformers
from pregate_support.sampling import IDS, REGISTERED_ID, TEMPERATURE, TOP_P, sampled_unit, seeds_of, with_sampling
from pregate_support.sampling import sampled_contract as contract_of_rows
from transformers.generation import logits_process

from harness.canon import canonical_bytes, ids_sha256
from harness.checks.sampling import (
    FORMAL_REPLAY,
    SMOKE_REPLAY,
    drawn_generator,
    effective_parameters,
    replay_exact,
    replicates_part,
    sampled_steps,
    seed_identity,
    seeded_state,
)
from harness.decode.contract import contract_config
from harness.decode.sampled import PaddedRows, adopt_sampling, decode_sampled
from harness.errors import DecodeError
from harness.places import places
from harness.protocols.seeds import seed_value
from harness.records.sampling import SampledEvidence

CONDITIONS = ("s0_eos", "s1_eos", "s0_bos")
WARPERS = ("TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper")
VALUES = ("temperature", "top_k", "top_p")


def evidence(drawn, replicate="R0") -> SampledEvidence:
    """A sampled batch as a unit's evidence: three of the eight conditions, with texts that are their IDs."""
    unit = sampled_unit(replicate=replicate)
    cells = [
        msgspec.structs.replace(
            cell,
            generated_ids=row,
            generated_sha256=ids_sha256(row),
            text_escaped=str(row),
            eos=row[-1] == IDS.eos,
            truncated=row[-1] != IDS.eos,
            length=len(row),
        )
        for cell, row in zip(unit.cells, drawn.rows, strict=False)
    ]
    unit = msgspec.structs.replace(
        unit,
        cells=tuple(cells),
        checks=drawn.checks,
        rng_before=drawn.rng_before,
        rng_after=drawn.rng_after,
        max_new_tokens=8,
    )
    return with_sampling(unit, drawn.sampling)


def bare(model, batch, config):
    """The library's own `generate` without the harness, with scores: IDs [rows, steps] and scores of each step."""
    ids, mask = torch.tensor(batch[0]), torch.tensor(batch[1])
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = model.model.generate(
            ids, attention_mask=mask, generation_config=config, output_scores=True, return_dict_in_generate=True
        )
    return out.sequences[:, ids.shape[1] :], out.scores


def cut(rows, eos=1):
    """Rows up to and including their first EOS."""
    return tuple(tuple(row[: row.index(eos) + 1] if eos in row else row) for row in rows.tolist())


def noting(ran, kind):
    """A warper's `__call__` that notes its class and values in `ran`; the library looks at its parameters' names."""
    call = kind.__call__

    def noted(self, input_ids, scores):
        ran.append((kind.__name__, {key: getattr(self, key) for key in VALUES if hasattr(self, key)}))
        return call(self, input_ids, scores)

    return noted


@pytest.fixture
def applied(monkeypatch):
    """Names and values of the warpers that really ran, noted where each is applied, whoever built them."""
    ran = []
    for name in WARPERS:
        kind = getattr(logits_process, name)
        monkeypatch.setattr(kind, "__call__", noting(ran, kind))
    return ran


def test_what_is_read_back_is_what_the_warpers_used(draw, applied):
    """R07 2: temperature 0.3 and top-p 0.95 ran in each step, no top-k ran, and the record says exactly that."""
    drawn = draw()
    step = [("TemperatureLogitsWarper", {"temperature": 0.3}), ("TopPLogitsWarper", {"top_p": 0.95})]
    assert applied == step * drawn.checks.steps
    assert drawn.sampling.processors == (TEMPERATURE, TOP_P)
    said = {name: drawn.sampling.parameters[name] for name in ("do_sample", "temperature", "top_p", "top_k")}
    assert said == {"do_sample": "true", "temperature": "0.3", "top_p": "0.95", "top_k": "0"}
    assert drawn.sampling.parameters["max_new_tokens"] == "8"
    assert effective_parameters(evidence(drawn), contract_of_rows(3), IDS) == ()


def test_a_top_k_of_the_library_is_seen(sampler, draw, applied, checkpoint):
    """The checkpoint's own config says nothing of top-k, and the library fills in 50: it runs, and is named twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler.model.generation_config = transformers.GenerationConfig.from_pretrained(checkpoint, max_new_tokens=8)
    assert sampler.model.generation_config.top_k is None
    drawn = draw()
    assert ("TopKLogitsWarper", {"top_k": 50}) in applied
    found = effective_parameters(evidence(drawn), contract_of_rows(3), IDS)
    assert "math/0000 R0 parameter top_k: expected 0, found 50" in found
    assert any("processors" in one and "TopKLogitsWarper(top_k=50)" in one for one in found)


@pytest.mark.parametrize(
    ("poison", "name"),
    [
        ({"top_p": 0.5}, "top_p"),
        ({"temperature": 0.7}, "temperature"),
        ({"top_k": 50}, "top_k"),
        ({"min_p": 0.1}, "min_p"),
        ({"typical_p": 0.9}, "typical_p"),
        ({"repetition_penalty": 1.3}, "repetition_penalty"),
        ({"max_new_tokens": 5}, "max_new_tokens"),
        ({"num_return_sequences": 1, "max_time": 60.0}, "max_time"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_setting_is_seen(sampler, draw, loaded, poison, name):
    """Whoever changed the model's config after the contract was adopted: the call's own values are held."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler.model.generation_config.update(**poison)
    found = effective_parameters(evidence(draw()), contract_of_rows(3), IDS)
    assert any(f"parameter {name}: expected" in one for one in found)


@pytest.mark.parametrize(
    "poison", [{"top_k": 50}, {"min_p": 0.3}, {"suppress_tokens": [310]}, {"typical_p": 0.2}], ids=str
)
def test_a_poisoned_generation_config_changes_no_token(sampler, sampled_contract, loaded, draw, poison):
    """The checkpoint's own config is replaced whole by the contract."""
    reference = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler.model.generation_config = transformers.GenerationConfig(**poison)
    effective = adopt_sampling(sampler, sampled_contract, loaded.profile.special_ids, 8)
    assert [name for name in poison if effective.get(name) not in (None, 0)] == []
    assert draw() == reference


def test_watching_changes_no_draw(sampler, sampled_contract, loaded, batch, draw):
    """The same seed and a bare call give the same rows; what its scores leave is what was counted as drawable."""
    drawn = draw()
    torch.manual_seed(seed_value(seeds_of("math/0000", "R0")))
    config = contract_config(sampled_contract, loaded.profile.special_ids, 8)
    ids, scores = bare(sampler, batch, config)
    assert cut(ids) == drawn.rows
    nucleus = torch.stack([torch.softmax(one, dim=-1) > 0 for one in scores], dim=1)
    live = torch.arange(ids.shape[1]) < torch.tensor([[len(row)] for row in drawn.rows])
    assert drawn.sampling.several == int(((nucleus.sum(dim=-1) > 1) & live).sum()) > 0
    assert drawn.sampling.drawable == int((nucleus.gather(2, ids[:, :, None]).squeeze(2) & live).sum())


def test_every_step_was_checked_and_drawn(draw):
    """Counts are the rows' own; the last prompt's answer ends or the budget does; one draw a step for three rows."""
    drawn = draw()
    assert sampled_steps(evidence(drawn)) == ()
    assert drawn.sampling.draws == drawn.checks.steps == max(map(len, drawn.rows))
    assert (drawn.sampling.rows, drawn.sampling.columns) == (3, 2048)


def test_a_tick_comes_with_every_step(draw):
    """Counted from 1."""
    ticks = []
    drawn = draw(tick=ticks.append)
    assert ticks == list(range(1, drawn.checks.steps + 1))


def test_the_generator_was_where_the_seed_puts_it_and_moved(draw):
    """R07 5: states just before and just after; torch's CPU generator alone was drawn from."""
    unit = evidence(draw())
    assert seeded_state(unit, gpus=torch.cuda.device_count()) == ()
    assert drawn_generator(unit, "cpu") == ()
    assert seed_identity(unit, contract_of_rows(3), REGISTERED_ID) == ()


@pytest.mark.parametrize("fields", [SMOKE_REPLAY, FORMAL_REPLAY], ids=["five", "eight"])
def test_a_replay_in_the_same_process_is_exact(draw, fields):
    """R07 7.1 (3), after another replicate was sampled in between; and every other field of the call."""
    first, _, second = draw(), draw("R1"), draw()
    assert first == second
    units = evidence(first), evidence(second)
    assert [replay_exact(*units, condition, fields) for condition in CONDITIONS] == [()] * 3


def test_two_replicates_part(draw):
    """R07 7.1 (4): another seed, other tokens somewhere."""
    first, second = draw(), draw("R1")
    assert first.rows != second.rows
    assert replicates_part([evidence(first)], [evidence(second, "R1")]) == ()


def test_the_same_seed_for_two_replicates_is_seen(draw):
    """The control: nothing parts, and both seeds are named."""
    twice = replicates_part([evidence(draw())], [evidence(draw(), "R1")])
    assert [one.split(":")[0] for one in twice] == [
        "math/0000 R0 and R1 base seeds",
        "math/0000 R0 and R1 run seeds",
        "3 cells of two replicates",
    ]
    assert seed_identity(evidence(draw(), "R1"), contract_of_rows(3), REGISTERED_ID) != ()


def test_what_was_drawn_before_a_batch_changes_nothing(draw):
    """An extra draw between two batches: randomness is a function of identity, not of order."""
    first = draw()
    torch.rand(1)
    assert draw() == first


def test_a_seed_that_was_not_set_is_seen(draw, monkeypatch):
    """Without it the state is whatever the process left, and the tokens are others."""
    reference = draw()
    monkeypatch.setattr("harness.decode.sampled.seed_generators", lambda _: None)
    torch.manual_seed(5)
    unseeded = draw()
    assert unseeded.rows != reference.rows
    assert seeded_state(evidence(unseeded), gpus=0) != ()


def test_a_draw_between_seed_and_batch_is_seen(draw, monkeypatch):
    """One number is enough: torch's state isn't the seed's, and the tokens are others."""

    def seed_and_draw(seed):
        torch.manual_seed(seed)
        torch.rand(1)

    reference = draw()
    monkeypatch.setattr("harness.decode.sampled.seed_generators", seed_and_draw)
    late = draw()
    assert late.rows != reference.rows
    assert any("torch_cpu state before the call" in one for one in seeded_state(evidence(late), gpus=0))


@pytest.mark.parametrize("step", [1, 4])
def test_a_draw_during_the_call_is_refused(draw, step):
    """Somebody else's number in between: the generator doesn't end where the steps' draws leave it."""
    with pytest.raises(DecodeError, match="the generator's state after 8 draws for 3 rows, found another") as caught:
        draw(tick=lambda number: torch.rand(1) if number == step else None)
    assert caught.value.kind == "foreign_draw"


def test_a_call_that_draws_nothing_is_refused(sampler, draw):
    """A config that lost do_sample is greedy: nothing was drawn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler.model.generation_config.update(do_sample=False)
    with pytest.raises(DecodeError, match="found another state") as caught:
        draw()
    assert caught.value.kind == "foreign_draw"


def test_rows_in_another_order_draw_other_tokens(draw, batch):
    """Rows are batch-seed aligned: a row's draws are its place's. Greedy rows don't depend on it; these do."""
    turned = draw(rows=PaddedRows(batch[0][::-1], batch[1][::-1]))
    assert turned.rows[::-1] != draw().rows
    units = evidence(draw()), evidence(turned)
    assert any(replay_exact(*units, condition, SMOKE_REPLAY) for condition in CONDITIONS)


def test_a_batch_that_is_split_draws_other_tokens(draw, batch):
    """R07 10: its second part isn't what the whole batch drew, at the same seed."""
    part = draw(rows=PaddedRows(batch[0][1:], batch[1][1:]))
    assert part.rows != draw().rows[1:]
    assert part.sampling.rows == 2


REPLAY = """
import msgspec, sys
from harness.canon import canonical_bytes
from harness.decode.sampled import PaddedRows, adopt_sampling, decode_sampled
from harness.model.load import load_model
from harness.places import places
from harness.protocols.load import load_protocol
from harness.records.sampling import BatchSeeds, SampledContract

contract, seeds, rows = msgspec.json.decode(sys.argv[1])
loaded = load_protocol("nano-behavior")
placement = next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)
checkpoint = places().models / loaded.profile.id / "checkpoint"
model = load_model(loaded.profile, loaded.protocol.execution, placement, checkpoint)
adopt_sampling(model, msgspec.convert(contract, SampledContract), loaded.profile.special_ids, 8)
seeds = msgspec.convert(seeds, BatchSeeds)
drawn = decode_sampled(model, PaddedRows(*rows), seeds=seeds, eos=1, tick=lambda _: None)
sys.stdout.buffer.write(canonical_bytes([drawn.rows, drawn.checks, drawn.sampling, drawn.rng_before, drawn.rng_after]))
"""


def test_a_fresh_process_draws_the_same(draw, batch, sampled_contract):
    """R07 7.3: model loaded anew; IDs, parameters, processors and generator states before and after, as bytes."""
    here = draw()
    given = msgspec.json.encode([sampled_contract, seeds_of("math/0000", "R0"), batch]).decode()
    done = subprocess.run([sys.executable, "-c", REPLAY, given], cwd=places().root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    parts = [here.rows, here.checks, here.sampling, here.rng_before, here.rng_after]
    assert done.stdout == canonical_bytes(parts)


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
def test_logits_that_are_not_numbers_have_their_word(sampler, draw, value):
    """Torch's own draw refuses them within the call: it is called what it is, with step and row."""
    steps = []

    def spoil(module, inputs, output):
        steps.append(1)
        if len(steps) == 3:
            output[1, -1, 5] = value

    handle = sampler.model.lm_head.register_forward_hook(spoil)
    try:
        with pytest.raises(DecodeError, match="step 2, row 1: expected finite logits, found 1 steps") as caught:
            draw()
    finally:
        handle.remove()
    assert caught.value.kind == "non_finite"


def test_minus_infinity_is_seen_after_the_call(sampler, draw):
    """Torch draws around it; the logits weren't finite all the same."""

    def spoil(module, inputs, output):
        output[0, -1, 5] = float("-inf")

    handle = sampler.model.lm_head.register_forward_hook(spoil)
    try:
        with pytest.raises(DecodeError, match="step 0, row 0: expected finite logits"):
            draw()
    finally:
        handle.remove()


def test_memory_that_runs_out_has_one_word(sampler, draw, monkeypatch):
    """The same as in greedy decoding, and the model isn't left watched."""

    def refuse(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(sampler.model, "generate", refuse)
        with pytest.raises(DecodeError, match="Take the next lower registered placement") as caught:
            draw()
    assert caught.value.kind == "out_of_memory"
    assert draw() == draw()


def test_another_error_goes_on_as_it_is(sampler, draw, monkeypatch):
    """Whoever lands the unit records it under the unit's name."""

    def refuse(*_, **__):
        raise RuntimeError("size mismatch")

    monkeypatch.setattr(sampler.model, "generate", refuse)
    with pytest.raises(RuntimeError, match=r"^size mismatch$"):
        draw()


def test_a_closed_model_is_misuse(sampled_contract, loaded, shared, batch):
    """Neither adopted nor drawn from."""
    closed = type(shared)(None, shared.device, shared.placement, shared.execution, shared.process, 0)
    with pytest.raises(RuntimeError, match="the model was closed"):
        adopt_sampling(closed, sampled_contract, loaded.profile.special_ids, 8)
    with pytest.raises(RuntimeError, match="the model was closed"):
        decode_sampled(closed, PaddedRows(*batch), seeds=seeds_of("math/0000", "R0"), eos=1, tick=lambda _: None)
