"""Revisions of a frozen protocol: what they keep, what they say, and every way in which their chain can be broken."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from pregate_support.revising import (
    AT_US,
    PROTOCOL,
    amend,
    amended,
    nano_tree,
    propose,
    put_attempt,
    put_results,
    put_run,
)

from harness.canon import canonical_bytes, digest
from harness.errors import ProtocolError, StorageError
from harness.places import Places, places
from harness.protocols.folders import protocol_ids
from harness.protocols.load import load_line, load_profile, load_protocol, read_protocol
from harness.protocols.outputs import outputs_of
from harness.protocols.revisions import FIRST, protocol_digest, read_revisions
from harness.records.base import decode_json
from harness.records.manifest import Manifest
from harness.records.revision import Revision


@pytest.fixture
def tree(tmp_path: Path) -> Places:
    """One frozen protocol that was never amended."""
    return nano_tree(tmp_path / "tree")


@pytest.fixture
def twice(tree: Places) -> Places:
    """The same, amended twice."""
    amended(tree, "Second title", reason="the first title was unclear")
    amended(tree, "Third title", reason="so was the second")
    return tree


def folder_of(tree: Places) -> Path:
    """The protocol's folder."""
    return tree.protocols / PROTOCOL


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", protocol_ids())
def test_a_protocol_that_was_never_amended_has_a_chain_of_length_0(name):
    """Its digest is over protocol, manifest and profile alone, and its results lie under its own name."""
    loaded = load_protocol(name)
    assert loaded.history == ()
    assert loaded.digest == digest(
        {"protocol": loaded.protocol, "manifest": loaded.manifest, "profile": loaded.profile}
    )
    assert loaded.results == name
    assert load_line(loaded.folder, places()) == (loaded,)


def test_an_amendment_keeps_what_it_supersedes(tree):
    """The superseded files byte for byte, with the profile; the changed ones in force; amendment/ is used up."""
    before, first = content(folder_of(tree)), load_protocol(PROTOCOL, tree)
    second = amended(tree, "Second title")
    after = content(folder_of(tree))
    kept = {name.removeprefix("revisions/0001/"): data for name, data in after.items() if name.startswith("revisions/")}
    record = json.loads(kept.pop("revision.json"))
    assert kept.pop("profile.toml") == (tree.models / "nano/profile.toml").read_bytes()
    assert kept == before
    assert set(after) - {name for name in after if "/" in name} == {*before, "PROTOCOL.sha256"}
    assert second.protocol.title == "Second title"
    assert (record["number"], record["supersedes"], record["previous_sha256"]) == (1, first.digest, FIRST)
    assert (record["reason"], record["at_us"]) == ("a clearer title", AT_US)
    assert (folder_of(tree) / "PROTOCOL.sha256").read_text() == f"{second.digest}  protocol\n"
    assert not (tree.protocols / f".{PROTOCOL}.amending").exists()


def test_every_digest_of_the_line_loads(twice):
    """Each under its own files, manifest and claims; an unknown digest gives the one in force."""
    first, second, third = load_line(folder_of(twice), twice)
    assert first.digest == load_protocol(PROTOCOL).digest
    assert [one.protocol.title for one in (second, third)] == ["Second title", "Third title"]
    assert len({first.digest, second.digest, third.digest}) == 3
    for one in (first, second, third):
        assert load_protocol(PROTOCOL, twice, one.digest) == one
        assert (one.folder / "claims.toml").is_file()
    assert load_protocol(PROTOCOL, twice, "0" * 64) == load_protocol(PROTOCOL, twice) == third
    assert [one.results for one in (first, second, third)] == [PROTOCOL, f"{PROTOCOL}@0001", f"{PROTOCOL}@0002"]


def test_the_records_are_a_chain(twice):
    """Each names the digest before it and the record before it."""
    first, second, third = load_line(folder_of(twice), twice)
    one, other = third.history
    assert (one.supersedes, other.supersedes) == (first.digest, second.digest)
    assert other.previous_sha256 == digest(one)
    assert third.digest == digest(
        {
            "protocol": third.protocol, "manifest": third.manifest, "profile": third.profile,
            "revision": digest(other),
        }
    )  # fmt: skip


def test_a_digest_covers_the_history(tmp_path):
    """The same content under another reason has another digest, so no run vouches for another history."""
    found = [amended(nano_tree(tmp_path / reason), "T", reason=reason).digest for reason in ("one", "two")]
    assert found[0] != found[1]


def test_back_to_the_first_content_is_a_revision_too(tree):
    """It has the first one's content and not its digest."""
    first = load_protocol(PROTOCOL, tree)
    amended(tree, "Second title")
    back = amended(tree, first.protocol.title)
    assert back.protocol == first.protocol
    assert back.digest not in {first.digest, load_line(folder_of(tree), tree)[1].digest}
    assert back.history[1].content_sha256 == first.digest


def test_what_existed_is_looked_up(tree):
    """Runs, attempts and frozen results, each with its digest; a folder that can't be read is one of them."""
    first = load_protocol(PROTOCOL, tree).digest
    put_run(tree, first)
    (tree.reports / PROTOCOL / "formal-2").mkdir()
    put_attempt(tree, first)
    put_results(tree, first)
    record = amended(tree, "Second title").history[0]
    assert record.outputs_existed
    assert [(one.kind, one.where, one.protocol_digest) for one in record.outputs] == [
        ("run", f"reports/{PROTOCOL}/formal-1", first),
        ("run", f"reports/{PROTOCOL}/formal-2", "unreadable"),
        ("attempt", f"reports/{PROTOCOL}/attempts.jsonl: formal-1", first),
        ("snapshots", f"snapshots/{PROTOCOL}/formal", first),
    ]
    again = amended(tree, "Third title").history[1]
    assert again.outputs == record.outputs


def test_without_outputs_there_were_none(tree):
    """An empty folder is none, and another protocol's runs are not its own."""
    (tree.reports / PROTOCOL).mkdir(parents=True)
    put_run(tree, "0" * 64, protocol=f"{PROTOCOL}-other")
    put_results(tree, "0" * 64, results=f"{PROTOCOL}-other")
    record = amended(tree, "Second title").history[0]
    assert (record.outputs_existed, record.outputs) == (False, ())


def test_claims_go_with_their_revision(tree):
    """amendment/ may change claims.toml too: runs of the old digest keep the old one."""
    propose(tree, "Second title")
    changed = (folder_of(tree) / "claims.toml").read_text("utf-8") + "# changed\n"
    (folder_of(tree) / "amendment/claims.toml").write_text(changed, "utf-8")
    second = amend(tree)
    assert (second.folder / "claims.toml").read_text("utf-8") == changed
    first = load_line(folder_of(tree), tree)[0]
    assert not (first.folder / "claims.toml").read_text("utf-8").endswith("# changed\n")


REFUSED = {
    "no amendment": (lambda folder: shutil.rmtree(folder / "amendment"), "expected the changed protocol.toml"),
    "no change": (
        lambda folder: shutil.copy(folder / "protocol.toml", folder / "amendment/protocol.toml"),
        "revision 1: expected another protocol, manifest or profile, found the same",
    ),
    "made files": (
        lambda folder: shutil.copy(folder / "manifest.json", folder / "amendment/manifest.json"),
        "expected files that an author writes, found manifest.json",
    ),
    "another ID": (
        lambda folder: rewrite(folder / "amendment/protocol.toml", 'id = "nano-behavior"', 'id = "other"'),
        "expected nano-behavior, found other",
    ),
    "a count that is no grid's": (
        lambda folder: rewrite(folder / "amendment/protocol.toml", "count = 128 }", "count = 127 }"),
        "count: expected 128, found 127",
    ),
    "edited in place": (
        lambda folder: shutil.copy(folder / "amendment/protocol.toml", folder / "protocol.toml"),
        r"protocol\.toml: bytes: expected",
    ),
    "a gate of a claim gone": (
        lambda folder: rewrite(folder / "amendment/protocol.toml", 'id = "decode_contract"', 'id = "decode_treaty"'),
        "gates of tier formal",
    ),
}


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace a text that must be there, once."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_amendment_changes_nothing(case, tree):
    """Every file is as it was, and no half-made folder is left."""
    propose(tree, "Second title")
    prepare, message = REFUSED[case]
    prepare(folder_of(tree))
    before = content(tree.protocols)
    with pytest.raises(ProtocolError, match=message):
        amend(tree)
    assert content(tree.protocols) == before
    assert [path.name for path in tree.protocols.iterdir()] == [PROTOCOL]


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_revision_has_a_reason(reason, tree):
    """Nothing is amended without one."""
    propose(tree, "Second title")
    with pytest.raises(ProtocolError, match="reason: expected why it is changed, found nothing"):
        amend(tree, reason=reason)
    assert read_revisions(folder_of(tree)) == ()


def test_two_amendments_at_a_time_are_refused(tree):
    """The folder in which one is made is the lock."""
    propose(tree, "Second title")
    (tree.protocols / f".{PROTOCOL}.amending").mkdir()
    with pytest.raises(StorageError, match="expected no such folder"):
        amend(tree)


def record(tree: Places, at: int, /, **changes) -> None:
    """A revision's record with changes, canonical."""
    path = folder_of(tree) / f"revisions/{at:04d}/revision.json"
    path.write_bytes(canonical_bytes(json.loads(path.read_bytes()) | changes))


def swap(tree: Places) -> None:
    """The two revisions in the other order."""
    at = folder_of(tree) / "revisions"
    (at / "0001").rename(at / "kept")
    (at / "0002").rename(at / "0001")
    (at / "kept").rename(at / "0002")


def drop(tree: Places, number: int) -> None:
    """A revision's folder gone."""
    shutil.rmtree(folder_of(tree) / f"revisions/{number:04d}")


def renumbered(tree: Places) -> None:
    """The first dropped, and the second in its place as if it had always been the first."""
    drop(tree, 1)
    at = folder_of(tree) / "revisions"
    (at / "0002").rename(at / "0001")
    record(tree, 1, number=1, previous_sha256=FIRST)


BROKEN = {
    "a reason altered": (lambda tree: record(tree, 1, reason="another"), "0002/revision.json: previous_sha256"),
    "the last reason altered": (lambda tree: record(tree, 2, reason="another"), r"PROTOCOL\.sha256: expected"),
    "the first digest altered": (lambda tree: record(tree, 1, supersedes="0" * 64), "previous_sha256"),
    "the last supersedes altered": (lambda tree: record(tree, 2, supersedes="0" * 64), r"PROTOCOL\.sha256: expected"),
    "outputs taken away": (lambda tree: record(tree, 2, outputs_existed=True), "outputs_existed: expected False"),
    "the first dropped": (lambda tree: drop(tree, 1), "revisions: expected 0001, found 0002"),
    "the first dropped, renumbered": (renumbered, r"PROTOCOL\.sha256: expected"),
    "the last dropped": (lambda tree: drop(tree, 2), r"PROTOCOL\.sha256: expected"),
    "all dropped": (
        lambda tree: shutil.rmtree(folder_of(tree) / "revisions"), r"PROTOCOL\.sha256: expected",
    ),
    "no record left": (
        lambda tree: [drop(tree, 1), drop(tree, 2)], "revisions: expected 0001, found nothing",
    ),
    "reordered": (swap, "0001/revision.json: number: expected 1, found 2"),
    "a stranger": (lambda tree: (folder_of(tree) / "revisions/note.txt").write_text(""), "found 0001, 0002, note.txt"),
    "other bytes": (
        lambda tree: rewrite(folder_of(tree) / "revisions/0002/revision.json", "{", "{ "),
        "canonical JSON: expected True",
    ),
    "an unknown field": (lambda tree: record(tree, 1, more=1), "only known fields"),
    "a kept file altered": (
        lambda tree: rewrite(folder_of(tree) / "revisions/0001/protocol.toml", "resume = true", "resume = false"),
        r"0001/protocol\.toml: bytes: expected",
    ),
    "a kept profile altered": (
        lambda tree: rewrite(folder_of(tree) / "revisions/0001/profile.toml", "layers = 6", "layers = 7"),
        r"0001/profile\.toml: canonical content",
    ),
    "the digest's file altered": (
        lambda tree: (folder_of(tree) / "PROTOCOL.sha256").write_text("0" * 64 + "  protocol\n"),
        r"PROTOCOL\.sha256: expected 0000",
    ),
    "the digest's file gone": (lambda tree: (folder_of(tree) / "PROTOCOL.sha256").unlink(), r"PROTOCOL\.sha256"),
    "no folder": (
        lambda tree: [
            shutil.rmtree(folder_of(tree) / "revisions"), (folder_of(tree) / "revisions").write_text(""),
        ],
        "revisions: expected 0001, found no folder",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_chain_loads_nowhere(case, twice):
    """Altered, dropped, reordered, with something put in: the loader names the place."""
    damage, message = BROKEN[case]
    damage(twice)
    with pytest.raises((ProtocolError, StorageError), match=message):
        load_protocol(PROTOCOL, twice)


def test_records_that_follow_from_no_file_are_found(twice):
    """A whole chain forged to end in the right digest's file still has to give the digests of the kept files."""
    one, other = read_revisions(folder_of(twice))
    record(twice, 1, content_sha256="0" * 64)
    forged = read_revisions_of(twice, 1)
    record(twice, 2, previous_sha256=digest(forged), supersedes=_digest_at(twice, 2, (forged,)))
    for number, history in ((2, 1), (3, 2)):
        at = folder_of(twice) if number == 3 else folder_of(twice) / "revisions/0002"
        named = _digest_at(twice, number, tuple(read_revisions_of(twice, one) for one in range(1, history + 1)))
        (at / "PROTOCOL.sha256").write_text(f"{named}  protocol\n")
    with pytest.raises(ProtocolError, match=r"0001: revision\.json: content_sha256: expected"):
        load_protocol(PROTOCOL, twice)
    assert (one.number, other.number) == (1, 2)


def read_revisions_of(tree: Places, number: int):
    """One record as it lies there."""
    path = folder_of(tree) / f"revisions/{number:04d}/revision.json"
    return msgspec.json.decode(path.read_bytes(), type=Revision)


def _digest_at(tree: Places, number: int, history) -> str:
    """What the protocol digest of the files of a place in the line would be under a history."""
    at = folder_of(tree) / f"revisions/{number:04d}" if number < 3 else folder_of(tree)
    protocol = read_protocol(at / "protocol.toml")
    manifest = decode_json((at / "manifest.json").read_bytes(), Manifest, where=at, error=ProtocolError, todo="")
    return protocol_digest(protocol, manifest, load_profile(protocol, at, tree), history)


def test_an_attempts_file_that_cannot_be_read_is_an_output(tree):
    """It is never taken for no attempt."""
    path = put_attempt(tree, "0" * 64)
    path.write_bytes(b"garbage\n[1]\n")
    assert [(one.kind, one.protocol_digest) for one in outputs_of(PROTOCOL, tree)] == [("attempt", "unreadable")] * 2
    path.unlink()
    path.mkdir()
    assert ("run", "unreadable") in [(one.kind, one.protocol_digest) for one in outputs_of(PROTOCOL, tree)]
