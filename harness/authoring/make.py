"""Making the folder of a study: everything is written apart first, read back and tried, and only then put in place.

Tried is what freezing needs: sources selected by rank, every prompt rendered and every edit's place proven, counts, and
claims that can hold and fail. What can't be is said as one error, and nothing is left behind. No file is overwritten.
"""

import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.authoring.answers import EMBEDDED, Answers
from harness.authoring.claims import claims_content
from harness.authoring.comments import CLAIM_COMMENTS, CLAIM_HEAD, COMMENTS, HEAD, PROFILE_HEAD, TAPED_COMMENTS
from harness.authoring.draft import ModelFacts, study_content
from harness.authoring.profile import profile_of
from harness.authoring.toml import document
from harness.checks.judges import check_judges
from harness.claims.load import NAME as CLAIM_RULES
from harness.claims.load import check_claims
from harness.claims.vocabulary import sources_of
from harness.errors import ProtocolError, StorageError
from harness.files import require_writable
from harness.inputs.find import find_inputs
from harness.inputs.sources import selected_sources
from harness.model.context import context_of
from harness.model.official import official_sampling
from harness.places import Places
from harness.prompts.build import build_batch
from harness.prompts.manifest import manifest_source
from harness.prompts.records import StudyCell
from harness.prompts.tokenizer import PromptTokenizer, make_tokenizer, tokenizer_files
from harness.protocols.check import check_gates, check_manifest, check_protocol
from harness.protocols.fit import check_fit
from harness.protocols.folders import protocol_ids
from harness.protocols.freeze import make_manifest, sources_per_domain
from harness.protocols.load import LoadedProtocol, read_profile, read_protocol
from harness.protocols.revisions import protocol_digest
from harness.records.base import convert
from harness.records.claims import ClaimRules
from harness.records.profile import Profile

PROTOCOL, PROFILE, INPUTS, CHECKPOINT = "protocol.toml", "profile.toml", "inputs", "checkpoint"
TODO = "Answer otherwise, or write protocol.toml by hand (docs/authoring.md); nothing was written."


@dataclass(frozen=True, slots=True)
class Made:
    """A study that was written: its folder, what was put there, and what was tried on the way."""

    folder: Path
    files: tuple[str, ...]
    sources: int
    prompts: int
    edited: int
    joined: tuple[str, ...]


def make_study(answers: Answers, folder: Path, tree: Places) -> Made:
    """Write the folder of a study; a HarnessError says why not, and leaves it as it was."""
    _require_free(answers, folder, tree)
    tokenizer, profile = _model(answers, tree)
    facts = ModelFacts(profile, _tokens(answers, tokenizer), official_sampling(_checkpoint(answers, tree)))
    content = study_content(answers, facts, folder, tree)
    with tempfile.TemporaryDirectory(prefix="pregate-init-") as name:
        apart = Path(name) / answers.id
        (apart / INPUTS).mkdir(parents=True)
        _write(apart / PROTOCOL, document(HEAD, content, _comments(answers)))
        _write(apart / CLAIM_RULES, document(CLAIM_HEAD, claims_content(answers, content, tree), CLAIM_COMMENTS))
        if answers.checkpoint is not None:
            plain = msgspec.to_builtins(profile)
            _write(apart / PROFILE, document(PROFILE_HEAD, plain, {}))
        for source in answers.sources:
            if source.file is not None:
                shutil.copyfile(source.file, apart / INPUTS / source.file.name)
        made = _tried(apart, folder, tokenizer, profile, context_of(_checkpoint(answers, tree)))
        _put(apart, folder)
    if answers.checkpoint is not None:
        (folder / CHECKPOINT).symlink_to(answers.checkpoint.resolve(), target_is_directory=True)
    return made


def _require_free(answers: Answers, folder: Path, tree: Places) -> None:
    """A folder named as the protocol, without any file that would be written, under an ID that is nobody's."""
    if folder.resolve().name != answers.id or answers.id in protocol_ids(tree):
        taken = answers.id in protocol_ids(tree)
        found = f"{answers.id}, which is a protocol already" if taken else f"the ID {answers.id}"
        raise ProtocolError(f"init: {folder}", expected="the protocol's ID as name, a new one", found=found, todo=TODO)
    names = (PROTOCOL, PROFILE, CLAIM_RULES, INPUTS, CHECKPOINT, "manifest.json")
    there = [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise ProtocolError(
            f"init: {folder}",
            expected=f"a folder without {', '.join(names)}",
            found=", ".join(there),
            todo="Name another folder: nothing is overwritten.",
        )
    names_of = [source.file.name for source in answers.sources if source.file is not None]
    if len(set(names_of)) != len(names_of):
        raise ProtocolError("init: sources", expected="files of different names", found=", ".join(names_of), todo=TODO)


def _model(answers: Answers, tree: Places) -> tuple[PromptTokenizer, Profile]:
    if answers.checkpoint is None:
        profile = read_profile(tree.models / EMBEDDED / PROFILE)
    else:
        profile = profile_of(answers.checkpoint, f"{answers.id}-model")
    files = tokenizer_files(profile, answers.checkpoint, tree)
    return make_tokenizer(*files.values(), profile=profile, where=str(answers.checkpoint or EMBEDDED)), profile


def _tokens(answers: Answers, tokenizer: PromptTokenizer) -> dict[str, int]:
    """EOS first, then the tokens that edits put, by their texts; ProtocolError for a text that isn't one token."""
    tokens = {tokenizer.special_texts.eos: tokenizer.special_ids.eos}
    for name, text in answers.edits.items():
        ids = tokenizer.encode(text)
        if len(ids) != 1 or name == "eos" or text in tokens:
            found = f"{list(ids)} under the name {name}"
            expected = "another text than EOS, of one token"
            raise ProtocolError(f"init: edit {name}={text}", expected=expected, found=found, todo=TODO)
        tokens[text] = ids[0]
    return tokens


def _checkpoint(answers: Answers, tree: Places) -> Path:
    return answers.checkpoint or tree.models / EMBEDDED / CHECKPOINT


def _tried(apart: Path, folder: Path, tokenizer: PromptTokenizer, profile: Profile, context: int | None) -> Made:
    """What was written is read as a run will read it, and everything that freezing needs holds."""
    protocol = read_protocol(apart / PROTOCOL)
    check_protocol(protocol)
    if (apart / PROFILE).exists() and read_profile(apart / PROFILE) != profile:
        raise RuntimeError("a profile that isn't read back as it was written")
    found, salt = find_inputs(protocol, (apart / INPUTS,)), protocol.selection.salt
    count = sources_per_domain(protocol)
    batches = [
        build_batch(protocol, tokenizer, source)
        for domain in protocol.domains
        for source in selected_sources(protocol, found, domain.name, tokenizer.count, count)
    ]
    manifest = make_manifest(protocol, tokenizer.sha256, [manifest_source(batch, salt) for batch in batches])
    check_manifest(protocol, manifest)
    check_gates(protocol, manifest, profile)
    check_fit(protocol, manifest, context)
    check_judges(protocol, manifest, found, folder)
    loaded = LoadedProtocol(protocol, manifest, profile, protocol_digest(protocol, manifest, profile), apart)
    rules = convert(_toml(apart / CLAIM_RULES), ClaimRules, where=CLAIM_RULES, error=ProtocolError, todo=TODO)
    check_claims(CLAIM_RULES, loaded, rules, sources_of(loaded))
    cells = [cell for batch in batches for cell in batch.cells if isinstance(cell, StudyCell)]
    return Made(
        folder=folder,
        files=tuple(_written(apart)),
        sources=len(batches),
        prompts=len(cells),
        edited=sum(bool(cell.edited.edits) for cell in cells),
        joined=tuple(dict.fromkeys(cell.condition for cell in cells if not cell.edited.round_trip)),
    )


def _comments(answers: Answers) -> dict[str, str]:
    return {**COMMENTS, **({} if answers.sampling is None else TAPED_COMMENTS)}


def _written(apart: Path) -> Iterator[str]:
    for path in sorted(apart.rglob("*")):
        if path.is_file():
            yield path.relative_to(apart).as_posix()


def _put(apart: Path, folder: Path) -> None:
    require_writable(folder)
    try:
        for name in _written(apart):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(apart / name, folder / name)
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise StorageError(str(folder), expected="a place to write", found=found, todo="Name another.") from error


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8"))


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
