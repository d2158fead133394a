"""`verify`: every step over one run folder, and the verdict. Fails before not checkable before holds.

Steps that need what an earlier one found broken are still taken, so that a reader sees all that is wrong at once.
"""

from collections.abc import Callable
from pathlib import Path

from harness.canon import sha256_hex
from harness.errors import HarnessError, ProtocolError, SnapshotError, StorageError
from harness.files import read_bytes
from harness.journal.folder import RunFolder
from harness.places import Places, places_of_run
from harness.protocols.folders import protocol_ids
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.audit import Audit
from harness.records.base import decode_json
from harness.records.verification import Said, Verification, VerifiedLine
from harness.verify.apart import gates_apart_hold, parts_hold, smoke_holds
from harness.verify.attempts import attempts_hold
from harness.verify.attestation import attestation_lines
from harness.verify.files import AUDIT, audit_holds, detached, files_hold, judgements_hold
from harness.verify.ground import RESTORE, Ground, Lines, fails, holds, uncheckable
from harness.verify.junit import junit_holds
from harness.verify.records import baseline_holds, derived_hold, records_hold
from harness.verify.revisions import revisions_hold
from harness.verify.signers import Signers
from harness.verify.snapshots import snapshots_hold
from harness.verify.timestamp import timestamp_holds

STEPS: tuple[tuple[str, Callable[[Ground], Lines]], ...] = (
    ("revisions", revisions_hold),
    ("timestamp", timestamp_holds),
    ("files", files_hold),
    ("judgements", judgements_hold),
    ("audit", audit_holds),
    ("junit", junit_holds),
    ("records", records_hold),
    ("baseline", baseline_holds),
    ("parts", parts_hold),
    ("apart", gates_apart_hold),
    ("smoke", smoke_holds),
    ("attempts", attempts_hold),
    ("snapshots", snapshots_hold),
    ("derived", derived_hold),
)


def verify(
    path: Path,
    tree: Places | None = None,
    note: Callable[[str], None] = lambda _: None,
    *,
    signers: Signers | None = None,
    authority: bytes | None = None,
) -> Verification:
    """Everything that can be verified of a run folder; nothing is raised for what is wrong with it.

    `note` is told each step before it is taken. `signers`: who may have signed the run's statement. Where they are
    given, a run that none of them signed fails. `authority`: certificates (PEM) that time stamps are verified against.
    """
    folder, tree = RunFolder(path), places_of_run(path, tree)
    lines: list[VerifiedLine] = []
    ground = grounded(folder, tree, lines, authority)
    if ground is not None:
        for name, step in STEPS:
            note(name)
            lines += _taken(name, step, ground)
    lines += attestation_lines(folder, ground, signers, lines)
    audit = ground.audit if ground is not None else _audit(folder, [])
    states = {one.state for one in lines}
    return Verification(
        schema=1,
        run=folder.path.name,
        protocol=audit.protocol if audit else "unknown",
        protocol_digest=audit.protocol_digest if audit else "unknown",
        audit_sha256=_sha256(folder),
        said=_said(folder, audit),
        verdict="fails" if "fails" in states else "not checkable" if "not checkable" in states else "holds",
        lines=tuple(lines),
    )


def grounded(
    folder: RunFolder, tree: Places, lines: list[VerifiedLine], authority: bytes | None = None
) -> Ground | None:
    """What the steps stand on; None, with its line, where the audit record or its protocol can't be had."""
    audit = _audit(folder, lines)
    loaded = _protocol(audit, tree, lines) if audit is not None else None
    return None if audit is None or loaded is None else Ground(loaded, folder, audit, tree, authority)


def _sha256(folder: RunFolder) -> str:
    path = folder.file(AUDIT)
    return sha256_hex(path.read_bytes()) if path.is_file() else "none"


def _said(folder: RunFolder, audit: Audit | None) -> Said:
    """What the audit record says of the run; unknown where there is no run, or a record that can't be read."""
    if audit is not None:
        return "passed" if audit.passed else "not passed"
    return "not judged" if folder.path.is_dir() and not folder.file(AUDIT).exists() else "unknown"


def _audit(folder: RunFolder, lines: list[VerifiedLine]) -> Audit | None:
    """The audit record. Without one nothing says what the folder should hold; one of another format can't be read."""
    if not folder.path.is_dir():
        lines.append(uncheckable("audit", folder.path.name, "a run folder", "no such folder", "Name the run's folder."))
        return None
    if not folder.file(AUDIT).is_file():
        todo = "Judge the run: `pytest gates/ -m TIER --run DIR`."
        lines.append(uncheckable("audit", AUDIT, "an audit record", "no such file", todo))
        return None
    try:
        faults = list(detached(folder))
        lines += [fails("audit", *one, RESTORE) for one in faults]
        data = read_bytes(folder.file(AUDIT), what="audit record")
        return decode_json(data, Audit, where=AUDIT, error=SnapshotError, todo=RESTORE)
    except StorageError as error:
        lines.append(fails("audit", error.where, error.expected, error.found, error.todo))
    except HarnessError as error:
        todo = "Verify the run with the version of the harness that judged it."
        lines.append(uncheckable("audit", error.where, error.expected, error.found, todo))
    return None


def _protocol(audit: Audit, tree: Places, lines: list[VerifiedLine]) -> LoadedProtocol | None:
    """The protocol of the tree, under the digest that the audit record names: in force, or superseded since."""
    name = f"protocol {audit.protocol}"
    if audit.protocol not in protocol_ids(tree):
        lines.append(uncheckable("protocol", name, "a protocol of this tree", "no such folder", "Add it."))
        return None
    try:
        loaded = load_protocol(audit.protocol, tree, audit.protocol_digest)
    except ProtocolError as error:
        lines.append(fails("protocol", error.where, error.expected, error.found, error.todo))
        return None
    if audit.tier not in loaded.protocol.tier_grids:
        lines.append(fails("protocol", "audit.json: tier", ", ".join(loaded.protocol.tier_grids), audit.tier, RESTORE))
        return None
    if loaded.digest == audit.protocol_digest:
        lines.append(holds("protocol", name, loaded.digest, loaded.digest))
        return loaded
    todo = "Take the protocol's files from the revision under which the run was made."
    lines.append(uncheckable("protocol", f"{name}: digest", audit.protocol_digest, loaded.digest, todo))
    return None


def _taken(name: str, step: Callable[[Ground], Lines], ground: Ground) -> list[VerifiedLine]:
    """A step's lines; what it can't read is a fault of the folder, in the words of who couldn't read it."""
    found: list[VerifiedLine] = []
    try:
        for one in step(ground):
            found.append(one)  # noqa: PERF402 - what was found before an error is kept
    except HarnessError as error:
        found.append(fails(name, error.where, error.expected, error.found, error.todo))
    except OSError as error:  # a folder that may not be looked into
        where, todo = error.filename or name, "Give this user the right to the folder."
        found.append(fails(name, where, "a folder that can be read", error.strerror or error, todo))
    return found
