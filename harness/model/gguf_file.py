"""A GGUF file's tensors and settings in the terms of a Llama checkpoint. Knows no profile, no folder and no torch.

GGUF stores weights in blocks of small integers with a scale of 16 bits (Q8_0; Q4_1 with a minimum too), and the rows of
query and key projections in the order of another rotary layout. Both are undone here: numbers in float32, rows as
transformers has them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from harness.errors import ModelError

TODO = "Take the file that convert.toml names."
NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
HEADS = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}
# Each setting of the file beside the field of config.json that must have its value.
CONFIG = {
    "llama.block_count": "num_hidden_layers",
    "llama.context_length": "max_position_embeddings",
    "llama.embedding_length": "hidden_size",
    "llama.feed_forward_length": "intermediate_size",
    "llama.attention.head_count": "num_attention_heads",
    "llama.attention.head_count_kv": "num_key_value_heads",
    "llama.rope.freq_base": "rope_theta",
    "llama.rope.dimension_count": "head_dim",
    "llama.vocab_size": "vocab_size",
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.padding_token_id": "pad_token_id",
}
CONTROL = 3  # GGUF's token type of a special token


class LlamaFile:
    """An open GGUF file of a Llama model with tied embeddings; ModelError where it is another kind of file."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            self._reader = gguf.GGUFReader(path)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(self.name, expected="a GGUF file", found=str(error), todo=TODO) from error
        for key, value in (("general.architecture", "llama"), ("tokenizer.ggml.model", "gpt2")):
            self.require(key, value)

    def value(self, key: str) -> Any:
        """A setting's value; ModelError where the file has none of that name."""
        field = self._reader.fields.get(key)
        if field is None:
            raise ModelError(f"{self.name}: {key}", expected="a value", found="none", todo=TODO)
        return field.contents()

    def require(self, key: str, expected: object) -> None:
        """Raise ModelError unless a setting has this value (a float: once rounded to float32)."""
        found = self.value(key)
        same = np.float32(expected) == np.float32(found) if isinstance(expected, float) else found == expected
        if not same:
            raise ModelError(f"{self.name}: {key}", expected=str(expected), found=str(found), todo=TODO)

    def require_config(self, config: dict[str, Any]) -> None:
        """Raise ModelError unless every setting that shapes the model is config.json's."""
        for key, field in CONFIG.items():
            self.require(key, config.get(field))
        self.require("llama.attention.layer_norm_rms_epsilon", float(config["rms_norm_eps"]))

    def weights(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """(name, float32 array) of every tensor, named and laid out as transformers' Llama has them."""
        for tensor in self._reader.tensors:
            shape = tuple(int(one) for one in reversed(tensor.shape))
            numbers = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
            yield self._placed(str(tensor.name), numbers.reshape(shape))

    def _placed(self, name: str, numbers: NDArray[np.float32]) -> tuple[str, NDArray[np.float32]]:
        if name in WHOLE:
            return WHOLE[name], numbers
        head, _, rest = name.removeprefix("blk.").partition(".")
        part = rest.removesuffix(".weight")
        if not (name.startswith("blk.") and head.isdecimal() and part in NAMES):
            known = "a tensor of a Llama model with tied embeddings"
            raise ModelError(f"{self.name}: {name}", expected=known, found="another", todo=TODO)
        if part in HEADS:
            numbers = unpermuted(numbers, int(self.value(HEADS[part])))
        return f"model.layers.{head}.{NAMES[part]}.weight", numbers

    def vocabulary(self) -> tuple[list[str], list[str], list[int]]:
        """Tokens by ID, merges in order ("left right"), and the IDs of special tokens."""
        tokens, merges, kinds = (self.value(f"tokenizer.ggml.{key}") for key in ("tokens", "merges", "token_type"))
        return tokens, merges, [place for place, kind in enumerate(kinds) if kind == CONTROL]


def unpermuted(numbers: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows [heads x pairs x 2] of the interleaved rotary layout as [heads x 2 x pairs], the layout of halves."""
    rows, columns = numbers.shape
    halves = numbers.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2)
    return np.ascontiguousarray(halves).reshape(rows, columns)
