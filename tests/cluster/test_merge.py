"""What is taken from a worker and what isn't: heads that agree, units of the run, and nothing else."""

import json

import pytest

from harness.canon import canonical_bytes, digest, ids_sha256
from harness.cluster.merge import Merger
from harness.errors import JournalError
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import load_protocol

HEAD = ("spec.json", "environment.json", "placement.json", "gold.json")


@pytest.fixture
def made(formal_run):
    """A finished run's files as workers send them."""
    names = [*HEAD, *(f"journal/{path.name}" for path in sorted((formal_run / "journal").iterdir()))]
    return {name: (formal_run / name).read_bytes() for name in names}


@pytest.fixture
def merger(formal_run, tmp_path):
    """A merger into an empty folder, with the run's protocol."""
    loaded = load_protocol("mini-behavior", Places(formal_run.parents[2]))
    return Merger(RunFolder(tmp_path / "formal-1"), loaded, tmp_path / "apart")


def journals(made):
    """Names of the units."""
    return [name for name in made if name.startswith("journal/")]


def test_two_workers_answers_make_the_run(merger, made, tmp_path):
    """Both say what the run is; each has units of its own."""
    head = {name: made[name] for name in HEAD}
    one, other = journals(made)
    merger.merge(head)
    merger.merge(head)
    merger.merge({one: made[one]})
    merger.merge({other: made[other], "workers/7-ab.json": b"{}"})
    found = tmp_path / "formal-1"
    assert {path.relative_to(found).as_posix(): path.read_bytes() for path in found.rglob("*") if path.is_file()} == {
        **made,
        "workers/7-ab.json": b"{}",
    }


@pytest.mark.parametrize(
    "name",
    [
        "../elsewhere.json",
        "journal/../x.json",
        "run.json",
        "audit.json",
        "workers/../../x.json",
        "journal/a/b.json",
        "",
    ],
)
def test_other_names_are_refused(merger, made, tmp_path, name):
    """No worker writes a result, nor outside the folder."""
    merger.merge({one: made[one] for one in HEAD})
    with pytest.raises(JournalError, match="expected files that a worker of this run writes"):
        merger.merge({name: b"{}"})
    assert not (tmp_path / "elsewhere.json").exists()
    assert sorted(path.name for path in (tmp_path / "formal-1").iterdir()) == sorted(HEAD)


@pytest.mark.parametrize("name", HEAD[:3])
def test_a_worker_in_another_world_is_refused(merger, made, name):
    """Another environment, placement or request than the first worker's: where, and both values."""
    merger.merge({one: made[one] for one in HEAD})
    other = json.loads(made[name])
    field = {"spec.json": "run_id", "environment.json": "cpu", "placement.json": "id"}[name]
    other[field] = "another"
    with pytest.raises(JournalError, match=f"{field}='another'"):
        merger.merge({name: json.dumps(other, separators=(",", ":"), sort_keys=True).encode()})


def test_an_altered_unit_is_refused_and_not_put_there(merger, made, tmp_path):
    """Its digest names the place; the run folder has no such journal."""
    merger.merge({one: made[one] for one in HEAD})
    name = journals(made)[0]
    altered = made[name].replace(b'"length":', b'"length":1', 1)
    with pytest.raises(JournalError):
        merger.merge({name: altered})
    assert not (tmp_path / "formal-1" / name).exists()


def test_a_unit_in_anothers_place_is_refused(merger, made, tmp_path):
    """A valid journal under the name of another unit, and under a name that the grid hasn't."""
    merger.merge({one: made[one] for one in HEAD})
    one, other = journals(made)
    with pytest.raises(JournalError):
        merger.merge({one: made[other]})
    with pytest.raises(JournalError, match="unit strange, which grid"):
        merger.merge({"journal/strange.json": made[one]})
    assert not (tmp_path / "formal-1/journal").exists()


def test_what_one_process_saw_replaces_what_another_did(merger, made):
    """A unit that failed in two workers has one failure record, the later."""
    merger.merge({one: made[one] for one in HEAD} | {"failures/a.json": b"1", "oom.json": b"1"})
    merger.merge({"failures/a.json": b"2", "oom.json": b"2"})
    assert (merger._folder.path / "failures/a.json").read_bytes() == b"2"


def test_a_unit_that_two_workers_made_stays_the_first(merger, made, tmp_path):
    """The same evidence observed by another process: what landed is left, and nothing beside it is taken."""
    merger.merge({one: made[one] for one in HEAD})
    name = journals(made)[0]
    merger.merge({name: made[name]})
    again = json.loads(made[name])
    again["observation"]["wall_ns"] += 1
    merger.merge({name: canonical_bytes(again), "workers/7-ab.json": b"{}"})
    assert (tmp_path / "formal-1" / name).read_bytes() == made[name]
    assert not (tmp_path / "formal-1/workers").exists()


def test_two_workers_that_do_not_agree_on_a_unit_are_refused(merger, made, tmp_path):
    """A valid journal with other tokens: the run has the first, and somebody hears of the second."""
    merger.merge({one: made[one] for one in HEAD})
    name = journals(made)[0]
    merger.merge({name: made[name]})
    other = json.loads(made[name])
    cell = other["evidence"]["cells"][0]
    cell["generated_ids"][0] += 1
    cell["generated_sha256"] = ids_sha256(cell["generated_ids"])
    other["evidence_sha256"] = digest(other["evidence"])
    with pytest.raises(JournalError, match=r"expected one unit, .*found another from a second worker"):
        merger.merge({name: canonical_bytes(other)})
    assert (tmp_path / "formal-1" / name).read_bytes() == made[name]
