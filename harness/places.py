"""Where the project's fixed folders are. HARNESS_ROOT names another tree (a copy under test).

HARNESS_PROTOCOLS names folders of protocols that lie elsewhere, an author's own. Such a folder has its protocol's name;
beside protocol.toml it may hold the model's profile, its checkpoint and the input files.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import ProtocolError

STUDIES = "HARNESS_PROTOCOLS"
OF_A_RUN = "protocol"


@dataclass(frozen=True, slots=True)
class Places:
    """The top-level folders of one tree, and the folders of an author's own protocols."""

    root: Path
    studies: tuple[Path, ...] = ()

    @property
    def protocols(self) -> Path:
        """fixtures/protocols/"""
        return self.root / "fixtures" / "protocols"

    def protocol(self, protocol_id: str) -> Path:
        """A protocol's folder: the tree's own, else an author's of that name; it needn't exist."""
        own = self.protocols / protocol_id
        if (own / "protocol.toml").is_file():
            return own
        return next((folder for folder in self.studies if folder.name == protocol_id), own)

    def with_studies(self, folders: Iterable[Path]) -> "Places":
        """The same tree with more folders of an author's own protocols, after those that it has."""
        return replace(self, studies=tuple(dict.fromkeys((*self.studies, *folders))))

    @property
    def models(self) -> Path:
        """fixtures/models/"""
        return self.root / "fixtures" / "models"

    @property
    def embedded_inputs(self) -> Path:
        """fixtures/nano/pools/"""
        return self.root / "fixtures" / "nano" / "pools"

    @property
    def gates(self) -> Path:
        """gates/"""
        return self.root / "gates"

    @property
    def snapshots(self) -> Path:
        """snapshots/"""
        return self.root / "snapshots"

    @property
    def reports(self) -> Path:
        """reports/"""
        return self.root / "reports"


def places() -> Places:
    """The folders of the tree that is in use."""
    named = os.environ.get("HARNESS_ROOT")
    listed = [Path(one).resolve() for one in os.environ.get(STUDIES, "").split(os.pathsep) if one]
    return Places(Path(named).resolve() if named else Path(__file__).resolve().parents[1], tuple(listed))


def include(folders: Iterable[Path]) -> None:
    """Name folders of an author's own protocols to this process and to every one that it starts.

    ProtocolError for a path that holds the separator of paths: no other process could be told of it.
    """
    listed = places().with_studies(folder.resolve() for folder in folders).studies
    for folder in listed:
        if os.pathsep in str(folder):
            todo = "Give the folders another name."
            raise ProtocolError(str(folder), expected=f"a path without {os.pathsep}", found="one with it", todo=todo)
    os.environ[STUDIES] = os.pathsep.join(map(str, listed))


def places_of_run(run: Path, tree: Places | None = None) -> Places:
    """The tree with the protocol that a run of an author's own keeps a copy of, or the run that a part belongs to."""
    kept = [path for at in (run, run.parent) for path in sorted((at / OF_A_RUN).glob("*")) if path.is_dir()]
    return (tree or places()).with_studies(path.resolve() for path in kept)
