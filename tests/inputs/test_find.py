"""Registered files are recognised by their bytes, and whatever else is in the folder is said, never guessed."""

import os
import zipfile

import msgspec
import pytest

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import CanonError, InputError, StorageError
from harness.inputs.find import Altered, Missing, Present, find_files, find_inputs, require_present
from harness.inputs.scan import Bounds, scan
from harness.records.base import Unfrozen


@pytest.mark.parametrize("name", ["pool.jsonl", "renamed.bin", "deep/er/x", "数据.json"])
def test_found_under_any_name(tmp_path, registered, pool_bytes, name):
    """A file is present by its bytes, whatever it's called and however deep it lies."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pool_bytes)
    found = find_files((registered(pool_bytes),), [tmp_path])
    assert found.states == (
        Present(name="pool", format="jsonl", path=path, member=None, sha256=sha256_hex(pool_bytes)),
    )
    assert found.altered == ()


def test_missing_says_why_and_where(tmp_path, registered, pool_bytes):
    """A file that isn't there is missing, with its digest and its publisher's place."""
    file = registered(pool_bytes, location="https://example.org/pool")
    (state,) = find_files((file,), [tmp_path]).states
    assert isinstance(state, Missing)
    assert sha256_hex(pool_bytes) in state.why
    assert state.location == "https://example.org/pool"
    with pytest.raises(InputError, match=r"input pool: expected the registered file, found no file with SHA-256"):
        require_present(find_files((file,), [tmp_path]), "pool")


@pytest.mark.parametrize("position", [0, 40, -1])
def test_one_byte_alteration(tmp_path, registered, pool_bytes, position):
    """One changed byte under the registered name is reported as altered, with both digests."""
    data = bytearray(pool_bytes)
    data[position] ^= 1
    (tmp_path / "pool.jsonl").write_bytes(data)
    found = find_files((registered(pool_bytes),), [tmp_path])
    (state,) = found.states
    assert isinstance(state, Altered)
    assert (state.expected, state.found) == (sha256_hex(pool_bytes), sha256_hex(bytes(data)))
    with pytest.raises(InputError, match=f"expected SHA-256 {state.expected}, found {state.found}"):
        require_present(found, "pool")


def test_altered_copy_beside_the_real_one(tmp_path, registered, pool_bytes):
    """The registered bytes win over an altered copy, which is still listed."""
    (tmp_path / "pool.jsonl").write_bytes(pool_bytes + b"x")
    (tmp_path / "real").write_bytes(pool_bytes)
    found = find_files((registered(pool_bytes),), [tmp_path])
    assert isinstance(found.states[0], Present)
    assert [one.path.name for one in found.altered] == ["pool.jsonl"]


def test_shared_name_is_no_alteration(tmp_path, registered, pool_bytes):
    """Another registered input's valid file isn't an altered copy of one that has the same name."""
    (tmp_path / "pool.jsonl").write_bytes(pool_bytes)
    files = (registered(pool_bytes), registered(b"{}\n", name="other"))
    found = find_files(files, [tmp_path])
    assert [type(state) for state in found.states] == [Present, Missing]
    assert found.altered == ()


def test_unfrozen_is_missing_with_its_reason(tmp_path, registered, pool_bytes):
    """Without a registered digest nothing is recognised, not even a file of that name."""
    (tmp_path / "pool.jsonl").write_bytes(pool_bytes)
    (state,) = find_files((registered(None),), [tmp_path]).states
    assert isinstance(state, Missing)
    assert state.why == "its digest is unfrozen: the pool is being made"


def test_member_of_registered_archive(tmp_path, registered, zipped, pool_bytes):
    """The registered member of a registered archive is the file, under any archive name."""
    archive = zipped(tmp_path / "public.zip", "data/test.json", pool_bytes)
    (tmp_path / "public.zip").rename(tmp_path / "x")
    (state,) = find_files((registered(pool_bytes, archives=[archive]),), [tmp_path]).states
    assert isinstance(state, Present)
    assert (state.path, state.member) == (tmp_path / "x", "data/test.json")


def test_plain_file_before_archive(tmp_path, registered, zipped, pool_bytes):
    """Where both are there, the plain file is taken."""
    archive = zipped(tmp_path / "a.zip", "test.json", pool_bytes)
    (tmp_path / "z.jsonl").write_bytes(pool_bytes)
    (state,) = find_files((registered(pool_bytes, archives=[archive]),), [tmp_path]).states
    assert isinstance(state, Present)
    assert state.member is None


def test_unregistered_archive_is_not_opened(tmp_path, registered, zipped, pool_bytes):
    """A zip with the right member and other bytes of its own isn't the registered archive: altered by name."""
    archive = zipped(tmp_path / "public.zip", "test.json", pool_bytes)
    with zipfile.ZipFile(tmp_path / "public.zip", "a") as stream:
        stream.writestr("more", b"")
    (state,) = find_files((registered(pool_bytes, archives=[archive]),), [tmp_path]).states
    assert isinstance(state, Altered)
    assert (state.member, state.expected) == (None, archive.digest.sha256)


@pytest.mark.parametrize(
    ("registered_member", "found"),
    [("train.json", "no such member"), ("test.json", sha256_hex(b"other"))],
    ids=["absent", "other-bytes"],
)
def test_wrong_member(tmp_path, registered, zipped, registered_member, found):
    """A registered archive whose member is absent or holds other bytes is altered, never present."""
    archive = zipped(tmp_path / "public.zip", "test.json", b"other", registered_member=registered_member)
    (state,) = find_files((registered(b"pool", archives=[archive]),), [tmp_path]).states
    assert isinstance(state, Altered)
    assert (state.member, state.found) == (registered_member, found)


@pytest.mark.parametrize("digest_of", ["file", "archive"])
def test_unfrozen_digest_in_the_archive_way(tmp_path, registered, zipped, pool_bytes, digest_of):
    """An archive way needs both digests: without one of them the input is missing."""
    archive = zipped(tmp_path / "public.zip", "test.json", pool_bytes)
    if digest_of == "archive":
        archive = msgspec.structs.replace(archive, digest=Unfrozen(reason="owed"))
    data = pool_bytes if digest_of == "archive" else None
    (state,) = find_files((registered(data, archives=[archive]),), [tmp_path]).states
    assert isinstance(state, Missing)


def test_not_a_zip(tmp_path, registered, zipped, pool_bytes):
    """A registered archive that is no zip is altered and says so."""
    archive = zipped(tmp_path / "public.zip", "test.json", pool_bytes)
    (tmp_path / "public.zip").write_bytes(b"no zip")
    archive = msgspec.structs.replace(archive, digest=registered(b"no zip").digest)
    (state,) = find_files((registered(pool_bytes, archives=[archive]),), [tmp_path]).states
    assert isinstance(state, Altered)
    assert state.found == "File is not a zip file"


def test_embedded_is_found_in_the_tree(tmp_path, monkeypatch, registered, pool_bytes, protocol_of):
    """An embedded input is found in the tree's own folder without being named."""
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path))
    pools = tmp_path / "fixtures" / "nano" / "pools"
    pools.mkdir(parents=True)
    (pools / "pool.jsonl").write_bytes(pool_bytes)
    embedded = find_inputs(protocol_of([registered(pool_bytes, location="embedded")], []), [])
    elsewhere = find_inputs(protocol_of([registered(pool_bytes)], []), [])
    assert isinstance(embedded.states[0], Present)
    assert isinstance(elsewhere.states[0], Missing)


def test_unreadable_file_is_an_error(tmp_path, registered, pool_bytes):
    """What can't be read isn't skipped, even if the input is there too."""
    (tmp_path / "pool.jsonl").write_bytes(pool_bytes)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    with pytest.raises(StorageError, match=r"dangling: expected a readable file or folder, found No such file"):
        find_files((registered(pool_bytes),), [tmp_path])


def test_missing_folder_is_an_error(tmp_path, registered, pool_bytes):
    """A folder that isn't there is named, not taken as empty."""
    with pytest.raises(InputError, match=r"absent: expected a folder of input files, found none"):
        find_files((registered(pool_bytes),), [tmp_path / "absent"])


@pytest.mark.parametrize("bounds", [Bounds(files=1, bytes=100), Bounds(files=10, bytes=3)], ids=["files", "bytes"])
def test_scan_is_bounded(tmp_path, bounds):
    """A tree beyond the bounds is an error, not half a scan; within them it's scanned whole."""
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").write_bytes(b"34")
    with pytest.raises(InputError, match=r"in the input folders, found more"):
        scan([tmp_path], bounds=bounds)
    assert len(scan([tmp_path], bounds=Bounds(files=2, bytes=4))) == 2


def test_scan_takes_each_file_once(tmp_path):
    """Folders named twice, linked folders and loops of links give each real file once; pipes aren't opened."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"1")
    (tmp_path / "in" / "loop").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "in" / "a")
    os.mkfifo(tmp_path / "pipe")
    assert len(scan([tmp_path, tmp_path / "in", tmp_path])) == 1


def test_unknown_name_is_misuse(tmp_path, registered, pool_bytes):
    """Asking for an input that wasn't looked for is a programmer's error."""
    with pytest.raises(RuntimeError, match="'other' was not looked for"):
        require_present(find_files((registered(pool_bytes),), [tmp_path]), "other")


def test_where_a_file_lay_is_no_evidence(tmp_path, registered, pool_bytes):
    """A found state has no canonical encoding, so no path can enter a record that is hashed."""
    (tmp_path / "pool.jsonl").write_bytes(pool_bytes)
    with pytest.raises(CanonError):
        canonical_bytes(find_files((registered(pool_bytes),), [tmp_path]))
