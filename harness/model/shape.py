"""A model's shape as its config has it: counts that a loaded config must show, by family. No torch here.

The families differ in what they call their experts. A config of a family that isn't listed is a dense model's, and one
that has such a field all the same is no dense model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import ModelError
from harness.records.profile import Shape

Config = Mapping[str, object]
TODO = "Another shape is another profile under another name."


@dataclass(frozen=True, slots=True)
class ExpertFields:
    """What a family's config calls the number of leading dense layers (empty: none is dense), of experts, and top-k."""

    dense: str
    experts: str
    top_k: str


DEEPSEEK = ExpertFields("first_k_dense_replace", "n_routed_experts", "num_experts_per_tok")
QWEN = ExpertFields("", "num_experts", "num_experts_per_tok")
FAMILIES: Mapping[str, ExpertFields] = {
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "mixtral": ExpertFields("", "num_local_experts", "num_experts_per_tok"),
    "qwen2_moe": QWEN,
    "qwen3_moe": QWEN,
    "olmoe": QWEN,
}
ANY = tuple(dict.fromkeys(name for one in FAMILIES.values() for name in (one.dense, one.experts, one.top_k) if name))
# Layers with experts and without, in a pattern that no count says.
MIXED: Mapping[str, tuple[object, ...]] = {"decoder_sparse_step": (1,), "mlp_only_layers": ([], None)}


def expected_fields(shape: Shape) -> dict[str, object]:
    """What a config of this shape says, by field; None: it has no such field."""
    own = FAMILIES.get(shape.model_type)
    experts: dict[str, object] = dict.fromkeys(ANY if own is None else ())
    if own is not None:
        experts = {own.experts: shape.routed_experts, own.top_k: shape.experts_per_token}
        experts |= {own.dense: shape.dense_layers} if own.dense else {}
    return {
        "model_type": shape.model_type,
        "num_hidden_layers": shape.layers,
        **experts,
        "hidden_size": shape.hidden_size,
        "vocab_size": shape.vocabulary_columns,
    }


def shape_of(config: Config, where: str) -> Shape:
    """The shape that a config shows; ModelError for a field that is lacking, or layers that no count describes."""
    names = config.get("architectures")
    model_type = _text(config.get("model_type"), f"{where}: model_type")
    own = FAMILIES.get(model_type)
    layers = _count(config, "num_hidden_layers", where)
    for name, plain in MIXED.items() if own is not None else ():
        if name in config and config[name] not in plain:
            raise _wrong(f"{where}: {name}", f"one of {list(plain)}", config[name])
    shape = Shape(
        architecture=_text(names[0] if isinstance(names, list) and names else None, f"{where}: architectures"),
        model_type=model_type,
        layers=layers,
        dense_layers=layers if own is None else _count(config, own.dense, where) if own.dense else 0,
        routed_experts=0 if own is None else _count(config, own.experts, where),
        experts_per_token=0 if own is None else _count(config, own.top_k, where),
        hidden_size=_count(config, "hidden_size", where),
        vocabulary_columns=_count(config, "vocab_size", where),
    )
    check_fields(config, shape, where)
    return shape


def check_fields(config: Config, shape: Shape, where: str) -> None:
    """ModelError for the first field of a config that isn't what the shape says."""
    for name, value in expected_fields(shape).items():
        if config.get(name) != value:
            raise _wrong(f"{where}: {name}", value, config.get(name, "no such field"))


def _count(config: Config, name: str, where: str) -> int:
    value = config.get(name)
    if type(value) is not int:
        raise _wrong(f"{where}: {name}", "a count", config.get(name, "no such field"))
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "a name", value)
    return value


def _wrong(where: str, expected: object, found: object) -> ModelError:
    return ModelError(where, expected=str(expected), found=str(found), todo=TODO)
