"""The contract on the real model: a checkpoint's own generation config changes nothing, and memory has one word."""

import warnings

import pytest
import torch
import transformers

from harness.decode.greedy import READ_BACK, adopt_contract, contract_config, decode_greedy, is_out_of_memory
from harness.errors import DecodeError

POISONS = {
    "temperature": {"do_sample": True, "temperature": 0.3, "top_p": 0.95},
    "repetition_penalty": {"repetition_penalty": 1.3},
    "min_new_tokens": {"min_new_tokens": 4},
    "min_length": {"min_length": 40},
    "suppress_tokens": {"suppress_tokens": list(range(2, 900))},
    "begin_suppress_tokens": {"begin_suppress_tokens": list(range(2, 900))},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 1},
    "bad_words_ids": {"bad_words_ids": [[one] for one in range(2, 900)]},
    "sequence_bias": {"sequence_bias": [[[one], -50.0] for one in range(2, 900)]},
    "forced_eos_token_id": {"forced_eos_token_id": 5},
    "exponential_decay_length_penalty": {"exponential_decay_length_penalty": (1, 9.0)},
    "num_beams": {"num_beams": 3},
    "max_new_tokens": {"max_new_tokens": 1},
    "max_time": {"max_time": 1e-9},
    "eos_token_id": {"eos_token_id": list(range(2, 900))},
    "prompt_lookup": {"prompt_lookup_num_tokens": 2},
    "cache": {"use_cache": False},
}


def ignore(step):
    """A tick that nobody watches."""


def bare(model, batch, config):
    """The library's own `generate` under a config, without the harness: IDs [rows, steps]."""
    ids, mask = torch.tensor(batch[0]), torch.tensor(batch[1])
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.model.generate(ids, attention_mask=mask, generation_config=config)[:, ids.shape[1] :]


def contract(loaded, budget=8):
    """The registered contract as a config."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return contract_config(loaded.protocol.decode, loaded.profile.special_ids, budget)


def rows(output, eos):
    """Rows of a bare call, cut after their first EOS."""
    return tuple(tuple(row[: row.index(eos) + 1] if eos in row else row) for row in output.tolist())


@pytest.fixture
def reference(model, loaded, batch):
    """What the harness decodes on a model that nothing poisoned."""
    return decode_greedy(model, *batch, eos=loaded.profile.special_ids.eos, tick=ignore)


def test_the_watcher_changes_no_token(model, loaded, batch, reference):
    """The same rows from a bare `generate` call."""
    assert rows(bare(model, batch, contract(loaded)), loaded.profile.special_ids.eos) == reference.rows


def test_every_emitted_token_was_checked(reference):
    """Counts of the checks are counts of the rows."""
    emitted = sum(map(len, reference.rows))
    assert (reference.checks.rows_checked, reference.checks.finite, reference.checks.argmax) == (emitted,) * 3
    assert reference.checks.steps == max(map(len, reference.rows))


def test_a_tick_comes_with_every_step(model, loaded, batch):
    """Counted from 1."""
    ticks = []
    decoded = decode_greedy(model, *batch, eos=loaded.profile.special_ids.eos, tick=ticks.append)
    assert ticks == list(range(1, decoded.checks.steps + 1))


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_a_poisoned_generation_config_changes_no_token(model, loaded, batch, reference, poison):
    """The checkpoint's own config is replaced whole: no merge brings a value back, and the effective one is neutral."""
    eos = loaded.profile.special_ids.eos
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.model.generation_config = transformers.GenerationConfig(**poison)
    effective = adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, 8)
    unregistered = set(poison) & set(READ_BACK) - set(loaded.protocol.decode.__struct_fields__) - {"eos_token_id"}
    assert [name for name in unregistered if effective[name] not in (None, 0, False)] == []
    assert decode_greedy(model, *batch, eos=eos, tick=ignore) == reference


@pytest.mark.parametrize("name", ["repetition_penalty", "suppress_tokens", "max_new_tokens"])
def test_the_same_poison_changes_a_bare_call(model, loaded, batch, reference, name):
    """The control: without the contract these values do reach the tokens."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ids = loaded.profile.special_ids
        plain = {"max_new_tokens": 8, "pad_token_id": ids.pad, "eos_token_id": ids.eos, "do_sample": False}
        config = transformers.GenerationConfig(**(plain | POISONS[name]))
    assert rows(bare(model, batch, config), ids.eos) != reference.rows


def test_the_contract_is_read_back_from_the_model(model, loaded):
    """Each registered value, as the model holds it, over a checkpoint that registers sampling at 0.3."""
    effective = adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, 8)
    decode, ids = loaded.protocol.decode, loaded.profile.special_ids
    wanted = {
        "do_sample": decode.do_sample,
        "num_beams": decode.num_beams,
        "use_cache": decode.use_cache,
        "temperature": decode.temperature,
        "top_k": decode.top_k,
        "top_p": decode.top_p,
        "repetition_penalty": decode.repetition_penalty,
        "bos_token_id": ids.bos,
        "eos_token_id": ids.eos,
        "pad_token_id": ids.pad,
    }
    assert {name: effective[name] for name in wanted} == wanted
    assert {name for name in effective if effective[name] not in (None, 0, False)} <= set(wanted)


def test_what_is_read_back_is_the_models_and_not_the_contracts(model, loaded, monkeypatch):
    """A model whose config changes after the adoption says so."""
    adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, 8)
    other = transformers.GenerationConfig(repetition_penalty=1.5)
    monkeypatch.setattr("harness.decode.greedy.contract_config", lambda *_: other)
    assert adopt_contract(model, loaded.protocol.decode, loaded.profile.special_ids, 8)["repetition_penalty"] == 1.5


def test_the_checkpoint_registers_sampling(checkpoint, loaded):
    """R04 4: the official values are recorded in the protocol and are really there to be beaten."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        official = transformers.GenerationConfig.from_pretrained(checkpoint)
    decode = loaded.protocol.decode
    assert official.do_sample
    assert (official.temperature, official.top_p) == (decode.official_temperature, decode.official_top_p)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB\nmore"), id="torch"),
        pytest.param(MemoryError(), id="python"),
        pytest.param(RuntimeError("CUDA error: out of memory"), id="driver"),
        pytest.param(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), id="cpu"),
        pytest.param(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), id="cublas"),
    ],
)
def test_memory_that_runs_out_has_one_word(model, loaded, batch, monkeypatch, error):
    """Whoever raises it: kind out_of_memory, and the answer is a placement, never a smaller batch."""

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(model.model, "generate", refuse)
    with pytest.raises(DecodeError, match=r"found .+ Take the next lower registered placement; the batch is") as caught:
        decode_greedy(model, *batch, eos=loaded.profile.special_ids.eos, tick=ignore)
    assert caught.value.kind == "out_of_memory"
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [RuntimeError("size mismatch"), ValueError("x"), KeyError("x")], ids=repr)
def test_another_error_is_not_called_memory(model, loaded, batch, monkeypatch, error):
    """It goes on as it is; whoever lands the unit records it under the unit's name."""

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(model.model, "generate", refuse)
    with pytest.raises(type(error)) as caught:
        decode_greedy(model, *batch, eos=loaded.profile.special_ids.eos, tick=ignore)
    assert caught.value is error
    assert not is_out_of_memory(error)


def test_rows_do_not_depend_on_their_order(model, loaded, batch, reference):
    """The batch backwards gives the rows backwards (float32 on the CPU)."""
    turned = decode_greedy(model, batch[0][::-1], batch[1][::-1], eos=loaded.profile.special_ids.eos, tick=ignore)
    assert turned.rows == reference.rows[::-1]
