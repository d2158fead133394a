"""The names of a model's hidden stages and gates, and how many there are (R05 depth 7.1), from its shape alone."""

from harness.records.profile import Shape

EMBEDDING, FINAL_NORM = "embedding", "final_norm"


def layer_name(layer: int) -> str:
    """`layer_00`, `layer_01`...; the same name for a layer's stage and for its gate."""
    return f"layer_{layer:02d}"


def stage_names(layers: int) -> tuple[str, ...]:
    """The hidden line of a model of so many decoder layers, in the order of the forward: layers + 2 stages."""
    return (EMBEDDING, *(layer_name(layer) for layer in range(layers)), FINAL_NORM)


def expected_stages(shape: Shape) -> tuple[str, ...]:
    """The hidden line of a profile's model."""
    return stage_names(shape.layers)


def expected_gates(shape: Shape) -> tuple[str, ...]:
    """The router line: one gate a layer after the dense ones; none for a dense model (no routed experts)."""
    if shape.routed_experts == 0:
        return ()
    return tuple(layer_name(layer) for layer in range(shape.dense_layers, shape.layers))


def expected_route_decisions(shape: Shape, *, target_tokens: int, cells: int) -> int:
    """Tokens of the target x cells x gates x top-k (R05 depth 7.3)."""
    return target_tokens * cells * len(expected_gates(shape)) * shape.experts_per_token
