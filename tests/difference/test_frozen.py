"""Frozen results of every kind beside a copy in which one thing was changed: found, and named by its place."""

import json
from dataclasses import replace

import msgspec
import pytest

from harness.canon import digest, text_sha256
from harness.difference.make import comparison, read_sides
from harness.errors import ComparisonError, HarnessError
from harness.places import places
from harness.records.difference import Decoded, NoParting, NoToken, TracePlace

GENERATED = (
    "nano-behavior",
    "nano-completion",
    "nano-cross-source-sampling",
    "nano-single-source-sampling",
    "nano-task-crn",
    "nano-task-crn-graph",
)
UNIT = "code-00-*[!s].json"


def differing(record):
    """(condition, fields) of every cell that isn't equal."""
    return [(cell.condition, cell.fields) for cell in record.cells if not cell.equal]


@pytest.mark.parametrize("protocol", [*GENERATED, "nano-depth"])
def test_what_another_run_froze_alike_is_equal(protocol, frozen, compared):
    """The control of everything below: every cell, nothing lone, and nothing else differs."""
    copy = frozen(protocol)
    record = compared(copy.seal({}), copy.original)
    assert (record.verdict, record.facts, record.lone) == ("equal", (), ())
    assert record.equal.count == record.equal.of == record.a.cells > 0
    assert record.shared_units.count == 0


def test_a_copy_of_frozen_results_is_one_run(frozen, compared):
    """Its index names the same model loads: said, and not refused."""
    copy = frozen("nano-behavior")
    record = compared(copy.folder, copy.original)
    assert record.verdict == "equal"
    assert record.shared_units.count == record.shared_units.of == 16


@pytest.mark.parametrize("protocol", GENERATED)
def test_one_token_is_found(protocol, frozen, compared, said):
    """By source, replicate, condition and step, both tokens decoded."""
    copy = frozen(protocol)
    other = []

    def change(unit):
        cell = unit["cells"][1]
        ids = cell["generated_ids"]
        other.append(ids[7])
        said(cell, [*ids[:7], 300, *ids[8:]])

    record = compared(copy.original, copy.change(UNIT, change))
    (cell,) = [one for one in record.cells if not one.equal]
    assert (record.verdict, record.equal.of - record.equal.count) == ("different", 1)
    assert (cell.domain, cell.index, cell.condition, cell.fields) == ("code", 0, "s1_eos", ("tokens",))
    parting = cell.found.parting
    assert (parting.step, parting.a.id, parting.b.id) == (7, other[0], 300)
    assert cell.found.comparison.common_prefix_tokens == 7
    assert isinstance(parting.a.text, Decoded)
    assert isinstance(parting.b.text, Decoded)
    short = {(one.domain or one.condition): one.equal.of - one.equal.count for one in record.groups}
    assert {name: count for name, count in short.items() if count} == {"code": 1, "s1_eos": 1}


def test_one_prompt_is_found(frozen, compared):
    """The same tokens from another prompt aren't the same cell; the prompt is the first thing that is said."""
    copy = frozen("nano-behavior")
    record = compared(copy.original, copy.change(UNIT, lambda unit: unit["cells"][0].update(prompt_sha256="0" * 64)))
    assert differing(record) == [("s0_eos", ("prompt",))]
    assert (record.facts[0].group, record.facts[0].field) == ("prompts", "prompt_sha256")
    assert record.facts[0].where.startswith("1 of 128 cells, first nano-code/004")


def test_another_source_text_is_found(frozen, compared):
    """Under the same ID and the same prompts."""
    copy = frozen("nano-behavior")
    record = compared(copy.original, copy.change(UNIT, lambda unit: unit.update(source_text_sha256="0" * 64)))
    assert {fields for _, fields in differing(record)} == {("source_text",)}
    assert len(differing(record)) == 8


def test_an_end_state_alone_is_found(frozen, compared):
    """The same tokens, and one side says that it was cut."""
    copy = frozen("nano-behavior")
    change = lambda unit: unit["cells"][0].update(eos=False, truncated=True)  # noqa: E731
    record = compared(copy.original, copy.change(UNIT, change))
    (cell,) = [one for one in record.cells if not one.equal]
    assert cell.fields == ("end",)
    assert (cell.found.a.stop, cell.found.b.stop) == ("natural_eos", "budget_truncated")
    assert isinstance(cell.found.parting, NoParting)


def test_an_output_that_ended_earlier_has_no_token_there(frozen, compared, said):
    """One is the beginning of the other."""
    copy = frozen("nano-behavior")
    change = lambda unit: said(unit["cells"][0], unit["cells"][0]["generated_ids"][:5])  # noqa: E731
    record = compared(copy.original, copy.change(UNIT, change))
    (cell,) = [one for one in record.cells if not one.equal]
    assert (cell.found.parting.step, cell.found.parting.b) == (5, NoToken())


def test_a_text_alone_is_found(frozen, compared):
    """Another decoder under the same IDs."""
    copy = frozen("nano-behavior")
    other = {"text_escaped": "another text", "text_sha256": text_sha256("another text")}
    record = compared(copy.original, copy.change(UNIT, lambda unit: unit["cells"][0].update(other)))
    assert differing(record) == [("s0_eos", ("text",))]


@pytest.mark.parametrize(
    ("protocol", "field", "value"),
    [
        ("nano-behavior", "number", {"state": "no_number"}),
        ("nano-behavior", "syntax", {"state": "parses"}),
        ("nano-completion", "completion", "OTHER_STOP"),
        ("nano-completion", "numeric", {}),
        ("nano-completion", "baseline", {}),
        ("nano-cross-source-sampling", "program", {}),
        ("nano-task-crn", "program", {}),
    ],
)
def test_an_account_alone_is_found(protocol, field, value, frozen, compared):
    """Another evaluator over the same tokens."""
    copy = frozen(protocol)
    record = compared(copy.original, copy.change(UNIT, lambda unit: unit["cells"][0].update({field: value})))
    assert differing(record) == [("s0_eos", (field,))]


@pytest.mark.parametrize("protocol", GENERATED[1:])
def test_a_verdict_alone_is_found(protocol, frozen, compared):
    """The sandbox said something else of the same program."""
    copy = frozen(protocol)
    change = lambda unit: unit["cells"][0]["verdict"].update(tests_sha256="0" * 64)  # noqa: E731
    assert differing(compared(copy.original, copy.change("code-00-*-verdicts.json", change))) == [
        ("s0_eos", ("verdict",))
    ]


def test_a_class_that_follows_the_verdict_is_found(frozen, compared):
    """Under terminal-r07 it stands with the verdicts."""
    copy = frozen("nano-cross-source-sampling")
    change = lambda unit: unit["cells"][0].update(completion="OTHER_STOP")  # noqa: E731
    assert differing(compared(copy.original, copy.change("code-00-*-verdicts.json", change))) == [
        ("s0_eos", ("completion",))
    ]


def test_another_seed_is_found(frozen, compared):
    """Though every token is the same."""
    copy = frozen("nano-cross-source-sampling")
    record = compared(copy.original, copy.change(UNIT, lambda unit: unit.update(run_seed="0" * 16)))
    assert {fields for _, fields in differing(record)} == {("draws",)}
    assert [(one.group, one.field) for one in record.facts] == [("draws", "run_seed")]


def test_another_tape_is_found(frozen, compared):
    """And what a row consumed of it."""
    copy = frozen("nano-task-crn")
    change = lambda unit: unit["cells"][0]["consumed"].update(tape_sha256="0" * 64)  # noqa: E731
    assert differing(compared(copy.original, copy.change(UNIT, change))) == [("s0_eos", ("draws", "consumed"))]


def test_a_missing_cell_is_no_equality(frozen, compared):
    """A unit with one condition less: the grid has it."""
    copy = frozen("nano-behavior")
    record = compared(copy.original, copy.change(UNIT, lambda unit: unit["cells"].pop()))
    assert (record.verdict, record.equal.count, record.equal.of) == ("different", 127, 127)
    assert [(one.side, one.condition, one.missing) for one in record.lone] == [("a", "s1_period", True)]


def test_a_smaller_budget_is_a_beginning(frozen, compared, said):
    """Compared within it; an EOS after it isn't seen, one within it is, and nothing that follows from whole outputs."""
    copy = frozen("nano-behavior")
    for path in sorted(copy.folder.glob("formal/*-greedy.json")):
        copy.change(path.name, lambda unit: _cut(unit, 40, said))
    record = compared(copy.original, copy.folder)
    assert (record.verdict, record.budget, record.whole) == ("equal", 40, False)
    assert "budgets 128 and 40" in record.not_compared[0]
    copy.change(UNIT, lambda unit: said(unit["cells"][0], [*unit["cells"][0]["generated_ids"][:39], 300]))
    (cell,) = [one for one in compared(copy.original, copy.folder).cells if not one.equal]
    assert cell.found.parting.step == 39


def _cut(unit, budget, said):
    unit["max_new_tokens"] = budget
    for cell in unit["cells"]:
        if cell["length"] > budget:
            said(cell, cell["generated_ids"][:budget])
            cell |= {"eos": False, "truncated": True}


TRACED = {
    "a stage": ("hidden_sha256", "layer_03", 1, TracePlace(name="layer_03", scope="full", digest="hidden"), None),
    "routes": ("routes_sha256", "layer_02", 0, None, TracePlace(name="layer_02", scope="target", digest="routes")),
    "weights": ("weights_sha256", "layer_04", 0, None, TracePlace(name="layer_04", scope="target", digest="weights")),
    "last": ("hidden_sha256", "final_norm", 0, TracePlace(name="final_norm", scope="target", digest="hidden"), None),
}  # fmt: skip


@pytest.mark.parametrize("what", TRACED)
def test_one_digest_of_a_trace_is_found(what, frozen, compared):
    """By stage or gate, scope and kind."""
    field, name, at, stage, gate = TRACED[what]
    copy = frozen("nano-depth")

    def change(unit):
        unit["cells"][2][field][name][at] = "0" * 64

    record = compared(copy.original, copy.change("code-00-*-tensors.json", change))
    (cell,) = [one for one in record.cells if not one.equal]
    assert (cell.condition, cell.fields) == ("s0_bos", (field.removesuffix("_sha256"),))
    places = [one if isinstance(one, TracePlace) else None for one in (cell.found.first_stage, cell.found.first_gate)]
    assert places == [stage, gate]


def test_the_first_of_many_is_the_forwards_first(frozen, compared):
    """The embedding is before the layers, whose names sort after the final norm's."""
    copy = frozen("nano-depth")

    def change(unit):
        for name in ("final_norm", "layer_05", "layer_00"):
            unit["cells"][0]["hidden_sha256"][name] = ["0" * 64] * 2

    record = compared(copy.original, copy.change("code-00-*-tensors.json", change))
    (cell,) = [one for one in record.cells if not one.equal]
    assert cell.found.first_stage.name == "layer_00"


def test_an_edge_is_of_its_two_cells(frozen, compared):
    """One statistic between two conditions."""
    copy = frozen("nano-depth")

    def change(unit):
        unit["edges_sha256"][min(unit["edges_sha256"])] = "0" * 64

    record = compared(copy.original, copy.change("code-00-*-tensors.json", change))
    assert [fields for _, fields in differing(record)] == [("edges",)] * 2


def elsewhere(copy, **fields):
    """The same trace from another environment."""
    path = copy.folder / "formal/environment.json"
    environment = json.loads(path.read_bytes()) | fields
    copy.change("environment.json", lambda plain: plain.update(fields))
    return copy.seal({}, environment_sha256=digest(environment))


@pytest.mark.parametrize(
    ("fields", "word"), [({"cpu": "another"}, "cpu"), ({"python": "3.12.0"}, "python"), ({"gpus": ["one"]}, "gpus")]
)
def test_tensors_of_another_environment_are_not_compared(fields, word, frozen, compared):
    """Said with the reason, and the rest is compared: a changed tensor digest isn't seen, a changed embedding is."""
    copy = frozen("nano-depth")

    def change(unit):
        unit["cells"][0]["hidden_sha256"]["layer_00"] = ["0" * 64] * 2

    copy.change("code-00-*-tensors.json", change)
    record = compared(copy.original, elsewhere(copy, **fields))
    assert record.verdict == "equal"
    assert not any(cell.found.tensors for cell in record.cells)
    assert "two environments" in record.not_compared[0]
    assert f"{word}: " in record.not_compared[0]
    copy.change("code-00-*-forward.json", lambda unit: unit["cells"][0].update(embedding_sha256=["0" * 64] * 2))
    (cell,) = [one for one in compared(copy.original, copy.folder).cells if not one.equal]
    assert (cell.fields, cell.found.first_stage.name) == (("embedding",), "embedding")


def test_other_kernels_excuse_no_tensor(frozen, compared):
    """A kernel is what an engineer changes: its digests are compared, and the kernel is said."""
    copy = frozen("nano-depth")

    def change(unit):
        unit["cells"][0]["hidden_sha256"]["layer_00"] = ["0" * 64] * 2

    copy.change("code-00-*-tensors.json", change)
    kernels = {"cudnn": "None", "mkl": "False", "mkldnn": "True", "tf32_matmul": "False"}
    record = compared(copy.original, elsewhere(copy, kernels=kernels))
    assert record.verdict == "different"
    assert [(one.group, one.field, one.a, one.b) for one in record.facts] == [
        ("environment", "kernels.mkl", "True", "False")
    ]


@pytest.mark.parametrize("protocol", ["nano-completion", "nano-depth"])
def test_another_kind_is_not_comparable(protocol, frozen, compared):
    """Completion begins as behaviour does, and is another experiment."""
    with pytest.raises(ComparisonError, match="one kind of protocol"):
        compared(frozen("nano-behavior").folder, frozen(protocol).original)


def test_frozen_results_that_were_altered_are_refused(frozen, compared):
    """A byte that the index doesn't know; a file that it lists and that is gone; cells beside others."""
    copy = frozen("nano-completion")
    path = sorted(copy.folder.glob("formal/code-*-greedy.json"))[0]
    data = path.read_bytes()
    path.write_bytes(data.replace(b"true", b"null", 1))
    with pytest.raises(HarnessError, match=path.name):
        compared(copy.original, copy.folder)
    path.unlink()
    with pytest.raises(HarnessError, match="missing"):
        compared(copy.original, copy.folder)
    path.write_bytes(data)
    copy.change("code-00-*-verdicts.json", lambda unit: unit["cells"].pop())
    with pytest.raises(HarnessError, match="s1_period"):
        compared(copy.original, copy.folder)


def test_ids_that_their_digest_does_not_know_are_refused(frozen, compared):
    """A file that agrees with the index and not with itself."""
    copy = frozen("nano-behavior")
    copy.change(UNIT, lambda unit: unit["cells"][0]["generated_ids"].append(3))
    with pytest.raises(ComparisonError, match="generated IDs"):
        compared(copy.original, copy.folder)


@pytest.mark.parametrize(
    ("field", "value"), [("text_escaped", "another"), ("text_escaped", "\\q"), ("text_sha256", "0")]
)
def test_a_text_that_its_digest_does_not_know_is_refused(field, value, frozen, compared):
    """The words that a reader sees are those that were compared."""
    copy = frozen("nano-behavior")
    copy.change(UNIT, lambda unit: unit["cells"][0].update({field: value}))
    with pytest.raises(ComparisonError, match="text_sha256"):
        compared(copy.original, copy.folder)


def test_two_folders_that_are_one_are_refused(frozen, compared, tmp_path):
    """By the same path, by the tier's folder, through a link."""
    copy = frozen("nano-behavior")
    (tmp_path / "link").symlink_to(copy.folder)
    for other in (copy.folder, copy.folder / "formal", tmp_path / "link"):
        with pytest.raises(ComparisonError, match="one folder twice"):
            compared(copy.folder, other)


def test_a_folder_that_is_neither_is_refused(tmp_path, frozen, compared):
    """Nothing there, nothing in it."""
    folder = frozen("nano-behavior").folder
    for path, word in ((tmp_path / "nothing", "no such folder"), (tmp_path, "neither")):
        with pytest.raises(ComparisonError, match=word):
            compared(folder, path)


@pytest.mark.parametrize("value", [1, 1.0, "true"])
def test_a_value_of_another_type_is_no_equality(value, frozen, compared):
    """Python calls 1, 1.0 and true equal."""
    copy = frozen("nano-completion")
    change = lambda unit: unit["cells"][0]["verdict"].update(ran=value)  # noqa: E731
    record = compared(copy.original, copy.change("code-00-*-verdicts.json", change))
    assert differing(record) == [("s0_eos", ("verdict",))]


@pytest.mark.parametrize("field", ["shapes", "top_k", "target", "embedding_sha256"])
def test_what_both_sides_lack_is_no_equality(field, frozen, compared):
    """A trace's cell without a field is refused: two absent ones would be the same."""
    copy = frozen("nano-depth")
    with pytest.raises(HarnessError, match=field):
        compared(copy.original, copy.change("code-00-*-forward.json", lambda unit: unit["cells"][0].pop(field)))


def test_a_condition_that_the_grid_does_not_have_is_refused(frozen, compared):
    """Nobody would compare it."""
    copy = frozen("nano-behavior")
    with pytest.raises(ComparisonError, match="stranger"):
        compared(copy.original, copy.change(UNIT, lambda unit: unit["cells"][0].update(condition="s2_eos")))


def test_a_unit_of_another_budget_is_refused(frozen, compared):
    """One side has one budget; the smallest of several would cut the others unseen."""
    copy = frozen("nano-behavior")
    with pytest.raises(ComparisonError, match="one budget"):
        compared(copy.original, copy.change(UNIT, lambda unit: unit.update(max_new_tokens=1)))


def test_a_link_to_itself_is_refused(tmp_path, frozen, compared):
    """It leads nowhere."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ComparisonError, match="loop"):
        compared(tmp_path / "loop", frozen("nano-behavior").folder)


def test_what_decides_tokens_comes_first_in_a_protocol(compared):
    """Two registered protocols of one kind: another seed, then the rules that it comes from, then titles."""
    folder = places().snapshots
    record = compared(folder / "nano-cross-source-sampling", folder / "nano-single-source-sampling")
    order = list(dict.fromkeys(one.group for one in record.facts))
    assert order == ["draws", "protocol"]
    named = [one.field for one in record.facts if one.group == "protocol"]
    assert named[0] == "digest"
    assert named[1].startswith("decode.")
    assert named.index("title") > max(at for at, name in enumerate(named) if name.startswith("decode."))
    assert len(set(named)) == len(named)


def test_cells_are_in_the_grids_order_and_not_in_the_alphabets(frozen):
    """Replicates as the grid lists them: a protocol may list R2 before R10, and R10 before R9."""
    copy = frozen("nano-single-source-sampling")
    copy.seal({})
    a, b = read_sides(copy.original, copy.folder)
    grid = a.registered.kind.grids[a.grid]
    listed = tuple(reversed(grid.replicates))
    turned = a.registered.kind.grids | {a.grid: msgspec.structs.replace(grid, replicates=listed)}
    kind = msgspec.structs.replace(a.registered.kind, grids=turned)
    found = comparison(replace(a, registered=replace(a.registered, kind=kind)), b)
    first = [cell.replicate for cell in found.cells if cell.source_id == found.cells[0].source_id]
    assert tuple(dict.fromkeys(first)) == listed
