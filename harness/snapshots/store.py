"""Frozen snapshots on disk: snapshots/<results>/<tier>/, an index and a file a unit; reading, and the freezing verb.

Freezing takes a complete, judged formal run and adds files; what is frozen is never overwritten. `<results>` is the
protocol's ID, and of its revision N the ID with @N: what was frozen under an earlier revision stays where it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.errors import SnapshotError
from harness.evidence import RunEvidence
from harness.files import file_sha256, read_bytes, write_atomic
from harness.journal.assemble import read_spec
from harness.journal.folder import RunFolder
from harness.ledgers.executions import read_executions
from harness.places import Places, places, places_of_run
from harness.protocols.grids import RowKey, UnitKey, is_executed
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.protocols.outputs import RESULTS_OF
from harness.records.audit import Audit, SnapshotIndex
from harness.records.base import decode_json
from harness.records.protocol import DepthProtocol, JudgedProtocol
from harness.records.run import Environment
from harness.snapshots.acceptance import require_acceptable
from harness.snapshots.content import (
    containers_of,
    origins_of,
    snapshot_bytes,
    tensor_snapshot,
    unit_snapshot,
    verdict_snapshot,
)

FROZEN_TIER = "formal"
JUDGEMENTS = "judgements"
VERDICTS, TENSORS = "-verdicts", "-tensors"
ENVIRONMENT = "environment"
# What is written after the audit record: it speaks for itself, or follows from the rest and can be made again.
ATTESTATION, SIGNATURE = "attestation.json", "attestation.json.sig"
UNHASHED = (
    "audit.json", "audit.json.sha256", "session.log", "claims.json", "report.html", ATTESTATION, SIGNATURE,
)  # fmt: skip
TODO = "Take the frozen file back from version control; a changed result needs a new protocol, not a new snapshot."


@dataclass(frozen=True, slots=True)
class Frozen:
    """The frozen results of one protocol."""

    folder: Path
    index: SnapshotIndex

    def file(self, key: UnitKey) -> Path:
        """The snapshot of a unit."""
        return self.folder / f"{key.name}.json"

    def verdicts(self, key: UnitKey) -> Path:
        """The verdicts on a unit's programs."""
        return self.folder / f"{verdicts_name(key)}.json"

    def tensors(self, key: UnitKey) -> Path:
        """The digests of a trace's tensors, which belong to `environment`."""
        return self.folder / f"{tensors_name(key)}.json"


def verdicts_name(key: UnitKey) -> str:
    """What the verdicts of a unit are called beside its cells."""
    return f"{key.name}{VERDICTS}"


def tensors_name(key: UnitKey) -> str:
    """What the tensor digests of a unit are called beside its cells."""
    return f"{key.name}{TENSORS}"


def frozen_names(loaded: LoadedProtocol) -> list[str]:
    """Every file that freezing a formal run writes beside the index, without its suffix."""
    units = loaded.units(loaded.protocol.tier_grids["formal"], loaded.domains)
    names = [*(key.name for key in units), *(verdicts_name(key) for key in executed_units(loaded, units))]
    if isinstance(loaded.protocol, DepthProtocol):
        names += [ENVIRONMENT, *(tensors_name(key) for key in units)]
    return sorted(names)


def executed_units(loaded: LoadedProtocol, units: Sequence[UnitKey]) -> list[UnitKey]:
    """The units whose outputs this protocol executes."""
    if not isinstance(loaded.protocol, JudgedProtocol):
        return []
    names = {domain.name for domain in loaded.protocol.domains if is_executed(domain)}
    return [unit for unit in units if unit.domain in names]


def frozen_folder(results: str, tree: Places | None = None) -> Path:
    """snapshots/<results>/formal"""
    return (tree or places()).snapshots / results / FROZEN_TIER


def is_frozen(results: str, tree: Places | None = None) -> bool:
    """Whether a run of the protocol was accepted. A folder without its index counts: its index is missing then."""
    folder = frozen_folder(results, tree)
    for path in (folder, folder.parent):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise SnapshotError(
                str(path), expected="a folder of frozen files, or nothing", found="a link or a file", todo=TODO
            )
    return folder.is_dir() and any(folder.iterdir())


def read_frozen(results: str, tree: Places | None = None) -> Frozen:
    """The index, and exactly the files that it lists, each with its digest; SnapshotError names the file."""
    folder = frozen_folder(results, tree)
    index = _index_of(folder)
    _require_index(folder / "index.json", index, _protocol_of(results, index, tree))
    _require_files(folder, index)
    return Frozen(folder, index)


def _protocol_of(results: str, index: SnapshotIndex, tree: Places | None) -> LoadedProtocol:
    """The protocol that a folder of results belongs to; the index must be of it."""
    loaded = load_protocol(results.partition(RESULTS_OF)[0], tree, index.protocol_digest)
    if loaded.results != results:
        where, found = f"{frozen_folder(results, tree)}: folder", f"one of protocol {loaded.digest}"
        raise SnapshotError(where, expected=f"results under snapshots/{loaded.results}", found=found, todo=TODO)
    return loaded


def read_frozen_at(folder: Path) -> Frozen:
    """Frozen results that lie anywhere, by their own index alone: that it is a registered protocol's isn't asked."""
    index = _index_of(folder)
    _require_files(folder, index)
    return Frozen(folder, index)


def _index_of(folder: Path) -> SnapshotIndex:
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
    return index


def _require_files(folder: Path, index: SnapshotIndex) -> None:
    for name, expected in index.units.items():
        there = file_sha256(folder / f"{name}.json", what="snapshot")
        if there != expected:
            raise SnapshotError(f"{folder / name}.json", expected=expected, found=there, todo=TODO)
    _require_environment(folder / "index.json", index, environment_at(folder))


def _require_environment(path: Path, index: SnapshotIndex, environment: Environment | None) -> None:
    """The environment beside frozen tensors is the one that their run recorded."""
    if environment is not None and digest(environment) != index.environment_sha256:
        where = f"{path}: environment_sha256"
        raise SnapshotError(where, expected=index.environment_sha256, found=digest(environment), todo=TODO)


def _require_index(path: Path, index: SnapshotIndex, loaded: LoadedProtocol) -> None:
    """The index is of this protocol and revision, of a whole formal grid, and says which run it was taken from."""
    pairs = (
        ("protocol", loaded.protocol.id, index.protocol),
        ("protocol_digest", loaded.digest, index.protocol_digest),
        ("tier", FROZEN_TIER, index.tier),
        ("units", frozen_names(loaded), sorted(index.units)),
        ("origins", True, bool(index.origins)),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise SnapshotError(f"{path}: {name}", expected=str(expected), found=str(found), todo=TODO)


def accept(run_folder: Path, tree: Places | None = None) -> SnapshotIndex:
    """Freeze a judged formal run: its audit passed, its files are the audited ones, and it isn't a port."""
    folder, tree = RunFolder(run_folder), places_of_run(run_folder, tree)
    audit = read_audit(folder)
    loaded = load_protocol(audit.protocol, tree)
    evidence = RunEvidence(loaded, folder)
    altered = [f"{name} altered after its audit" for name in altered_files(folder, audit)]
    require_acceptable(loaded, evidence, audit, unaltered=[*altered, *links(folder)])
    if is_frozen(loaded.results, tree):
        raise SnapshotError(
            str(frozen_folder(loaded.results, tree)),
            expected="no frozen results yet",
            found="frozen results",
            todo=f"They stay. `python -m harness compare RUN snapshots/{loaded.results}` says whether this run is "
            "equal; another result needs a new protocol.",
        )
    contents = _contents(evidence)
    if sorted(contents) != frozen_names(loaded):
        raise SnapshotError(str(run_folder), expected=str(frozen_names(loaded)), found=str(sorted(contents)), todo=TODO)
    index = SnapshotIndex(
        schema=1,
        protocol=audit.protocol,
        protocol_digest=loaded.digest,
        tier=FROZEN_TIER,
        run_sha256=evidence.run_sha256,
        environment_sha256=evidence.run.environment_sha256,
        audit_sha256=file_sha256(folder.file("audit.json"), what="audit record"),
        origins=(*origins_of(evidence.processes), *containers_of(read_executions(folder).values())),
        units={name: sha256_hex(content) for name, content in contents.items()},
    )
    target = frozen_folder(loaded.results, tree)
    for name, content in contents.items():
        write_atomic(target / f"{name}.json", content)
    write_atomic(target / "index.json", canonical_bytes(index))  # last: the index completes the freeze
    return index


def _contents(evidence: RunEvidence) -> dict[str, bytes]:
    """The bytes of every file that freezes a run, by name."""
    units, book = evidence.units, evidence.ledger
    contents = {
        key.name: snapshot_bytes(unit_snapshot(units[key.source_id, key.replicate], book)) for key in evidence.keys
    }
    executions = read_executions(evidence.folder)
    for key in executed_units(evidence.loaded, evidence.keys):
        content = verdict_snapshot(evidence.unit(RowKey(key, "")), book, executions)
        contents[verdicts_name(key)] = snapshot_bytes(content)
    if isinstance(evidence.loaded.protocol, DepthProtocol):
        traces = {tensors_name(key): tensor_snapshot(evidence.trace(RowKey(key, ""))) for key in evidence.keys}
        contents |= {name: snapshot_bytes(content) for name, content in traces.items()}
        contents[ENVIRONMENT] = snapshot_bytes(msgspec.to_builtins(evidence.environment))
    return contents


def frozen_environment(results: str, tree: Places | None = None) -> Environment | None:
    """The environment that a protocol's frozen tensor digests belong to; None where it has none."""
    return environment_at(frozen_folder(results, tree))


def environment_at(folder: Path) -> Environment | None:
    """The same of frozen results that lie anywhere."""
    path = folder / f"{ENVIRONMENT}.json"
    if not path.is_file():
        return None
    return decode_json(
        read_bytes(path, what="frozen environment"), Environment, where=path, error=SnapshotError, todo=TODO
    )


def read_audit(folder: RunFolder) -> Audit:
    """audit.json, held against its detached digest."""
    path = folder.file("audit.json")
    if folder.file("spec.json").exists() and not path.exists():
        todo = f"Judge it: `pytest gates/ -m {read_spec(folder).tier} --run {folder.path}`."
        raise SnapshotError(str(path), expected="an audit record", found="none: no session judged this run", todo=todo)
    todo = "Restore the file from where the run was judged, or judge the run again."
    data = read_bytes(path, what="audit record")
    detached = read_bytes(folder.file("audit.json.sha256"), what="detached digest").decode("ascii", "replace").split()
    if detached[:1] != [sha256_hex(data)]:
        raise SnapshotError(str(path), expected=" ".join(detached[:1]) or "a digest", found=sha256_hex(data), todo=todo)
    return decode_json(data, Audit, where=path, error=SnapshotError, todo=todo)


def run_files(folder: RunFolder) -> dict[str, str]:
    """SHA-256 of every file of a run but its locks, its audit record and earlier ones, by path in the folder."""
    found = {}
    for path in sorted(folder.path.rglob("*")):
        inner = path.relative_to(folder.path)
        kept_apart = inner.parts[0] == JUDGEMENTS or "locks" in inner.parts[:-1]
        if path.is_file() and not (kept_apart or inner.as_posix() in UNHASHED or path.suffix == ".partial"):
            found[inner.as_posix()] = file_sha256(path, what="file of the run")
    return found


def links(folder: RunFolder) -> tuple[str, ...]:
    """Symbolic links in a run folder, or the folder being one, each as a problem: what they point to isn't its own."""
    own = (f"{folder.path}: expected a folder, found a symbolic link",) if folder.path.is_symlink() else ()
    return own + tuple(
        f"{folder.path.name}/{path.relative_to(folder.path)}: expected the run's own file, found a symbolic link"
        for path in sorted(folder.path.rglob("*"))
        if path.is_symlink()
    )


def altered_files(folder: RunFolder, audit: Audit) -> list[str]:
    """Audited files that are gone or hold other bytes now, and, where the run was complete, files that came after."""
    here = run_files(folder)
    complete = "run.json" in audit.files
    gone_or_other = {name for name, digest in audit.files.items() if here.get(name) != digest}
    return sorted(gone_or_other | ({*here} - {*audit.files} if complete else set()))


def judgement_digests(folder: RunFolder) -> set[str]:
    """SHA-256 of the run's audit record and of every earlier one, which later sessions kept under judgements/."""
    paths = [folder.file("audit.json"), *folder.path.glob(f"{JUDGEMENTS}/*/audit.json")]
    return {file_sha256(path, what="audit record") for path in paths if path.is_file()}
