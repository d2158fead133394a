"""The list of single changes, without a model: one thing each, what the sides differ in first, nothing twice."""

import msgspec
import pytest

from harness.places import places
from harness.protocols.load import load_protocol
from harness.protocols.loops import greedy_contract
from harness.records.explanation import Aspect, AspectField
from harness.records.tapes import SamplerContract
from harness.rerun.changes import Registered, single_changes
from harness.rerun.conditions import Conditions
from harness.rerun.trial import ByArgmax, BySeed, ByTape, Forward, Load, Row

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
        rows=rows, row=1, step=1, program="generate", contract=contract, rule=ByArgmax(), candidates=(9, 10)
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
