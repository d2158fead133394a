"""Assembling: exactly the grid's units, in the grid's order, whatever the disk's order; else an error with names."""

import json
import os
import shutil

import pytest

from harness.canon import canonical_bytes
from harness.errors import JournalError
from harness.journal.assemble import assemble, read_units, units_by_key
from harness.journal.folder import RunFolder, journals
from harness.ledgers.close import close_run
from harness.records.run import RunSpec

SPEC = [name for name in RunSpec.__struct_fields__ if name not in ("schema", "run_id")]


def run_bytes(folder, loaded):
    """The bytes that run.json must have."""
    return canonical_bytes(assemble(folder, loaded))


def keys(folder, loaded):
    """The run's units, in the grid's order."""
    return tuple(read_units(folder, loaded))


def test_a_run_assembles_to_its_bytes(folder, loaded):
    """What the session wrote is what its journals give."""
    assert folder.file("run.json").read_bytes() == run_bytes(folder, loaded)


def test_the_order_of_files_is_not_content(folder, loaded):
    """Files landed in another order, with other times: the same bytes."""
    before = run_bytes(folder, loaded)
    for number, path in enumerate(reversed(list(journals(folder)))):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
        os.utime(path, (number, number))
    assert run_bytes(folder, loaded) == before


def test_units_stand_in_the_grids_order(folder, loaded):
    """Domain order, rank, replicate; not the order of file names."""
    assert keys(folder, loaded) == loaded.units("formal", loaded.domains)


def test_two_folders_of_the_same_evidence_give_the_same_bytes(folder, loaded, tmp_path):
    """A copied folder, elsewhere and under another run ID, closes to the same run, ledger and statistics."""
    other = RunFolder(tmp_path / "elsewhere")
    shutil.copytree(folder.path, other.path)
    spec = json.loads(other.file("spec.json").read_bytes()) | {"run_id": "another"}
    other.file("spec.json").write_text(json.dumps(spec))
    for name in ("run.json", "ledger.json", "statistics.json"):
        other.file(name).unlink()
    close_run(other, loaded)
    for name in ("run.json", "ledger.json", "statistics.json"):
        assert other.file(name).read_bytes() == folder.file(name).read_bytes()


def test_the_observation_does_not_reach_the_run(folder, loaded):
    """Another time and process in every journal: the same bytes."""
    before = run_bytes(folder, loaded)
    for path in journals(folder):
        content = json.loads(path.read_bytes())
        content["observation"]["wall_ns"] += 1
        content["observation"]["process"]["pid"] += 1
        path.write_text(json.dumps(content))
    assert run_bytes(folder, loaded) == before


def test_a_missing_unit_is_named(folder, loaded):
    """A run isn't assembled from fewer units."""
    key = keys(folder, loaded)[0]
    folder.journal(key).unlink()
    with pytest.raises(JournalError, match=f"missing .*{key.name}.*not of this grid none"):
        assemble(folder, loaded)


def test_an_extra_unit_is_named(folder, loaded):
    """A journal that the grid doesn't have isn't left aside."""
    key = keys(folder, loaded)[0]
    shutil.copy(folder.journal(key), folder.path / "journal" / "code-09-more-greedy.json")
    with pytest.raises(JournalError, match=r"missing none, not of this grid .*code-09-more-greedy"):
        assemble(folder, loaded)


def test_a_renamed_unit_is_missing_and_extra(folder, loaded):
    """Both names are shown."""
    key = keys(folder, loaded)[0]
    folder.journal(key).rename(folder.path / "journal" / "renamed.json")
    with pytest.raises(JournalError, match=f"missing .*{key.name}.*not of this grid .*renamed"):
        assemble(folder, loaded)


def test_two_swapped_units_are_refused(folder, loaded):
    """A unit under another's name is refused by the field that gives it away."""
    one, other = (folder.journal(key) for key in keys(folder, loaded)[:2])
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    with pytest.raises(JournalError, match=f"{one.name}: domain"):
        assemble(folder, loaded)


def test_a_unit_of_another_run_is_refused(folder, loaded):
    """A unit made under another placement, on the same grid, with all digests right."""
    key = keys(folder, loaded)[0]
    content = json.loads(folder.journal(key).read_bytes())
    part = folder.part("placement")
    stranger = json.loads(part.journal(key).read_bytes())
    assert content["evidence"]["placement_sha256"] != stranger["evidence"]["placement_sha256"]
    shutil.copy(part.journal(key), folder.journal(key))
    with pytest.raises(JournalError, match=f"{key.name}.json: placement_sha256"):
        assemble(folder, loaded)


@pytest.mark.parametrize("field", SPEC)
def test_an_altered_request_is_refused(folder, loaded, field):
    """No field of spec.json can be changed without an error that names it; the run ID is a name and no content."""
    path = folder.file("spec.json")
    content = json.loads(path.read_bytes())
    deviation = {"field": "placement", "registered": "a", "actual": "b"}
    content[field] = {
        "port": not content["port"],
        "domains": content["domains"][::-1],
        "deviations": [deviation],
        "threads": content["threads"] + 1,
    }.get(field, f"{content[field]}x")
    path.write_text(json.dumps(content))
    with pytest.raises(JournalError, match=r"spec\.json: " + field if field != "port" else r"run\.json.*port"):
        close_run(folder, loaded)


@pytest.mark.parametrize("domains", [["code"], ["code", "code"], ["code", "math", "x"], []], ids=str)
def test_other_domains_in_the_request_are_refused(folder, loaded, domains):
    """A run that isn't a port has all domains of its protocol."""
    path = folder.file("spec.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"domains": domains}))
    with pytest.raises(JournalError, match=r"spec\.json: domains"):
        assemble(folder, loaded)


@pytest.mark.parametrize("name", ["environment.json", "placement.json"])
def test_another_environment_or_placement_is_refused(folder, loaded, name):
    """The units name the digest of theirs."""
    path = folder.file(name)
    content = json.loads(path.read_bytes())
    content |= {"cuda": "99"} if name == "environment.json" else {"parameter_bytes": {"cpu": 1}}
    path.write_text(json.dumps(content))
    with pytest.raises(JournalError, match=name.split(".")[0] + "_sha256"):
        assemble(folder, loaded)


@pytest.mark.parametrize("name", ["spec.json", "environment.json", "placement.json", "gold.json"])
@pytest.mark.parametrize("data", [b"", b"[1]", b'{"x":1}'], ids=["empty", "list", "unknown"])
def test_a_damaged_record_is_refused(folder, loaded, name, data):
    """Each by its own name."""
    folder.file(name).write_bytes(data)
    with pytest.raises(JournalError, match=name):
        assemble(folder, loaded)


def test_an_altered_run_record_is_refused(folder, loaded):
    """Closing again compares with what lies there, and names the field."""
    path = folder.file("run.json")
    path.write_bytes(path.read_bytes().replace(b'"port":false', b'"port":true'))
    with pytest.raises(JournalError, match=r"run\.json.*port=False.*found port=True"):
        close_run(folder, loaded)


@pytest.mark.parametrize("name", ["ledger.json", "statistics.json"])
def test_an_altered_ledger_is_refused(folder, loaded, name):
    """What follows from the run can't be edited beside it."""
    content = json.loads(folder.file(name).read_bytes()) | {"grid": "smoke"}
    folder.file(name).write_text(json.dumps(content))
    with pytest.raises(JournalError, match=f"{name}.*grid='formal'.*found grid='smoke'"):
        close_run(folder, loaded)


def test_closing_twice_changes_no_byte(folder, loaded):
    """Run, ledger and statistics stay as they are."""
    names = ("run.json", "ledger.json", "statistics.json")
    before = [folder.file(name).read_bytes() for name in names]
    close_run(folder, loaded)
    assert [folder.file(name).read_bytes() for name in names] == before


def test_a_unit_that_occurs_twice_is_refused(folder, loaded):
    """Joining is by identity, and an identity is one unit."""
    unit = assemble(folder, loaded).units[0]
    with pytest.raises(JournalError, match="expected once, found twice"):
        units_by_key((unit, unit))
