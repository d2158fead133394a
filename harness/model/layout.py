"""The tensors of a DeepSeek-V2 checkpoint: names, shapes, seeds, shards, index. Knows no numbers; no torch here.

Names are those of the published checkpoints, one tensor an expert and projection. The order is fixed: embedding, layers
by number, final norm, head.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

from harness.errors import ProtocolError

BF16_BYTES = 2
FIELDS = (
    "vocab_size", "hidden_size", "num_hidden_layers", "first_k_dense_replace", "intermediate_size",
    "moe_intermediate_size", "n_routed_experts", "n_shared_experts", "num_attention_heads", "kv_lora_rank",
    "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """A weight: its name in the checkpoint and its shape. Stored as BF16."""

    name: str
    shape: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)

    @property
    def is_norm(self) -> bool:
        """Whether it scales an RMS norm."""
        return self.name.endswith("norm.weight")


def seed_of(profile: str, tensor: str) -> int:
    """The tensor's seed, below 2**64: the first 8 bytes, big-endian, of SHA-256 of `<profile>/<tensor>`."""
    return int.from_bytes(hashlib.sha256(f"{profile}/{tensor}".encode()).digest()[:8], "big")


def tensors(config: dict[str, Any], where: str) -> tuple[Tensor, ...]:
    """Every weight of the configured model, in the fixed order; ProtocolError for a config of another family."""
    wanted = {"model_type": "deepseek_v2", "q_lora_rank": None, "tie_word_embeddings": False, "attention_bias": False}
    for name, value in wanted.items():
        if config.get(name, "no such field") != value:
            raise _refused(f"{where}: {name}", value, config.get(name, "no such field"))
    for name in FIELDS:
        if type(config.get(name)) is not int:
            raise _refused(f"{where}: {name}", "an integer", config.get(name, "no such field"))
    return tuple(_tensors(config))


def _tensors(config: dict[str, Any]) -> Iterator[Tensor]:
    vocabulary, hidden = config["vocab_size"], config["hidden_size"]
    yield Tensor("model.embed_tokens.weight", (vocabulary, hidden))
    for layer in range(config["num_hidden_layers"]):
        head = f"model.layers.{layer}"
        yield Tensor(f"{head}.input_layernorm.weight", (hidden,))
        yield from _attention(f"{head}.self_attn", config)
        yield Tensor(f"{head}.post_attention_layernorm.weight", (hidden,))
        if layer < config["first_k_dense_replace"]:
            yield from _feed_forward(f"{head}.mlp", hidden, config["intermediate_size"])
        else:
            yield from _experts(f"{head}.mlp", config)
    yield Tensor("model.norm.weight", (hidden,))
    yield Tensor("lm_head.weight", (vocabulary, hidden))


def _attention(head: str, config: dict[str, Any]) -> Iterator[Tensor]:
    hidden, heads, rank = config["hidden_size"], config["num_attention_heads"], config["kv_lora_rank"]
    nope, rope, value = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]
    yield Tensor(f"{head}.q_proj.weight", (heads * (nope + rope), hidden))
    yield Tensor(f"{head}.kv_a_proj_with_mqa.weight", (rank + rope, hidden))
    yield Tensor(f"{head}.kv_a_layernorm.weight", (rank,))
    yield Tensor(f"{head}.kv_b_proj.weight", (heads * (nope + value), rank))
    yield Tensor(f"{head}.o_proj.weight", (hidden, heads * value))


def _experts(head: str, config: dict[str, Any]) -> Iterator[Tensor]:
    hidden, width = config["hidden_size"], config["moe_intermediate_size"]
    yield Tensor(f"{head}.gate.weight", (config["n_routed_experts"], hidden))
    for expert in range(config["n_routed_experts"]):
        yield from _feed_forward(f"{head}.experts.{expert}", hidden, width)
    yield from _feed_forward(f"{head}.shared_experts", hidden, width * config["n_shared_experts"])


def _feed_forward(head: str, hidden: int, width: int) -> Iterator[Tensor]:
    yield Tensor(f"{head}.gate_proj.weight", (width, hidden))
    yield Tensor(f"{head}.up_proj.weight", (width, hidden))
    yield Tensor(f"{head}.down_proj.weight", (hidden, width))


def sharded(weights: tuple[Tensor, ...], names: tuple[str, ...]) -> dict[str, tuple[Tensor, ...]]:
    """The weights in order, cut into a file for each name, all of about one size; ProtocolError: one is empty."""
    total, before, placed = sum(one.numbers for one in weights), 0, []
    for one in weights:
        placed.append((before * len(names) // total, one))
        before += one.numbers
    groups = {number: tuple(one for _, one in group) for number, group in groupby(placed, key=lambda pair: pair[0])}
    if len(groups) != len(names):
        raise _refused("weight files", f"weights for each of {len(names)}", f"weights for {len(groups)}")
    return {names[number]: group for number, group in groups.items()}


def index_bytes(shards: dict[str, tuple[Tensor, ...]]) -> bytes:
    """model.safetensors.index.json: which file has which weight."""
    places = {one.name: name for name, weights in shards.items() for one in weights}
    size = sum(one.numbers * BF16_BYTES for weights in shards.values() for one in weights)
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))}
    return json.dumps(index, indent=2).encode() + b"\n"


def _refused(where: str, expected: object, found: object) -> ProtocolError:
    todo = "Correct the profile; another architecture needs tensors of its own, and none are guessed."
    return ProtocolError(where, expected=str(expected), found=str(found), todo=todo)
