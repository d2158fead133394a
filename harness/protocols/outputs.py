"""What was made of a protocol in a tree, looked up: run folders, attempts, frozen results, each with its digest.

Reads the one field that each of them carries and judges nothing: a folder that can't be read is an output too, of an
unknown digest. Runs made on another machine aren't here to be found.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.files import read_bytes
from harness.places import OF_A_RUN, Places
from harness.records.revision import FoundOutput, OutputKind

UNREADABLE = "unreadable"
ATTEMPTS = "attempts.jsonl"
ASKED = "spec.json"
RESULTS_OF = "@"


def results_name(protocol_id: str, revisions: int) -> str:
    """The folder of a protocol's frozen results under snapshots/: each revision has one of its own."""
    return f"{protocol_id}{RESULTS_OF}{revisions:04d}" if revisions else protocol_id


def looked_in(protocol_id: str) -> tuple[str, ...]:
    """Where outputs are looked for, below the tree."""
    return (f"reports/{protocol_id}", f"snapshots/{protocol_id}", f"snapshots/{protocol_id}{RESULTS_OF}*")


def outputs_of(protocol_id: str, tree: Places) -> tuple[FoundOutput, ...]:
    """Every output of a protocol in the tree, whatever its digest, by kind and name."""
    found = [*_runs(tree.reports / protocol_id, tree), *_attempts(tree.reports / protocol_id / ATTEMPTS, tree)]
    return (*found, *_snapshots(protocol_id, tree))


def made_of(folder: Path, tree: Places) -> tuple[FoundOutput, ...]:
    """Every output that the protocol in a folder must know: all of its ID. A run's copy knows that run alone."""
    if is_copy(folder):
        run = folder.parent.parent
        return (_found("run", run, tree, _digest_of_run(run)),)
    return outputs_of(folder.name, tree)


def is_copy(folder: Path) -> bool:
    """Whether a protocol's folder is what a run keeps of an author's own."""
    return folder.parent.name == OF_A_RUN and (folder.parent.parent / ASKED).is_file()


def _runs(folder: Path, tree: Places) -> Iterator[FoundOutput]:
    for path in _inside(folder):
        if path.is_dir():
            yield _found("run", path, tree, _digest_of_run(path))


def _digest_of_run(folder: Path) -> str:
    """As the run was asked for; unreadable where the session that judged it says otherwise: then one was altered."""
    asked, judged = folder / ASKED, folder / "audit.json"
    said = {_digest_in(path) for path in (asked, judged) if path is asked or path.exists()}
    return said.pop() if len(said) == 1 else UNREADABLE


def _attempts(path: Path, tree: Places) -> Iterator[FoundOutput]:
    """One for each name that a formal session was entered under; a line that can't be read is one too."""
    if not path.exists():
        return
    seen = set()
    for number, line in enumerate(_lines(path), 1):
        entry = _plain(line)
        name = f"{path.name}: {entry.get('run_id', f'line {number}')}"
        digest = str(entry.get("protocol_digest", UNREADABLE))
        if (name, digest) not in seen:
            seen.add((name, digest))
            yield _found("attempt", path.with_name(name), tree, digest)


def _snapshots(protocol_id: str, tree: Places) -> Iterator[FoundOutput]:
    for folder in _inside(tree.snapshots):
        if folder.name == protocol_id or folder.name.startswith(f"{protocol_id}{RESULTS_OF}"):
            for tier in _inside(folder):
                yield _found("snapshots", tier, tree, _digest_in(tier / "index.json"))


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _found(kind: OutputKind, path: Path, tree: Places, digest: str) -> FoundOutput:
    path = path.relative_to(tree.root) if path.is_relative_to(tree.root) else path
    where = path.as_posix().encode("utf-8", "backslashreplace").decode("utf-8")
    return FoundOutput(kind=kind, where=where, protocol_digest=digest)


def _digest_in(path: Path) -> str:
    try:
        return str(_plain(read_bytes(path, what="record of an output")).get("protocol_digest", UNREADABLE))
    except HarnessError:
        return UNREADABLE


def _lines(path: Path) -> list[bytes]:
    try:
        return read_bytes(path, what="attempts file").splitlines()
    except HarnessError:
        return [b""]


def _plain(data: bytes) -> dict[str, Any]:
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}
