"""Where a loaded model's stages and gates are, by the module contract of transformers' decoder models. Without torch.

`model.model.embed_tokens`, `.layers[i]`, `.norm`; a layer's gate is `mlp.gate` or `block_sparse_moe.gate`. A layer that
holds experts or a router under any other name is refused, never taken for a dense one.
"""

from dataclasses import dataclass
from typing import Any

from harness.errors import ModelError
from harness.protocols.stages import EMBEDDING, FINAL_NORM, layer_name
from harness.trace.gates import GateRule, gate_rule, unknown_contract

GATES = ("mlp.gate", "block_sparse_moe.gate")
_ROUTING = frozenset({"block_sparse_moe", "experts", "gate", "moe", "router"})
_COUNTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")


@dataclass(frozen=True, slots=True)
class Place:
    """A module to watch: its stage's or gate's name, its path in the model, and itself."""

    name: str
    path: str
    module: Any


@dataclass(frozen=True, slots=True)
class Line:
    """The stages in the order of the forward, the gates in the order of the layers, and the gates' rule if any."""

    stages: tuple[Place, ...]
    gates: tuple[Place, ...]
    rule: GateRule | None


def find_line(model: Any) -> Line:
    """The hidden and the router line of a causal language model; ModelError where its modules keep no such contract."""
    base = _get(model, "model")
    embedding, layers, norm = (_get(base, name) for name in ("embed_tokens", "layers", "norm"))
    if embedding is None or norm is None or not layers:
        raise ModelError(
            type(model).__name__,
            expected="modules model.embed_tokens, model.layers and model.norm",
            found=", ".join(name for name, _ in (base if base is not None else model).named_children()),
            todo="A trace follows transformers' decoder models only.",
        )
    stages = [Place(layer_name(index), f"model.layers.{index}", layer) for index, layer in enumerate(layers)]
    gates = tuple(gate for index, layer in enumerate(layers) for gate in _gates_of(index, layer))
    return Line(
        (Place(EMBEDDING, "model.embed_tokens", embedding), *stages, Place(FINAL_NORM, "model.norm", norm)),
        gates,
        _rule(model.config, gates),
    )


def _get(module: Any, name: str) -> Any:
    return getattr(module, name, None)


def _gates_of(index: int, layer: Any) -> list[Place]:
    modules = dict(layer.named_modules())
    found = [path for path in GATES if path in modules]
    routing = [path for path in modules if path.rsplit(".", maxsplit=1)[-1] in _ROUTING]
    if len(found) > 1 or (routing and not found):
        raise unknown_contract(f"model.layers.{index}", f"{type(layer).__name__} with {', '.join(sorted(routing))}")
    return [Place(layer_name(index), f"model.layers.{index}.{path}", modules[path]) for path in found]


def _rule(config: Any, gates: tuple[Place, ...]) -> GateRule | None:
    if gates:
        return gate_rule(config, gates[0].path)
    counts = {name: count for name in _COUNTS if isinstance(count := getattr(config, name, None), int) and count > 1}
    if counts:
        raise unknown_contract("config", f"{counts} and no gate module")
    return None
