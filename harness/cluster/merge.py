"""What workers landed goes into the run folder: a journal once it is verified, anything else once, or as it is there.

A journal is verified in a folder apart, as any journal of a run is, before its bytes are put among the run's.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from harness.errors import JournalError
from harness.files import write_atomic
from harness.journal.assemble import read_spec, verified_journal
from harness.journal.folder import RunFolder, read_journal, write_bytes_once
from harness.protocols.load import LoadedProtocol
from harness.records.kinds import journal_type

# What a worker writes: what the run is, units, and what one process saw. Nothing else is taken from one.
_HEAD = re.compile(r"(?:same_process/)?(?:spec|environment|placement|gold|synthetic)\.json")
_UNIT = re.compile(r"(?:same_process/)?journal/([A-Za-z0-9._-]+)\.json")
_LANDED = re.compile(r"journal/[A-Za-z0-9._-]+\.json")
_SEEN = re.compile(r"(?:same_process/)?failures/[A-Za-z0-9._-]+\.json|workers/[A-Za-z0-9._-]+\.json|oom\.json")


class Merger:
    """Into one run folder. `apart`: an empty folder for what isn't verified yet."""

    def __init__(self, folder: RunFolder, loaded: LoadedProtocol, apart: Path) -> None:
        self._folder, self._loaded, self._apart = folder, loaded, RunFolder(apart)

    def merge(self, files: Mapping[str, bytes]) -> None:
        """JournalError for a name that no worker writes, for bytes that aren't a unit's, and for another run's head.

        A unit comes after its replay by the same process, so that a unit that has landed has it. One that is there
        stays with its replay, whoever makes it once more; JournalError where that gives something else.
        """
        landed = [name for name in files if _LANDED.fullmatch(name) and (self._folder.path / name).exists()]
        for name in landed:
            self._require_same(name, files[name])
        if landed:
            return
        for name in sorted(files, key=lambda name: (name.startswith("journal/"), name)):
            data, target = files[name], self._folder.path / name
            if _HEAD.fullmatch(name):
                write_bytes_once(target, data, what=target.stem)
                write_bytes_once(self._apart.path / name, data, what=target.stem)
            elif _UNIT.fullmatch(name):
                self._require_unit(name, data)
                write_atomic(target, data)
            elif _SEEN.fullmatch(name):
                write_atomic(target, data)
            else:
                raise self._unknown(repr(name))

    def _require_unit(self, name: str, data: bytes) -> None:
        """A unit of the run's grid, made in the run's environment and placement, its digests right."""
        path = self._apart.path / name
        write_atomic(path, data)
        folder = RunFolder(path.parent.parent)
        spec = read_spec(folder)
        keys = {folder.journal(key): key for key in self._loaded.units(spec.grid, spec.domains)}
        if path not in keys:
            raise self._unknown(f"unit {path.stem}, which grid {spec.grid} hasn't")
        verified_journal(folder, keys[path], self._loaded, spec)

    def _require_same(self, name: str, data: bytes) -> None:
        """The unit that is there has the evidence of the one that was sent, which is verified first."""
        self._require_unit(name, data)
        kind = journal_type(self._loaded.protocol)
        sent, there = (read_journal(folder.path / name, kind) for folder in (self._apart, self._folder))
        if sent.evidence_sha256 != there.evidence_sha256:
            raise JournalError(
                str(self._folder.path / name),
                expected=f"one unit, {there.evidence_sha256}",
                found=f"another from a second worker, {sent.evidence_sha256}",
                todo="Two workers made one unit and don't agree: start a new run, and look for what differs.",
            )

    def _unknown(self, found: str) -> JournalError:
        return JournalError(
            str(self._folder.path),
            expected="files that a worker of this run writes",
            found=found,
            todo="A worker runs other code: install the same version on every node, and start a new run.",
        )
