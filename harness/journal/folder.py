"""A run folder and its files: reports/<protocol>/<run-id>/.

Every write is atomic. A journal is verified whenever it is read: by its evidence digest, then cell by cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from filelock import FileLock, Timeout

from harness.canon import canonical_bytes, digest, escaped, ids_sha256, text_sha256, unescaped
from harness.errors import CanonError, JournalError, SessionError
from harness.files import read_bytes, require_writable, write_atomic
from harness.protocols.grids import UnitKey
from harness.records.base import T, decode_json
from harness.records.kinds import JOURNALS, AnyJournal, AnyUnit
from harness.records.run import CellRecord, Failure, PromptRow, UnitObservation

SomeJournal = TypeVar("SomeJournal", bound=AnyJournal)
SYNTHETIC = "synthetic.json"
TODO = "Journals are evidence and aren't edited: restore the file, or start a new run."


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of one run; nothing is created before `create`."""

    path: Path

    def create(self) -> None:
        """Make the folder and prove that it takes files; StorageError before any work would be lost."""
        require_writable(self.path)

    def journal(self, key: UnitKey) -> Path:
        """journal/<unit>.json"""
        return self.path / "journal" / f"{key.name}.json"

    def failure(self, key: UnitKey) -> Path:
        """failures/<unit>.json"""
        return self.path / "failures" / f"{key.name}.json"

    def file(self, name: str) -> Path:
        """A file at the folder's top."""
        return self.path / name

    def part(self, name: str) -> "RunFolder":
        """A run of its own inside this one: placement, replay, a determinism variant."""
        return RunFolder(self.path / name)

    def lock(self, name: str) -> FileLock:
        """A lock that the system releases when its process dies."""
        folder = self.path / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{name}.lock")

    def claim(self) -> FileLock:
        """Take the whole folder for one session; SessionError where another has it."""
        lock = self.lock("session")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise SessionError(
                str(self.path),
                expected="a run folder of one session",
                found="another process that is using it",
                todo="Wait until it has finished, or start a run of its own.",
            ) from error
        return lock


def write_record(path: Path, record: Any) -> None:
    """A record as canonical bytes."""
    write_atomic(path, canonical_bytes(record))


def read_record(path: Path, kind: type[T], *, what: str) -> T:
    """A record back from its file; JournalError names field, expected and found."""
    return decode_json(read_bytes(path, what=what), kind, where=path, error=JournalError, todo=TODO)


def write_once(path: Path, record: Any, *, what: str) -> None:
    """Write a record, or require that the file holds the same: two workers or a resumed run agree or stop."""
    write_bytes_once(path, canonical_bytes(record), what=what)


def write_bytes_once(path: Path, data: bytes, *, what: str) -> None:
    """The same of a record's canonical bytes."""
    if not path.exists():
        write_atomic(path, data)
        return
    found = read_bytes(path, what=what)
    if found != data:
        raise JournalError(
            str(path),
            expected=f"the {what} of this run: {difference(found, data)[0]}",
            found=difference(found, data)[1],
            todo="A run keeps one environment, placement and request: start a new run for another.",
        )


def difference(found: bytes, wanted: bytes) -> tuple[str, str]:
    """The first place at which two JSON objects differ, as (wanted, found) words."""
    try:
        one, other = msgspec.json.decode(wanted), msgspec.json.decode(found)
    except (msgspec.DecodeError, RecursionError):
        return "canonical JSON", "other bytes"
    path = ""
    while one != other:
        step = _first_step(one, other)
        if step is None:
            name = path.lstrip(".") or "$"
            return f"{name}={one!r}"[:200], f"{name}={other!r}"[:200]
        path, one, other = f"{path}{step[0]}", step[1], step[2]
    return "the same fields", "other bytes"


def _first_step(one: Any, other: Any) -> tuple[str, Any, Any] | None:
    """One step into two containers of the same kind, to the first member that differs; none where there is no such."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                return f".{name}", one.get(name), other.get(name)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                return f"[{at}]", left, right
    return None


def write_journal(folder: RunFolder, key: UnitKey, evidence: AnyUnit, observation: UnitObservation) -> None:
    """Land a finished unit by atomic rename."""
    kind: Any = JOURNALS[type(evidence)]
    journal = kind(schema=1, evidence=evidence, evidence_sha256=digest(evidence), observation=observation)
    write_record(folder.journal(key), journal)


def read_journal(path: Path, kind: type[SomeJournal]) -> SomeJournal:
    """A journal of the protocol's kind whose every digest holds; JournalError names the unit and the cell."""
    journal = read_record(path, kind, what="journal")
    try:
        _require_digests(journal, f"{path.name}: {journal.evidence.source_id}")
    except CanonError as error:
        raise JournalError(str(path), expected=error.expected, found=error.found, todo=TODO) from error
    return journal


def _require_digests(journal: AnyJournal, unit: str) -> None:
    for cell in journal.evidence.cells:
        problem = cell_problem(cell) if isinstance(cell, CellRecord) else prompt_problem(cell)
        if problem is not None:
            where = f"{unit} {cell.condition}: {problem[0]}"
            raise JournalError(where, expected=problem[1], found=problem[2], todo=TODO)
    found = digest(journal.evidence)
    if found != journal.evidence_sha256:
        where = f"{unit} {disagreement(journal.evidence)}".rstrip()
        raise JournalError(f"{where}: evidence_sha256", expected=journal.evidence_sha256, found=found, todo=TODO)


def disagreement(evidence: AnyUnit) -> str:
    """Condition and field of the first cell that doesn't agree with its batch, for the message of an altered unit.

    Empty where none is found: the digest says that something was altered, not what.
    """
    width = max((len(cell.prompt_ids) for cell in evidence.cells), default=0)
    for cell in evidence.cells:
        edited = all(cell.prompt_ids[edit.position : edit.position + 1] == (edit.replaced,) for edit in cell.edits)
        pairs = (
            ("left_padding", cell.left_padding == width - len(cell.prompt_ids)),
            ("edits", edited),
            ("eos and truncated", not isinstance(cell, CellRecord) or cell.eos != cell.truncated),
        )
        for name, agrees in pairs:
            if not agrees:
                return f"{cell.condition} {name}"
    return ""


def cell_problem(cell: CellRecord) -> tuple[str, str, str] | None:
    """(field, expected, found) of the first digest in a cell that doesn't follow from the cell's own content."""
    try:
        text = unescaped(cell.text_escaped)
    except UnicodeError as error:
        return "text_escaped", "escaped text", str(error)
    checks = (
        ("generated_sha256", ids_sha256(cell.generated_ids), cell.generated_sha256),
        ("text_sha256", text_sha256(text), cell.text_sha256),
        ("text_escaped", escaped(text), cell.text_escaped),
        ("length", str(len(cell.generated_ids)), str(cell.length)),
    )
    differing = (one for one in checks if one[1] != one[2])
    return prompt_problem(cell) or next(differing, None)


def prompt_problem(cell: PromptRow) -> tuple[str, str, str] | None:
    """The same of a row's prompt alone."""
    found = ids_sha256(cell.prompt_ids)
    return None if found == cell.prompt_sha256 else ("prompt_sha256", found, cell.prompt_sha256)


def journals(folder: RunFolder) -> Iterator[Path]:
    """The journal files that are there, by name."""
    yield from sorted((folder.path / "journal").glob("*.json"))


def failures(folder: RunFolder) -> tuple[Failure, ...]:
    """The failures that are recorded, by name."""
    paths = sorted((folder.path / "failures").glob("*.json"))
    return tuple(read_record(path, Failure, what="failure record") for path in paths)
