"""The attempts file: it has the run's beginning and its end, and nothing before them was dropped or altered."""

import re
from pathlib import Path

from harness.canon import sha256_hex
from harness.files import read_bytes
from harness.journal.attempts_file import NAME, TODO, AttemptsFile, attempt_rows, beginning, beside, chained, ends
from harness.records.attempts_file import Begun, Entry
from harness.snapshots.store import JUDGEMENTS
from harness.verify.files import AUDIT
from harness.verify.ground import Ground, Lines, compared, fails, holds, nothing, uncheckable

STEP = "attempts"
BESIDE = f"../{NAME}"
PUT = f"Put the protocol's {NAME} from where the run was made beside the run folder."
_SHOWN = re.compile(rb'<meta name="attempts" content="(\d{1,9})">')


def attempts_hold(ground: Ground) -> Lines:
    """The lines that the run keeps, then those beside it."""
    if ground.audit.tier != "formal":
        yield nothing(STEP, NAME, "none", f"tier {ground.audit.tier}: only formal runs are entered")
        return
    kept = AttemptsFile(ground.folder.file(NAME))
    if not kept.path.is_file():
        yield fails(STEP, NAME, "the run's beginning in the attempts file", "no such file", TODO)
        return
    data = read_bytes(kept.path, what="lines of the attempts file")
    found = list(_own(ground, chained(data, NAME)))
    yield from found or _beside(ground, data)


def _own(ground: Ground, entries: tuple[Entry, ...]) -> Lines:
    """The last line that the run keeps is its own beginning, and its first."""
    last = entries[-1] if entries else None
    if not isinstance(last, Begun):
        found = "none" if last is None else "another entry"
        yield fails(STEP, f"{NAME}: last line", "the beginning of this run", found, TODO)
        return
    pairs = (
        (f"{NAME}: last line: run_id", ground.audit.run_id, last.run_id),
        (f"{NAME}: last line: protocol", ground.audit.protocol, last.protocol),
        (f"{NAME}: last line: protocol_digest", ground.audit.protocol_digest, last.protocol_digest),
        (f"{NAME}: last line: port", ground.audit.port, last.port),
        (f"{NAME}: first beginning of the run", last, beginning(entries, ground.audit.run_id)),
    )
    yield from compared(STEP, pairs, TODO)


def _beside(ground: Ground, kept: bytes) -> Lines:
    """The protocol's file goes on from the lines that the run keeps, and has the end of the run."""
    file = beside(ground.folder.path)
    if not file.path.is_file():
        yield uncheckable(STEP, BESIDE, "the protocol's attempts file", "no such file", PUT)
        return
    data = file.read()
    entries = chained(data, BESIDE)
    first = kept.splitlines()[0]
    if not data.startswith(first):
        found = f"one that begins with line {sha256_hex(data.splitlines()[0] if data else b'')}"
        yield uncheckable(STEP, BESIDE, f"the file that begins with line {sha256_hex(first)}", found, PUT)
        return
    if not data.startswith(kept):
        yield fails(STEP, BESIDE, f"the {len(kept.splitlines())} lines that the run keeps", "others", TODO)
        return
    yield from _ended(ground, entries)


def _ended(ground: Ground, entries: tuple[Entry, ...]) -> Lines:
    """An end of the run whose audit record is this one, or one that was kept when the run was judged again."""
    named = {one.audit_sha256 for one in ends(entries, ground.audit.run_id)}
    here = {sha256_hex(read_bytes(path, what="audit record")) for path in _audits(ground)}
    if not named & here:
        found = ", ".join(sorted(named)) or "no end of this run"
        yield fails(STEP, f"{BESIDE}: end of {ground.audit.run_id}", f"one that names {AUDIT}", found, TODO)
        return
    rows = attempt_rows(entries)
    number = 1 + [row.run_id for row in rows].index(ground.audit.run_id)
    outcomes = [row.outcome for row in rows]
    counted = ", ".join(f"{outcomes.count(one)} {one}" for one in sorted(set(outcomes)))
    yield holds(STEP, BESIDE, f"{len(entries)} lines", f"attempt {number} of {len(rows)} on record ({counted})")


def _audits(ground: Ground) -> list[Path]:
    folder = ground.folder.path
    return [folder / AUDIT, *sorted(folder.glob(f"{JUDGEMENTS}/*/{AUDIT}"))]


def lines_shown(page: bytes) -> int | None:
    """How many lines of the attempts file a report says that it shows."""
    found = _SHOWN.search(page)
    return int(found[1]) if found else None
