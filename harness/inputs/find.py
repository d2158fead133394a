"""Which registered input files are here, recognised by SHA-256 under any name, alone or inside a registered archive.

A file is what its bytes are: its name matters only to say that a file under the registered name was altered. This
module knows no rows and no sources; that the bytes are still the same when they are read is `readers`' business.
The records hold paths, so they have no canonical encoding: where a file lay is never evidence.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from harness.canon import sha256_hex
from harness.errors import InputError
from harness.inputs.archives import member_bytes
from harness.inputs.scan import HashedFile, scan
from harness.places import places
from harness.records.base import Digest, Frozen, Record, Unfrozen
from harness.records.protocol import Protocol
from harness.records.sources import Archive, InputFile

EMBEDDED = "embedded"


class Present(Record, tag_field="state", tag="present"):
    """The registered bytes are here: the file at `path`, or its `member` where that is an archive."""

    name: str
    format: Literal["jsonl", "jsonl.gz", "csv", "parquet"]
    path: Path
    member: str | None
    sha256: str


class Altered(Record, tag_field="state", tag="altered"):
    """A file with a registered name, or a registered archive's member, that holds other bytes.

    `found` is a SHA-256, or says in words why there is none.
    """

    name: str
    path: Path
    member: str | None
    expected: str
    found: str


class Missing(Record, tag_field="state", tag="missing"):
    """The registered bytes aren't here: why, and where the publisher has them."""

    name: str
    why: str
    location: str


InputState = Present | Altered | Missing


class FoundInputs(Record):
    """One state for each input, in registered order; and every altered file, also where the input is present."""

    states: tuple[InputState, ...]
    altered: tuple[Altered, ...]


def find_inputs(protocol: Protocol, folders: Sequence[Path]) -> FoundInputs:
    """The state of each of the protocol's inputs; embedded ones are looked for in the tree's own folder too.

    Raises InputError for what isn't a folder and for a folder beyond the scan's bounds, StorageError for what can't
    be read.
    """
    return find_files(protocol.inputs, folders)


def find_files(inputs: Sequence[InputFile], folders: Sequence[Path]) -> FoundInputs:
    """`find_inputs` for the registered files alone."""
    return find_among(inputs, scan(search_folders(inputs, folders)))


def search_folders(inputs: Sequence[InputFile], folders: Sequence[Path]) -> tuple[Path, ...]:
    """The given folders, and the embedded one where an input is embedded and the folder exists."""
    embedded = places().embedded_inputs
    needed = any(file.location == EMBEDDED for file in inputs) and embedded.is_dir()
    return (*folders, embedded) if needed else tuple(folders)


def find_among(inputs: Sequence[InputFile], files: Sequence[HashedFile]) -> FoundInputs:
    """The state of each input among files that were hashed already."""
    registered = {sha256 for file in inputs for sha256 in _registered(file)}
    # A file that is one input's registered bytes isn't an altered copy of another one that shares its name.
    strangers = [hashed for hashed in files if hashed.sha256 not in registered]
    states: list[InputState] = []
    altered: list[Altered] = []
    for file in inputs:
        seen = [*_plain(file, files), *_archived(file, files)]
        wrong = [*_wrong_names(file, strangers), *(one for one in seen if isinstance(one, Altered))]
        present = [one for one in seen if isinstance(one, Present)]
        states.append((present or wrong or [_missing(file)])[0])
        altered += wrong
    return FoundInputs(states=tuple(states), altered=tuple(altered))


def require_present(found: FoundInputs, name: str) -> Present:
    """The present input of that name; InputError with expected and found where it's altered or missing."""
    state = next((state for state in found.states if state.name == name), None)
    match state:
        case Present():
            return state
        case Altered():
            raise InputError(
                f"input {name}: {location_of(state)}",
                expected=f"SHA-256 {state.expected}",
                found=state.found,
                todo="Take the file from its publisher again.",
            )
        case Missing():
            raise InputError(
                f"input {name}",
                expected="the registered file",
                found=state.why,
                todo=f"Put it into the input folder, under any name; its publisher has it: {state.location}.",
            )
        case None:
            raise RuntimeError(f"{name!r} was not looked for, only {[state.name for state in found.states]}")


def location_of(state: Present | Altered) -> str:
    """Path, and after an exclamation mark the member, for messages."""
    return str(state.path) if state.member is None else f"{state.path}!{state.member}"


def publisher(file: InputFile) -> str:
    """Where the publisher has the file and each registered archive of it."""
    archives = [f"{one.member} in {one.file_name}, {one.location}" for one in file.archives]
    return "; or ".join([file.location, *archives])


def _digests(file: InputFile) -> tuple[Digest, ...]:
    return (file.digest, *(archive.digest for archive in file.archives))


def _registered(file: InputFile) -> list[str]:
    return [one.sha256 for one in _digests(file) if isinstance(one, Frozen)]


def _plain(file: InputFile, files: Sequence[HashedFile]) -> Iterator[Present]:
    for hashed in files:
        if isinstance(file.digest, Frozen) and hashed.sha256 == file.digest.sha256:
            yield Present(name=file.name, format=file.format, path=hashed.path, member=None, sha256=hashed.sha256)


def _archived(file: InputFile, files: Sequence[HashedFile]) -> Iterator[Present | Altered]:
    for archive in file.archives:
        for hashed in files:
            if isinstance(archive.digest, Frozen) and hashed.sha256 == archive.digest.sha256:
                yield from _member(file, archive, hashed.path)


def _member(file: InputFile, archive: Archive, path: Path) -> Iterator[Present | Altered]:
    if isinstance(file.digest, Unfrozen):
        return
    expected = file.digest.sha256
    try:
        sha256 = sha256_hex(member_bytes(path, archive.member))
    except InputError as error:
        sha256 = error.found
    if sha256 == expected:
        yield Present(name=file.name, format=file.format, path=path, member=archive.member, sha256=sha256)
    else:
        yield Altered(name=file.name, path=path, member=archive.member, expected=expected, found=sha256)


def _wrong_names(file: InputFile, strangers: Sequence[HashedFile]) -> Iterator[Altered]:
    names = [(file.file_name, file.digest), *((one.file_name, one.digest) for one in file.archives)]
    for name, registered in names:
        for hashed in strangers:
            if isinstance(registered, Frozen) and hashed.path.name == name:
                yield Altered(
                    name=file.name, path=hashed.path, member=None, expected=registered.sha256, found=hashed.sha256
                )


def _missing(file: InputFile) -> Missing:
    if isinstance(file.digest, Unfrozen):
        why = f"its digest is unfrozen: {file.digest.reason}"
    else:
        why = f"no file with SHA-256 {file.digest.sha256}"
    return Missing(name=file.name, why=why, location=publisher(file))
