"""Making a checkpoint with random weights: drawn tensor by tensor on the device, written shard by shard.

Every tensor has a generator of its own, seeded by its name: no order and no shard decides a number. The same numbers
come from the same kind of device and the same torch; CUDA's generator and the CPU's draw different ones.
"""

import json
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save_file

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.errors import ModelError, ProtocolError, StorageError
from harness.files import read_bytes, write_atomic
from harness.model.identity import MADE_RECORD, checkpoint_digests, registered_digest
from harness.model.layout import BF16_BYTES, Tensor, index_bytes, seed_of, sharded, tensors
from harness.model.room import require_empty
from harness.places import Places, places
from harness.prompts.tokenizer import tokenizer_files
from harness.protocols.load import read_profile
from harness.records.base import Frozen, convert
from harness.records.profile import Profile
from harness.records.random_weights import Device, MadeCheckpoint, MadeFile, RandomWeights

RULE = "random.toml"
SPARE_BYTES = 64 * 2**20  # tokenizer, index, configs, records
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RandomProfile:
    """A profile whose weights are drawn, with the small files that are the same wherever it is made, by name."""

    profile: Profile
    rule: RandomWeights
    config: dict[str, Any]
    shards: dict[str, tuple[Tensor, ...]]
    small: dict[str, bytes]


def make_checkpoint(
    profile_id: str, folder: Path, device: Device, tree: Places | None = None, note: Note = lambda _: None
) -> MadeCheckpoint:
    """Make the checkpoint in an empty or new folder and return its record, which is written last.

    At most one shard and its bytes are in host memory at a time. ProtocolError: no random profile; StorageError: a
    folder with files, a disk without room; ModelError: no such device, or a file that isn't the profile's.
    """
    random = read_random(profile_id, tree or places())
    require_empty(folder)
    _require_device(device)
    _require_room(folder, random)
    for name, data in random.small.items():
        write_atomic(folder / name, data)
    for name, weights in random.shards.items():
        note(f"drawing {name}")
        _write_shard(folder / name, random, weights, device)
    note("hashing")
    record = _record(random, folder, device, checkpoint_digests(random.profile, folder))
    write_atomic(folder / MADE_RECORD, canonical_bytes(record))
    return record


def read_random(profile_id: str, tree: Places) -> RandomProfile:
    """The profile with its rule, configs, tokenizer and the plan of its shards; each frozen digest is compared."""
    home = tree.models / profile_id
    rule = _rule(home)
    profile = read_profile(home / "profile.toml")
    if not profile.id == rule.profile == profile_id:
        raise _other(str(home), profile_id, f"profile {profile.id}, rule of {rule.profile}")
    by_role = {file.role: file.name for file in profile.files}
    small = {by_role[role]: read_bytes(home / by_role[role], what=role) for role in ("config", "generation_config")}
    small |= tokenizer_files(profile, None, tree)
    config = json.loads(small[by_role["config"]])
    names = tuple(file.name for file in profile.files if file.role == "weights")
    shards = sharded(tensors(config, str(home / by_role["config"])), names)
    if "index" in by_role:
        small[by_role["index"]] = index_bytes(shards)
    _require_frozen(profile, {name: sha256_hex(data) for name, data in small.items()}, str(home))
    return RandomProfile(profile, rule, config, shards, small)


def draw(profile_id: str, tensor: Tensor, deviation: float, device: str) -> torch.Tensor:
    """BF16 numbers of a weight, on the device: ones for a norm, else normal(0, deviation) drawn as float32."""
    if tensor.is_norm:
        return torch.ones(tensor.shape, dtype=torch.bfloat16, device=device)
    generator = torch.Generator(device).manual_seed(seed_of(profile_id, tensor.name))
    numbers = torch.empty(tensor.shape, dtype=torch.float32, device=device)
    return numbers.normal_(0.0, deviation, generator=generator).to(torch.bfloat16)


def _write_shard(path: Path, random: RandomProfile, weights: tuple[Tensor, ...], device: Device) -> None:
    deviation = float(random.config["initializer_range"])
    drawn = {one.name: draw(random.profile.id, one, deviation, device).cpu() for one in weights}
    try:
        save_file(drawn, path, metadata={"format": "pt"})
    except (OSError, safetensors.SafetensorError) as error:
        todo = "Free disk space, remove the folder and start again."
        raise StorageError(str(path), expected="a place to write", found=str(error), todo=todo) from error


def _record(random: RandomProfile, folder: Path, device: Device, found: dict[str, str]) -> MadeCheckpoint:
    _require_frozen(random.profile, found, str(folder))
    return MadeCheckpoint(
        schema=1,
        profile=random.profile.id,
        profile_sha256=digest(random.profile),
        seed_rule=random.rule.seed_rule,
        draw=random.rule.draw,
        standard_deviation=float(random.config["initializer_range"]),
        norms=random.rule.norms,
        parameters=sum(one.numbers for weights in random.shards.values() for one in weights),
        device=device,
        device_name=torch.cuda.get_device_name(0) if device == "cuda" else "cpu",
        torch=str(torch.__version__),
        cuda=torch.version.cuda or "none",
        safetensors=safetensors.__version__,
        files=tuple(
            MadeFile(
                name=file.name,
                role=file.role,
                bytes=(folder / file.name).stat().st_size,
                sha256=found[file.name],
            )
            for file in random.profile.files
        ),
    )


def _rule(home: Path) -> RandomWeights:
    path = home / RULE
    if not path.is_file():
        raise _other(str(home), f"a random profile, with {RULE}", f"no {RULE}")
    todo = "Take the frozen file back from version control."
    try:
        content = tomllib.loads(read_bytes(path, what=RULE).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(path), expected="UTF-8 TOML", found=str(error), todo=todo) from error
    return convert(content, RandomWeights, where=path, error=ProtocolError, todo=todo)


def _other(where: str, expected: str, found: str) -> ProtocolError:
    return ProtocolError(
        where,
        expected=expected,
        found=found,
        todo="Name a random profile under fixtures/models: its weights are drawn.",
    )


def _require_frozen(profile: Profile, found: dict[str, str], where: str) -> None:
    for file in profile.files:
        if isinstance(file.digest, Frozen) and found.get(file.name, file.digest.sha256) != file.digest.sha256:
            raise ModelError(
                f"{where}: {file.name} of {profile.id}",
                expected=registered_digest(file),
                found=found[file.name],
                todo="Take the frozen file back from version control; the tokenizer is the extra `deepseek`.",
            )


def _require_device(device: Device) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        todo = "Make it on the machine that runs it; --device cpu draws other numbers."
        raise ModelError("device", expected="a CUDA device", found="none", todo=todo)


def _require_room(folder: Path, random: RandomProfile) -> None:
    wanted = sum(one.numbers * BF16_BYTES for weights in random.shards.values() for one in weights) + SPARE_BYTES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise StorageError(str(folder), expected="a folder", found=found, todo="Choose another place.") from error
    if free < wanted:
        todo = "Free disk space or choose another place."
        raise StorageError(str(folder), expected=f"{wanted} bytes free", found=f"{free}", todo=todo)
