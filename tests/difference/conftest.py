"""Sides of every kind to compare: copies of the project's frozen results, and of a small run that was really made."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.canon import canonical_bytes, digest, ids_sha256, sha256_hex
from harness.difference.make import compare_sides
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_run
from harness.places import Places, places
from harness.protocols.load import load_protocol
from harness.snapshots.content import snapshot_bytes

MADE = ("run.json", "ledger.json", "statistics.json", "claims.json", "audit.json", "audit.json.sha256")
Change = Callable[[dict[str, Any]], None]


class FrozenCopy:
    """A copy of a protocol's frozen results, altered and sealed again: what another accepted run would have left."""

    def __init__(self, protocol: str, folder: Path) -> None:
        self.original = places().snapshots / protocol
        self.folder = folder / protocol
        shutil.copytree(self.original, self.folder)

    def change(self, pattern: str, change: Change) -> Path:
        """Change the content of the first file of that name, with its digest in the index."""
        path = sorted(self.folder.glob(f"formal/{pattern}"))[0]
        plain = json.loads(path.read_bytes())
        change(plain)
        path.write_bytes(snapshot_bytes(plain))
        return self.seal({path.stem: sha256_hex(path.read_bytes())})

    def seal(self, units: dict[str, str], **changes: Any) -> Path:
        """The index with these digests and fields, of another run's making."""
        path = self.folder / "formal/index.json"
        index = json.loads(path.read_bytes())
        index |= {"origins": ["0" * 64], "units": index["units"] | units} | changes
        path.write_bytes(canonical_bytes(index))
        return self.folder


@pytest.fixture
def frozen(tmp_path) -> Callable[[str], FrozenCopy]:
    """`frozen("nano-behavior")`: a copy of its frozen results."""
    return lambda protocol: FrozenCopy(protocol, tmp_path / "frozen")


def say(cell: dict[str, Any], ids: list[int]) -> None:
    """The cell's tokens, with what follows from them alone."""
    cell |= {"generated_ids": ids, "generated_sha256": ids_sha256(ids), "length": len(ids)}


def remake(run: Path, *, unit: Change | None = None, closed: bool = True, **files: Change) -> Path:
    """The run as if it had been made so: `files` by stem (spec, environment, placement), `unit` of the first journal.

    Journals follow from both, records from journals (none where it isn't `closed`). Nobody has judged it.
    """
    for name, change in files.items():
        path = run / f"{name}.json"
        plain = json.loads(path.read_bytes())
        change(plain)
        path.write_bytes(canonical_bytes(plain))
    spec, environment, placement = (
        json.loads((run / f"{name}.json").read_bytes()) for name in ("spec", "environment", "placement")
    )
    for at, path in enumerate(sorted((run / "journal").glob("*.json"))):
        journal = json.loads(path.read_bytes())
        if unit is not None and at == 0:
            unit(journal["evidence"])
        journal["evidence"] |= {
            "protocol_digest": spec["protocol_digest"],
            "environment_sha256": digest(environment),
            "placement_sha256": digest(placement),
        }
        journal["evidence_sha256"] = digest(journal["evidence"])
        path.write_bytes(canonical_bytes(journal))
    unjudge(run)
    if closed:
        close_run(RunFolder(run), load_protocol(spec["protocol"], Places(run.parents[2])))
    return run


def unjudge(run: Path) -> Path:
    """The folder without what was made of its journals and said of it."""
    for name in MADE:
        (run / name).unlink(missing_ok=True)
    return run


@pytest.fixture
def compared():
    """`compared(a, b)`: the record."""
    return compare_sides


@pytest.fixture
def remade():
    """`remade(run, ...)`: see `remake`."""
    return remake


@pytest.fixture
def unjudged():
    """`unjudged(run)`: see `unjudge`."""
    return unjudge


@pytest.fixture
def said():
    """`said(cell, ids)`: see `say`."""
    return say
