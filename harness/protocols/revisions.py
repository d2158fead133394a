"""The revisions of a protocol: revisions/NNNN/ holds the files that revision NNNN superseded, and why it did.

The records are a chain: each names the one before by its SHA-256 and the protocol digest that it supersedes, and the
digest of the protocol in force covers the last of them. A protocol that was never amended has none of this.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.canon import canonical_bytes, digest
from harness.errors import ProtocolError
from harness.files import read_bytes
from harness.records.base import decode_json
from harness.records.manifest import Manifest
from harness.records.profile import Profile
from harness.records.protocol import Protocol
from harness.records.revision import Revision

REVISIONS, RECORD = "revisions", "revision.json"
AMENDMENT = "amendment"  # what an author puts the changed files into
FIRST = "0" * 64
TODO = "Revisions are evidence and aren't edited: take the folder back from version control."


def protocol_digest(protocol: Protocol, manifest: Manifest, profile: Profile, history: Sequence[Revision] = ()) -> str:
    """The protocol's name in every record: SHA-256 over the canonical protocol, manifest and profile.

    Of a protocol that was amended also over its last revision's record, and so over all of them.
    """
    content: dict[str, object] = {"protocol": protocol, "manifest": manifest, "profile": profile}
    return digest(content | ({"revision": digest(history[-1])} if history else {}))


def revision_folder(folder: Path, number: int) -> Path:
    """Where the files lie that a revision superseded."""
    return folder / REVISIONS / f"{number:04d}"


def read_revisions(folder: Path) -> tuple[Revision, ...]:
    """The records of a protocol's folder, in order; ProtocolError where they aren't a chain from 0001 on."""
    at = folder / REVISIONS
    if not at.exists() and not at.is_symlink():
        return ()
    names = sorted(path.name for path in at.iterdir()) if at.is_dir() else ["no folder"]
    wanted = [f"{number:04d}" for number in range(1, len(names) + 1)]
    if names != wanted or not names:
        raise _broken(str(at), ", ".join(wanted) or "0001", ", ".join(names) or "nothing")
    found: list[Revision] = []
    for number, name in enumerate(names, 1):
        found.append(_read(at / name / RECORD, number, digest(found[-1]) if found else FIRST))
    return tuple(found)


def _read(path: Path, number: int, previous: str) -> Revision:
    data = read_bytes(path, what="record of a revision")
    record = decode_json(data, Revision, where=path, error=ProtocolError, todo=TODO)
    pairs: tuple[tuple[str, object, object], ...] = (
        ("canonical JSON", True, canonical_bytes(record) == data),
        ("number", number, record.number),
        ("previous_sha256", previous, record.previous_sha256),
        ("outputs_existed", bool(record.outputs), record.outputs_existed),
    )
    for name, expected, there in pairs:
        same(f"{path}: {name}", expected, there)
    return record


def utc(at_us: int) -> str:
    """Unix time in microseconds as text, to the second."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def same(where: str, expected: object, found: object) -> None:
    """ProtocolError where a revision doesn't say what follows from the files."""
    if expected != found:
        raise _broken(where, str(expected), str(found))


def _broken(where: str, expected: str, found: str) -> ProtocolError:
    return ProtocolError(where, expected=expected, found=found, todo=TODO)
