"""A model's profile from its checkpoint folder: what files it is made of, what shape it has, which IDs are special.

Everything is read from the folder and hashed; nothing of it is executed. A file that isn't known is refused rather than
left out, since a library could load it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast, get_args

from harness.errors import ModelError
from harness.files import file_sha256
from harness.model.identity import INERT, check_special_ids
from harness.model.json_file import json_object
from harness.model.shape import shape_of
from harness.records.base import Frozen
from harness.records.profile import Profile, ProfileFile, Role, SpecialIds

DTYPE = Literal["bfloat16", "float16", "float32"]
TODO = "Give a folder with a chat model's config, tokenizer and safetensors files alone."
ROLES: Mapping[str, Role] = {
    "config.json": "config",
    "generation_config.json": "generation_config",
    "tokenizer.json": "tokenizer",
    "tokenizer_config.json": "tokenizer_config",
    "chat_template.jinja": "chat_template",
    "model.safetensors.index.json": "index",
}
# Of a tokenizer's other formats, which no part of the harness reads.
OTHER = ("special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model", "vocab.txt")
ORDER: tuple[Role, ...] = get_args(Role)


def profile_of(checkpoint: Path, profile_id: str) -> Profile:
    """The profile of a checkpoint folder; ModelError or StorageError where it isn't a whole chat model's."""
    files = _files(checkpoint)
    _require(checkpoint, files)
    where = checkpoint / "config.json"
    config = json_object(where, todo=TODO)
    if "quantization_config" in config:
        raise ModelError(f"{where}: quantization_config", expected="none", found="a quantised model", todo=TODO)
    stored = str(config.get("dtype") or config.get("torch_dtype"))
    if stored not in get_args(DTYPE):
        raise ModelError(f"{where}: dtype", expected=f"one of {get_args(DTYPE)}", found=stored, todo=TODO)
    profile = Profile(
        schema=1,
        id=profile_id,
        repository=f"checkpoint folder {checkpoint.resolve().name}",
        revision="by the digests of its files",
        identity="recorded by init; what the model was trained on isn't known here",
        stored_dtype=cast("DTYPE", stored),
        weights="safetensors",
        quantised=False,
        attention_kernels="eager",
        shape=shape_of(config, str(where)),
        special_ids=special_ids_of(checkpoint),
        files=files,
    )
    check_special_ids(profile, checkpoint)
    return profile


def special_ids_of(checkpoint: Path) -> SpecialIds:
    """IDs of the tokenizer's special tokens by their texts: EOS, BOS where it has one, PAD or, without one, EOS."""
    config = json_object(checkpoint / "tokenizer_config.json", todo=TODO)
    known = _token_ids(checkpoint / "tokenizer.json")
    ids: dict[str, int | None] = {}
    for name in ("bos", "eos", "pad"):
        value = config.get(f"{name}_token")
        text = value.get("content") if isinstance(value, dict) else value
        if text is not None and text not in known:
            where = f"{checkpoint / 'tokenizer_config.json'}: {name}_token"
            raise ModelError(where, expected="a token of tokenizer.json", found=repr(text), todo=TODO)
        ids[name] = known.get(text) if text is not None else None
    eos = ids["eos"]
    if eos is None:
        where = f"{checkpoint / 'tokenizer_config.json'}: eos_token"
        raise ModelError(where, expected="a token that ends an answer", found="none", todo=TODO)
    pad = ids["pad"]
    bos = ids["bos"]
    return SpecialIds(bos="none" if bos is None else bos, eos=eos, pad=eos if pad is None else pad)


def _files(checkpoint: Path) -> tuple[ProfileFile, ...]:
    if not checkpoint.is_dir():
        raise ModelError(str(checkpoint), expected="a checkpoint folder", found="none", todo=TODO)
    files = []
    for path in sorted(checkpoint.iterdir()):
        if path.name.startswith(INERT):
            continue
        role = _role(path)
        if role is None or not path.is_file():
            raise ModelError(
                str(path),
                expected="a config, a tokenizer or safetensors weights",
                found="a file of another kind, which a library could load",
                todo=f"Move it away if the model doesn't need it. {TODO}",
            )
        digest = Frozen(sha256=file_sha256(path, what="checkpoint file"))
        files.append(ProfileFile(name=path.name, role=role, digest=digest))
    return tuple(sorted(files, key=lambda file: (ORDER.index(file.role), file.name)))


def _role(path: Path) -> Role | None:
    if path.suffix == ".safetensors" and not path.name.startswith("adapter"):
        return "weights"
    return "other" if path.name in OTHER else ROLES.get(path.name)


def _require(checkpoint: Path, files: tuple[ProfileFile, ...]) -> None:
    roles = [file.role for file in files]
    owed = [role for role in ("weights", "config", "tokenizer", "tokenizer_config") if role not in roles]
    if owed:
        found = ", ".join(file.name for file in files) or "nothing"
        raise ModelError(str(checkpoint), expected=f"also {', '.join(owed)}", found=found, todo=TODO)


def _token_ids(path: Path) -> dict[str, int]:
    """Texts of the tokenizer's added tokens and of its vocabulary, with their IDs."""
    content = json_object(path, todo=TODO)
    vocabulary = content.get("model", {}).get("vocab", {})
    known = dict(vocabulary) if isinstance(vocabulary, dict) else {}
    return known | {one["content"]: one["id"] for one in content.get("added_tokens", [])}
