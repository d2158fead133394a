"""The step made again: real partings whose one cause is known, records of what no run gave, and what can't be made."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pregate_support.parted import SPARE, hidden_of, scaled, tied

from harness.difference.make import comparison, read_sides
from harness.errors import ComparisonError
from harness.explain.place import cell_of
from harness.model.identity import digests_of_a_run
from harness.records.difference import NoPlace, TracePair
from harness.records.explanation import (
    Divergence,
    Interval,
    NoChance,
    NoSearch,
    NoTrace,
    Search,
    SideRerun,
    StepResult,
    Untried,
)
from harness.records.tapes import EdgeDistance, NoEdge
from harness.rerun.conditions import Checkpoints, Step, conditions_of
from harness.rerun.trial import Load, Trial

from ..difference.conftest import say  # noqa: TID252 - the tests are no package of that name


def back(record):
    """{(kind, field)} of the changes that bring the wanted token back."""
    assert isinstance(record.rerun.search, Search)
    return {(one.kind, one.field) for one in record.rerun.search.changes if one.restores}


def change(record, field):
    """The change of that field."""
    (one,) = [one for one in record.rerun.search.changes if one.field == field]
    return one


def first_unit(run):
    """Evidence of the first journal."""
    return json.loads(sorted((run / "journal").glob("*.json"))[0].read_bytes())["evidence"]


def made(make, conditions):
    """What one forward gave."""
    (found,) = make(Trial(load=conditions.load, forwards=(conditions.forward,), trace=False)).forwards
    return found


def test_experts_are_the_change_that_brings_a_token_back(parted_pair, explained):
    """Two runs that really part: each side's conditions give its own token, and the experts alone bring A's back."""
    found = explained(parted_pair.a, parted_pair.b).found.first
    cell = (found.source_id, "greedy", "s0_eos")
    record = explained(parted_pair.a, parted_pair.b, cell=cell, again=True, folders=(parted_pair.checkpoint,))
    a, b, search = record.rerun.a, record.rerun.b, record.rerun.search
    assert (a.outcome.token.id, b.outcome.token.id) == (SPARE, parted_pair.token)
    assert (a.reproduced, b.reproduced, record.rerun.same_bits) == (True, True, False)
    assert a.outcome.margin > 0 > b.outcome.margin
    assert (search.base, search.wanted) == ("b", "a")
    assert ("between the sides", "experts") in back(record)
    one = change(record, "experts")
    assert (one.before, one.after, one.outcome.logits_sha256) == ("eager", "grouped_mm", a.outcome.logits_sha256)
    assert (a.elsewise, a.outcome.a.rank, a.outcome.b.rank, a.outcome.a.chance) == ((), 0, 1, NoChance())
    assert "experts from eager to grouped_mm" in record.sentence
    assert (
        "in what the sides differ in, this single change to B's conditions gives A's token, of 1 tried: "
        in record.sentence
    )


def test_the_trace_names_the_first_layer_that_has_experts(parted_pair, explained):
    """Before it both sides do the same arithmetic: the dense layer and the first gate are equal."""
    found = explained(parted_pair.a, parted_pair.b).found.first
    cell = (found.source_id, "greedy", "s0_eos")
    record = explained(parted_pair.a, parted_pair.b, cell=cell, again=True, folders=(parted_pair.checkpoint,))
    trace = record.rerun.trace
    assert (trace.first_stage.name, trace.first_gate.name) == ("layer_01", "layer_02")
    assert "first stage layer_01 hidden" in record.sentence


def test_weights_are_named_and_bring_the_token_back(run, parted_pair, explained):
    """The usual run beside one on other weights, in a cell that these part; both folders are found by digest."""
    found = explained(run, parted_pair.a).found.first
    cell = (found.source_id, "greedy", "s0_eos")
    record = explained(run, parted_pair.a, cell=cell, again=True, folders=(parted_pair.checkpoint,))
    assert ("between the sides", "checkpoint") in back(record)
    assert isinstance(record.rerun.trace.first_stage, NoPlace), "the output layer alone has other weights"
    assert not record.rerun.same_bits


def test_a_layer_with_other_weights_is_the_first_stage(run, copied, explained, token, forward_of, tmp_path):
    """One vector of layer 3 scaled: stage and gate say where."""
    load = forward_of(run, copied(run), "a", 0, (1, 2)).load
    name = "model.layers.3.input_layernorm.weight"
    folder = scaled(Path(load.checkpoint), tmp_path / "scaled", name=name, factor=1.25)
    other = copied(run, unit=token(0), environment=on(folder, load.profile))
    trace = explained(run, other, again=True, folders=(folder,)).rerun.trace
    assert (trace.first_stage.name, trace.first_gate.name) == ("layer_03", "layer_03")


def test_a_row_alone_is_tried(run, copied, explained, forward_of, token, tmp_path):
    """Weights under which a row alone gives another token than in its batch: no record differs in it; it is found."""
    found = _apart_alone(run, copied(run), forward_of)
    usual = first_unit(run)["cells"][found.row]["generated_ids"][found.step]
    one, other = found.states
    folder = tied(Path(found.load.checkpoint), tmp_path / "tied", token=usual, one=one, other=other)
    there = on(folder, found.load.profile)
    a, b = (copied(run, unit=token(found.step, number, found.row), environment=there) for number in (SPARE, usual))
    record = explained(a, b, again=True, folders=(folder,))
    assert (record.rerun.a.reproduced, record.rerun.b.reproduced) == (False, True)
    assert ("tried besides", "batch") in back(record)
    assert change(record, "batch").after.startswith("1 row of ")


@dataclass(frozen=True)
class Alone:
    """A step of a row whose last hidden state, alone, isn't the one in its batch bit by bit."""

    row: int
    step: int
    load: Load
    states: tuple[Any, Any]


def _apart_alone(run, other, forward_of):
    """The first such step, step by step over the rows."""
    for step in range(8):
        asked = [forward_of(run, other, "a", step, (1, 2), cell=row) for row in range(8)]
        rows = [replace_rows(one.forward) for one in asked]
        states = hidden_of(asked[0].load, [*rows, *(one.forward for one in asked)])
        for row, pair in enumerate(zip(states[:8], states[8:], strict=True)):
            if (pair[0] != pair[1]).any():
                return Alone(row, step, asked[0].load, pair)
    raise AssertionError("no row's arithmetic depends on its batch here")


def replace_rows(forward):
    """The forward's row alone."""
    alone = msgspec.structs.replace(forward.rows[forward.row], left_padding=0)
    return msgspec.structs.replace(forward, rows=(alone,), row=0)


def on(folder, profile):
    """A change of an environment to the checkpoint in a folder."""
    digests = digests_of_a_run(profile, folder)
    return lambda plain: plain.update(checkpoint=digests)


def first_token(number, row=0):
    """A change of a cell's first token."""

    def change(unit):
        cell = unit["cells"][row]
        say(cell, [number, *cell["generated_ids"][1:]])

    return change


def test_a_prompt_that_differs_is_a_change(run, copied, explained, in_this_process, forward_of):
    """B has another ID in its prompt and the token that it gives: A's prompt brings A's token back."""
    from harness.canon import ids_sha256

    usual = first_unit(run)["cells"][0]["generated_ids"][0]

    def prompt(unit, number=None):
        row = unit["cells"][0]
        row["prompt_ids"][-6:] = [700, 701, 702, 703, 704, 705]
        row["prompt_sha256"] = ids_sha256(row["prompt_ids"])
        if number is not None:
            first_token(number)(unit)

    asked = forward_of(run, copied(run, unit=prompt), "b", 0, (usual, SPARE))
    gives = made(in_this_process, asked).token
    assert gives != usual
    record = explained(run, copied(run, unit=lambda unit: prompt(unit, gives)), again=True)
    assert (record.rerun.a.reproduced, record.rerun.b.reproduced) == (True, True)
    assert ("between the sides", "prompt") in back(record)


def test_a_token_that_no_run_gave_is_not_reproduced(run, copied, explained_by, in_this_process, token):
    """Forged in B: A is the base, both sides' conditions are one, and no change gives the forged token."""
    record = explained_by(in_this_process)(run, copied(run, unit=token(3)), again=True)
    assert (record.rerun.a.reproduced, record.rerun.b.reproduced) == (True, False)
    assert record.rerun.b.outcome.gives == "a"
    assert record.rerun.same_bits
    assert isinstance(record.rerun.trace, TracePair)
    assert (record.rerun.search.base, record.rerun.search.wanted, back(record)) == ("a", "b", set())
    assert "no single change to A's conditions gives B's token, of 9 tried" in record.sentence
    assert "not the recorded token" in record.sentence


def test_other_tokens_beside_a_row_are_a_change(run, copied, explained, token):
    """Another row of the unit parted before: the row is made again beside A's rows too."""
    other = copied(run, unit=lambda unit: [token(5, cell=0)(unit), token(2, cell=3)(unit)])
    source = explained(run, other).found.first.source_id
    record = explained(run, other, cell=(source, "greedy", "s0_eos"), again=True)
    one = change(record, "tokens beside")
    assert (one.kind, one.before, one.after) == ("between the sides", "its own of s1_bos", "the other side's")
    assert isinstance(one.outcome, StepResult)


def test_where_neither_is_reproduced_nothing_is_tried(run, copied, explained, token):
    """Two forged tokens: no change would say anything."""
    record = explained(copied(run, unit=token(3, 301)), copied(run, unit=token(3, 302)), again=True)
    assert isinstance(record.rerun.search, NoSearch)
    assert record.rerun.a.outcome.gives == "other"
    assert "no single change was tried (neither side's conditions" in record.sentence


def test_another_library_is_said_to_be_untried(run, copied, explained, token):
    """It can't be had here: named with both versions, and what was read back isn't what B recorded."""
    other = copied(run, unit=token(3), environment=lambda one: one["packages"].update(torch="2.12.0"))
    record = explained(run, other, again=True)
    one = change(record, "packages.torch")
    assert isinstance(one.outcome, Untried)
    assert (one.before.partition("+")[0], one.after) == (
        record.rerun.b.environment.packages["torch"].partition("+")[0],
        "2.12.0",
    )
    assert [field.field for field in record.rerun.b.elsewise] == ["packages.torch"]
    assert record.rerun.a.elsewise == ()
    assert "untried: packages.torch, " in record.sentence
    assert "; B's conditions, packages.torch not as recorded, give " in record.sentence
    assert "; A's conditions give " in record.sentence


def test_threads_are_tried_in_a_load_of_their_own(run, copied, explained, token):
    """B has two: made with two, and with A's one."""
    changed = {"spec": lambda one: one.update(threads=2), "environment": lambda one: one.update(threads=2)}
    record = explained(run, copied(run, unit=token(3), **changed), again=True)
    assert (record.rerun.a.environment.threads, record.rerun.b.environment.threads) == (1, 2)
    one = change(record, "threads")
    assert (one.kind, one.before, one.after) == ("between the sides", "1", "2")
    assert isinstance(one.outcome, StepResult)


def test_a_checkpoint_that_is_not_here_leaves_its_side_untried(run, parted_pair, explained):
    """No folder with B's digests: A is made again and searched, B isn't, and the reason says which file."""
    found = explained(run, parted_pair.a).found.first
    record = explained(run, parted_pair.a, cell=(found.source_id, "greedy", "s0_eos"), again=True)
    assert isinstance(record.rerun.b, Untried)
    assert "model.safetensors with another" in record.rerun.b.reason
    assert isinstance(record.rerun.trace, NoTrace)
    assert (record.rerun.search.base, record.rerun.same_bits) == ("a", False)
    assert "B's conditions can't be made here" in record.sentence


def test_a_process_that_fails_is_untried(run, copied, explained_by, sparing, token):
    """Under one setting there is no process: that change alone isn't tried, and says why."""

    def make(trial):
        if trial.load.threads == 2:
            raise ComparisonError("these conditions", expected="a process", found="none", todo="Try elsewhere.")
        return sparing(trial)

    record = explained_by(make)(run, copied(run, unit=token(3)), again=True)
    assert isinstance(change(record, "threads").outcome, Untried)
    assert isinstance(change(record, "experts").outcome, StepResult)
    assert "untried: threads" in record.sentence


def test_a_word_that_the_library_does_not_know_is_untried(run, copied, explained, token):
    """B recorded an attention that isn't here: its side can't be made again."""
    other = copied(run, unit=token(3), environment=lambda one: one.update(attention="no_such_attention"))
    record = explained(run, other, again=True)
    assert isinstance(record.rerun.b, Untried)
    assert isinstance(change(record, "attention").outcome, Untried)


def test_frozen_results_take_prompts_from_the_run(run, copied, token):
    """Conditions are as registered; the prompts are the run's, where the digests are the same."""
    sides = read_sides(run, copied(run, unit=token(2)))
    compared = comparison(*sides)
    cell = cell_of(sides, compared, compared.cells[0])
    frozen = _frozen(cell)
    asked = Step(frozen, 2, (1, 2))
    own, lent = (conditions_of(name, asked, Checkpoints(())) for name in ("a", "b"))
    assert own.forward.rows == conditions_of("a", Step(cell, 2, (1, 2)), Checkpoints(())).forward.rows
    assert lent.forward.rows[3] == own.forward.rows[3]
    assert lent.load.threads == 1
    neither = Step(_frozen(cell, both=True), 2, (1, 2))
    with pytest.raises(ComparisonError, match="expected its token IDs, found a digest"):
        conditions_of("b", neither, Checkpoints(()))


def _frozen(cell, *, both=False):
    """The cell with B, or both sides, as frozen results hold them."""
    bare = lambda unit: replace(unit, rows={}, drawn={}, tapes={})  # noqa: E731
    units = (bare(cell.units[0]) if both else cell.units[0], bare(cell.units[1]))
    return replace(cell, b=replace(cell.b, environment=None, placement=None), units=units)


def test_a_tape_gives_intervals_and_the_distance(tasks, broad, copied, explained, token):
    """A's token has u in its part of the CDF, B's forged one hasn't; the distance is that of the nearer end."""
    record = explained(tasks, copied(tasks, unit=token(3)), again=True, folders=(broad,))
    outcome, u = record.rerun.a.outcome, record.found.tape.a.u_decimal
    assert record.rerun.a.reproduced
    assert isinstance(outcome.a.chance, Interval)
    assert outcome.a.chance.lower <= u <= outcome.a.chance.upper
    assert not outcome.b.chance.lower < u <= outcome.b.chance.upper
    ends = [u - outcome.a.chance.lower, outcome.a.chance.upper - u]
    assert outcome.edge.distance == pytest.approx(min(ends), abs=1e-7)
    assert "from the edge" in record.sentence
    assert change(record, "program").after == "generate"


@pytest.mark.parametrize("made_by", ["tasks", "graph_tasks"])
def test_the_distances_of_all_steps_have_the_journals_nearest(
    made_by, made_tree, broad, copied, forward_of, in_this_process, request, monkeypatch
):
    """Own loop and executor, each step made again: the smallest distance to an edge is the journal's, exactly."""
    monkeypatch.setenv("HARNESS_ROOT", str(made_tree))
    tasks = request.getfixturevalue(made_by)
    other, checked = copied(tasks), 0
    unit = first_unit(tasks)
    for at, cell in enumerate(unit["cells"]):
        forwards = [
            forward_of(tasks, other, "a", step, (1, 2), cell=at, folders=(broad,)) for step in range(cell["length"])
        ]
        trial = Trial(load=forwards[0].load, forwards=tuple(one.forward for one in forwards), trace=False)
        found = in_this_process(trial).forwards
        assert [one.token for one in found] == cell["generated_ids"]
        distances = [one.edge.distance for one in found if isinstance(one.edge, EdgeDistance)]
        recorded = msgspec.convert(unit["tape"]["rows"][at]["nearest_edge"], EdgeDistance | NoEdge)
        assert recorded == (EdgeDistance(distance=min(distances)) if distances else NoEdge())
        checked += len(distances)
    assert checked > len(unit["cells"])


def test_the_executor_is_the_program_of_its_side(graph_tasks, tasks, broad, copied, explained, token):
    """Not the own loop: the aspect says so, A's conditions are its own, and the own loop is another side's program."""
    record = explained(graph_tasks, copied(graph_tasks, unit=token(3)), again=True, folders=(broad,))
    (program,) = [one for one in record.found.aspects if one.name == "program"]
    assert program.state == "same"
    assert program.held.startswith("program executor, ")
    assert record.rerun.a.reproduced
    assert change(record, "program").before.startswith("executor (modules step, uncaptured, columns for 8 new tokens")
    one, other = (explained(*pair).found for pair in ((graph_tasks, tasks), (tasks, graph_tasks)))
    for found, at in ((one, "a"), (other, "b")):
        if isinstance(found, Divergence):  # the two contracts need not part
            (program,) = [aspect for aspect in found.aspects if aspect.name == "program"]
            assert getattr(program.differing[0], at) == "executor"


def test_a_checkpoint_of_neither_side_is_refused(run, copied, broad, tmp_path, explained, token):
    """Rather than left aside for one that lies in the tree; a folder that isn't there too."""
    other = copied(run, unit=token(3))
    for folder, found in ((broad, "model.safetensors with another"), (tmp_path / "none", "expected a readable")):
        with pytest.raises(ComparisonError, match=f"--checkpoint .*digests of A or of B, found .*{found}"):
            explained(run, other, again=True, folders=(folder,))


def test_a_folder_isnt_a_sides_by_the_files_that_happen_to_be_pinned(run, copied):
    """A digest that is owed says nothing: no folder is taken for a side whose weights nobody has pinned."""
    sides = read_sides(run, copied(run))
    loaded, pinned = sides[0].registered.loaded, dict(sides[0].checkpoint)
    assert Checkpoints(()).find(loaded, pinned.items())
    del pinned["model.safetensors"]
    for wanted in (pinned, {}):
        with pytest.raises(ComparisonError, match="expected a digest of each file, found none of "):
            Checkpoints(()).find(loaded, wanted.items())


def test_a_lent_prompt_is_padded_in_its_own_batch(run, copied, token):
    """The run that lends it has another width: the rows of the frozen side have none but their own padding."""

    def wider(unit):
        token(2)(unit)
        for row in unit["cells"]:
            row["left_padding"] += 3

    sides = read_sides(run, copied(run, unit=wider))
    compared = comparison(*sides)
    cell = cell_of(sides, compared, compared.cells[0])
    frozen = replace(cell, a=replace(cell.a, environment=None, placement=None))
    frozen = replace(frozen, units=(replace(cell.units[0], rows={}, drawn={}, tapes={}), cell.units[1]))
    own, lent = (conditions_of("a", Step(one, 2, (1, 2)), Checkpoints(())) for one in (cell, frozen))
    assert lent.forward.rows == own.forward.rows


def test_every_step_of_a_run_is_made_again(run, copied, forward_of, in_this_process):
    """All tokens of a unit's first cell come out with those before them forced, under both programs."""
    other, cell = copied(run), first_unit(run)["cells"][0]
    forwards = [forward_of(run, other, "a", step, (1, 2)) for step in range(cell["length"])]
    for program in ("generate", "own_loop"):
        asked = tuple(msgspec.structs.replace(one.forward, program=program) for one in forwards)
        found = in_this_process(Trial(load=forwards[0].load, forwards=asked, trace=False)).forwards
        assert [one.token for one in found] == cell["generated_ids"]


def test_sides_of_a_rerun_say_what_was_read_back(run, copied, explained, token):
    """Environment and placement of the process, not of the record."""
    record = explained(copied(run, unit=token(3, 301)), copied(run, unit=token(3, 302)), again=True)
    assert isinstance(record.rerun.a, SideRerun)
    assert record.rerun.a.environment.experts == "grouped_mm"
    assert record.rerun.a.placement.id == "nano-resident"
