"""`attest`: the statement over a run that verifies, written beside its records for somebody to sign.

The same run in the same surroundings gives the same bytes. Nothing that was signed is overwritten.
"""

from collections.abc import Callable
from pathlib import Path

from harness.canon import canonical_bytes
from harness.errors import AttestationError
from harness.files import read_bytes, write_atomic
from harness.journal.folder import RunFolder
from harness.places import Places, places
from harness.records.attestation import Statement
from harness.records.verification import Verification
from harness.snapshots.store import ATTESTATION, SIGNATURE
from harness.verify.attestation import SIGNED, STEP
from harness.verify.run import grounded, verify
from harness.verify.statement import has_frozen, statement_of


def attest(path: Path, tree: Places | None = None, note: Callable[[str], None] = lambda _: None) -> Statement:
    """Write RUN/attestation.json; AttestationError for a run that fails, is not judged, or was signed as another.

    `note` is told each step of the verification before it is taken.
    """
    tree, folder = tree or places(), RunFolder(path)
    found = verify(path, tree, note)
    not_checkable = _open(found, path)
    ground = grounded(folder, tree, [])
    if ground is None:
        raise RuntimeError("a run that verifies has a ground")
    statement = statement_of(ground, not_checkable, frozen=has_frozen(ground))
    data, target = canonical_bytes(statement), folder.file(ATTESTATION)
    stored = read_bytes(target, what="statement") if target.exists() else None
    if stored != data and folder.file(SIGNATURE).exists():
        todo = f"Remove {ATTESTATION} and {SIGNATURE}, attest again, and have it signed again."
        raise AttestationError(str(target), expected="the statement that was signed", found="another by now", todo=todo)
    if stored != data:
        write_atomic(target, data)
    return statement


def _open(found: Verification, path: Path) -> tuple[str, ...]:
    """What couldn't be checked, in words; AttestationError where something fails or there is nothing to attest."""
    lines = [one for one in found.lines if one.step not in (STEP, SIGNED)]
    failing = [one for one in lines if one.state == "fails"]
    unjudged = [one for one in lines if one.step in ("audit", "protocol") and one.state == "not checkable"]
    for one in (*failing, *unjudged):
        more = f" ({len(failing)} such lines)" if len(failing) > 1 else ""
        where = f"{path}: {one.step}: {one.where}{more}"
        raise AttestationError(where, expected=one.expected, found=one.found, todo=one.todo)
    return tuple(
        f"{one.step}: {one.where}: expected {one.expected}, found {one.found}"
        for one in lines
        if one.state == "not checkable"
    )
