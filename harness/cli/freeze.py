"""`freeze`: select the sources from scratch, build their prompts and write manifest and digest files of a protocol.

The only place where inputs, tokenizer and the frozen files meet. It never writes protocol.toml: a digest that isn't
right there is an error with the value that was found.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Checkpoint, Folders, Json, Named
from harness.cli.working import working
from harness.errors import ProtocolError
from harness.inputs.find import FoundInputs, Missing, find_inputs, search_folders
from harness.inputs.scan import scan
from harness.inputs.sources import selected_sources
from harness.places import Places, places
from harness.prompts.build import build_batch
from harness.prompts.manifest import manifest_source
from harness.prompts.tokenizer import PromptTokenizer, protocol_tokenizer
from harness.protocols.check import check_protocol
from harness.protocols.freeze import (
    check_published,
    make_manifest,
    owed_sources,
    published_sources,
    require_unused,
    sources_per_domain,
    write_frozen,
)
from harness.protocols.load import (
    LoadedProtocol,
    beside,
    load_profile,
    load_protocol,
    named_protocol,
    protocol_ids,
    read_protocol,
)
from harness.records.base import Unfrozen
from harness.records.manifest import ManifestSource
from harness.records.protocol import Protocol
from harness.records.sources import Domain
from harness.records.verbs import FrozenProtocol


def freeze(protocol: Named, inputs: Folders = None, checkpoint: Checkpoint = None, *, json: Json = False) -> None:
    """Write manifest.json and the digest files of PROTOCOL, from its inputs and tokenizer.

    Exit 0: frozen; 1: refused, where it has snapshots or runs already, or something isn't as registered.
    """
    with errors_to_stderr(), working("freeze") as note:
        note("sources and prompts")
        protocol, tree = named_protocol(protocol, places())
        loaded = freeze_protocol(protocol, inputs or [], checkpoint=checkpoint, tree=tree)
    count = len(loaded.manifest.sources) - len(loaded.unfrozen)
    if json:
        made = FrozenProtocol(
            schema=1, protocol=protocol, protocol_digest=loaded.digest, frozen=count, unfrozen=loaded.unfrozen
        )
        show.document(made)
        return
    show.line(f"{protocol}: {count} sources frozen, {len(loaded.unfrozen)} unfrozen, protocol digest {loaded.digest}")
    rows = [(one.domain, one.source_id, f"unfrozen: {one.reason}") for one in loaded.unfrozen]
    show.table(("domain", "source", "state"), rows)


def freeze_protocol(
    protocol_id: str, folders: Sequence[Path], *, checkpoint: Path | None, tree: Places
) -> LoadedProtocol:
    """Freeze one protocol of the tree and load it, as a run will.

    Raises ProtocolError for a protocol in use, a pin that isn't right or records that don't agree; InputError,
    ModelError and PromptError where an input, the tokenizer or a prompt isn't as registered.
    """
    folder = tree.protocol(protocol_id)
    if protocol_id not in protocol_ids(tree):
        raise ProtocolError(
            f"protocol {protocol_id}",
            expected=f"one of {', '.join(protocol_ids(tree)) or 'none'}",
            found="no such protocol",
            todo="Name a known protocol.",
        )
    require_unused(protocol_id, tree)
    protocol = read_protocol(folder / "protocol.toml")
    check_protocol(protocol)
    profile = load_profile(protocol, tree)
    folders = (*folders, *beside(folder, "inputs"))
    checkpoint = checkpoint or next(iter(beside(folder, "checkpoint")), None)
    require_input_digests(protocol, folders)
    tokenizer = protocol_tokenizer(protocol, profile, checkpoint=checkpoint, tree=tree)
    sources = _sources(protocol, tokenizer, find_inputs(protocol, folders), published_sources(folder))
    write_frozen(folder, protocol, make_manifest(protocol, tokenizer.sha256, sources), profile=profile)
    return load_protocol(protocol_id, tree)


def require_input_digests(protocol: Protocol, folders: Sequence[Path]) -> None:
    """Raise ProtocolError for an input whose digest protocol.toml leaves unfrozen, with what the folders hold."""
    owed = [file for file in protocol.inputs if isinstance(file.digest, Unfrozen)]
    if not owed:
        return
    hashed = scan(search_folders(protocol.inputs, folders))
    here = {file.file_name: [one.sha256 for one in hashed if one.path.name == file.file_name] for file in owed}
    raise ProtocolError(
        f"protocol {protocol.id}: " + ", ".join(f"inputs.{file.name}.digest" for file in owed),
        expected="a frozen SHA-256 in protocol.toml",
        found="unfrozen; files of that name here: "
        + "; ".join(f"{name} {', '.join(found) or 'none'}" for name, found in here.items()),
        todo="Write the digest of the right file into protocol.toml, then freeze.",
    )


def _sources(
    protocol: Protocol, tokenizer: PromptTokenizer, found: FoundInputs, published: dict[str, list[str]]
) -> list[ManifestSource]:
    sources: list[ManifestSource] = []
    for domain in protocol.domains:
        ids = published.get(domain.name, [])
        if _missing(found, domain):
            sources += owed_sources(protocol, domain.name, ids)
        else:
            sources += _selected(protocol, tokenizer, found, domain.name, ids)
    return sources


def _missing(found: FoundInputs, domain: Domain) -> bool:
    # An altered file isn't a missing one: selecting from it raises, and nothing is frozen without it.
    return any(isinstance(state, Missing) and state.name == domain.input for state in found.states)


def _selected(
    protocol: Protocol, tokenizer: PromptTokenizer, found: FoundInputs, domain: str, published: Sequence[str]
) -> list[ManifestSource]:
    chosen = selected_sources(protocol, found, domain, tokenizer.count, sources_per_domain(protocol))
    if published:
        check_published(domain, published, [source.source_id for source in chosen])
    return [manifest_source(build_batch(protocol, tokenizer, source), protocol.selection.salt) for source in chosen]
