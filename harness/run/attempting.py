"""A formal session's lines in its protocol's attempts file: begun before any unit is made, ended, or refused.

A session that only judges a run that is there starts nothing and enters nothing, unless the run's end is missing: a
session that was killed after its audit record left it open.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, JournalError, words
from harness.files import file_sha256, read_bytes, write_atomic
from harness.journal.assemble import read_spec
from harness.journal.attempts import OUT_OF_MEMORY, attempts_of
from harness.journal.attempts_file import NAME, TODO, AttemptsFile, beginning, chained, is_open
from harness.journal.folder import RunFolder, journals
from harness.places import Places
from harness.protocols.load import LoadedProtocol
from harness.records.attempts import NoPlacement
from harness.records.attempts_file import NO_AUDIT, Begun, Ended, Outcome, Refused
from harness.records.audit import Audit
from harness.run.request import Request
from harness.snapshots.store import JUDGEMENTS

TIER = "formal"
ANOTHER = "Name another folder with --run, or none: a run's name stands for one attempt."


def attempts_file(tree: Places, protocol_id: str) -> AttemptsFile:
    """reports/<protocol>/attempts.jsonl, wherever --run puts the run itself."""
    return AttemptsFile(tree.reports / protocol_id / NAME)


def require_enterable(loaded: LoadedProtocol, folder: RunFolder, request: Request, tree: Places) -> None:
    """What a formal session finds is a run that began on record under this name, or nothing and a name that is new.

    JournalError also for an attempts file that isn't a chain, or no longer begins with the lines that the run keeps.
    Asked before the folder is claimed: what is refused is left as it was.
    """
    if request.tier != TIER:
        return
    file, kept = attempts_file(tree, loaded.protocol.id), folder.file(NAME)
    if kept.exists():
        _require_own(loaded, folder, kept)
    elif any(path.is_file() and path.parent.name != "locks" for path in folder.path.rglob("*")):
        found = f"files, and no {NAME} among them"
        raise JournalError(str(folder.path), expected="a run that began on record", found=found, todo=ANOTHER)
    if _only_judges(loaded, folder, request):
        return
    if kept.exists():
        _require_prefix(kept, file)
    elif beginning(chained(file.read(), file.path), folder.path.name):
        found = f"{folder.path.name}, which began before"
        raise JournalError(str(file.path), expected="a run name that isn't on record", found=found, todo=ANOTHER)


def _only_judges(loaded: LoadedProtocol, folder: RunFolder, request: Request) -> bool:
    """Whether nothing of the run is left to be made: every unit and the ledger are there, and it was judged."""
    judged = folder.file("audit.json").exists() or folder.file(JUDGEMENTS).exists()
    planned = loaded.units(request.grid, request.domains)
    there = folder.file("ledger.json").exists() and all(folder.journal(key).is_file() for key in planned)
    return judged and there


def _require_own(loaded: LoadedProtocol, folder: RunFolder, kept: Path) -> None:
    """The lines that the folder keeps end in this run's beginning: they aren't another's, nor is the name."""
    entries = chained(read_bytes(kept, what="lines of the attempts file"), kept)
    last = entries[-1] if entries else None
    found = f"that of {last.run_id} of {last.protocol}" if isinstance(last, Begun) else "no beginning"
    expected = f"that of {folder.path.name} of {loaded.protocol.id}"
    if found != expected:
        raise JournalError(f"{kept}: last line", expected=expected, found=found, todo=ANOTHER)


def enter_beginning(loaded: LoadedProtocol, folder: RunFolder, request: Request, tree: Places) -> None:
    """The line that the run begins, or goes on, and in the run folder the lines up to its first.

    JournalError where `require_enterable` would say so.
    """
    if request.tier != TIER or _only_judges(loaded, folder, request):
        return
    require_enterable(loaded, folder, request, tree)
    file, kept = attempts_file(tree, loaded.protocol.id), folder.file(NAME)
    there = len(list(journals(folder)))

    def begun(number: int, previous: str) -> Begun:
        return Begun(
            **_head(loaded, folder.path.name, number, previous),
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
    """The line that a session was refused. Where it can't be entered, what refused the session is said all the same."""

    def refused(number: int, previous: str) -> Refused:
        return Refused(
            **_head(loaded, run_id, number, previous),
            port=port,
            reason=_words(reason, tree),
        )

    with suppress(HarnessError, OSError):
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
            **_head(loaded, folder.path.name, number, previous),
            outcome=outcome,
            placements=_placements(folder),
            audit_sha256=file_sha256(folder.file("audit.json"), what="audit record") if audit else NO_AUDIT,
            reason="" if outcome == "passed" else _words("; ".join(reasons) or _short_gates(audit), tree),
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


def _head(loaded: LoadedProtocol, run_id: str, number: int, previous: str) -> dict[str, Any]:
    """What every line begins with."""
    return {
        "schema": 1,
        "number": number,
        "previous_sha256": previous,
        "at_us": time.time_ns() // 1000,
        "protocol": loaded.protocol.id,
        "protocol_digest": loaded.digest,
        "run_id": run_id,
    }


def _words(reason: object, tree: Places) -> str:
    """One line of ASCII, at most 500 characters, with paths as seen from the tree; the session said the whole."""
    text = words(str(reason).replace(f"{tree.root}/", ""))
    return text if len(text) <= 500 else f"{text[:497]}..."
