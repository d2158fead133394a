"""Freezing: a passed, unaltered formal run, once; what is frozen is exactly what its index lists."""

import json
import shutil

import pytest

from harness.canon import sha256_hex
from harness.errors import HarnessError, SnapshotError, StorageError
from harness.journal.folder import RunFolder
from harness.snapshots.store import accept, frozen_folder, is_frozen, read_audit, read_frozen, run_files


def sign(run, **changes):
    """Change fields of the audit record and give it a detached digest that fits."""
    audit = json.loads((run / "audit.json").read_bytes()) | changes
    data = json.dumps(audit).encode()
    (run / "audit.json").write_bytes(data)
    (run / "audit.json.sha256").write_text(f"{sha256_hex(data)}  audit.json\n")


@pytest.fixture
def frozen(run, tree, loaded):
    """The folder of results that were just frozen."""
    accept(run, tree)
    return frozen_folder(loaded.protocol.id, tree)


def test_a_passed_run_is_frozen_unit_by_unit(run, tree, loaded, evidence):
    """One file a unit and an index, with the digests that the index lists; the origin is the run's."""
    assert not is_frozen(loaded.protocol.id, tree)
    index = accept(run, tree)
    results = read_frozen(loaded.protocol.id, tree)
    assert results.index == index
    assert set(index.units) == {key.name for key in evidence.keys}
    assert index.run_sha256 == evidence.run_sha256
    assert all(results.file(key).exists() for key in evidence.keys)
    assert is_frozen(loaded.protocol.id, tree)


def test_what_is_frozen_is_not_frozen_again(run, tree, frozen):
    """No second run takes its place, and no byte changes."""
    before = {path.name: path.read_bytes() for path in frozen.iterdir()}
    with pytest.raises(SnapshotError, match="expected no frozen results yet, found frozen results"):
        accept(run, tree)
    assert {path.name: path.read_bytes() for path in frozen.iterdir()} == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tier": "smoke"}, "expected a formal run, found a smoke run. Make one: "),
        ({"port": True}, "found a port: True"),
        ({"passed": False}, "found passed: False"),
        ({"passed": False, "port": True}, "found passed: False; a port: True"),
        ({"gates": []}, "found gates registered: {}; rows passed: {}"),
        ({"books": ["one"]}, "found open books"),
        ({"errors": 1}, "found errors: 1"),
        ({"collected": 0}, "found cases reported"),
        ({"run_sha256": "0" * 64}, "found run of the audit record: 0000"),
        ({"run_id": "other"}, "found run ID of the audit record: other"),
    ],
    ids=["smoke", "port", "failed", "both", "gates", "books", "errors", "cases", "run", "run-id"],
)
def test_another_run_cannot_be_frozen(run, tree, loaded, changes, message):
    """Only a passed formal run of the registered protocol."""
    sign(run, **changes)
    with pytest.raises(SnapshotError, match=message):
        accept(run, tree)
    assert not is_frozen(loaded.protocol.id, tree)


def test_a_run_of_another_revision_cannot_be_frozen(run, tree):
    """The audit's protocol digest must be this tree's."""
    sign(run, protocol_digest="0" * 64)
    with pytest.raises(SnapshotError, match=r"found protocol digest: 0000"):
        accept(run, tree)


@pytest.mark.parametrize(
    "name", ["run.json", "ledger.json", "environment.json", "spec.json", "replay/run.json", "junit.xml"]
)
def test_a_run_altered_after_its_audit_cannot_be_frozen(run, tree, loaded, name):
    """Every audited file, by name, also the parts made apart."""
    with (run / name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(SnapshotError, match=f"{name} altered after its audit"):
        accept(run, tree)
    assert not is_frozen(loaded.protocol.id, tree)


def test_a_run_that_lost_a_file_cannot_be_frozen(run, tree):
    """A missing audited file is named."""
    (run / "statistics.json").unlink()
    with pytest.raises(SnapshotError, match=r"statistics\.json altered after its audit"):
        accept(run, tree)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("audit.json", b"{}", id="altered"),
        pytest.param("audit.json.sha256", b"", id="empty-digest"),
        pytest.param("audit.json.sha256", b"0000  audit.json\n", id="other-digest"),
        pytest.param("audit.json.sha256", b"\xff\xfe", id="bytes"),
    ],
)
def test_an_audit_that_is_not_its_digest_is_refused(run, tree, name, data):
    """The record and its detached digest hold each other."""
    (run / name).write_bytes(data)
    with pytest.raises(SnapshotError, match=r"audit\.json: expected"):
        accept(run, tree)


@pytest.mark.parametrize("name", ["audit.json", "audit.json.sha256"])
def test_a_run_without_an_audit_is_refused(run, name):
    """It was never judged, or its digest is gone."""
    (run / name).unlink()
    with pytest.raises((SnapshotError, StorageError), match=name):
        read_audit(RunFolder(run))


def test_an_altered_snapshot_is_refused(frozen, tree, loaded):
    """By its file."""
    path = sorted(frozen.glob("code-*.json"))[0]
    path.write_bytes(path.read_bytes().replace(b'"length"', b'"lengTh"'))
    with pytest.raises(SnapshotError, match=f"{path.name}: expected [0-9a-f]{{64}}, found [0-9a-f]{{64}}"):
        read_frozen(loaded.protocol.id, tree)


def test_a_missing_snapshot_is_refused(frozen, tree, loaded):
    """The index says what must be there."""
    path = sorted(frozen.glob("code-*.json"))[0]
    path.unlink()
    with pytest.raises(SnapshotError, match=rf"missing \['{path.name}'\], unlisted \[\]"):
        read_frozen(loaded.protocol.id, tree)


def test_an_unlisted_snapshot_is_refused(frozen, tree, loaded):
    """Nothing lies beside what was frozen."""
    (frozen / "more.json").write_bytes(b"{}")
    with pytest.raises(SnapshotError, match=r"missing \[\], unlisted \['more.json'\]"):
        read_frozen(loaded.protocol.id, tree)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]"], ids=["empty", "object", "list"])
def test_a_damaged_index_is_refused(frozen, tree, loaded, data):
    """It isn't taken for no snapshots."""
    (frozen / "index.json").write_bytes(data)
    assert is_frozen(loaded.protocol.id, tree)
    with pytest.raises(SnapshotError, match=r"index\.json"):
        read_frozen(loaded.protocol.id, tree)


def test_a_missing_index_is_not_unfrozen(frozen, tree, loaded):
    """A freeze that was cut off, or a lost index, is an error and not a protocol without results."""
    (frozen / "index.json").unlink()
    assert is_frozen(loaded.protocol.id, tree)
    with pytest.raises(HarnessError, match=r"index\.json"):
        read_frozen(loaded.protocol.id, tree)


def test_a_protocol_without_a_folder_is_unfrozen(tree, loaded):
    """And so is one whose folder is empty."""
    frozen_folder(loaded.protocol.id, tree).mkdir(parents=True)
    assert not is_frozen(loaded.protocol.id, tree)
    shutil.rmtree(tree.snapshots)
    assert not is_frozen(loaded.protocol.id, tree)


@pytest.mark.parametrize("name", ["ledger.json", "statistics.json"])
def test_a_run_whose_records_do_not_follow_from_its_journals_cannot_be_frozen(run, tree, loaded, name):
    """Acceptance makes the records again: an audit record that lists an edited ledger doesn't make it true."""
    content = (run / name).read_bytes().replace(b'"port":false', b'"port":true', 1)
    (run / name).write_bytes(content)
    sign(run, files=run_files(RunFolder(run)))
    with pytest.raises(SnapshotError, match=f"found {name}: [0-9a-f]{{64}}"):
        accept(run, tree)
    assert not is_frozen(loaded.protocol.id, tree)
