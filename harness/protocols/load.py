"""Loading a protocol: digests first, then strict records, then agreement with itself.

A folder holds protocol.toml, manifest.json and three digest files: FILES.sha256 (bytes of both files, checkable with
`sha256sum -c`), CANONICAL.sha256 (RFC 8785 content of both), PROMPTS.sha256 (the prompt contract: every cell's hash).
One that was amended or anchored holds PROTOCOL.sha256 too (the protocol digest), and what its revisions superseded.

Every way to a frozen protocol leads through here, so that one that was edited without a revision is refused everywhere.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

from harness.canon import digest, sha256_hex
from harness.errors import ProtocolError
from harness.files import read_bytes
from harness.places import Places, places
from harness.protocols.check import check_gates, check_manifest, check_protocol
from harness.protocols.folders import home_of, protocol_ids
from harness.protocols.grids import UnitKey, unit_keys
from harness.protocols.modules import check_modules
from harness.protocols.outputs import UNREADABLE, made_of, outputs_of, results_name
from harness.protocols.revisions import protocol_digest, read_revisions, revision_folder, same
from harness.records.base import convert, decode_json
from harness.records.manifest import FrozenSource, Manifest, UnfrozenSource
from harness.records.profile import Profile
from harness.records.protocol import AnyProtocol, Protocol, RegisteredProtocol
from harness.records.revision import Revision

TODO = (
    "Take the frozen file back from version control; a change is another protocol, or a revision of this one made with "
    "`python -m harness amend`, which takes the changed file from amendment/ beside it."
)
EDITED = (
    "The protocol was edited without a revision: take its files back from version control, and change it with "
    "`python -m harness amend`. An output that was made elsewhere under other files doesn't belong here."
)
FILES, CANONICAL, PROMPTS, PROTOCOL = "FILES.sha256", "CANONICAL.sha256", "PROMPTS.sha256", "PROTOCOL.sha256"
PROFILE = "profile.toml"
_AGREEING: set[str] = set()  # protocol digests, which name the content


@dataclass(frozen=True, slots=True)
class LoadedProtocol:
    """A protocol with its manifest and model profile, checked. `digest` names the three together in every record.

    `folder`: of its files; of a superseded one revisions/NNNN. `history`: the revisions that led to it, from the first.
    """

    protocol: AnyProtocol
    manifest: Manifest
    profile: Profile
    digest: str
    folder: Path
    history: tuple[Revision, ...] = ()

    @property
    def home(self) -> Path:
        """The protocol's folder; of a superseded one the folder whose revision it is."""
        return home_of(self.folder)

    @property
    def results(self) -> str:
        """The folder of its frozen results under snapshots/."""
        return results_name(self.protocol.id, len(self.history))

    @property
    def domains(self) -> tuple[str, ...]:
        """All registered domains, in order."""
        return tuple(domain.name for domain in self.protocol.domains)

    @property
    def unfrozen(self) -> tuple[UnfrozenSource, ...]:
        """Sources whose text and prompt hashes are owed."""
        return tuple(source for source in self.manifest.sources if isinstance(source, UnfrozenSource))

    def source(self, source_id: str) -> FrozenSource:
        """The frozen manifest entry of a source; ProtocolError where it is owed or unknown."""
        for source in self.manifest.sources:
            if source.source_id == source_id and isinstance(source, FrozenSource):
                return source
        raise ProtocolError(
            f"manifest of {self.protocol.id}: {source_id}",
            expected="a frozen source",
            found="none or unfrozen",
            todo="Run without this domain as a port, or freeze it once its registered input is available.",
        )

    def units(self, grid: str, domains: tuple[str, ...]) -> tuple[UnitKey, ...]:
        """The units of a grid in running order."""
        sources = {(source.domain, source.index): source.source_id for source in self.manifest.sources}
        return unit_keys(self.protocol, sources, grid, domains)


def load_protocol(
    protocol_id: str, tree: Places | None = None, digest: str | None = None, *, looks: bool = True
) -> LoadedProtocol:
    """Load, verify and cross-check one protocol; a ProtocolError names field, expected and found.

    `digest`: under which one, where not the one in force but one that it superseded may be meant. Of a digest that no
    revision has, the one in force is returned: who names a digest compares it. `looks`: at what was made of it; not in
    a process that may open no earlier run, whose parent looked.
    """
    tree = tree or places()
    if protocol_id not in protocol_ids(tree):
        known = ", ".join(protocol_ids(tree)) or "none"
        raise ProtocolError(
            f"protocol {protocol_id}", expected=f"one of {known}", found="no such folder", todo="Name a known protocol."
        )
    line = load_line(tree.protocol(protocol_id), tree, looks=looks)
    return next((one for one in line if one.digest == digest), line[-1])


def load_line(folder: Path, tree: Places, *, looks: bool = True) -> tuple[LoadedProtocol, ...]:
    """Every protocol that a folder's revisions superseded, from the first, and last the one in force.

    ProtocolError where one of them was altered, where they aren't a chain, or where something was made of the protocol
    under a digest that none of them has.
    """
    protocol_id = folder.name
    records = read_revisions(folder)
    kept = [revision_folder(folder, record.number) for record in records]
    line = tuple(_load_at(at, protocol_id, tree, records[:number]) for number, at in enumerate([*kept, folder]))
    for record, before, after in zip(records, line, line[1:], strict=False):
        where = f"{before.folder}: revision.json"
        same(f"{where}: protocol", protocol_id, record.protocol)
        same(f"{where}: supersedes", before.digest, record.supersedes)
        content = protocol_digest(after.protocol, after.manifest, after.profile)
        same(f"{where}: content_sha256", content, record.content_sha256)
    if looks:
        _require_known(folder, line, tree)
    return line


def _require_known(folder: Path, line: Sequence[LoadedProtocol], tree: Places) -> None:
    """ProtocolError for an output of a digest that neither the protocol in force nor one before it has."""
    known = {UNREADABLE, *(one.digest for one in line)}
    for output in made_of(folder, tree):
        if output.protocol_digest not in known:
            where = f"protocol {folder.name}: digest in force, and of {output.where}"
            found = ", ".join(one.digest for one in line)
            raise ProtocolError(where, expected=output.protocol_digest, found=found, todo=EDITED)


def _load_at(folder: Path, protocol_id: str, tree: Places, history: tuple[Revision, ...]) -> LoadedProtocol:
    _check_file_bytes(folder)
    protocol = read_protocol(folder / "protocol.toml")
    manifest = decode_json(
        read_bytes(folder / "manifest.json", what="manifest"),
        Manifest,
        where=folder / "manifest.json",
        error=ProtocolError,
        todo=TODO,
    )
    profile = load_profile(protocol, folder, tree)
    _check_canonical(folder, protocol, manifest)
    _same(f"{folder / 'protocol.toml'}: id", protocol_id, protocol.id)
    named = protocol_digest(protocol, manifest, profile, history)
    if named not in _AGREEING:  # what follows from the content alone is checked once a process
        check_protocol(protocol)
        check_manifest(protocol, manifest)
        check_gates(protocol, manifest, profile)
        _AGREEING.add(named)
    check_modules(protocol, folder)
    if history or (folder / PROTOCOL).exists():
        written = read_bytes(folder / PROTOCOL, what="digest file").decode("ascii", "replace")
        _same(str(folder / PROTOCOL), written, named_digest(named))
    return LoadedProtocol(protocol, manifest, profile, named, folder, history)


def named_digest(digest: str) -> str:
    """What PROTOCOL.sha256 says: the protocol digest; an anchor in time is over these bytes."""
    return f"{digest}  protocol\n"


def is_frozen_folder(folder: Path) -> bool:
    """Whether a protocol's folder has anything that freezing writes."""
    return any((folder / name).exists() for name in ("manifest.json", FILES, CANONICAL, PROMPTS, PROTOCOL, "revisions"))


def read_registration(protocol_id: str, tree: Places | None = None) -> RegisteredProtocol:
    """A protocol that may not be frozen yet; of a frozen one, what loading it gives.

    ProtocolError for one without a digest of which something was made: it was frozen, and its digests were taken away.
    """
    tree = tree or places()
    folder = tree.protocol(protocol_id)
    if is_frozen_folder(folder):
        return cast("RegisteredProtocol", load_protocol(protocol_id, tree).protocol)
    if made := outputs_of(protocol_id, tree):
        raise ProtocolError(str(folder), expected=f"digests, as {made[0].where} has", found="none", todo=EDITED)
    return read_protocol(folder / "protocol.toml")


def read_protocol(path: Path) -> RegisteredProtocol:
    """protocol.toml as a record, without its manifest or digests."""
    kind = cast("type[RegisteredProtocol]", RegisteredProtocol)  # a union of records, which msgspec takes as a type
    return convert(_toml(path), kind, where=path, error=ProtocolError, todo=TODO)


def read_profile(path: Path) -> Profile:
    """profile.toml as a record."""
    return convert(_toml(path), Profile, where=path, error=ProtocolError, todo=TODO)


def load_profile(protocol: Protocol, folder: Path, tree: Places) -> Profile:
    """The model profile that the protocol pins by digest: beside it, as an author's own has it, or the tree's."""
    return _pinned(protocol, profile_path(protocol, folder, tree))


def _pinned(protocol: Protocol, path: Path) -> Profile:
    profile = read_profile(path)
    _same(f"{path}: canonical content", protocol.model.profile_sha256, digest(profile))
    return profile


def profile_path(protocol: Protocol, folder: Path, tree: Places) -> Path:
    """Where the profile of a protocol lies whose files lie in `folder`."""
    own = folder / PROFILE
    return own if own.is_file() else tree.models / protocol.model.profile / PROFILE


def prompt_contract_sha256(manifest: Manifest) -> str:
    """SHA-256 over [source ID, condition, prompt hash or "unfrozen"] for every cell, in manifest order."""
    rows: list[list[str]] = []
    for source in manifest.sources:
        if isinstance(source, FrozenSource):
            rows += [[source.source_id, name, entry.sha256] for name, entry in source.prompts.items()]
        else:
            rows.append([source.source_id, "", "unfrozen"])
    return digest(sorted(rows))


def digest_files(folder: Path, protocol: Protocol, manifest: Manifest) -> dict[str, str]:
    """What the three digest files of a protocol folder must say, by file name."""
    files = {name: sha256_hex(read_bytes(folder / name, what=name)) for name in ("manifest.json", "protocol.toml")}
    return {
        FILES: "".join(f"{value}  {name}\n" for name, value in files.items()),
        CANONICAL: f"{digest(manifest)}  manifest\n{digest(protocol)}  protocol\n",
        PROMPTS: f"{prompt_contract_sha256(manifest)}  prompts\n",
    }


def _check_file_bytes(folder: Path) -> None:
    listed = read_digests(folder / FILES)
    for name in ("protocol.toml", "manifest.json"):
        _same(
            f"{folder / name}: bytes", listed.get(name, "no digest"), sha256_hex(read_bytes(folder / name, what=name))
        )


def _check_canonical(folder: Path, protocol: Protocol, manifest: Manifest) -> None:
    expected = digest_files(folder, protocol, manifest)
    for name in (FILES, CANONICAL, PROMPTS):
        written = read_bytes(folder / name, what="digest file").decode("ascii", "replace")
        _same(str(folder / name), written.strip(), expected[name].strip())


def read_digests(path: Path) -> dict[str, str]:
    """A `sha256sum` file as name -> digest."""
    lines = read_bytes(path, what="digest file").decode("ascii", "replace").splitlines()
    pairs = [line.split("  ", 1) for line in lines if "  " in line]
    return {name: value for value, name in pairs}


def _toml(path: Path) -> dict[str, object]:
    try:
        return _parsed(read_bytes(path, what=path.name).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(path), expected="UTF-8 TOML", found=str(error), todo=TODO) from error


@lru_cache(maxsize=32)
def _parsed(text: str) -> dict[str, object]:
    """A process reads the same file often: by its text, so that an edit is seen. What is given out is only read."""
    return tomllib.loads(text)


def _same(where: str, expected: str, found: str) -> None:
    if expected != found:
        raise ProtocolError(where, expected=expected, found=found, todo=TODO)
