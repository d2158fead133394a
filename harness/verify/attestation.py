"""Whether the run is attested: attestation.json says what this folder says, and a named signer signed its bytes.

Two steps. `attestation` compares the statement with the one that the folder gives, subject by subject. `signature` has
exactly one line in every verification, and it holds only where nothing else fails: a run without one is said to be
unsigned, and a signature of which nobody was named is said to be not verified.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import AttestationError, HarnessError
from harness.files import read_bytes
from harness.journal.folder import RunFolder, difference
from harness.records.attestation import Statement
from harness.records.base import decode_json
from harness.records.verification import VerifiedLine
from harness.snapshots.store import ATTESTATION, SIGNATURE
from harness.verify.ground import Ground, Lines, fails, holds, nothing, uncheckable
from harness.verify.keys import TYPES, key_type, made_by
from harness.verify.signers import Signer, Signers
from harness.verify.sshsig import SshSignature, fingerprint, read_signature
from harness.verify.statement import ABSENT, FROZEN, has_frozen, names, statement_of

STEP, SIGNED = "attestation", "signature"
NAMESPACE = "attestation@pregate"
NAMED = "a signature by a signer named with --signers"
STALE = (
    "The run isn't what was attested. If it was judged or frozen again since, remove attestation.json and its "
    "signature, attest it again and have it signed; else restore the file."
)
SIGN = f"Attest the run and sign it: `ssh-keygen -Y sign -n {NAMESPACE} -f KEY {ATTESTATION}`."


def attestation_lines(
    folder: RunFolder, ground: Ground | None, signers: Signers | None, earlier: Sequence[VerifiedLine] = ()
) -> list[VerifiedLine]:
    """Both steps; `ground` is None where the audit record or its protocol can't be had.

    `earlier`: what the other steps found. The statement reaches most files through audit.json's list, so a signature
    over it stands for a folder in which nothing fails, and for no other.
    """
    try:
        data = read_bytes(folder.file(ATTESTATION), what="statement") if _there(folder, ATTESTATION) else None
        found = _absent(folder) if data is None else list(_statement(ground, data))
    except HarnessError as error:
        data, found = None, [fails(STEP, error.where, error.expected, error.found, error.todo or STALE)]
    return [*found, _signature(folder, data, [*earlier, *found], signers)]


def said_of(folder: Path) -> str:
    """Whether a run folder has a signature, in words for a page that verifies none."""
    if not _there(RunFolder(folder), SIGNATURE) or not _there(RunFolder(folder), ATTESTATION):
        return "unsigned"
    return "a signature lies in the folder, not verified here: `python -m harness verify RUN --signers FILE`"


def _there(folder: RunFolder, name: str) -> bool:
    return folder.file(name).is_file()


def _absent(folder: RunFolder) -> list[VerifiedLine]:
    if _there(folder, SIGNATURE):
        return [fails(STEP, SIGNATURE, f"{ATTESTATION}, which it signs", ABSENT, STALE)]
    return [nothing(STEP, ATTESTATION, "none", "unsigned: no attestation")]


def _statement(ground: Ground | None, data: bytes) -> Lines:
    if ground is None:
        todo = "Have the audit record and its protocol first."
        yield uncheckable(STEP, ATTESTATION, "an audit record under a protocol of this tree", "none", todo)
        return
    stored = decode_json(data, Statement, where=ATTESTATION, error=AttestationError, todo=STALE)
    listed = any(name.startswith(FROZEN) for name, _ in names(stored))
    there = has_frozen(ground)
    must = there and ground.audit.frozen
    made = statement_of(ground, stored.predicate.pregate.not_checkable, frozen=there and (must or listed))
    found = list(_subjects(made, stored))
    if not found and (wanted := canonical_bytes(made)) != data:
        expected, here = difference(data, wanted)
        found = [fails(STEP, ATTESTATION, f"{sha256_hex(wanted)}, {expected}", f"{sha256_hex(data)}, {here}", STALE)]
    yield from found
    if not found:
        yield from _whole(stored, there=there, listed=listed)


def _whole(stored: Statement, *, there: bool, listed: bool) -> Lines:
    """What holds, and what the statement itself leaves open."""
    count, run = len(stored.subject), stored.predicate.pregate
    yield holds(STEP, ATTESTATION, f"{count} subjects", f"{count} subjects, result {stored.predicate.result}")
    if there and not listed:
        yield nothing(STEP, FROZEN, "none", "attested before there were frozen results: they are no subject")
    for one in run.not_checkable:
        yield nothing(STEP, ATTESTATION, "none", f"couldn't be checked when it was attested: {one}")


def _subjects(made: Statement, stored: Statement) -> Lines:
    """A line for each subject that is another, missing, too many, or there twice."""
    wanted, listed = dict(names(made)), list(names(stored))
    found = dict(listed)
    for name in sorted({*wanted, *found}):
        expected, here = wanted.get(name, "no such subject"), found.get(name, "no such subject")
        if expected != here or expected == ABSENT:
            yield fails(STEP, f"{ATTESTATION}: subject {name}", expected, here, STALE)
    if len(listed) != len(found):
        yield fails(STEP, f"{ATTESTATION}: subjects", f"{len(found)} names", f"{len(listed)} subjects", STALE)


def _signature(
    folder: RunFolder, data: bytes | None, found: list[VerifiedLine], signers: Signers | None
) -> VerifiedLine:
    """The one line of the step `signature`. It holds only where nothing that was found before fails."""
    if not _there(folder, SIGNATURE) or not _there(folder, ATTESTATION):
        words = "unsigned: no attestation" if not _there(folder, ATTESTATION) else "unsigned"
        none = nothing(SIGNED, SIGNATURE, NAMED, words)
        return none if signers is None else fails(SIGNED, SIGNATURE, f"a signer of {signers.name}", words, SIGN)
    if signers is None:
        return nothing(SIGNED, SIGNATURE, NAMED, "not verified: there is a signature, and --signers names nobody")
    if data is None:
        return fails(SIGNED, SIGNATURE, "a statement that can be read", "none", STALE)
    try:
        line = _verified(read_bytes(folder.file(SIGNATURE), what="signature"), data, signers)
    except HarnessError as error:
        return fails(SIGNED, SIGNATURE, error.expected, error.found, error.todo)
    return _over(line, found) if line.state == "holds" else line


def _over(line: VerifiedLine, found: list[VerifiedLine]) -> VerifiedLine:
    """A line that holds, in the light of what was found before it."""
    if any(one.state == "fails" for one in found):
        return fails(SIGNED, SIGNATURE, "a run and a statement that hold", f"{line.found}, over what doesn't", STALE)
    if any((one.step, one.state) == (STEP, "not checkable") for one in found):
        return uncheckable(SIGNED, SIGNATURE, "a statement that can be held against the run", line.found, STALE)
    return line


def _verified(armoured: bytes, statement: bytes, signers: Signers) -> VerifiedLine:
    """The signature alone: bytes, namespace, listed key, that key's options, and then what the key made."""
    found = read_signature(armoured, where=SIGNATURE)
    name = fingerprint(found.key)
    if found.namespace != NAMESPACE.encode():
        return fails(SIGNED, SIGNATURE, f"namespace {NAMESPACE}", repr(found.namespace[:80]), SIGN)
    listed = [one for one in signers.lines if one.key == found.key]
    if not listed:
        return fails(SIGNED, SIGNATURE, f"a key of {signers.name}", f"{name}, which is none of them", SIGN)
    refused = [(one, one.refuses(NAMESPACE, signers.now)) for one in listed]
    may = [one for one, reason in refused if reason is None]
    if not may:
        said = "; ".join(f"line {one.line}: {reason}" for one, reason in refused)
        return fails(SIGNED, SIGNATURE, f"a key that may sign here now, by {signers.name}", f"{name}, {said}", SIGN)
    return _made(found, statement, may, name)


def _made(found: SshSignature, statement: bytes, may: list[Signer], name: str) -> VerifiedLine:
    kind, who = key_type(found.key), ", ".join(dict.fromkeys(one.principals for one in may))
    if kind not in TYPES:
        expected = ", ".join(one.decode() for one in TYPES)
        todo = f"Verify it with `ssh-keygen -Y verify -n {NAMESPACE}`, or sign with one of these."
        return uncheckable(SIGNED, SIGNATURE, f"a key of type {expected}", kind.decode("ascii", "replace"), todo)
    if not made_by(found, statement, where=SIGNATURE):
        return fails(SIGNED, SIGNATURE, f"a signature over {ATTESTATION}", f"one over other bytes, by {name}", SIGN)
    words = f"signed by {who}, key {name}"
    return holds(SIGNED, SIGNATURE, words, words)
