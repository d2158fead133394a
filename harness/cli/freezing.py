"""What `freeze` and `amend` do with a folder that holds protocol.toml: inputs, prompts, claims, model files, digests.

The only place where inputs, tokenizer and the frozen files meet. Nothing is written before everything was seen to
hold; protocol.toml is never written: a digest that isn't right there is an error with the value that was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.checks.judges import check_judges
from harness.claims.load import NAME as CLAIM_RULES
from harness.claims.load import load_claims
from harness.errors import ModelError, ProtocolError
from harness.files import file_sha256
from harness.inputs.find import FoundInputs, Missing, find_inputs, search_folders
from harness.inputs.scan import scan
from harness.inputs.sources import selected_sources
from harness.model.context import context_of
from harness.model.official import official_sampling
from harness.places import Places
from harness.prompts.build import build_batch
from harness.prompts.manifest import manifest_source
from harness.prompts.tokenizer import PromptTokenizer, protocol_tokenizer
from harness.protocols.amend import Content
from harness.protocols.check import check_protocol
from harness.protocols.fit import check_fit
from harness.protocols.folders import beside, named_protocol, protocol_ids
from harness.protocols.freeze import (
    check_published,
    check_whole,
    make_manifest,
    owed_sources,
    published_sources,
    require_kept,
    sources_per_domain,
    write_frozen,
)
from harness.protocols.load import LoadedProtocol, load_profile, read_protocol
from harness.protocols.outputs import is_copy
from harness.protocols.revisions import protocol_digest
from harness.records.base import Frozen, Unfrozen
from harness.records.manifest import ManifestSource
from harness.records.profile import Profile
from harness.records.protocol import Protocol, RegisteredStudy
from harness.records.sources import Domain
from harness.records.verbs import FreezeChecks

NO_CLAIMS = "no claims.toml: every permitted conclusion will read NOT CHECKED until there is one"
NO_CONFIG = "not checked: no config.json of the model here that says how long a sequence may be"


@dataclass(frozen=True, slots=True)
class Named:
    """A protocol's folder, and the tree whose models, runs and results are its."""

    folder: Path
    tree: Places


def named_folder(name: str, tree: Places) -> Named:
    """The folder that an ID or a path names; ProtocolError where there is none, or where a run keeps it."""
    protocol_id, tree = named_protocol(name, tree)
    if protocol_id not in protocol_ids(tree):
        known = ", ".join(protocol_ids(tree)) or "none"
        expected, todo = f"one of {known}, or a folder with protocol.toml", "Name a known protocol or its folder."
        raise ProtocolError(f"protocol {name}", expected=expected, found="no such protocol", todo=todo)
    folder = tree.protocol(protocol_id)
    if is_copy(folder):
        expected, todo = "an author's own folder", "A run's copy is evidence: name the folder that it was copied from."
        raise ProtocolError(str(folder), expected=expected, found="the copy that a run keeps", todo=todo)
    return Named(folder, tree)


def freeze_folder(
    named: Named, inputs: Sequence[Path], *, checkpoint: Path | None, folder: Path | None = None
) -> tuple[Content, FreezeChecks]:
    """Make and write manifest and digest files, and say what was checked. `folder`: where, if not at the name's own.

    Raises ProtocolError for a pin that isn't right, records that don't agree, or a claim that can't both hold and fail;
    InputError, ModelError and PromptError where an input, a model's file or a prompt isn't as registered.
    """
    folder, tree = folder or named.folder, named.tree
    protocol = read_protocol(folder / "protocol.toml")
    if protocol.id != named.folder.name:
        where, todo = f"{folder / 'protocol.toml'}: id", "A protocol's folder has its ID for a name."
        raise ProtocolError(where, expected=named.folder.name, found=protocol.id, todo=todo)
    check_protocol(protocol)
    profile = load_profile(protocol, folder, tree)
    inputs = (*inputs, *beside(folder, "inputs"))
    checkpoint = checkpoint or next(iter(beside(folder, "checkpoint")), None)
    require_input_digests(protocol, inputs)
    tokenizer = protocol_tokenizer(protocol, profile, checkpoint=checkpoint, tree=tree)
    found = find_inputs(protocol, inputs)
    sources = _sources(protocol, tokenizer, found, published_sources(folder))
    manifest = make_manifest(protocol, tokenizer.sha256, sources)
    check_whole(protocol, manifest, profile)
    require_kept(named.folder, manifest)
    check_judges(protocol, manifest, found, folder)
    digest = protocol_digest(protocol, manifest, profile)
    checks = _checks(LoadedProtocol(protocol, manifest, profile, digest, folder), checkpoint, tree, found)
    write_frozen(folder, protocol, manifest, profile=profile)
    return Content(protocol, manifest, profile), checks


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


def _checks(loaded: LoadedProtocol, checkpoint: Path | None, tree: Places, found: FoundInputs) -> FreezeChecks:
    """What was checked besides the records' agreement, each with how much of it there was."""
    claims = len(load_claims(loaded).rules.permitted) if (loaded.folder / CLAIM_RULES).is_file() else 0
    own = tree.models / loaded.protocol.model.profile / "checkpoint"
    at = checkpoint or (own if own.is_dir() else None)
    hashed = checked_files(loaded.profile, at)
    _require_official(loaded.protocol, at)
    context = context_of(at)
    longest = check_fit(loaded.protocol, loaded.manifest, context)
    return FreezeChecks(
        claims=claims,
        claims_note="" if claims or not loaded.protocol.permitted else NO_CLAIMS,
        inputs=sum(not isinstance(one, Missing) for one in found.states),
        inputs_of=len(found.states),
        checkpoint_files=len(hashed),
        checkpoint_files_of=len(loaded.profile.files),
        checkpoint_owed=tuple(f"{name} {digest}" for name, (digest, owed) in hashed.items() if owed),
        longest=longest,
        context=context or 0,
        context_note="" if context else NO_CONFIG,
    )


def _require_official(protocol: Protocol, checkpoint: Path | None) -> None:
    """A study's official numbers are those of the model's own config, where that is here."""
    if checkpoint is None or not isinstance(protocol, RegisteredStudy):
        return
    official, contract = official_sampling(checkpoint), protocol.decode
    for name in ("temperature", "top_p"):
        said, found = getattr(official, name), getattr(contract, f"official_{name}")
        if said != found:
            where, todo = f"protocol {protocol.id}: decode.official_{name}", f"Write what {checkpoint} says."
            raise ProtocolError(where, expected=str(said), found=str(found), todo=todo)


def checked_files(profile: Profile, checkpoint: Path | None) -> dict[str, tuple[str, bool]]:
    """SHA-256 of each of the profile's files that is here, and whether the profile owes it.

    ModelError for one that isn't the profile's.
    """
    found: dict[str, tuple[str, bool]] = {}
    for file in profile.files:
        path = checkpoint / file.name if checkpoint else None
        if path is None or not path.is_file():
            continue
        sha256 = file_sha256(path, what=f"checkpoint file of {profile.id}")
        if isinstance(file.digest, Frozen) and file.digest.sha256 != sha256:
            where, todo = f"checkpoint file {path}", "Name the registered checkpoint, or correct the profile."
            raise ModelError(where, expected=file.digest.sha256, found=sha256, todo=todo)
        found[file.name] = sha256, isinstance(file.digest, Unfrozen)
    return found


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
