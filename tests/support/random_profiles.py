"""Random profiles that are made on the CPU in seconds: nano's shape in one file, a smaller one in four."""

import json
import tomllib
from pathlib import Path
from typing import Any

from harness.canon import sha256_hex
from harness.model.layout import index_bytes, sharded, tensors

PROJECT = Path(__file__).resolve().parents[2]
NANO = PROJECT / "fixtures/models/nano"
NANO_RANDOM = "nano-random"
TINY_RANDOM = "tiny-random"
SHARDS = tuple(f"model-{number:05d}-of-000004.safetensors" for number in range(1, 5))
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 40.0,
    "original_max_position_embeddings": 4096,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 0.707,
    "mscale_all_dim": 0.707,
}
TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 128,
    "intermediate_size": 96,
    "rope_parameters": YARN,
}


def add_random(tree: Path, profile_id: str = NANO_RANDOM) -> None:
    """Write fixtures/models/<profile_id> into a tree: nano's tokenizer and shape, or TINY over it in four shards."""
    tiny = profile_id == TINY_RANDOM
    home = tree / "fixtures/models" / profile_id
    (home / "checkpoint").mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (home / "checkpoint" / name).symlink_to(NANO / "checkpoint" / name)
    config = json.loads((NANO / "checkpoint/config.json").read_bytes()) | (TINY if tiny else {})
    (home / "config.json").write_text(json.dumps(config))
    (home / "generation_config.json").write_bytes((NANO / "checkpoint/generation_config.json").read_bytes())
    names = SHARDS if tiny else ("model.safetensors",)
    fixed = {"config.json": "config", "generation_config.json": "generation_config"}
    digests = {name: sha256_hex((home / name).read_bytes()) for name in fixed}
    if tiny:
        fixed["model.safetensors.index.json"] = "index"
        index = index_bytes(sharded(tensors(config, "test"), names))
        digests["model.safetensors.index.json"] = sha256_hex(index)
    _write_profile(home, config, names, {name: (role, digests[name]) for name, role in fixed.items()})
    rule = {"schema": 1, "profile": profile_id}
    words = {"seed_rule": "sha256-profile-tensor", "draw": "normal", "norms": "ones"}
    (home / "random.toml").write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in (rule | words).items())
    )


def _write_profile(home: Path, config: dict[str, Any], names: tuple[str, ...], fixed: dict[str, Any]) -> None:
    content = tomllib.loads((NANO / "profile.toml").read_text(encoding="utf-8"))
    owed = {"state": "unfrozen", "reason": "drawn where it is made"}
    files = [{"name": name, "role": "weights", "digest": owed} for name in names]
    files += [
        {"name": name, "role": role, "digest": {"state": "frozen", "sha256": sha256}}
        for name, (role, sha256) in fixed.items()
    ]
    files += [one for one in content["files"] if one["role"].startswith("tokenizer")]
    shape = content["shape"] | {
        "layers": config["num_hidden_layers"],
        "routed_experts": config["n_routed_experts"],
        "experts_per_token": config["num_experts_per_tok"],
        "hidden_size": config["hidden_size"],
    }
    content |= {"id": home.name, "identity": "random weights", "repository": "made", "files": files, "shape": shape}
    lines = [f"{name} = {_value(value)}" for name, value in content.items()]
    (home / "profile.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
