"""The attempts file: it has the run's beginning and its end, and nothing before them was dropped or altered."""

import re

from harness.canon import sha256_hex
from harness.errors import JournalError
from harness.files import read_bytes
from harness.journal.attempts_file import NAME, TODO, AttemptsFile, attempt_rows, beginning, beside, chained, ends
from harness.records.attempts_file import NO_AUDIT, Begun, Entry
from harness.records.audit import Audit
from harness.records.base import decode_json
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
        (f"{NAME}: last line: how, and units_there", ("new", 0), (last.how, last.units_there)),
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
    others = sorted({one.protocol for one in entries} - {ground.audit.protocol})
    yield from (fails(STEP, f"{BESIDE}: protocol", ground.audit.protocol, one, TODO) for one in others)
    if not others:
        yield from _ended(ground, entries)


def _ended(ground: Ground, entries: tuple[Entry, ...]) -> Lines:
    """Every end of the run names an audit record that is here, and says whether it passed as that does."""
    own, here = ends(entries, ground.audit.run_id), _passed(ground)
    named = [one for one in own if one.audit_sha256 != NO_AUDIT]
    gone = sorted({one.audit_sha256 for one in named} - {*here})
    if gone or not named:
        found = ", ".join(gone) or "no end of this run"
        yield fails(STEP, f"{BESIDE}: end of {ground.audit.run_id}", f"one that names {AUDIT}", found, TODO)
        return
    said = [(f"{BESIDE}: line {one.number}: passed", here[one.audit_sha256], one.outcome == "passed") for one in named]
    lying = list(compared(STEP, said, TODO))
    yield from lying or _counted(ground, entries)


def _counted(ground: Ground, entries: tuple[Entry, ...]) -> Lines:
    begun, rows = beginning(entries, ground.audit.run_id), attempt_rows(entries)
    number = 1 + [row.number for row in rows].index(begun.number if begun else 0)
    outcomes = [row.outcome for row in rows]
    counted = ", ".join(f"{outcomes.count(one)} {one}" for one in sorted(set(outcomes)))
    yield holds(STEP, BESIDE, f"{len(entries)} lines", f"attempt {number} of {len(rows)} on record ({counted})")


def _passed(ground: Ground) -> dict[str, bool]:
    """Whether the session passed, by the digest of its audit record: of the folder's, and of those that were kept."""
    folder, found = ground.folder.path, {}
    for path in (folder / AUDIT, *sorted(folder.glob(f"{JUDGEMENTS}/*/{AUDIT}"))):
        data = read_bytes(path, what="audit record")
        audit = decode_json(data, Audit, where=path.relative_to(folder), error=JournalError, todo=TODO)
        found[sha256_hex(data)] = audit.passed
    return found


def lines_shown(page: bytes) -> int | None:
    """How many lines of the attempts file a report says that it shows."""
    found = _SHOWN.search(page)
    return int(found[1]) if found else None
