"""The list of single changes, without a model: one thing each, what the sides differ in first, nothing twice."""

from typing import get_args

import msgspec
import pytest

from harness.places import places
from harness.protocols.load import load_protocol
from harness.protocols.loops import greedy_contract
from harness.records.explanation import Aspect, AspectField, AspectName
from harness.records.tapes import SamplerContract
from harness.rerun.changes import Registered, single_changes
from harness.rerun.conditions import Conditions
from harness.rerun.trial import ByArgmax, BySeed, ByTape, Executed, Forward, Load, Row

BESIDES = ["batch", "cache", "program", "threads", "experts", "attention", "dtype"]
SAMPLER = SamplerContract(rule="icdf-r08", temperature=0.3, top_p=0.95, min_tokens_to_keep=1, device="cpu")
replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def nano():
    """The task protocol, whose contract both programs have."""
    return load_protocol("nano-task-crn")


@pytest.fixture(scope="module")
def registered(nano):
    """Its placements and execution."""
    return Registered(nano.protocol.placements, nano.protocol.execution)


@pytest.fixture(scope="module")
def base(nano, registered):
    """Two rows of a greedy step on the resident model."""
    execution = registered.execution
    load = Load(
        profile=nano.profile,
        checkpoint=str(places().models),
        placement=registered.placements[0],
        device="cpu",
        dtype="float32",
        attention="eager",
        experts="grouped_mm",
        threads=execution.threads,
        deterministic_algorithms=True,
        float32_matmul_precision="highest",
        variables={},
    )
    rows = tuple(
        Row(condition=name, prompt_ids=(5, 6, 7)[at:], left_padding=at, forced=(8,))
        for at, name in enumerate(("one", "two"))
    )
    contract = greedy_contract(nano.protocol)
    forward = Forward(
        rows=rows,
        row=1,
        step=1,
        program="generate",
        executed=None,
        contract=contract,
        rule=ByArgmax(),
        candidates=(9, 10),
    )
    return Conditions(load, forward)


def changes(base, registered, other=None, *, between=(), turned=False):
    """The list."""
    return single_changes(base, other, between=tuple(between), turned=turned, registered=registered)


def differing(name, **fields):
    """An aspect in which the records differ: field=(a, b)."""
    found = tuple(AspectField(field=field.replace("__", "."), a=a, b=b) for field, (a, b) in fields.items())
    return Aspect(name=name, state="differs", held="", differing=found, why="")


def test_each_change_is_of_one_field(base, registered):
    """Of the load or of the forward, never of both; without another side all are tried besides."""
    found = changes(base, registered)
    assert [one.field for one in found] == [*BESIDES, "variable ATEN_CPU_CAPABILITY", "placement"]
    assert {one.kind for one in found} == {"tried besides"}
    for one in found:
        of_load, of_forward = one.conditions.load != base.load, one.conditions.forward != base.forward
        assert of_load != of_forward
        assert one.before != one.after


def test_a_dense_model_has_no_other_experts(base, registered):
    """There is nothing to compute otherwise."""
    dense = Conditions(replace(base.load, experts="none"), base.forward)
    fields = [one.field for one in changes(dense, registered)]
    assert fields == [*(one for one in BESIDES if one != "experts"), "variable ATEN_CPU_CAPABILITY", "placement"]


OTHER_LOADS = {
    "dtype": {"dtype": "bfloat16"},
    "attention": {"attention": "sdpa"},
    "experts": {"experts": "eager"},
    "threads": {"threads": 4},
    "deterministic_algorithms": {"deterministic_algorithms": False},
    "float32_matmul_precision": {"float32_matmul_precision": "high"},
    "checkpoint": {"checkpoint": "elsewhere"},
    "variable MKL_CBWR": {"variables": {"MKL_CBWR": "AVX2"}},
}


@pytest.mark.parametrize("field", OTHER_LOADS)
def test_what_the_sides_differ_in_comes_first_and_once(field, base, registered):
    """With the other side's value, and not among what is tried besides."""
    other = Conditions(replace(base.load, **OTHER_LOADS[field]), base.forward)
    found = changes(base, registered, other)
    assert (found[0].field, found[0].kind) == (field, "between the sides")
    assert found[0].conditions == other
    assert [one.field for one in found].count(field) == 1
    assert {one.kind for one in found[1:]} == {"tried besides"}


def test_a_placement_brings_its_device(base, registered):
    """The other side's, whatever it computes on."""
    other = Conditions(replace(base.load, placement=registered.placements[1], device="cuda"), base.forward)
    (one,) = [one for one in changes(base, registered, other) if one.field == "placement"]
    assert one.conditions == other


@pytest.mark.parametrize(
    ("field", "rows"),
    [
        ("prompt", lambda rows: (rows[0], replace(rows[1], prompt_ids=(6, 70)))),
        ("batch", lambda rows: (replace(rows[0], prompt_ids=(5, 6, 70)), rows[1])),
        ("batch", lambda rows: (rows[1],)),
        ("tokens beside", lambda rows: (replace(rows[0], forced=(80,)), rows[1])),
    ],
    ids=["own prompt", "another prompt", "fewer rows", "other tokens"],
)
def test_rows_are_named_by_what_differs_in_them(field, rows, base, registered):
    """The row's own prompt, the batch's shape, or what another row has before the step."""
    made = rows(base.forward.rows)
    other = Conditions(base.load, replace(base.forward, rows=made, row=len(made) - 1))
    one = changes(base, registered, other)[0]
    assert (one.field, one.kind) == (field, "between the sides")
    assert one.conditions.forward.rows == made


def between(found):
    """The changes in what the sides differ in, by field."""
    made = [one for one in found if one.kind == "between the sides"]
    assert len({one.field for one in made}) == len(made)
    return {one.field: one for one in made}


def test_a_prompt_is_changed_without_what_differs_beside_it(base, registered):
    """Own prompt, another row's, another row's tokens: three changes, each with the rest as it was, padded anew."""
    first, own = base.forward.rows
    made = (
        replace(first, prompt_ids=(5, 70, 7, 8), left_padding=0, forced=(80,)),
        replace(own, prompt_ids=(60,), left_padding=3),
    )
    found = between(changes(base, registered, Conditions(base.load, replace(base.forward, rows=made))))
    rows = {name: one.conditions.forward.rows for name, one in found.items()}
    assert rows == {
        "prompt": (first, replace(own, prompt_ids=(60,), left_padding=2)),
        "batch": (replace(first, prompt_ids=(5, 70, 7, 8)), replace(own, left_padding=2)),
        "tokens beside": (replace(first, forced=(80,)), own),
    }
    assert all(one.before != one.after for one in found.values())


def test_what_is_drawn_by_and_what_is_drawn_from_are_two_changes(base, registered):
    """Another u and another temperature; another seed and another top-p; drawn and greedy."""
    warm = replace(SAMPLER, temperature=0.9)
    tapes = ByTape(sampler=SAMPLER, u=(0.25).hex()), ByTape(sampler=warm, u=(0.5).hex())
    seeds = (
        BySeed(seed="0" * 16, temperature=0.3, top_k=0, top_p=0.95),
        BySeed(seed="1" * 16, temperature=0.3, top_k=0, top_p=0.5),
    )
    for (one, other), drawn, drawn_from in (
        (tapes, replace(tapes[0], u=tapes[1].u), replace(tapes[0], sampler=warm)),
        (seeds, replace(seeds[0], seed=seeds[1].seed), replace(seeds[0], top_p=0.5)),
    ):
        sides = [Conditions(base.load, replace(base.forward, rule=rule)) for rule in (one, other)]
        found = between(changes(sides[0], registered, sides[1]))
        rules = {name: change.conditions.forward.rule for name, change in found.items()}
        assert rules == {"draws": drawn, "sampler": drawn_from}
    greedy = between(changes(base, registered, Conditions(base.load, replace(base.forward, rule=tapes[0]))))
    assert list(greedy) == ["sampler"]


def test_a_cache_that_the_sides_differ_in_is_the_sides(base, registered):
    """Not tried besides: the other side's own way to be called."""
    contract = replace(base.forward.contract, use_cache=False, repetition_penalty=1.5)
    found = changes(base, registered, Conditions(base.load, replace(base.forward, contract=contract)))
    assert {name: one.conditions.forward.contract for name, one in between(found).items()} == {
        "cache": replace(base.forward.contract, use_cache=False),
        "repetition_penalty": replace(base.forward.contract, repetition_penalty=1.5),
    }
    assert [one.field for one in found].count("cache") == 1


def test_whatever_the_records_differ_in_is_on_the_list(base, registered):
    """An aspect that no change is of is untried with both values, and nothing of it is tried as if it were the same."""
    aspects = [differing(name, some=("x", "y")) for name in get_args(AspectName)]
    found = changes(base, registered, base, between=aspects)
    untried = {one.field: (one.before, one.after) for one in found if one.conditions is None}
    settled = {"libraries", "machine", "kernels", "threads", "protocol"}
    assert untried == dict.fromkeys({*get_args(AspectName), "some"} - settled, ("y", "x"))
    besides = {one.field for one in found if one.kind == "tried besides"}
    assert besides == {"threads", "variable ATEN_CPU_CAPABILITY"}


def test_a_side_that_cannot_be_made_again_has_its_recorded_settings(base, registered):
    """Its checkpoint isn't here: its experts, threads and variables are, and aren't tried as if they were ours."""
    aspects = [
        differing("experts", experts=("eager", "grouped_mm")),
        differing("threads", threads=("4", str(base.load.threads))),
        differing("settings", deterministic_algorithms=("False", "True")),
        differing("kernels", **{"kernels__env:MKL_CBWR": ("AVX2", "absent")}),
        differing("checkpoint", model=("1", "2")),
    ]
    found = between(changes(base, registered, None, between=aspects))
    loads = {name: one.conditions.load for name, one in found.items() if one.conditions is not None}
    assert loads == {
        "experts": replace(base.load, experts="eager"),
        "threads": replace(base.load, threads=4),
        "deterministic_algorithms": replace(base.load, deterministic_algorithms=False),
        "variable MKL_CBWR": replace(base.load, variables={"MKL_CBWR": "AVX2"}),
    }
    assert found["checkpoint"].conditions is None


def test_the_executor_is_a_program_with_what_it_is_given(base, registered):
    """Its columns and whether steps are captured are the program's, and another program is given none of them."""
    graph = load_protocol("nano-task-crn-graph").protocol.decode.graph
    executed = Executed(graph=graph, captured=False, budget=8)
    own = Conditions(base.load, replace(base.forward, program="executor", executed=executed))
    found = between(changes(base, registered, own))
    assert {name: one.conditions for name, one in found.items()} == {"program": own}
    other = replace(executed, captured=True)
    (one,) = between(changes(own, registered, Conditions(base.load, replace(own.forward, executed=other)))).values()
    assert ("uncaptured" in one.before, one.conditions.forward.executed) == (True, other)
    besides = {
        one.field: one.conditions.forward for one in changes(own, registered) if one.field in ("program", "cache")
    }
    assert {(one.program, one.executed) for one in besides.values()} == {("generate", None), ("whole", None)}


def test_draws_and_programs_are_changed_alone(base, registered):
    """Another u with the same logits; another program with the same rule."""
    rules = [ByTape(sampler=SAMPLER, u=u.hex()) for u in (0.25, 0.5)]
    own = Conditions(base.load, replace(base.forward, rule=rules[0]))
    other = Conditions(base.load, replace(base.forward, rule=rules[1], program="own_loop"))
    found = {one.field: one for one in changes(own, registered, other) if one.kind == "between the sides"}
    assert list(found) == ["draws", "program"]
    assert found["draws"].conditions.forward == replace(own.forward, rule=rules[1])
    assert found["program"].conditions.forward == replace(own.forward, program="own_loop")
    assert (found["draws"].before, found["draws"].after) == (f"u {rules[0].u}", f"u {rules[1].u}")


def test_a_seeded_row_is_not_drawn_alone(base, registered):
    """Its draw is the batch's: untried, and why."""
    seeded = BySeed(seed="0" * 16, temperature=0.3, top_k=0, top_p=0.95)
    (one,) = [
        one
        for one in changes(Conditions(base.load, replace(base.forward, rule=seeded)), registered)
        if one.field == "batch"
    ]
    assert one.conditions is None
    assert "alone it is another draw" in one.why


def test_what_no_process_can_take_over_is_untried(base, registered):
    """A library, a processor, a build: from the base's value to the wanted side's, whichever side the base is."""
    between = [differing("libraries", packages__torch=("1", "2")), differing("machine", cpu=("x", "y"))]
    for turned, values in ((False, ("2", "1")), (True, ("1", "2"))):
        found = [one for one in changes(base, registered, base, between=between, turned=turned) if not one.conditions]
        assert [one.field for one in found] == ["packages.torch", "cpu"]
        assert (found[0].before, found[0].after) == values
        assert all(one.why for one in found)


def test_a_processors_kernels_are_taken_over_downwards_alone(base, registered):
    """AVX2 can be asked of a newer processor; its own best can't be asked of an older one."""
    down = changes(base, registered, base, between=[differing("kernels", cpu_capability=("AVX2", "AVX512"))])[0]
    assert (down.field, down.after) == ("variable ATEN_CPU_CAPABILITY", "avx2")
    assert down.conditions.load.variables == {"ATEN_CPU_CAPABILITY": "avx2"}
    up = changes(base, registered, base, between=[differing("kernels", cpu_capability=("AVX512", "AVX2"))])[0]
    assert (up.field, up.conditions) == ("cpu_capability", None)


def test_what_is_the_same_is_not_listed(base, registered):
    """An aspect that can't be set, and that doesn't differ, is nobody's change."""
    same = Aspect(name="libraries", state="same", held="torch 1", differing=(), why="")
    assert all(one.conditions for one in changes(base, registered, base, between=[same]))
