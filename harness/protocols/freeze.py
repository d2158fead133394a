"""Freezing a protocol: its manifest and the digest files, once, before anything was run under it.

Pure assembly and writing. Which texts the sources have and what their prompts hash to comes in as records: this module
knows no input file and no tokenizer. protocol.toml is read and never written.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.errors import ProtocolError
from harness.files import read_bytes, write_atomic
from harness.places import Places
from harness.protocols.anchor import ANCHOR
from harness.protocols.check import check_gates, check_manifest, check_protocol
from harness.protocols.grids import denominators
from harness.protocols.load import digest_files
from harness.protocols.outputs import outputs_of
from harness.protocols.revisions import AMENDMENT, REVISIONS
from harness.records.base import decode_json
from harness.records.manifest import FrozenSource, Manifest, ManifestSource, UnfrozenSource
from harness.records.profile import Profile
from harness.records.protocol import Protocol, RegisteredProtocol
from harness.selection import selection_rank

PUBLISHED = "published_sources.json"


def require_unused(folder: Path, tree: Places) -> None:
    """Raise ProtocolError where something was made of the protocol, or its digest was anchored or superseded.

    Such a protocol isn't frozen anew: what was made, and when, would no longer be of it.
    """
    name = folder.name
    made = outputs_of(name, tree)
    bound = [part for part in (REVISIONS, ANCHOR) if (folder / part).exists()]
    if made or bound:
        first = f"{made[0].where} of digest {made[0].protocol_digest}" if made else f"{folder.name}/{bound[0]}"
        raise ProtocolError(
            f"protocol {name}",
            expected="no snapshot and no run before freezing, and no revision or anchor",
            found=f"{len(made) + len(bound)}, the first {first}",
            todo=f"Put the changed protocol.toml into {folder / AMENDMENT} and make a revision of it with "
            f"`python -m harness amend {name} --reason TEXT`; or give the changed protocol another ID.",
        )


def require_kept(folder: Path, manifest: Manifest) -> None:
    """ProtocolError where a domain whose sources the folder's manifest.json has frozen would only be owed.

    Freezing again, or amending, without an input that was here once would give up texts and prompt hashes unsaid.
    """
    path = folder / "manifest.json"
    if not path.is_file():
        return
    todo = "Take it back from version control, or freeze into a folder without it."
    data = read_bytes(path, what="manifest")
    before = decode_json(data, Manifest, where=path, error=ProtocolError, todo=todo)
    frozen = {one.domain for one in before.sources if isinstance(one, FrozenSource)}
    if lost := sorted(frozen & {one.domain for one in manifest.sources if isinstance(one, UnfrozenSource)}):
        raise ProtocolError(
            f"{path}: {', '.join(lost)}",
            expected="frozen sources, as until now",
            found="none of the registered input here, so they would be owed",
            todo="Name the folder with the registered input: --inputs DIR.",
        )


def published_sources(folder: Path) -> dict[str, list[str]]:
    """Domain -> source IDs that the document publishes, in rank order; empty where the folder has no such file."""
    path = folder / PUBLISHED
    if not path.is_file():
        return {}
    todo = "Write domain names with lists of source IDs, as the document publishes them."
    return decode_json(
        read_bytes(path, what=PUBLISHED), dict[str, list[str]], where=path, error=ProtocolError, todo=todo
    )


def sources_per_domain(protocol: Protocol) -> int:
    """How many sources of each domain the largest grid takes."""
    return max(grid.per_domain for grid in protocol.grids.values())


def check_published(domain: str, published: Sequence[str], selected: Sequence[str]) -> None:
    """Raise ProtocolError where the selection rule doesn't give the published IDs (R04 3: same sources, same order)."""
    if list(published) != list(selected):
        raise ProtocolError(
            f"{PUBLISHED}: {domain}",
            expected=", ".join(published),
            found=", ".join(selected),
            todo="Find out whether salt, source ID, token minimum or input file is wrong.",
        )


def owed_sources(protocol: Protocol, domain: str, published: Sequence[str]) -> tuple[UnfrozenSource, ...]:
    """Entries for a domain whose registered input isn't here: published IDs and their ranks, no text and no hash."""
    needed = sources_per_domain(protocol)
    if len(published) != needed:
        raise ProtocolError(
            f"{PUBLISHED}: {domain}",
            expected=f"{needed} published source IDs, since its input isn't here",
            found=str(len(published)),
            todo="Give the folder with the registered input (--inputs), or the published IDs.",
        )
    name = next(one.input for one in protocol.domains if one.name == domain)
    return tuple(
        UnfrozenSource(
            domain=domain,
            index=index,
            source_id=source_id,
            selection_rank=selection_rank(protocol.selection.salt, domain, source_id),
            reason=f"the registered input {name} was not available when the manifest was frozen",
        )
        for index, source_id in enumerate(published)
    )


def make_manifest(protocol: Protocol, tokenizer_sha256: str, sources: Sequence[ManifestSource]) -> Manifest:
    """The manifest over the given sources, which stand in domain order, then by rank."""
    domains = len(protocol.domains)
    return Manifest(
        schema=1,
        protocol=protocol.id,
        tokenizer_sha256=tokenizer_sha256,
        sources=tuple(sources),
        denominators={name: denominators(protocol, name, domains) for name in protocol.grids},
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    """manifest.json: sorted keys, one field a line, a newline at the end; the same manifest gives the same bytes."""
    plain = msgspec.to_builtins(manifest)
    return (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")


def check_whole(protocol: RegisteredProtocol, manifest: Manifest, profile: Profile) -> None:
    """ProtocolError where the three records don't agree: a name, a rank, a denominator that isn't its grid's."""
    check_protocol(protocol)
    check_manifest(protocol, manifest)
    check_gates(protocol, manifest, profile)


def write_frozen(folder: Path, protocol: RegisteredProtocol, manifest: Manifest, *, profile: Profile) -> None:
    """Write manifest.json and the three digest files, after the three records were seen to agree.

    Raises ProtocolError, before anything is written, where they don't.
    """
    check_whole(protocol, manifest, profile)
    write_atomic(folder / "manifest.json", manifest_bytes(manifest))
    for name, content in digest_files(folder, protocol, manifest).items():
        write_atomic(folder / name, content.encode("ascii"))
