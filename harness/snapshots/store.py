"""Frozen snapshots on disk: snapshots/<protocol>/<tier>/, an index and a file a unit; reading, and the freezing verb.

Freezing takes a complete, judged formal run and adds files; what is frozen is never overwritten.
"""

from dataclasses import dataclass
from pathlib import Path

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import SnapshotError
from harness.evidence import RunEvidence
from harness.files import file_sha256, read_bytes, write_atomic
from harness.journal.folder import RunFolder
from harness.places import Places, places
from harness.protocols.grids import UnitKey
from harness.protocols.load import load_protocol
from harness.records.audit import Audit, SnapshotIndex
from harness.records.base import decode_json
from harness.snapshots.content import origins_of, snapshot_bytes, unit_snapshot

FROZEN_TIER = "formal"
TODO = "Take the frozen file back from version control; a changed result needs a new protocol, not a new snapshot."


@dataclass(frozen=True, slots=True)
class Frozen:
    """The frozen results of one protocol."""

    folder: Path
    index: SnapshotIndex

    def file(self, key: UnitKey) -> Path:
        """The snapshot of a unit."""
        return self.folder / f"{key.name}.json"


def frozen_folder(protocol_id: str, tree: Places | None = None) -> Path:
    """snapshots/<protocol>/formal"""
    return (tree or places()).snapshots / protocol_id / FROZEN_TIER


def is_frozen(protocol_id: str, tree: Places | None = None) -> bool:
    """Whether a run of the protocol was accepted. A folder without its index counts: its index is missing then."""
    folder = frozen_folder(protocol_id, tree)
    return folder.is_dir() and any(folder.iterdir())


def read_frozen(protocol_id: str, tree: Places | None = None) -> Frozen:
    """The index, and exactly the files that it lists, each with its digest; SnapshotError names the file."""
    folder = frozen_folder(protocol_id, tree)
    path = folder / "index.json"
    index = decode_json(
        read_bytes(path, what="snapshot index"), SnapshotIndex, where=path, error=SnapshotError, todo=TODO
    )
    listed = {f"{name}.json" for name in index.units}
    found = {file.name for file in folder.iterdir()} - {"index.json"}
    if listed != found:
        raise SnapshotError(
            str(folder),
            expected=f"{len(listed)} snapshots",
            found=f"missing {sorted(listed - found)}, unlisted {sorted(found - listed)}",
            todo=TODO,
        )
    for name, expected in index.units.items():
        digest = file_sha256(folder / f"{name}.json", what="snapshot")
        if digest != expected:
            raise SnapshotError(f"{folder / name}.json", expected=expected, found=digest, todo=TODO)
    return Frozen(folder, index)


def accept(run_folder: Path, tree: Places | None = None) -> SnapshotIndex:
    """Freeze a judged formal run: its audit passed, its files are the audited ones, and it isn't a port."""
    folder = RunFolder(run_folder)
    audit = read_audit(folder)
    _require_acceptable(folder, audit)
    loaded = load_protocol(audit.protocol, tree)
    evidence = RunEvidence(loaded, folder)
    if audit.protocol_digest != loaded.digest:
        raise SnapshotError(
            str(run_folder), expected=f"protocol {loaded.digest}", found=audit.protocol_digest, todo=TODO
        )
    if is_frozen(audit.protocol, tree):
        raise SnapshotError(
            str(frozen_folder(audit.protocol, tree)),
            expected="no frozen results yet",
            found="frozen results",
            todo=TODO,
        )
    contents = {
        key.name: snapshot_bytes(unit_snapshot(evidence.units[key.source_id, key.replicate], evidence.ledger))
        for key in evidence.keys
    }
    index = SnapshotIndex(
        schema=1,
        protocol=audit.protocol,
        protocol_digest=loaded.digest,
        tier=FROZEN_TIER,
        run_sha256=evidence.run_sha256,
        environment_sha256=evidence.run.environment_sha256,
        audit_sha256=file_sha256(folder.file("audit.json"), what="audit record"),
        origins=origins_of(evidence.processes),
        units={name: sha256_hex(content) for name, content in contents.items()},
    )
    target = frozen_folder(audit.protocol, tree)
    for name, content in contents.items():
        write_atomic(target / f"{name}.json", content)
    write_atomic(target / "index.json", canonical_bytes(index))  # last: the index completes the freeze
    return index


def read_audit(folder: RunFolder) -> Audit:
    """audit.json, held against its detached digest."""
    path = folder.file("audit.json")
    todo = "Judge the run again with `pytest gates/ -m formal --run DIR`."
    data = read_bytes(path, what="audit record")
    detached = read_bytes(folder.file("audit.json.sha256"), what="detached digest").decode("ascii", "replace").split()
    if detached[:1] != [sha256_hex(data)]:
        raise SnapshotError(str(path), expected=" ".join(detached[:1]) or "a digest", found=sha256_hex(data), todo=todo)
    return decode_json(data, Audit, where=path, error=SnapshotError, todo=todo)


def _require_acceptable(folder: RunFolder, audit: Audit) -> None:
    found = []
    if audit.tier != FROZEN_TIER:
        found.append(f"a {audit.tier} run")
    if audit.port:
        found.append("a port")
    if not audit.passed:
        found.append("a run whose gates didn't all pass")
    for name, expected in audit.files.items():
        if file_sha256(folder.file(name), what="audited file") != expected:
            found.append(f"{name} altered after its audit")
    if found:
        raise SnapshotError(
            str(folder.path),
            expected="a passed, unaltered formal run",
            found=", ".join(found),
            todo="Only a passed formal run of the registered protocol can be frozen.",
        )
