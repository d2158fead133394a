"""A formal session's lines in its protocol's attempts file: begun before any unit is made, ended, or refused.

A session that only judges a run that is there starts nothing and enters nothing, unless the run's end is missing: a
session that was killed after its audit record left it open.
"""

import time
from contextlib import suppress
from pathlib import Path

from harness.canon import sha256_hex
from harness.errors import HarnessError, JournalError, StorageError, words
from harness.files import read_bytes, write_atomic
from harness.journal.assemble import read_spec
from harness.journal.attempts import OUT_OF_MEMORY, attempts_of
from harness.journal.attempts_file import NAME, TODO, AttemptsFile, chained, is_open
from harness.journal.folder import RunFolder, journals
from harness.places import Places
from harness.protocols.load import LoadedProtocol
from harness.records.attempts import NoPlacement
from harness.records.attempts_file import Begun, Ended, Outcome, Refused
from harness.records.audit import Audit
from harness.run.request import Request

TIER = "formal"


def attempts_file(tree: Places, protocol_id: str) -> AttemptsFile:
    """reports/<protocol>/attempts.jsonl, wherever --run puts the run itself."""
    return AttemptsFile(tree.reports / protocol_id / NAME)


def enter_beginning(loaded: LoadedProtocol, folder: RunFolder, request: Request, tree: Places) -> None:
    """The line that the run begins, or goes on, and in the run folder the lines up to its first.

    JournalError where the folder's lines aren't those at the attempts file's beginning.
    """
    if request.tier != TIER or folder.file("ledger.json").exists():
        return
    file, kept = attempts_file(tree, loaded.protocol.id), folder.file(NAME)
    if kept.exists():
        _require_prefix(kept, file)
    there = len(list(journals(folder)))

    def begun(number: int, previous: str) -> Begun:
        return Begun(
            schema=1,
            number=number,
            previous_sha256=previous,
            at_us=_now(),
            protocol=loaded.protocol.id,
            protocol_digest=loaded.digest,
            run_id=folder.path.name,
            port=request.port,
            how="resumed" if there else "new",
            units_there=there,
        )

    lines = file.append(begun)
    if not kept.exists():
        write_atomic(kept, lines)


def _require_prefix(kept: Path, file: AttemptsFile) -> None:
    own, lines = read_bytes(kept, what="lines of the attempts file"), file.read()
    if not lines.startswith(own):
        raise JournalError(
            str(file.path),
            expected=f"the {len(own.splitlines())} lines that {kept.parent.name}/{NAME} holds",
            found="others" if lines else "no such file",
            todo=TODO,
        )


def enter_refusal(loaded: LoadedProtocol, run_id: str, tree: Places, *, port: bool, reason: Exception) -> None:
    """The line that a session was refused. Where nothing can be written, what is raised already says so."""

    def refused(number: int, previous: str) -> Refused:
        return Refused(
            schema=1,
            number=number,
            previous_sha256=previous,
            at_us=_now(),
            protocol=loaded.protocol.id,
            protocol_digest=loaded.digest,
            run_id=run_id,
            port=port,
            reason=_words(reason),
        )

    with suppress(StorageError):
        attempts_file(tree, loaded.protocol.id).append(refused)


def enter_end(
    loaded: LoadedProtocol, folder: RunFolder, tree: Places, audit: Audit | None, reasons: tuple[str, ...]
) -> None:
    """The line that the run ended, and how; nothing where its end was entered already."""
    file = attempts_file(tree, loaded.protocol.id)
    if not is_open(chained(file.read(), file.path), folder.path.name):
        return
    outcome = outcome_of(folder, audit)

    def ended(number: int, previous: str) -> Ended:
        return Ended(
            schema=1,
            number=number,
            previous_sha256=previous,
            at_us=_now(),
            protocol=loaded.protocol.id,
            protocol_digest=loaded.digest,
            run_id=folder.path.name,
            outcome=outcome,
            placements=_placements(folder),
            audit_sha256=_audit_sha256(folder) if audit else "none: no audit record was written",
            reason="" if outcome == "passed" else _words("; ".join(reasons) or _short_gates(audit)),
        )

    file.append(ended)


def outcome_of(folder: RunFolder, audit: Audit | None) -> Outcome:
    """How a run ended: by its audit record where it is whole, else by what it left."""
    if audit is not None and audit.passed:
        return "passed"
    if folder.file(OUT_OF_MEMORY).exists() or _no_placement_left(folder):
        return "out_of_memory"
    return "failed" if folder.file("ledger.json").exists() else "incomplete"


def _no_placement_left(folder: RunFolder) -> bool:
    made = attempts_of(folder)
    return bool(made) and isinstance(made[-1].next, NoPlacement)


def _placements(folder: RunFolder) -> tuple[str, ...]:
    """The placements that the run was tried under, in order."""
    with suppress(HarnessError):
        tried = [one.placement for one in attempts_of(folder)]
        return (*tried, *_last_placement(folder))
    return ()


def _last_placement(folder: RunFolder) -> tuple[str, ...]:
    return (read_spec(folder).placement,) if folder.file("spec.json").exists() else ()


def _short_gates(audit: Audit | None) -> str:
    short = [f"{one.id} {one.passed}/{one.registered}" for one in audit.gates if one.failed] if audit else []
    return "gates that don't hold: " + ", ".join(short) if short else "the run isn't whole"


def _audit_sha256(folder: RunFolder) -> str:
    return sha256_hex(read_bytes(folder.file("audit.json"), what="audit record"))


def _now() -> int:
    return time.time_ns() // 1000


def _words(reason: object) -> str:
    """One line of ASCII, at most 500 characters: the whole reason is where the session said it."""
    text = words(reason)
    return text if len(text) <= 500 else f"{text[:497]}..."
