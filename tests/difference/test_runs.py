"""Runs that were really made, and copies of them as another machine, request or protocol would have left them."""

import json
import re
import shutil
from pathlib import Path

import pytest
from pregate_support.mini import MINI, copy_tree
from pregate_support.revising import amended

from harness.canon import canonical_bytes, ids_sha256, sha256_hex
from harness.errors import ComparisonError, HarnessError
from harness.places import Places
from harness.records.difference import NotDecoded
from harness.snapshots.store import accept


def fields(record) -> list[tuple[str, str]]:
    """(group, field) of everything else that differs."""
    return [(one.group, one.field) for one in record.facts]


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("replay", set()),
        ("placement", {"placement"}),
        ("threads-2", {"environment"}),
        ("workers-2", set()),
    ],
)
def test_runs_made_apart_are_equal(part, found, formal_run, compared):
    """In fresh processes, under another placement, with other threads: equal, and what differs is said."""
    record = compared(formal_run, formal_run / part)
    assert (record.verdict, record.equal.count, record.equal.of) == ("equal", 16, 16)
    assert {one.group for one in record.facts} == found
    assert record.shared_units.count == 0
    assert (record.a.state, record.b.state) == ("passed", "passed")


def test_a_placement_is_named_by_budgets_and_modules(formal_run, compared):
    """What was registered, and what was read back."""
    named = {one.field: (one.a, one.b) for one in compared(formal_run, formal_run / "placement").facts}
    assert named["budgets"][0] != named["budgets"][1]
    assert any(name.startswith("device_map.") for name in named)
    assert "offloaded" in named


def test_threads_are_named(formal_run, compared):
    """One and two."""
    (one,) = compared(formal_run, formal_run / "threads-2").facts
    assert (one.field, one.a, one.b) == ("threads", "1", "2")


@pytest.mark.parametrize("name", ["completion_run", "depth_run"])
def test_other_kinds_made_apart_are_equal(name, request, compared):
    """A formal run and its replay; verdicts on programs and tensor digests too."""
    run = request.getfixturevalue(name)
    record = compared(run, run / "replay")
    assert (record.verdict, record.equal.count) == ("equal", 16)
    assert record.facts == ()
    if name == "depth_run":
        assert all(cell.found.tensors for cell in record.cells)


def test_a_smoke_run_is_the_beginning_of_a_formal_one(formal_run, compared):
    """All cells, up to the smaller budget, from either side."""
    smoke = formal_run.parent / json.loads((formal_run / "smoke.json").read_bytes())["run_id"]
    for pair in ((smoke, formal_run), (formal_run, smoke)):
        record = compared(*pair)
        assert (record.verdict, record.budget, record.whole) == ("equal", 8, False)


def test_a_run_beside_its_own_snapshots_is_one_run(fresh_run, compared):
    """Accepted, and compared with what it was accepted as."""
    tree = Places(fresh_run.parents[2])
    accept(fresh_run, tree)
    record = compared(fresh_run, tree.snapshots / MINI)
    assert record.verdict == "equal"
    assert record.shared_units.count == record.shared_units.of == 2
    replay = compared(fresh_run / "replay", tree.snapshots / MINI)
    assert (replay.verdict, replay.shared_units.count) == ("equal", 0)


def test_a_copy_is_one_run(fresh_run, formal_run, compared):
    """Byte for byte, and with the same run ID: said, and not refused."""
    record = compared(formal_run, fresh_run)
    assert record.a.name == record.b.name
    assert record.shared_units.count == record.shared_units.of == 2


def test_one_folder_twice_is_refused(formal_run, tmp_path, compared):
    """Also through a link, also through a folder above."""
    (tmp_path / "link").symlink_to(formal_run)
    for other in (formal_run, tmp_path / "link", formal_run.parent / ".." / MINI / formal_run.name):
        with pytest.raises(ComparisonError, match="one folder twice"):
            compared(formal_run, other)


def one_token(unit) -> None:
    """Another token in the fourth step of the first cell."""
    cell = unit["cells"][0]
    cell["generated_ids"][3] = 300
    cell["generated_sha256"] = ids_sha256(cell["generated_ids"])


def test_one_token_of_a_run_is_found(fresh_run, formal_run, compared, remade):
    """In a run that nobody judged; its ledger follows, so nothing but the token differs."""
    record = compared(formal_run, remade(fresh_run, unit=one_token))
    (cell,) = [one for one in record.cells if not one.equal]
    assert (record.verdict, record.b.state) == ("different", "not judged")
    assert cell.found.parting.step == 3
    assert cell.fields[0] == "tokens"


def prompt_id(unit) -> None:
    """Another token in the prompt of the first cell."""
    cell = unit["cells"][0]
    cell["prompt_ids"][5] = 301
    cell["prompt_sha256"] = ids_sha256(cell["prompt_ids"])


def test_a_prompt_is_named_by_position(fresh_run, formal_run, compared, remade):
    """Both sides are runs, so the IDs are there."""
    record = compared(formal_run, remade(fresh_run, unit=prompt_id))
    assert fields(record) == [("prompts", "prompt_ids")]
    assert record.facts[0].a.startswith("position 5 of ")
    assert "301" in record.facts[0].b
    assert record.verdict == "different"


ELSEWHERE = {
    "package": (lambda one: one["packages"].update(torch="2.12.0"), "environment", "packages.torch"),
    "a package more": (lambda one: one["packages"].update(kernels="1"), "environment", "packages.kernels"),
    "interpreter": (lambda one: one.update(python="3.12.1"), "environment", "python"),
    "cpu": (lambda one: one.update(cpu="another"), "environment", "cpu"),
    "gpu": (lambda one: one.update(gpus=["one", "two"]), "environment", "gpus"),
    "kernel": (lambda one: one["kernels"].update(mkl="False"), "environment", "kernels.mkl"),
    "attention": (lambda one: one.update(attention="sdpa"), "environment", "attention"),
    "generation": (lambda one: one["generation_config"].update(top_k="50"), "environment", "generation_config.top_k"),
    "checkpoint": (
        lambda one: one["checkpoint"].update({"model.safetensors": "0" * 64}),
        "checkpoint",
        "model.safetensors",
    ),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_what_differs_in_an_environment_is_named_and_no_difference_of_cells(
    what, fresh_run, formal_run, compared, remade
):
    """One field of it, and every cell equal: exit code 0, and said."""
    change, group, field = ELSEWHERE[what]
    record = compared(formal_run, remade(fresh_run, environment=change))
    assert (record.verdict, fields(record)) == ("equal", [(group, field)])


def test_a_moved_module_is_named(fresh_run, formal_run, compared, remade):
    """The device map as read back."""
    record = compared(formal_run, remade(fresh_run, placement=lambda one: one.update(device_map={"": "cuda:0"})))
    assert (record.verdict, fields(record)) == ("equal", [("placement", "device_map.")])


def test_a_port_is_named(fresh_run, formal_run, compared, remade):
    """And each of its deviations."""

    def port(spec) -> None:
        deviation = {"field": "software.torch", "registered": "2.13.0", "actual": "2.12.0"}
        spec.update(port=True, deviations=[deviation])

    record = compared(formal_run, remade(fresh_run, spec=port))
    assert fields(record) == [("port", "port"), ("port", "deviation.software.torch")]
    assert (record.a.port, record.b.port) == (False, True)


def test_a_protocols_field_is_named_where_both_revisions_are_at_hand(fresh_run, formal_run, compared, remade):
    """Each run lies in its own tree. Without one of them its digest is what there is, and why."""
    folder = fresh_run.parents[2] / "fixtures/protocols" / MINI
    digest = amended(Places(fresh_run.parents[2]), "Another", protocol=MINI).digest
    remade(fresh_run, spec=lambda one: one.update(protocol_digest=digest))
    record = compared(formal_run, fresh_run)
    assert fields(record) == [("protocol", "digest"), ("protocol", "title")]
    assert (record.verdict, record.facts[1].b) == ("equal", "Another")
    shutil.rmtree(folder)
    alone = compared(formal_run, fresh_run, tree=Places(formal_run.parents[2]))
    assert fields(alone) == [("protocol", "digest")]
    assert "no fields to show; B: it has digest" in alone.facts[0].where


def test_tokens_without_their_tokenizer_are_ids(fresh_run, formal_run, compared, remade):
    """A checkpoint that holds another tokenizer, or a tree without the protocol's: IDs alone, and the reason."""
    other = lambda one: one["checkpoint"].update({"tokenizer.json": "0" * 64})  # noqa: E731
    record = compared(formal_run, remade(fresh_run, unit=one_token, environment=other))
    (cell,) = [one for one in record.cells if not one.equal]
    assert isinstance(cell.found.parting.b.text, NotDecoded)
    assert "doesn't hold the tokenizer" in cell.found.parting.b.text.reason
    assert not isinstance(cell.found.parting.a.text, NotDecoded)
    (fresh_run.parents[2] / "fixtures/models/nano/checkpoint").unlink()
    remade(
        fresh_run,
        environment=lambda one: one.update(
            checkpoint=json.loads((formal_run / "environment.json").read_bytes())["checkpoint"]
        ),
    )
    (cell,) = [one for one in compared(formal_run, fresh_run).cells if not one.equal]
    assert "tokenizer" in cell.found.parting.b.text.reason


def test_a_run_that_ended_before_has_what_landed(fresh_run, formal_run, compared, unjudged):
    """Its cells are equal, and the rest is missing: no equality."""
    unjudged(fresh_run)
    sorted((fresh_run / "journal").glob("*.json"))[0].unlink()
    record = compared(formal_run, fresh_run)
    assert (record.verdict, record.equal.count, record.equal.of) == ("different", 8, 8)
    assert [(one.side, one.missing) for one in record.lone] == [("a", True)] * 8
    assert "accounts and verdicts: B has no ledger" in record.not_compared
    assert record.b.run_sha256 == "none"


def test_what_neither_run_has_is_no_equality(fresh_run, compared, unjudged, tmp_path):
    """Both ended before the same unit: their grids have it."""
    unjudged(fresh_run)
    sorted((fresh_run / "journal").glob("*.json"))[0].unlink()
    other = copy_tree(fresh_run.parents[2], tmp_path / "other") / fresh_run.relative_to(fresh_run.parents[2])
    record = compared(fresh_run, other)
    assert (record.verdict, record.equal.count, record.equal.of, record.lone) == ("different", 8, 8, ())
    assert "8 cells that both grids have: neither side has them" in record.not_compared


@pytest.mark.parametrize(
    "name", ["run.json", "ledger.json", "environment.json", "journal/*.json", "replay/run.json", "audit.json"]
)
def test_a_run_that_was_altered_since_it_was_judged_is_refused(name, fresh_run, formal_run, compared):
    """Whatever is compared was judged as it is."""
    path = sorted(fresh_run.glob(name))[0]
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(HarnessError, match="altered"):
        compared(formal_run, fresh_run)


def test_a_part_that_was_altered_is_refused_and_the_rest_is_not(fresh_run, formal_run, compared):
    """The run's audit record speaks for its parts."""
    path = fresh_run / "replay/environment.json"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(ComparisonError, match="altered"):
        compared(formal_run, fresh_run / "replay")
    assert compared(formal_run, fresh_run / "placement").verdict == "equal"


def judged_with(run: Path, **judge: str) -> Path:
    """The run as a session with another `judge` would have sealed it."""
    path = run / "audit.json"
    audit = json.loads(path.read_bytes())
    path.write_bytes(canonical_bytes(audit | {"judge": audit["judge"] | judge}))
    (run / "audit.json.sha256").write_text(f"{sha256_hex(path.read_bytes())}  audit.json\n")
    return run


def by(record) -> dict[str, tuple[str, str]]:
    """What differs in who judged."""
    assert record.judged_by.state == ("differs" if record.judged_by.differing else "same")
    return {one.field: (one.a, one.b) for one in record.judged_by.differing}


@pytest.mark.parametrize(
    ("judge", "found"),
    [
        ({}, {}),
        ({"named_plugins": "a_kernel, another"}, {"named_plugins": ("none", "a_kernel, another")}),
        ({"named_by_environment": "a_kernel"}, {"named_by_environment": ("none", "a_kernel")}),
        ({"gates_sha256": "0" * 64}, {"gates_sha256": (None, "0" * 64)}),
        ({"library_sha256": "0" * 64}, {"library_sha256": (None, "0" * 64)}),
        ({"arguments": "other", "tree.commit": "other"}, {}),
    ],
)
def test_who_judged_is_said(judge, found, fresh_run, formal_run, compared):
    """Field by field, with what one side alone has; the words of a call and a commit are no part of it."""
    record = compared(formal_run, judged_with(fresh_run, **judge))
    own = json.loads((formal_run / "audit.json").read_bytes())["judge"]
    usual = own["named_plugins"].split(", ") if own["named_plugins"] else []
    if "named_plugins" in judge and usual:
        found = {"named_plugins": (", ".join(usual), "a_kernel, another")}
    assert by(record) == {name: (one or own[name], other) for name, (one, other) in found.items()}
    assert record.verdict == "equal"
    if not found:
        assert f"gates_sha256 {own['gates_sha256'][:16]}, library_sha256 " in record.judged_by.held


def test_distributions_are_compared_one_by_one(fresh_run, formal_run, compared):
    """Those that both have aren't shown, and in which order they were listed doesn't matter."""
    plugins = json.loads((formal_run / "audit.json").read_bytes())["judge"]["plugins"].split(", ")
    record = compared(formal_run, judged_with(fresh_run, plugins=", ".join([*plugins[::-1], "pytest-kernel 1.0"])))
    assert by(record) == {"plugins": ("none", "pytest-kernel 1.0")}
    turned = judged_with(fresh_run, plugins=", ".join([*plugins[:0:-1], "pytest-kernel 1.0"]))
    assert by(compared(turned, formal_run)) == {"plugins": ("pytest-kernel 1.0", plugins[0])}


def test_who_judged_a_part_is_who_judged_the_run(fresh_run, formal_run, compared):
    """And a run that nobody judged says so."""
    other = judged_with(fresh_run, named_by_environment="a_kernel")
    assert by(compared(formal_run / "replay", other / "replay")) == {"named_by_environment": ("none", "a_kernel")}
    assert by(compared(formal_run, formal_run / "replay")) == {}
    forget(fresh_run)
    record = compared(formal_run, fresh_run).judged_by
    assert (record.state, record.why, record.held) == ("unknown", "B wasn't judged", "")


def forget(run: Path) -> None:
    """Nobody has judged it."""
    for name in ("audit.json", "audit.json.sha256"):
        (run / name).unlink()


def test_an_unjudged_run_whose_records_do_not_agree_is_refused(fresh_run, formal_run, compared):
    """run.json beside other journals; a ledger of another run; a journal of another environment."""
    forget(fresh_run)
    path = fresh_run / "run.json"
    data = path.read_bytes()
    plain = json.loads(data)
    plain["units"].reverse()
    path.write_bytes(canonical_bytes(plain))
    with pytest.raises(ComparisonError, match="run_sha256"):
        compared(formal_run, fresh_run)
    plain["units"].pop()
    path.write_bytes(canonical_bytes(plain))
    with pytest.raises(ComparisonError, match="units of the journals"):
        compared(formal_run, fresh_run)
    path.write_bytes(data)
    environment = json.loads((fresh_run / "environment.json").read_bytes()) | {"cpu": "another"}
    (fresh_run / "environment.json").write_bytes(canonical_bytes(environment))
    with pytest.raises(ComparisonError, match="environment_sha256"):
        compared(formal_run, fresh_run)


def test_an_edited_journal_is_refused(fresh_run, formal_run, compared, unjudged):
    """Its digest doesn't hold, whoever judged it."""
    unjudged(fresh_run)
    path = sorted((fresh_run / "journal").glob("*.json"))[0]
    path.write_bytes(re.sub(rb'"length":\d+', b'"length":1', path.read_bytes(), count=1))
    with pytest.raises(HarnessError, match="length"):
        compared(formal_run, fresh_run)


def test_a_unit_twice_is_refused(fresh_run, formal_run, compared, unjudged):
    """Under two names."""
    unjudged(fresh_run)
    path = sorted((fresh_run / "journal").glob("*.json"))[0]
    shutil.copyfile(path, path.with_name("again.json"))
    with pytest.raises(HarnessError, match="twice"):
        compared(formal_run, fresh_run)


def test_runs_without_a_cell_in_common_are_not_comparable(fresh_run, formal_run, compared, unjudged, tmp_path):
    """Each has another unit."""
    unjudged(fresh_run)
    other = copy_tree(fresh_run.parents[2], tmp_path / "other") / fresh_run.relative_to(fresh_run.parents[2])
    sorted((fresh_run / "journal").glob("*.json"))[0].unlink()
    sorted((other / "journal").glob("*.json"))[1].unlink()
    with pytest.raises(ComparisonError, match="none on both sides"):
        compared(fresh_run, other)


def test_a_run_without_units_is_not_comparable(fresh_run, formal_run, compared, unjudged):
    """It ended before its first."""
    unjudged(fresh_run)
    for path in (fresh_run / "journal").glob("*.json"):
        path.unlink()
    with pytest.raises(ComparisonError, match="no journal"):
        compared(formal_run, fresh_run)


def test_a_run_of_an_unknown_protocol_is_not_comparable(fresh_run, formal_run, compared):
    """No tree has it."""
    shutil.rmtree(fresh_run.parents[2] / "fixtures/protocols" / MINI)
    with pytest.raises(ComparisonError, match="protocol mini-behavior"):
        compared(fresh_run, formal_run)


def test_nothing_is_written(formal_run, compared):
    """Every file of the folder is as it was."""
    before = {path: path.stat().st_mtime_ns for path in formal_run.rglob("*")}
    compared(formal_run, formal_run / "replay")
    assert {path: path.stat().st_mtime_ns for path in formal_run.rglob("*")} == before
