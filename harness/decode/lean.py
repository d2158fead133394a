"""DeepSeek-V2's decode step from the model's own weights: attention over the compressed cache, experts that are hit.

The same formulas as the library's modules in another order of rounding, so an execution contract of its own. Keys and
values are never expanded: the up-projection is applied to the query and to the attended latent instead. Parts can be
computed by Triton kernels, and a small model's experts all at once; what isn't, torch or the library's module computes.
"""

import importlib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.nn import functional

from harness.decode.all_experts import AllExperts
from harness.decode.fixed import FixedBatch, Layers
from harness.errors import ModelError
from harness.model.load import LoadedModel

Part = Literal["experts", "attention", "norms", "all_experts"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the attention: heads, and of a head without and with position, of the latent, and of a value."""

    heads: int
    nope: int
    rope: int
    latent: int
    value: int

    @property
    def queries(self) -> int:
        """Columns of all queries."""
        return self.heads * (self.nope + self.rope)


@dataclass(frozen=True, slots=True)
class AttentionWeights:
    """`entry` [queries + latent + rope, hidden]: queries and latent in one product. `up_keys` [heads, nope, latent],
    `up_values` [heads, value, latent]; `norm` of the latent with its `eps`; `out` [hidden, heads * value].
    """

    shape: Shape
    entry: torch.Tensor
    norm: torch.Tensor
    eps: float
    up_keys: torch.Tensor
    up_values: torch.Tensor
    out: torch.Tensor
    scaling: float


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """A layer: its two norms with their eps, its attention, and its MLP: the library's module, or all experts."""

    before: torch.Tensor
    after: torch.Tensor
    eps: float
    attention: AttentionWeights
    mlp: Any


@dataclass(frozen=True, slots=True)
class Turn:
    """What all layers of a step share: cosine and sine float32 [rows, rope / 2], and the batch."""

    cosine: torch.Tensor
    sine: torch.Tensor
    batch: FixedBatch


class LeanStep:
    """The whole step. `kernels`: parts that Triton computes, on a CUDA device or in its interpreter; `all_experts`:
    torch computes all of a layer's experts for every row (`harness.decode.all_experts`), on any device.
    """

    def __init__(self, loaded: LoadedModel, kernels: Sequence[Part]) -> None:
        require_lean(loaded)
        if {"experts", "all_experts"} <= {*kernels}:
            raise RuntimeError("one of the two computes the experts, got both")
        self.name = f"lean, kernels {'+'.join(sorted(kernels)) or 'none'}"
        self._model, self._kernels = loaded.model, frozenset(kernels)
        self._triton = _optional("harness.decode.kernels", {"attention", "norms"} & self._kernels)
        self._experts = _optional("harness.decode.expert_kernels", {"experts"} & self._kernels)
        whole = "all_experts" in self._kernels
        self._layers = [_layer(one, all_experts=whole) for one in loaded.model.model.layers]
        self._caches: list[torch.Tensor] = []

    def begin(self, layers: Layers, batch: FixedBatch) -> None:
        """Caches [rows, columns, latent + rope] with the prompt's columns filled."""
        self._caches = []
        for latents, turned in layers:
            cache = latents.new_zeros(batch.rows, batch.columns, latents.shape[-1] + turned.shape[-1])
            cache[:, : batch.width] = torch.cat([latents[:, 0], turned[:, 0]], dim=-1)
            self._caches.append(cache)

    def __call__(self, batch: FixedBatch) -> torch.Tensor:
        """Logits of the batch's inputs."""
        model, now = self._model.model, batch.inputs
        hidden = model.embed_tokens(now.ids)[:, 0].clone()
        turns = torch.view_as_real(model.rotary_emb(hidden, now.positions)[:, 0])
        turn = Turn(turns[..., 0].contiguous(), turns[..., 1].contiguous(), batch)
        parts = hidden.new_empty(len(hidden), 0, hidden.shape[-1])
        for layer, cache in zip(self._layers, self._caches, strict=True):
            hidden, normed = self._norm(hidden, parts, layer.before, layer.eps, batch)
            parts = self._attend(layer.attention, normed, cache, turn)[:, None]
            hidden, normed = self._norm(hidden, parts, layer.after, layer.eps, batch)
            parts = self._mlp(layer.mlp, normed, batch)
        _, normed = self._norm(hidden, parts, model.norm.weight, model.norm.variance_epsilon, batch)
        logits = functional.linear(normed, self._model.lm_head.weight)
        return logits.to(dtype=torch.float32, copy=True)

    def _norm(
        self, hidden: torch.Tensor, parts: torch.Tensor, weight: torch.Tensor, eps: float, batch: FixedBatch
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if "norms" in self._kernels:
            return self._triton.add_norm(hidden, parts, weight, eps, batch.inputs.live)  # type: ignore[no-any-return]
        return add_norm(hidden, parts.masked_fill(~batch.inputs.live[:, None, None], 0), weight, eps)

    def _attend(self, weights: AttentionWeights, normed: torch.Tensor, cache: torch.Tensor, turn: Turn) -> torch.Tensor:
        entry = functional.linear(normed, weights.entry)
        attend = self._triton.attend if "attention" in self._kernels else attend_latents
        return functional.linear(attend(weights, entry, cache, turn), weights.out)

    def _mlp(self, mlp: Any, normed: torch.Tensor, batch: FixedBatch) -> torch.Tensor:
        if "experts" in self._kernels:
            return self._experts.mlp_parts(mlp, normed, batch.inputs.live)  # type: ignore[no-any-return]
        if isinstance(mlp, AllExperts):
            return mlp(normed)[:, None]
        return mlp(normed[:, None])  # type: ignore[no-any-return]


def _optional(name: str, parts: Set[str]) -> Any:
    """A module with kernels where parts of it are asked for: it can't be imported without Triton."""
    return importlib.import_module(name) if parts else None


def add_norm(
    hidden: torch.Tensor, parts: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """`hidden` [rows, size] with `parts` [rows, n, size] added, in its dtype; and its RMS norm times `weight`."""
    total = (hidden.float() + parts.float().sum(dim=1)).to(hidden.dtype)
    wide = total.float()
    scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return total, weight * scaled.to(hidden.dtype)


def attend_latents(weights: AttentionWeights, entry: torch.Tensor, cache: torch.Tensor, turn: Turn) -> torch.Tensor:
    """Write the slot's column of `cache` and attend to all: [rows, heads * value] from `entry` [rows, columns]."""
    shape, now = weights.shape, turn.batch.inputs
    rows = len(entry)
    query = entry[:, : shape.queries].view(rows, shape.heads, -1)
    latent, turned = entry[:, shape.queries :].tensor_split([shape.latent], dim=-1)
    empty = latent.new_empty(rows, 0, shape.latent)
    kept = add_norm(latent, empty, weights.norm, weights.eps)[1]
    cache.index_copy_(1, now.slot, torch.cat([kept, turned_by(turned, turn)], dim=-1)[:, None])
    lowered = torch.bmm(query[..., : shape.nope].transpose(0, 1), weights.up_keys).transpose(0, 1)
    asking = torch.cat([lowered, turned_by(query[..., shape.nope :], turn)], dim=-1)
    scores = torch.bmm(asking, cache.transpose(1, 2)) * weights.scaling + now.bias[:, 0]
    shares = torch.softmax(scores, dim=-1, dtype=torch.float32).to(entry.dtype)
    attended = torch.bmm(shares, cache[..., : shape.latent]).transpose(0, 1)
    return torch.bmm(attended, weights.up_values.transpose(1, 2)).transpose(0, 1).reshape(rows, -1)


def turned_by(values: torch.Tensor, turn: Turn) -> torch.Tensor:
    """Rotary embedding of neighbouring pairs, in float32: [rows, ..., rope], the rows' own positions."""
    between = (1,) * (values.dim() - 2)
    cosine, sine = (one.view(len(one), *between, -1) for one in (turn.cosine, turn.sine))
    even, odd = values.float().reshape(*values.shape[:-1], -1, 2).unbind(-1)
    pairs = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
    return pairs.flatten(-2).to(values.dtype)


def _layer(layer: Any, *, all_experts: bool) -> LayerWeights:
    own, norm = layer.self_attn, layer.input_layernorm
    shape = Shape(own.num_heads, own.qk_nope_head_dim, own.qk_rope_head_dim, own.kv_lora_rank, own.v_head_dim)
    up = own.kv_b_proj.weight.detach().view(shape.heads, shape.nope + shape.value, shape.latent)
    attention = AttentionWeights(
        shape=shape,
        entry=torch.cat([own.q_proj.weight.detach(), own.kv_a_proj_with_mqa.weight.detach()]),
        norm=own.kv_a_layernorm.weight.detach(),
        eps=own.kv_a_layernorm.variance_epsilon,
        up_keys=up[:, : shape.nope].contiguous(),
        up_values=up[:, shape.nope :].contiguous(),
        out=own.o_proj.weight.detach(),
        scaling=own.scaling,
    )
    return LayerWeights(
        before=norm.weight.detach(),
        after=layer.post_attention_layernorm.weight.detach(),
        eps=norm.variance_epsilon,
        attention=attention,
        mlp=AllExperts(layer.mlp) if all_experts and hasattr(layer.mlp, "experts") else layer.mlp,
    )


def require_lean(loaded: LoadedModel) -> None:
    """ModelError unless the model is one whose formulas these are, whole on the execution device."""
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    config = loaded.model.config
    wanted = {"model_type": "deepseek_v2", "q_lora_rank": None, "attention_bias": False, "mlp_bias": False}
    wanted |= {"topk_method": "greedy", "hidden_act": "silu", "tie_word_embeddings": False}
    found = {name: getattr(config, name, "none") for name in wanted}
    places = sorted({str(one.device) for one in loaded.model.parameters()})
    strided = sorted(name for name, one in loaded.model.named_parameters() if not one.is_contiguous())
    if found != wanted or places != [str(loaded.device)] or strided:
        raise ModelError(
            "lean step",
            expected=f"{wanted}, whole on {loaded.device}, each tensor in one piece",
            found=f"{found} on {', '.join(places)}, not in one piece: {', '.join(strided[:3]) or 'none'}",
            todo="Register the step over the model's own modules for this model or placement.",
        )
