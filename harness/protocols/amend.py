"""Amending: the files of a frozen protocol go to revisions/NNNN/, changed ones take their place, a record says why.

The whole folder is made beside the old one and takes its place by renaming, once it was loaded as a run will load it.
What follows from inputs and tokenizer is made by who calls this, in the folder that `staged` gives.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.canon import canonical_bytes, digest
from harness.errors import ProtocolError, StorageError
from harness.files import write_atomic
from harness.places import Places
from harness.protocols.anchor import ANCHOR
from harness.protocols.load import (
    CANONICAL,
    FILES,
    PROFILE,
    PROMPTS,
    PROTOCOL,
    LoadedProtocol,
    load_line,
    named_digest,
)
from harness.protocols.outputs import looked_in, outputs_of
from harness.protocols.revisions import AMENDMENT, FIRST, RECORD, REVISIONS, protocol_digest, revision_folder
from harness.records.manifest import Manifest
from harness.records.profile import Profile
from harness.records.protocol import Protocol
from harness.records.revision import Revision

MADE = ("manifest.json", FILES, CANONICAL, PROMPTS, PROTOCOL, ANCHOR)  # what no author writes
APART = (REVISIONS, AMENDMENT)
GIVEN = ("inputs", "checkpoint")  # what an author's own folder has beside its files; no revision keeps a copy
ABSENT = (
    "Write the changed protocol.toml, and whatever else changes, into that folder; the frozen files stay as they are."
)


@dataclass(frozen=True, slots=True)
class Content:
    """What a protocol digest is over."""

    protocol: Protocol
    manifest: Manifest
    profile: Profile


@dataclass(frozen=True, slots=True)
class Staging:
    """A protocol in force, and the folder in which its next revision is made."""

    loaded: LoadedProtocol
    tree: Places
    folder: Path


@contextmanager
def staged(loaded: LoadedProtocol, tree: Places) -> Iterator[Staging]:
    """A folder of the protocol's name in which its next revision is made; nothing of it stays where that is given up.

    It has every revision so far, the superseded files under the next number, and the changed files in their places.
    """
    folder, number = loaded.folder, len(loaded.history) + 1
    changed = folder / AMENDMENT
    _require_changed(changed)
    stage = folder.parent / f".{folder.name}.amending"
    try:
        stage.mkdir()
    except OSError as error:
        todo = "Somebody else amends it; where nobody does, remove the folder."
        raise StorageError(str(stage), expected="no such folder", found=error.strerror or "one", todo=todo) from error
    try:
        new = stage / folder.name
        _copy(folder, new, (AMENDMENT, *GIVEN))
        kept = revision_folder(new, number)
        _copy(folder, kept, (*APART, *GIVEN))
        if not (kept / PROFILE).is_file():
            shutil.copyfile(tree.models / loaded.protocol.model.profile / PROFILE, kept / PROFILE)
        for name in MADE:
            _remove(new / name)
        shutil.copytree(changed, new, dirs_exist_ok=True)
        for name in (one for one in GIVEN if (folder / one).exists()):
            (new / name).symlink_to((folder / name).resolve(), target_is_directory=True)
        yield Staging(loaded, tree, new)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def revise(staging: Staging, content: Content, *, reason: str, at_us: int) -> Revision:
    """Put the record of the revision beside what it supersedes, load the whole line, and let it take effect.

    `at_us`: Unix time in microseconds. ProtocolError for a revision without a reason or a change, or one that a run
    wouldn't load; then the frozen files are as they were.
    """
    record, new = _record(staging, content, reason=reason, at_us=at_us), staging.folder
    write_atomic(revision_folder(new, record.number) / RECORD, canonical_bytes(record))
    named = protocol_digest(content.protocol, content.manifest, content.profile, (record,))
    write_atomic(new / PROTOCOL, named_digest(named).encode("ascii"))
    load_line(new, staging.tree)
    for name in GIVEN:
        (new / name).unlink(missing_ok=True)
    _swap(new, staging.loaded.folder)
    return record


def _record(staging: Staging, content: Content, *, reason: str, at_us: int) -> Revision:
    loaded = staging.loaded
    protocol_id, history = loaded.protocol.id, loaded.history
    where = f"protocol {protocol_id}: revision {len(history) + 1}"
    if not reason.strip():
        raise ProtocolError(f"{where}: reason", expected="why it is changed", found="nothing", todo="Say it: --reason.")
    made = protocol_digest(content.protocol, content.manifest, content.profile)
    if made == protocol_digest(loaded.protocol, loaded.manifest, loaded.profile):
        todo = "Change protocol.toml; claims.toml is apart from the digest and needs no revision."
        raise ProtocolError(where, expected="another protocol, manifest or profile", found="the same", todo=todo)
    outputs = outputs_of(protocol_id, staging.tree)
    return Revision(
        schema=1,
        protocol=protocol_id,
        number=len(history) + 1,
        reason=reason.strip(),
        supersedes=loaded.digest,
        content_sha256=made,
        previous_sha256=digest(history[-1]) if history else FIRST,
        at_us=at_us,
        looked_in=looked_in(protocol_id),
        outputs_existed=bool(outputs),
        outputs=outputs,
    )


def _swap(new: Path, folder: Path) -> None:
    old = new.with_name("superseded")
    given = [name for name in GIVEN if (folder / name).is_symlink() or (folder / name).exists()]
    try:
        folder.rename(old)
        try:
            for name in given:
                (old / name).rename(new / name)
            new.rename(folder)
        except OSError:
            for name in (one for one in given if (new / one).is_symlink() or (new / one).exists()):
                (new / name).rename(old / name)
            old.rename(folder)
            raise
    except OSError as error:
        found, todo = error.strerror or type(error).__name__, "Nothing was changed: make the folder writable."
        raise StorageError(str(folder), expected="a folder that can be renamed", found=found, todo=todo) from error


def _require_changed(changed: Path) -> None:
    if not (changed / "protocol.toml").is_file():
        raise ProtocolError(str(changed), expected="the changed protocol.toml", found="no such file", todo=ABSENT)
    made = sorted({path.name for path in changed.iterdir()} & {*MADE, *APART, *GIVEN})
    if made:
        raise ProtocolError(str(changed), expected="files that an author writes", found=", ".join(made), todo=ABSENT)


def _copy(folder: Path, to: Path, apart: tuple[str, ...]) -> None:
    """Everything in a protocol's folder but these names at its top."""
    shutil.copytree(folder, to, ignore=lambda at, _: apart if Path(at) == folder else ())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
