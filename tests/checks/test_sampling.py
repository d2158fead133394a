"""Sampling checks over records made by hand: a good batch passes each, and each planted fault turns one red by name."""

import re

import msgspec
import pytest
from pregate_support.sampling import (
    COLUMNS,
    IDS,
    REGISTERED_ID,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    changed,
    parameters,
    sampled_contract,
    sampled_unit,
    seeds_of,
)

from harness.canon import canonical_bytes
from harness.checks.cells import parted_cells
from harness.checks.sampling import (
    FORMAL_REPLAY,
    SMOKE_REPLAY,
    draw_shape,
    drawn_generator,
    effective_parameters,
    expected_processors,
    replay_exact,
    replicates_part,
    sampled_steps,
    seed_identity,
    seeded_state,
)
from harness.errors import JournalError, ProtocolError
from harness.protocols.generators import seeded_states
from harness.protocols.seeds import seed_value
from harness.records.base import decode_json
from harness.records.run import NoDevice, StateHash
from harness.records.sampling import Processor, SampledBatch, SampledEvidence

CONDITIONS = ("s0_eos", "s1_eos", "s0_bos", "s1_bos", "s0_x", "s1_x", "s0_period", "s1_period")
CONTRACT = sampled_contract(8)
UNIT = "math/0000 R0"
OTHER = StateHash(sha256="0" * 64)


@pytest.fixture
def unit():
    """A good batch."""
    return sampled_unit()


def cells_with(unit, condition, **fields):
    """A unit with one cell changed."""
    cells = [msgspec.structs.replace(c, **fields) if c.condition == condition else c for c in unit.cells]
    return msgspec.structs.replace(unit, cells=tuple(cells))


def states_with(unit, when, **fields):
    """A unit with other generator states, `before` or `after` the call."""
    name = f"rng_{when}"
    return msgspec.structs.replace(unit, **{name: msgspec.structs.replace(getattr(unit, name), **fields)})


def all_checks(unit):
    """Every check of one unit."""
    return (
        *effective_parameters(unit, CONTRACT, IDS),
        *seed_identity(unit, CONTRACT, REGISTERED_ID),
        *seeded_state(unit, gpus=0),
        *drawn_generator(unit, "cpu"),
        *sampled_steps(unit),
        *draw_shape(unit, CONDITIONS, COLUMNS),
    )


def test_a_good_batch_passes_every_check(unit):
    """Nothing is found on it."""
    assert all_checks(unit) == ()


def test_a_sampled_unit_is_a_strict_record(unit):
    """It comes back from its canonical bytes, and an unknown field is refused."""
    read = decode_json(canonical_bytes(unit), SampledEvidence, where="x", error=JournalError, todo="x")
    assert read == unit
    more = canonical_bytes(unit).replace(b'"several"', b'"many":1,"several"')
    with pytest.raises(JournalError, match="unknown field `many`"):
        decode_json(more, SampledEvidence, where="x", error=JournalError, todo="x")


def test_the_only_name_of_the_pairing(unit):
    """R07 4 and 11: rows share seed and calls, and no other word for that is accepted."""
    plain = msgspec.to_builtins(CONTRACT)
    assert plain["pairing"] == "batch-seed aligned"
    with pytest.raises(msgspec.ValidationError, match="pairing"):
        msgspec.convert(plain | {"pairing": "paired draws"}, type(CONTRACT))


PERTURBED = {
    "seeds": seeds_of("math/0000", "R1"),
    "generator": "torch_cuda",
    "rows": 4,
    "columns": 4,
    "draws": 3,
    "parameters": parameters(999),
    "processors": (TOP_P, TEMPERATURE),
    "drawable": 1,
}


@pytest.mark.parametrize("name", SampledBatch.__struct_fields__)
def test_no_field_changes_unseen(unit, name):
    """Each turns a check red, but `several`, which is shown and judged by nobody."""
    found = all_checks(changed(unit, **{name: (PERTURBED | {"several": 0})[name]}))
    assert bool(found) is (name in PERTURBED)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("top_p", "0.9", "parameter top_p: expected 0.95, found 0.9"),
        ("top_k", "50", "parameter top_k: expected 0, found 50"),
        ("top_k", "false", "parameter top_k: expected 0, found false"),
        ("temperature", "1.0", "parameter temperature: expected 0.3, found 1.0"),
        ("do_sample", "false", "parameter do_sample: expected true, found false"),
        ("max_new_tokens", "16", "parameter max_new_tokens: expected 32, found 16"),
        ("min_p", "0.1", "parameter min_p: expected null, found 0.1"),
        ("typical_p", "0.0", "parameter typical_p: expected 1.0, found 0.0"),
        ("num_return_sequences", "4", "parameter num_return_sequences: expected 1, found 4"),
        ("generation_kwargs", '{"x": 1}', 'parameter generation_kwargs: expected null, found {"x": 1}'),
        ("prompt_lookup_num_tokens", "2", "parameter prompt_lookup_num_tokens: expected null, found 2"),
    ],
)
def test_another_parameter_is_named(unit, name, value, message):
    """Compared as JSON text; what no contract knows must be neutral."""
    found = effective_parameters(changed(unit, parameters=unit.sampling.parameters | {name: value}), CONTRACT, IDS)
    assert found == (f"{UNIT} {message}",)


@pytest.mark.parametrize("name", ["top_k", "temperature", "max_new_tokens"])
def test_a_parameter_that_was_not_read_back_is_named(unit, name):
    """Absence isn't agreement."""
    kept = {key: value for key, value in unit.sampling.parameters.items() if key != name}
    (found,) = effective_parameters(changed(unit, parameters=kept), CONTRACT, IDS)
    assert found.startswith(f"{UNIT} parameter {name}: expected ")
    assert found.endswith("found not read back")


@pytest.mark.parametrize(
    "processors",
    [
        pytest.param((TEMPERATURE, TOP_K, TOP_P), id="top-k"),
        pytest.param((TEMPERATURE,), id="no-top-p"),
        pytest.param((), id="none"),
        pytest.param((TEMPERATURE, TOP_P, TOP_P), id="twice"),
        pytest.param((TOP_P, TEMPERATURE), id="order"),
        pytest.param((Processor(name=TEMPERATURE.name, values={"temperature": "0.7"}), TOP_P), id="value"),
        pytest.param(
            (TEMPERATURE, Processor(name=TOP_P.name, values=TOP_P.values | {"min_tokens_to_keep": "2"})), id="kept"
        ),
    ],
)
def test_other_processors_are_named(unit, processors):
    """The parameters may read as registered: what changed the scores is held as well."""
    (found,) = effective_parameters(changed(unit, processors=processors), CONTRACT, IDS)
    warpers = "['TemperatureLogitsWarper(temperature=0.3)', 'TopPLogitsWarper(top_p=0.95)']"
    assert found.startswith(f"{UNIT} processors: expected {warpers}, found [")


def test_neutral_values_expect_no_processor():
    """Temperature 1, top-p 1 and top-k 0 leave the scores as they are."""
    neutral = msgspec.structs.replace(CONTRACT, temperature=1.0, top_p=1.0)
    assert expected_processors(neutral) == ()
    (top_k,) = expected_processors(msgspec.structs.replace(neutral, top_k=50))
    assert top_k == Processor(name="TopKLogitsWarper", values={"top_k": "50"})


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        pytest.param(seeds_of("math/0000", "R1"), ("base seed", "run seed"), id="another-replicate"),
        pytest.param(seeds_of("math/0001", "R0"), ("run seed",), id="another-source"),
    ],
)
def test_seeds_of_another_identity_are_named(unit, seeds, words):
    """The same seed for two replicates, or for two sources."""
    found = seed_identity(changed(unit, seeds=seeds), CONTRACT, REGISTERED_ID)
    assert tuple(one.split(":")[0] for one in found) == tuple(f"{UNIT} {word}" for word in words)


def test_seeds_of_another_protocol_are_named(unit):
    """The registered ID is part of the derivation."""
    (found,) = seed_identity(unit, CONTRACT, "pregate-another-v1")
    assert found.startswith(f"{UNIT} run seed: expected ")


def test_a_replicate_that_is_not_registered_has_no_seed(unit):
    """A unit of a ninth replicate can't be judged."""
    with pytest.raises(ProtocolError, match="expected one of R0, R1, R2, R3, found R9"):
        seed_identity(msgspec.structs.replace(unit, replicate="R9"), CONTRACT, REGISTERED_ID)


@pytest.mark.parametrize("name", ["python", "numpy", "torch_cpu", "torch_cuda"])
def test_a_state_that_is_not_the_seeds_is_named(unit, name):
    """Each of the four, computed from the run seed."""
    (found,) = seeded_state(states_with(unit, "before", **{name: OTHER}), gpus=0)
    assert found.startswith(f"{UNIT} {name} state before the call: expected ")


def test_the_state_of_another_seed_is_named(unit):
    """A batch that went on where another one's seed had been set: every generator that exists."""
    others = seeded_states(seed_value(seeds_of("math/0000", "R1")), gpus=0)
    assert len(seeded_state(msgspec.structs.replace(unit, rng_before=others), gpus=0)) == 3


def test_a_machine_with_devices_must_have_their_state(unit):
    """A typed absence is right only where there is none."""
    (found,) = seeded_state(unit, gpus=1)
    assert "torch_cuda" in found
    states = seeded_states(seed_value(unit.sampling.seeds), gpus=1)
    assert seeded_state(msgspec.structs.replace(unit, rng_before=states), gpus=1) == ()


def test_a_generator_that_nobody_drew_from_is_named(unit):
    """A sampled batch leaves its generator elsewhere."""
    still = msgspec.structs.replace(unit, rng_after=unit.rng_before)
    assert drawn_generator(still, "cpu") == (f"{UNIT} torch_cpu generator: expected drawn from, found untouched",)


@pytest.mark.parametrize("name", ["python", "numpy", "torch_cuda"])
def test_a_draw_from_another_generator_is_named(unit, name):
    """Only the execution device's may move."""
    found = drawn_generator(states_with(unit, "after", **{name: OTHER}), "cpu")
    assert found == (f"{UNIT} {name} generator: expected untouched, found drawn from",)


def test_the_device_says_which_generator(unit):
    """On a CUDA device the CPU's generator stays where it is."""
    assert len(drawn_generator(unit, "cuda")) == 3
    states = seeded_states(seed_value(unit.sampling.seeds), gpus=1)
    cuda = msgspec.structs.replace(unit, rng_before=states, rng_after=msgspec.structs.replace(states, torch_cuda=OTHER))
    assert drawn_generator(changed(cuda, generator="torch_cuda"), "cuda") == ()


def test_a_generator_without_a_device_was_not_drawn_from(unit):
    """Two typed absences are equal: the check can't pass on them."""
    assert unit.rng_before.torch_cuda == unit.rng_after.torch_cuda == NoDevice()
    assert f"{UNIT} torch_cuda generator: expected drawn from, found untouched" in drawn_generator(unit, "cuda")


@pytest.mark.parametrize("draws", [0, 1, 99])
def test_another_number_of_draws_is_named(unit, draws):
    """One a step."""
    (found,) = drawn_generator(changed(unit, draws=draws), "cpu")
    assert found == f"{UNIT} draws: expected {unit.checks.steps}, found {draws}"


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        pytest.param({"rows_checked": 1}, "row steps checked", id="checked"),
        pytest.param({"finite": 1}, "row steps with finite logits", id="finite"),
        pytest.param({"steps": 1}, "steps", id="steps"),
    ],
)
def test_steps_that_were_not_checked_are_named(unit, fault, word):
    """The counts are the emitted IDs' own."""
    (found,) = sampled_steps(msgspec.structs.replace(unit, checks=msgspec.structs.replace(unit.checks, **fault)))
    assert found.startswith(f"{UNIT} {word}: expected ")


def test_an_id_outside_the_nucleus_is_named(unit):
    """One row step less had a probability."""
    (found,) = sampled_steps(changed(unit, drawable=unit.sampling.drawable - 1))
    assert found.startswith(f"{UNIT} row steps that drew an ID with a probability: expected ")


@pytest.mark.parametrize("count", [-1, 10**6])
def test_counts_beyond_the_steps_are_named(unit, count):
    """Steps that drew the argmax, or could draw several IDs, are some of those that were checked."""
    argmax = msgspec.structs.replace(unit, checks=msgspec.structs.replace(unit.checks, argmax=count))
    (found,) = sampled_steps(argmax)
    assert re.fullmatch(rf"{UNIT} row steps that drew the argmax: expected 0 to \d+, found {count}", found)
    (found,) = sampled_steps(changed(unit, several=count))
    assert re.fullmatch(rf"{UNIT} row steps that could draw several IDs: expected 0 to \d+, found {count}", found)


def test_a_draw_need_not_be_the_argmax(unit):
    """Nothing requires it of a sampled unit."""
    none = msgspec.structs.replace(unit, checks=msgspec.structs.replace(unit.checks, argmax=0))
    assert sampled_steps(none) == ()


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(lambda c: c[::-1], id="reversed"),
        pytest.param(lambda c: (c[1], c[0], *c[2:]), id="swapped"),
        pytest.param(lambda c: c[:4], id="split"),
        pytest.param(lambda c: (c[0], c[0], *c[2:]), id="twice"),
    ],
)
def test_rows_out_of_order_are_named(unit, cells):
    """R07 10: another order or half a batch is another protocol."""
    found = draw_shape(msgspec.structs.replace(unit, cells=cells(unit.cells)), CONDITIONS, COLUMNS)
    assert found[0].startswith(f"{UNIT} rows: expected ('s0_eos', 's1_eos', ")


@pytest.mark.parametrize("fields", [SMOKE_REPLAY, FORMAL_REPLAY], ids=["five", "eight"])
def test_a_replay_of_the_same_batch_is_exact(fields):
    """Made twice by the rules: every cell, every field."""
    first, second = sampled_unit(), sampled_unit()
    assert [replay_exact(first, second, condition, fields) for condition in CONDITIONS] == [()] * len(CONDITIONS)


def test_the_registered_fields_are_the_documents():
    """R07 7.1 (3) names five and 7.3 eight."""
    assert (len(SMOKE_REPLAY), len(FORMAL_REPLAY)) == (5, 8)


REPLAY_FAULTS = {
    "run_seed": lambda u: changed(u, seeds=msgspec.structs.replace(u.sampling.seeds, run="0" * 16)),
    "prompt_sha256": lambda u: cells_with(u, "s0_x", prompt_sha256="0" * 64),
    "generated_ids": lambda u: cells_with(u, "s0_x", generated_ids=(*u.cells[4].generated_ids[:2], 9)),
    "text": lambda u: cells_with(u, "s0_x", text_escaped="other"),
    "stop_state": lambda u: cells_with(u, "s0_x", truncated=True),
    "eos": lambda u: cells_with(u, "s0_x", eos=False),
    "truncated": lambda u: cells_with(u, "s0_x", truncated=True),
    "torch_cpu_before": lambda u: states_with(u, "before", torch_cpu=OTHER),
    "torch_cuda_before": lambda u: states_with(u, "before", torch_cuda=OTHER),
}


@pytest.mark.parametrize(
    ("fields", "name"),
    [pytest.param(f, name, id=f"{len(f)}-{name}") for f in (SMOKE_REPLAY, FORMAL_REPLAY) for name in f],
)
def test_each_replayed_field_is_compared(unit, fields, name):
    """One difference, by the field's name, in the cell where it is."""
    (found,) = replay_exact(unit, REPLAY_FAULTS[name](unit), "s0_x", fields)
    assert found.startswith(f"{UNIT} s0_x {name}: expected ")


def test_ids_say_where_they_part(unit):
    """From the first step that differs."""
    (found,) = replay_exact(unit, REPLAY_FAULTS["generated_ids"](unit), "s0_x", SMOKE_REPLAY)
    assert "from step 2, found [9]" in found


def test_no_model_text_is_in_a_difference(unit):
    """Digests stand for it."""
    (found,) = replay_exact(unit, REPLAY_FAULTS["text"](unit), "s0_x", SMOKE_REPLAY)
    assert "other" not in found
    assert unit.cells[4].text_escaped not in found


@pytest.mark.parametrize("other", [sampled_unit(replicate="R1"), sampled_unit(index=1)], ids=["replicate", "source"])
def test_another_batch_is_no_replay(unit, other):
    """Joined by identity: nothing else is compared."""
    (found,) = replay_exact(unit, other, "s0_x", FORMAL_REPLAY)
    assert found.startswith(f"{UNIT} source and replicate: expected ('math/0000', 'R0'), found ")


def test_a_cell_that_is_missing_is_no_replay(unit):
    """One row on each side, not none and not two."""
    fewer = msgspec.structs.replace(unit, cells=unit.cells[1:])
    assert replay_exact(unit, fewer, "s0_eos", SMOKE_REPLAY) == (
        f"{UNIT} s0_eos: expected one row on each side, found 1 and 0",
    )


def replicate(name, count=3):
    """A replicate over so many sources."""
    return [sampled_unit(index=index, replicate=name) for index in range(count)]


def test_two_replicates_part():
    """R07 7.1 (4): all cells of these do."""
    assert replicates_part(replicate("R0"), replicate("R1")[::-1]) == ()
    one, other = ({unit.source_id: unit for unit in replicate(name)} for name in ("R0", "R1"))
    assert parted_cells(one, other) == (24, 24)


def test_one_cell_that_parts_is_enough():
    """At least one of all cells."""
    first = replicate("R0")
    second = [msgspec.structs.replace(new, cells=old.cells) for old, new in zip(first, replicate("R1"), strict=True)]
    assert replicates_part(first, second) == ("24 cells of two replicates: expected one or more that part, found none",)
    second[1] = cells_with(second[1], "s0_x", generated_ids=(5,))
    assert replicates_part(first, second) == ()


def test_the_same_seed_for_two_replicates_is_named():
    """Whatever the outputs are: base seed and run seed of each source."""
    first = replicate("R0", 1)
    second = [changed(one, seeds=first[0].sampling.seeds) for one in replicate("R1", 1)]
    assert replicates_part(first, second) == (
        "math/0000 R0 and R1 base seeds: expected 2, found 1",
        "math/0000 R0 and R1 run seeds: expected 2, found 1",
    )


def test_a_replicate_is_not_held_against_itself():
    """Nothing parts, and it says why."""
    found = replicates_part(replicate("R0", 1), replicate("R0", 1))
    assert "math/0000 R0 and R0 replicates: expected 2, found 1" in found
    assert "8 cells of two replicates: expected one or more that part, found none" in found


@pytest.mark.parametrize(("left", "right"), [(3, 2), (2, 3), (0, 0)])
def test_replicates_over_other_sources_are_named(left, right):
    """Denominators agree, and there is one."""
    (found,) = replicates_part(replicate("R0", left), replicate("R1", right))
    assert found.startswith("sources of two replicates: expected ")


def test_replicates_with_other_prompts_are_named():
    """A trajectory parts only from the same prompt."""
    first, second = replicate("R0", 1), replicate("R1", 1)
    second[0] = cells_with(second[0], "s0_x", prompt_sha256="0" * 64)
    (found,) = replicates_part(first, second)
    assert found.startswith("math/0000 R0 and R1 prompts: expected ")
