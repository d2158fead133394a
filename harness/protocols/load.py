"""Loading a protocol: digests first, then strict records, then agreement with itself.

A folder holds protocol.toml, manifest.json and three digest files: FILES.sha256 (bytes of both files, checkable with
`sha256sum -c`), CANONICAL.sha256 (RFC 8785 content of both), PROMPTS.sha256 (the prompt contract: every cell's hash).
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from harness.canon import digest, sha256_hex
from harness.errors import ProtocolError
from harness.files import read_bytes
from harness.places import Places, places
from harness.protocols.check import check_gates, check_manifest, check_protocol
from harness.protocols.grids import UnitKey, unit_keys
from harness.records.base import convert, decode_json
from harness.records.manifest import FrozenSource, Manifest, UnfrozenSource
from harness.records.profile import Profile
from harness.records.protocol import AnyProtocol, Protocol, RegisteredProtocol

TODO = "Take the frozen file back from version control; a changed protocol is another protocol."
FILES, CANONICAL, PROMPTS = "FILES.sha256", "CANONICAL.sha256", "PROMPTS.sha256"


@dataclass(frozen=True, slots=True)
class LoadedProtocol:
    """A protocol with its manifest and model profile, checked. `digest` names the three together in every record."""

    protocol: AnyProtocol
    manifest: Manifest
    profile: Profile
    digest: str
    folder: Path

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


def protocol_ids(tree: Places | None = None) -> tuple[str, ...]:
    """The IDs of all protocols in the tree, and of an author's own that were named."""
    tree = tree or places()
    own = [folder.name for folder in tree.studies if (folder / "protocol.toml").is_file()]
    return tuple(sorted({*(path.parent.name for path in tree.protocols.glob("*/protocol.toml")), *own}))


def named_protocol(word: str, tree: Places) -> tuple[str, Places]:
    """The protocol that a word names, an ID or the folder of an author's own, and a tree that has it.

    ProtocolError for a folder whose protocol the tree has another of.
    """
    folder = Path(word)
    if word in protocol_ids(tree) or not (folder / "protocol.toml").is_file():
        return word, tree
    folder = folder.resolve()
    taken = tree.protocol(folder.name)
    if taken != folder and (taken / "protocol.toml").is_file():
        raise ProtocolError(
            str(folder),
            expected="a folder with a name that no other protocol has",
            found=str(taken),
            todo="Give the protocol another ID, and its folder the same name.",
        )
    return folder.name, tree.with_studies((folder,))


def load_protocol(protocol_id: str, tree: Places | None = None) -> LoadedProtocol:
    """Load, verify and cross-check one protocol; a ProtocolError names field, expected and found."""
    tree = tree or places()
    folder = tree.protocol(protocol_id)
    if protocol_id not in protocol_ids(tree):
        known = ", ".join(protocol_ids(tree)) or "none"
        raise ProtocolError(
            f"protocol {protocol_id}", expected=f"one of {known}", found="no such folder", todo="Name a known protocol."
        )
    _check_file_bytes(folder)
    protocol = read_protocol(folder / "protocol.toml")
    manifest = decode_json(
        read_bytes(folder / "manifest.json", what="manifest"),
        Manifest,
        where=folder / "manifest.json",
        error=ProtocolError,
        todo=TODO,
    )
    profile = load_profile(protocol, tree)
    _check_canonical(folder, protocol, manifest)
    _same(f"{folder / 'protocol.toml'}: id", folder.name, protocol.id)
    check_protocol(protocol)
    check_manifest(protocol, manifest)
    check_gates(protocol, manifest, profile)
    return LoadedProtocol(protocol, manifest, profile, protocol_digest(protocol, manifest, profile), folder)


def read_protocol(path: Path) -> RegisteredProtocol:
    """protocol.toml as a record, without its manifest or digests."""
    kind = cast("type[RegisteredProtocol]", RegisteredProtocol)  # a union of records, which msgspec takes as a type
    return convert(_toml(path), kind, where=path, error=ProtocolError, todo=TODO)


def read_profile(path: Path) -> Profile:
    """profile.toml as a record."""
    return convert(_toml(path), Profile, where=path, error=ProtocolError, todo=TODO)


def load_profile(protocol: Protocol, tree: Places) -> Profile:
    """The model profile that the protocol pins by digest: beside an author's own protocol, or the tree's."""
    path = profile_path(protocol, tree)
    profile = read_profile(path)
    _same(f"{path}: canonical content", protocol.model.profile_sha256, digest(profile))
    return profile


def profile_path(protocol: Protocol, tree: Places) -> Path:
    """Where the profile of a protocol lies."""
    beside = tree.protocol(protocol.id) / "profile.toml"
    return beside if beside.is_file() else tree.models / protocol.model.profile / "profile.toml"


def beside(folder: Path, name: str) -> tuple[Path, ...]:
    """The folder of that name in the folder of an author's own protocol: `inputs` or `checkpoint`; none: ()."""
    there = folder / name
    return (there,) if there.is_dir() else ()


def protocol_digest(protocol: Protocol, manifest: Manifest, profile: Profile) -> str:
    """The protocol's name in every record: SHA-256 over the canonical protocol, manifest and profile."""
    return digest({"protocol": protocol, "manifest": manifest, "profile": profile})


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
    for name in (CANONICAL, PROMPTS):
        written = read_bytes(folder / name, what="digest file").decode("ascii", "replace")
        _same(str(folder / name), written.strip(), expected[name].strip())


def read_digests(path: Path) -> dict[str, str]:
    """A `sha256sum` file as name -> digest."""
    lines = read_bytes(path, what="digest file").decode("ascii", "replace").splitlines()
    pairs = [line.split("  ", 1) for line in lines if "  " in line]
    return {name: value for value, name in pairs}


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(read_bytes(path, what=path.name).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(path), expected="UTF-8 TOML", found=str(error), todo=TODO) from error


def _same(where: str, expected: str, found: str) -> None:
    if expected != found:
        raise ProtocolError(where, expected=expected, found=found, todo=TODO)
