"""Gate contracts on hand-made outputs: raw logits and the model's own choice, or a refusal with its name."""

import numpy as np
import pytest

from harness.errors import ModelError
from harness.trace.gates import GateOutput, GateRule, gate_rule, routes_of

RULE = GateRule(experts=8, top_k=3, normalised=False, scale=1.0)
GENERATOR = np.random.default_rng(5)
LOGITS = GENERATOR.normal(size=(6, 8)).astype(np.float32)


def softmax(logits):
    """In float32, as a model does."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float32)
    return raised / raised.sum(axis=1, keepdims=True)


def choice(logits=LOGITS, *, top_k=3, normalised=False, scale=1.0):
    """Weights and experts that a model makes of the logits, ascending: an order that nobody promised."""
    scores = softmax(logits)
    experts = np.argsort(scores, axis=1)[:, -top_k:]
    weights = np.take_along_axis(scores, experts, axis=1)
    if normalised:
        weights = weights / weights.sum(axis=1, keepdims=True)
    return (weights * np.float32(scale)).astype(np.float32), experts


def output(logits=LOGITS, weights=None, experts=None, weight_bytes=4):
    """A gate's output."""
    return GateOutput(logits=logits, weights=weights, experts=experts, weight_bytes=weight_bytes)


def full(logits=LOGITS, *, shown=None, **rule):
    """Logits with the choice made of them; `shown`: other logits in their place."""
    return output(logits if shown is None else shown, *choice(logits, **rule))


@pytest.mark.parametrize(("normalised", "scale"), [(False, 1.0), (True, 1.0), (False, 16.0), (True, 2.5)])
def test_the_models_choice_stands_where_the_rule_gives_it(normalised, scale):
    """Its own weights, in the route's order."""
    rule = GateRule(8, 3, normalised=normalised, scale=scale)
    found = routes_of(full(normalised=normalised, scale=scale), rule, "gate")
    weights, experts = choice(normalised=normalised, scale=scale)
    assert found.experts.tolist() == experts[:, ::-1].tolist()
    assert found.weights.tolist() == weights[:, ::-1].tolist()


@pytest.mark.parametrize(("normalised", "scale"), [(False, 1.0), (True, 2.0)])
def test_logits_alone_give_the_same_routes(normalised, scale):
    """The recomputed choice is what a model that shows its own makes; the weights agree to float32's rounding."""
    rule = GateRule(8, 3, normalised=normalised, scale=scale)
    shown, alone = routes_of(full(normalised=normalised, scale=scale), rule, "gate"), routes_of(output(), rule, "gate")
    assert alone.experts.tolist() == shown.experts.tolist()
    assert alone.weights == pytest.approx(shown.weights, rel=1e-6)


def test_logits_alone_break_ties_by_the_lower_expert():
    """Equal logits: the first k experts, in order."""
    found = routes_of(output(np.full((2, 8), 0.7, np.float32)), RULE, "gate")
    assert found.experts.tolist() == [[0, 1, 2]] * 2


def test_a_tie_at_the_boundary_may_go_either_way_in_a_shown_choice():
    """The library's top-k names no tie rule: what it took is what the experts got."""
    logits = np.zeros((1, 8), np.float32)
    weights = np.full((1, 3), 1 / 8, np.float32)
    found = routes_of(output(logits, weights, np.array([[7, 2, 5]])), RULE, "gate")
    assert found.experts.tolist() == [[2, 5, 7]]


def test_weights_stored_in_half_precision_are_within_its_rounding():
    """Qwen's router rounds its weights to the model's dtype; the same weights as float32 would be refused."""
    weights, experts = choice()
    rounded = weights.astype(np.float16).astype(np.float32) * np.float32(1 + 2**-9)
    routes_of(output(LOGITS, rounded, experts, weight_bytes=2), RULE, "gate")
    with pytest.raises(ModelError, match="weights aren't what the rule makes"):
        routes_of(output(LOGITS, rounded, experts, weight_bytes=4), RULE, "gate")


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("with_choice", [True, False])
def test_a_softmax_is_no_logits(dtype, with_choice):
    """Non-negative rows that sum to 1, also where they were rounded."""
    shown = softmax(LOGITS).astype(dtype)
    found = full(shown=shown) if with_choice else output(shown)
    with pytest.raises(ModelError, match=r"gate: unknown gate contract: .*a softmax and no raw logits"):
        routes_of(found, RULE, "gate")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        pytest.param(full(shown=-LOGITS), "aren't the top-k", id="another choice"),
        pytest.param(full(shown=LOGITS * 2), "weights aren't what the rule makes", id="another temperature"),
        pytest.param(full(normalised=True), "weights aren't what the rule makes", id="normalised"),
        pytest.param(full(scale=2.0), "weights aren't what the rule makes", id="scaled"),
        pytest.param(full(top_k=4), "4 experts a token for top_k 3", id="top_k"),
        pytest.param(full(LOGITS[:, :7]), "logits .6, 7. for 8 experts", id="experts"),
        pytest.param(full(shown=LOGITS[:5]), "5 rows of logits for 6 routes", id="rows"),
        pytest.param(full(shown=np.full_like(LOGITS, np.nan)), "aren't finite", id="nan"),
        pytest.param(output(None, *choice(scale=4.0)), "no part of a softmax", id="choice alone"),
        pytest.param(output(None, *choice(top_k=2)), "2 experts a token", id="choice alone, top_k"),
    ],
)
def test_what_is_not_the_rules_is_refused(found, message):
    """Each with what was found."""
    with pytest.raises(ModelError, match=f"gate: unknown gate contract: .*{message}"):
        routes_of(found, RULE, "gate")


def test_a_choice_alone_is_taken_as_it_is():
    """DeepSeek's own gate shows no logits: ordered, nothing computed again."""
    weights, experts = choice()
    found = routes_of(output(None, weights, experts), RULE, "gate")
    assert found.experts.tolist() == experts[:, ::-1].tolist()


class Config:
    """A loaded config with some attributes."""

    def __init__(self, **values):
        self.__dict__ |= values


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"model_type": "deepseek_v2", "n_routed_experts": 64, "routed_scaling_factor": 16.0}, (64, False, 16.0)),
        ({"model_type": "mixtral", "num_local_experts": 8}, (8, True, 1.0)),
        ({"model_type": "qwen2_moe", "num_experts": 60, "norm_topk_prob": False}, (60, False, 1.0)),
        ({"model_type": "qwen3_moe", "num_experts": 128, "norm_topk_prob": True}, (128, True, 1.0)),
        ({"model_type": "olmoe", "num_experts": 64, "norm_topk_prob": False}, (64, False, 1.0)),
    ],
    ids=lambda one: one.get("model_type") if isinstance(one, dict) else None,
)
def test_the_rule_is_the_configs(values, rule):
    """Experts, normalising and scale as each model type names them."""
    found = gate_rule(Config(num_experts_per_tok=6, **values), "gate")
    assert (found.experts, found.normalised, found.scale, found.top_k) == (*rule, 6)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "phimoe"}, "a gate in a model of type 'phimoe'"),
        ({"model_type": "deepseek_v2", "topk_method": "group_limited_greedy"}, "topk_method 'group_limited_greedy'"),
    ],
    ids=["type", "method"],
)
def test_a_rule_that_is_not_known_is_refused(values, message):
    """Nothing is guessed from a likeness."""
    with pytest.raises(ModelError, match=f"unknown gate contract: .*{message}"):
        gate_rule(Config(num_experts_per_tok=6, **values), "gate")
