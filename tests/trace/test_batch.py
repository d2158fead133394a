"""Laying out a batch: tokens without padding, targets, edges; and what makes no batch."""

import pytest

from harness.protocols.stages import expected_gates, expected_route_decisions, expected_stages
from harness.records.depth import TargetTokens
from harness.records.profile import Shape
from harness.trace.batch import EdgeRows, lay_out

IDS, MASK = [[9, 9, 5, 6], [9, 4, 5, 6]], [[0, 0, 1, 1], [0, 1, 1, 1]]
SHAPE = Shape(
    architecture="A", model_type="m", layers=27, dense_layers=1, routed_experts=64, experts_per_token=6,
    hidden_size=8, vocabulary_columns=9,
)  # fmt: skip


def target(start=0, end=1):
    """A target."""
    return TargetTokens(start=start, end=end, crossing=0)


def layout(**change):
    """A layout with one thing changed."""
    whole = {"ids": IDS, "mask": MASK, "targets": (target(), target(1, 2)), "edges": (EdgeRows("e", 0, 1),)}
    return lay_out(**(whole | change))


def test_tokens_stand_one_after_another():
    """Places in the flattened batch, padding left out; targets among all tokens."""
    found = layout()
    assert found.live == (2, 3, 5, 6, 7)
    assert [(cut.start, cut.end, cut.target) for cut in found.cuts] == [(0, 2, (0, 1)), (2, 5, (3, 4))]
    assert (found.tokens, found.width) == (5, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"ids": [[9, 5], [9, 4, 5, 6]]}, "as wide", id="width"),
        pytest.param({"mask": MASK[:1]}, "as many", id="mask"),
        pytest.param({"targets": (target(),)}, "as many", id="targets"),
        pytest.param({"mask": [[0, 0, 1, 1], [1, 1, 1, 0]]}, "row 1 isn't padded on the left", id="right"),
        pytest.param({"mask": [[0, 1, 0, 1], [0, 1, 1, 1]]}, "row 0 isn't padded on the left", id="hole"),
        pytest.param({"targets": (target(1, 3), target())}, r"row 0: target \[1, 3\) of 2 tokens", id="beyond"),
        pytest.param({"targets": (target(1, 1), target())}, r"row 0: target \[1, 1\)", id="empty"),
        pytest.param({"targets": (target(-1, 1), target())}, r"row 0: target \[-1, 1\)", id="before"),
        pytest.param({"targets": (target(), target(0, 2))}, "edges between targets of 1 and 2 tokens", id="lengths"),
        pytest.param({"edges": (EdgeRows("e", 0, 2),)}, "edge e: rows 0 and 2 of 2", id="row"),
    ],
)
def test_what_makes_no_batch_is_misuse(change, message):
    """Each named."""
    with pytest.raises(RuntimeError, match=message):
        layout(**change)


def test_names_follow_the_shape():
    """R05 depth 7.1: 29 stages and 26 gates for 27 layers of which the first is dense."""
    stages, gates = expected_stages(SHAPE), expected_gates(SHAPE)
    assert (len(stages), stages[0], stages[1], stages[-2], stages[-1]) == (
        29, "embedding", "layer_00", "layer_26", "final_norm",
    )  # fmt: skip
    assert (len(gates), gates[0], gates[-1]) == (26, "layer_01", "layer_26")


def test_the_scale_identity():
    """R05 depth 7.3: 1,537 tokens, eight conditions."""
    assert expected_route_decisions(SHAPE, target_tokens=1537, cells=8) == 1_918_176


def test_a_dense_model_has_no_gates():
    """Its profile registers no routed experts."""
    values = {name: getattr(SHAPE, name) for name in Shape.__struct_fields__}
    assert expected_gates(Shape(**values | {"routed_experts": 0})) == ()
