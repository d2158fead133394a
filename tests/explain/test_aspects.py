"""One thing changed at a time in a record: its aspect differs and names the field, every other aspect is the same."""

import json

import msgspec
import pytest

from harness.canon import ids_sha256
from harness.difference.make import comparison, read_sides
from harness.explain.make import explanation
from harness.explain.place import divergence
from harness.explain.rows import rows
from harness.records.difference import JudgedBy, JudgedField, LoneCell
from harness.records.explanation import NoDivergence, NoRerun, NoTape, NotHeld, TapeSide
from harness.records.tapes import EdgeDistance, NoEdge
from harness.tapes.tape import Tape, uniform

CHANGES = {
    "dtype": (lambda one: one.update(dtype="bfloat16"), "dtype", "dtype"),
    "attention": (lambda one: one.update(attention="sdpa"), "attention", "attention"),
    "experts": (lambda one: one.update(experts="eager"), "experts", "experts"),
    "precision": (
        lambda one: one.update(float32_matmul_precision="high"),
        "settings",
        "float32_matmul_precision",
    ),
    "kernel": (lambda one: one["kernels"].update(mkl="False"), "kernels", "kernels.mkl"),
    "capability": (lambda one: one.update(cpu_capability="no machine's"), "kernels", "cpu_capability"),
    "library": (lambda one: one["packages"].update(torch="2.12.0"), "libraries", "packages.torch"),
    "interpreter": (lambda one: one.update(python="3.12.1"), "libraries", "python"),
    "processor": (lambda one: one.update(cpu="another"), "machine", "cpu"),
    "gpu": (lambda one: one.update(gpus=["one"]), "machine", "gpus"),
    "threads": (lambda one: one.update(threads=2), "threads", "threads"),
    "cache": (
        lambda one: one["generation_config"].update(use_cache="false"),
        "cache",
        "generation_config.use_cache",
    ),
    "sampler": (lambda one: one["generation_config"].update(top_k="50"), "sampler", "generation_config.top_k"),
    "weights": (
        lambda one: one["checkpoint"].update({"model.safetensors": "0" * 64}),
        "checkpoint",
        "model.safetensors",
    ),
}


def differing(record):
    """{aspect: fields} of everything that the records differ in."""
    return {one.name: [field.field for field in one.differing] for one in record.found.aspects if one.differing}


def states(record):
    """{aspect: state}."""
    return {one.name: one.state for one in record.found.aspects}


@pytest.mark.parametrize("what", CHANGES)
def test_a_field_of_the_environment_is_its_aspects(what, run, copied, explained, token):
    """And no other's; the sentence has the field with both values."""
    change, aspect, field = CHANGES[what]
    spec = {"spec": lambda one: one.update(threads=2)} if what == "threads" else {}
    record = explained(run, copied(run, unit=token(3), environment=change, **spec))
    assert differing(record) == {aspect: [field]}
    assert {one for name, one in states(record).items() if name != aspect} == {"same"}
    assert f"the records differ in {aspect} ({field} " in record.sentence


def test_nothing_differs_but_the_token(run, copied, explained, token):
    """The control: every aspect is the same, and the sentence says so."""
    record = explained(run, copied(run, unit=token(3)))
    assert set(states(record).values()) == {"same"}
    assert "the records differ in no aspect that both hold" in record.sentence


def test_a_placement_is_its_aspect(run, copied, explained, token):
    """By module."""
    other = copied(run, unit=token(3), placement=lambda one: one.update(device_map={"": "cuda:0"}))
    assert differing(explained(run, other)) == {"placement": ["device_map."]}


def test_a_port_is_the_protocols(run, copied, explained, token):
    """As compare has it."""
    other = copied(run, unit=token(3), spec=lambda one: one.update(port=False, deviations=[]))
    assert differing(explained(run, other)) == {"protocol": ["port"]}


def other_prompt(cell):
    """Another token in the prompt of a cell."""

    def change(unit):
        row = unit["cells"][cell]
        row["prompt_ids"][5] = 301
        row["prompt_sha256"] = ids_sha256(row["prompt_ids"])

    return change


def test_a_prompt_is_named_by_position(run, copied, explained, token):
    """The batch holds it, so that the batch differs too; another cell's prompt is the batch's alone."""
    both = lambda at: lambda unit: [token(3)(unit), other_prompt(at)(unit)]  # noqa: E731
    record = explained(run, copied(run, unit=both(0)))
    assert differing(record) == {"prompt": ["prompt_sha256", "prompt_ids"], "batch": ["prompts"]}
    assert "position 5 of " in str(record.found.aspects[0].differing[1].a)
    source = record.found.explained.source_id
    mate = explained(run, copied(run, unit=both(2)), cell=(source, "greedy", "s0_eos"))
    assert differing(mate) == {"batch": ["prompts"]}


def test_other_tokens_beside_a_row_are_the_batchs(run, copied, explained, token):
    """Only those before the cell's step: another row that parted earlier is named, one that parts later isn't."""
    other = copied(run, unit=lambda unit: [token(5, cell=0)(unit), token(2, cell=3)(unit), token(6, cell=4)(unit)])
    source = explained(run, other).found.first.source_id
    record = explained(run, other, cell=(source, "greedy", "s0_eos"))
    assert differing(record) == {"batch": ["tokens_beside"]}
    (field,) = next(one for one in record.found.aspects if one.name == "batch").differing
    assert (field.a.split()[0], len(field.a.split(", "))) == ("s1_bos", 1)
    assert differing(explained(run, other)) == {}


def test_padding_is_the_batchs(run, copied, explained, token):
    """Another width of the same prompts."""

    def wider(unit):
        token(3)(unit)
        for row in unit["cells"]:
            row["left_padding"] += 1

    assert differing(explained(run, copied(run, unit=wider))) == {"batch": ["width", "left_padding"]}


def test_frozen_results_say_what_they_do_not_hold(frozen, explained, token):
    """The environment by its digest; placement and padding not at all: unknown is never called the same."""
    copy = frozen("nano-behavior")
    other = copy.change("code-00-*-greedy.json", token(3))
    found = states(explained(copy.original, other))
    assert found["placement"] == "unknown"
    assert (found["dtype"], found["libraries"], found["batch"]) == ("same", "same", "same")
    copy.seal({}, environment_sha256="0" * 64)
    record = explained(copy.original, other)
    assert {states(record)[name] for name in ("dtype", "experts", "kernels", "libraries", "threads", "cache")} == {
        "unknown"
    }
    assert "not held by both: " in record.sentence
    (batch,) = [one for one in record.found.aspects if one.name == "batch"]
    assert "no padding" in batch.why


def test_the_tapes_number_is_the_steps(tasks, copied, explained, token):
    """Z and u of source and step, and the row's nearest edge as its journal has it."""
    record = explained(tasks, copied(tasks, unit=token(3)))
    one, other = record.found.tape.a, record.found.tape.b
    cell = record.found.explained
    journal = next(
        made
        for path in sorted((tasks / "journal").glob("*.json"))
        if (made := json.loads(path.read_bytes())["evidence"])["source_id"] == cell.source_id
        and made["replicate"] == cell.replicate
    )
    tape = Tape("pregate-mini-tasks-v1", cell.replicate)
    assert isinstance(one, TapeSide)
    assert (one, one.u_decimal) == (other, uniform(tape.z(cell.source_id, 3)))
    assert float.fromhex(one.u) == one.u_decimal
    (row,) = [row for row in journal["tape"]["rows"] if row["condition"] == cell.condition]
    nearest = row["nearest_edge"]
    assert one.nearest == (EdgeDistance(distance=nearest["distance"]) if "distance" in nearest else NoEdge())


def test_a_greedy_side_has_no_tape(run, copied, explained, token):
    """Said with its reason."""
    assert explained(run, copied(run, unit=token(3))).found.tape.a == NoTape(reason="drawn under no tape")


def test_frozen_tapes_hold_no_distance(frozen, explained, token):
    """The number follows from identity all the same."""
    copy = frozen("nano-task-crn")
    record = explained(copy.original, copy.change("*-T0.json", token(3)))
    assert isinstance(record.found.tape.b, TapeSide)
    assert isinstance(record.found.tape.b.nearest, NotHeld)


def test_equal_cells_are_not_called_more_than_they_are(run, copied, explained):
    """A copy's units are one call's; a side that lacks a unit, a smaller budget and what wasn't compared are said."""
    sentence = explained(run, copied(run)).sentence
    assert (
        "are equal in 16 of 16 cells; 2 of 2 units are one call's or the accepted run's own on both sides" in sentence
    )
    assert "not compared: accounts and verdicts: A has no ledger" in sentence


def test_two_protocols_are_both_named(run, copied, explained, token):
    """Each side under its own, where they aren't one; not both under A's."""
    sentence = explained(run, copied(run, unit=token(3))).sentence
    assert sentence.startswith("mini-behavior ")
    record = comparison(*read_sides(run, copied(run)))
    other = msgspec.structs.replace(record, b=msgspec.structs.replace(record.b, protocol_digest="f" * 64))
    said = explanation(other, NoDivergence(), NoRerun(reason="")).sentence
    assert f" of mini-behavior {record.a.protocol_digest[:16]}, a port) and B (" in said
    assert " of mini-behavior ffffffffffffffff, a port) are equal in 16 of 16 cells" in said


def test_a_budget_and_missing_cells_are_said_whether_or_not_cells_differ(run, copied, explained, token):
    """The sentence stands alone: how many tokens of a cell were compared, and how many cells a side lacks."""
    sides = read_sides(run, copied(run, unit=token(3)))
    record = comparison(*sides)
    lone = LoneCell(side="a", domain="d", source_id="s", replicate="r", condition="c", missing=True)
    less = msgspec.structs.replace(record, budget=6, whole=False, lone=(lone,))
    for found in (NoDivergence(), divergence(sides, record, None)):
        said = explanation(less, found, NoRerun(reason="")).sentence
        assert "; of each cell the first 6 tokens were compared; 1 cells are missing on a side" in said


def test_who_judged_stands_beside_the_conditions(run, copied, explained, token):
    """A row for each field that differs, and in the sentence, also of equal sides; a run that nobody judged says so."""
    sides = read_sides(run, copied(run, unit=token(3)))
    record = comparison(*sides)
    unjudged = explanation(record, divergence(sides, record, None), NoRerun(reason=""))
    said = ("record", "judged by", "unknown", "A wasn't judged; B wasn't judged", "")
    assert (said in rows(unjudged), "judged by" in unjudged.sentence) == (True, False)
    field = JudgedField(field="named_plugins", a="none", b="a_kernel")
    judged = JudgedBy(state="differs", held="", differing=(field,), why="")
    for found in (divergence(sides, record, None), NoDivergence()):
        made = explanation(msgspec.structs.replace(record, judged_by=judged), found, NoRerun(reason=""))
        assert "; the sides were judged by others (named_plugins none on A, a_kernel on B)" in made.sentence
        row = ("record", "judged by: named_plugins", "differs", "A: none", "B: a_kernel")
        assert (row in rows(made)) == (found != NoDivergence())


def test_how_often_a_captured_step_was_replayed_is_no_condition(graph_tasks, copied, explained, token):
    """It follows from where the rows end; whether steps were captured is the program's."""

    def replayed(unit):
        token(3)(unit)
        unit["tape"]["ran"]["replays"] = 5

    assert differing(explained(graph_tasks, copied(graph_tasks, unit=replayed))) == {}
    captured = {"environment": lambda one: one["generation_config"].update(captured="true")}
    found = differing(explained(graph_tasks, copied(graph_tasks, unit=token(3), **captured)))
    assert found == {"program": ["captured"]}
