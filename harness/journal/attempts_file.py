"""reports/<protocol>/attempts.jsonl: the append-only, hash-chained list of a protocol's formal runs.

A line is on the disk before what it announces is done. A run folder keeps the lines up to its own beginning, so that a
list that was cut or written anew no longer begins with what its runs hold. Knows no session.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from msgspec import structs

from harness.canon import canonical_bytes, is_canonical, sha256_hex
from harness.errors import JournalError
from harness.files import append_line, read_bytes, require_writable
from harness.records.attempts_file import AttemptRow, Begun, Ended, Entry, Refused
from harness.records.base import decode_json

NAME = "attempts.jsonl"
FIRST = "0" * 64
NO_END = "no end on record"
THEN = " then "
TODO = "The attempts file is evidence and isn't edited: restore it from where the runs were made."


@dataclass(frozen=True, slots=True)
class AttemptsFile:
    """The attempts file of one protocol."""

    path: Path

    def read(self) -> bytes:
        """Its whole lines; empty where there is no file. What a write left that was cut off is no line."""
        if self.path.exists() and not self.path.is_file():
            raise _broken(str(self.path), "a file", "a folder or something special")
        data = read_bytes(self.path, what="attempts file") if self.path.exists() else b""
        return whole_lines(data)

    def append(self, make: Callable[[int, str], Entry]) -> bytes:
        """Put one more line at the end, made from its number and the digest of the line before it.

        Returns all lines. JournalError where those that are there aren't a chain, or lie elsewhere behind a link.
        """
        if self.path.is_symlink():
            raise _broken(str(self.path), "a file of its own", "a symbolic link")
        require_writable(self.path.parent)
        with FileLock(self.path.with_name(f".{NAME}.lock")):
            data = self.read()
            made = chained(data, self.path)
            line = canonical_bytes(make(len(made) + 1, _last_sha256(data)))
            append_line(self.path, line, keep=len(data))
            return data + line + b"\n"


def whole_lines(data: bytes) -> bytes:
    """Everything up to the last line break."""
    return data[: data.rfind(b"\n") + 1]


def _last_sha256(data: bytes) -> str:
    return sha256_hex(data.splitlines()[-1]) if data else FIRST


def chained(data: bytes, where: Path | str) -> tuple[Entry, ...]:
    """The entries of whole lines; JournalError names the first line that isn't canonical or doesn't follow."""
    found: list[Entry] = []
    previous = FIRST
    lines = data.split(b"\n")
    if lines.pop():
        raise _broken(f"{where}: the last line", "a line break at its end", "none")
    for number, line in enumerate(lines, 1):
        at = f"{where}: line {number}"
        entry: Entry = decode_json(line, Entry, where=at, error=JournalError, todo=TODO)  # type: ignore[arg-type]
        if (entry.number, entry.previous_sha256) != (number, previous):
            raise _broken(
                at, f"number {number} after {previous}", f"number {entry.number} after {entry.previous_sha256}"
            )
        if not is_canonical(line):
            raise _broken(at, "canonical JSON", "other bytes")
        found.append(entry)
        previous = sha256_hex(line)
    return tuple(found)


def _broken(where: str, expected: str, found: str) -> JournalError:
    return JournalError(where, expected=expected, found=found, todo=TODO)


def attempt_rows(entries: Sequence[Entry]) -> tuple[AttemptRow, ...]:
    """The attempts that the entries tell of, in the order in which they began: a row a run, a row a refusal.

    A name that began anew is another attempt, and what an attempt that went on had ended in before stays in its row.
    """
    rows: dict[int, AttemptRow] = {}
    last: dict[str, int] = {}  # run ID -> number of its last row
    for entry in entries:
        at = last.get(entry.run_id, entry.number)
        if isinstance(entry, Refused):
            rows[entry.number] = _row(entry, "refused", port=entry.port, reason=entry.reason)
        elif isinstance(entry, Begun) and (entry.how == "new" or at not in rows):
            last[entry.run_id] = entry.number
            rows[entry.number] = _row(entry, NO_END, port=entry.port, resumed=int(entry.how == "resumed"))
        elif isinstance(entry, Begun):
            row = rows[at]
            rows[at] = structs.replace(row, resumed=row.resumed + 1, outcome=_after(row, NO_END))
        else:
            last[entry.run_id] = at
            row = rows.get(at) or _row(entry, NO_END, port=False)
            outcome, reason = _after(row, entry.outcome), entry.reason or row.reason
            rows[at] = structs.replace(row, outcome=outcome, placements=entry.placements, reason=reason)
    return tuple(rows.values())


def _after(row: AttemptRow, outcome: str) -> str:
    """The outcomes that were entered of an attempt, the last at the end."""
    earlier = row.outcome.removesuffix(NO_END).removesuffix(THEN)
    return f"{earlier}{THEN}{outcome}" if earlier else outcome


def _row(entry: Entry, outcome: str, *, port: bool, reason: str = "", resumed: int = 0) -> AttemptRow:
    return AttemptRow(
        number=entry.number,
        at_us=entry.at_us,
        protocol_digest=entry.protocol_digest,
        run_id=entry.run_id,
        port=port,
        resumed=resumed,
        outcome=outcome,
        placements=(),
        reason=reason,
    )


def beginning(entries: Sequence[Entry], run_id: str) -> Begun | None:
    """Where a run began, or None."""
    return next((one for one in entries if isinstance(one, Begun) and one.run_id == run_id), None)


def is_open(entries: Sequence[Entry], run_id: str) -> bool:
    """Whether the last entry of a run's own is a beginning."""
    own = [one for one in entries if one.run_id == run_id and not isinstance(one, Refused)]
    return bool(own) and isinstance(own[-1], Begun)


def ends(entries: Sequence[Entry], run_id: str) -> tuple[Ended, ...]:
    """Every end of a run."""
    return tuple(one for one in entries if isinstance(one, Ended) and one.run_id == run_id)


def beside(folder: Path) -> AttemptsFile:
    """The attempts file that lies beside a run folder, where there is one."""
    return AttemptsFile(folder.resolve().parent / NAME)


def lines_for(folder: Path) -> bytes:
    """All that is known here of the attempts at a run's protocol: the file beside it where that goes on from the
    lines that the run keeps, else those alone; empty where it keeps none.
    """
    kept = AttemptsFile(folder / NAME).read()
    lines = beside(folder).read()
    return lines if kept and lines.startswith(kept) else kept
