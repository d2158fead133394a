"""Gate contracts: what a gate module returns, and the check that it is what it is taken for. numpy only.

Three contracts, told apart by what came, never by trust in a name:
- *choice with logits* (transformers 5): (logits [T,E], weights [T,k], expert IDs [T,k]). The routes are the model's
  own; softmax and top-k are computed again from the logits under the model's rule and must give that choice.
- *logits alone* (transformers before 5: `nn.Linear` gates): [T,E]. The model's choice isn't shown there, so the routes
  are the top-k computed from the logits under the model's rule.
- *choice alone* (DeepSeek's own `MoEGate`): (expert IDs [T,k], weights [T,k], nothing). No logits are shown, so nothing
  can be computed again; IDs and weights are held to their ranges only.

Logits must be raw: rows that are non-negative and sum to 1 are a softmax already, and a second one would be computed on
it. T is batch x sequence here, padding left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.trace.encoding import Float64, Numbers
from harness.trace.routes import Routes, order_routes

# The device's float32 softmax against float64 here: a few units in the last place of float32.
_CHOICE_TOLERANCE = 1e-6
# Weights may have been stored in the model's own dtype: half a unit in bfloat16's last place is 2**-9.
_WEIGHT_TOLERANCE = {4: 1e-5, 2: 2.0**-7}
_SUM_TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class GateRule:
    """How a model makes routes of logits: softmax, top-k, weights divided by their sum or not, times `scale`."""

    experts: int
    top_k: int
    normalised: bool
    scale: float


# Normalising: always, never, or as the checkpoint's `norm_topk_prob` says.
_ALWAYS, _NEVER, _AS_CONFIGURED = "always", "never", "norm_topk_prob"
RULES = {
    "deepseek_v2": ("n_routed_experts", _NEVER),
    "mixtral": ("num_local_experts", _ALWAYS),
    "olmoe": ("num_experts", _AS_CONFIGURED),
    "qwen2_moe": ("num_experts", _AS_CONFIGURED),
    "qwen3_moe": ("num_experts", _AS_CONFIGURED),
}


@dataclass(frozen=True, slots=True)
class GateOutput:
    """What a gate returned over T tokens, on the CPU; `weight_bytes`: the size in which its weights were stored."""

    logits: Numbers | None
    weights: Numbers | None
    experts: Numbers | None
    weight_bytes: int


def gate_rule(config: Any, where: str) -> GateRule:
    """The rule of a loaded model's config; ModelError `unknown gate contract` for a model type not in `RULES`."""
    known = RULES.get(str(config.model_type))
    if known is None:
        raise unknown_contract(where, f"a gate in a model of type {config.model_type!r}")
    count, normalising = known
    method = getattr(config, "topk_method", "greedy")
    if method != "greedy":
        raise unknown_contract(where, f"topk_method {method!r}")
    return GateRule(
        experts=int(getattr(config, count)),
        top_k=int(config.num_experts_per_tok),
        normalised=normalising == _ALWAYS or (normalising == _AS_CONFIGURED and bool(config.norm_topk_prob)),
        scale=float(getattr(config, "routed_scaling_factor", 1.0)),
    )


def unknown_contract(where: str, found: str) -> ModelError:
    """The one error for a gate that is none of the three contracts."""
    return ModelError(
        f"{where}: unknown gate contract",
        expected="raw logits [T,E] with the model's own top-k, raw logits alone, or MoEGate's own choice",
        found=found,
        todo="Add the model's rule to harness/trace/gates.py with a test, or register its hidden line only.",
    )


def routes_of(output: GateOutput, rule: GateRule, where: str) -> Routes:
    """The ordered routes of a gate's output; ModelError `unknown gate contract` where the output isn't the rule's."""
    if output.logits is None:
        return _choice_alone(output, rule, where)
    scores = _softmax(_raw(output.logits, rule, where))
    if output.weights is None or output.experts is None:
        return _recomputed(scores, rule, where)
    routes = order_routes(output.weights, output.experts, count=rule.experts, where=where)
    _require_shape(routes, rule, where)
    _require_choice(scores, routes, where)
    _require_weights(scores, routes, rule, where, tolerance=_WEIGHT_TOLERANCE[output.weight_bytes])
    return routes


def _raw(logits: Numbers, rule: GateRule, where: str) -> Float64:
    numbers = logits.astype(np.float64)
    if numbers.ndim != 2 or numbers.shape[1] != rule.experts:
        raise unknown_contract(where, f"logits {list(numbers.shape)} for {rule.experts} experts")
    if not np.isfinite(numbers).all():
        raise unknown_contract(where, "logits that aren't finite")
    if (numbers >= 0).all() and (np.abs(numbers.sum(axis=1) - 1) <= _SUM_TOLERANCE).all():
        raise unknown_contract(where, "non-negative rows that sum to 1, a softmax and no raw logits")
    return numbers


def _softmax(logits: Float64) -> Float64:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _recomputed(scores: Float64, rule: GateRule, where: str) -> Routes:
    """The top-k of float32 scores, ties to the lower ID, weighted under the rule."""
    chosen = np.argsort(-scores.astype(np.float32), axis=1, kind="stable")[:, : rule.top_k]
    weights = _weights(np.take_along_axis(scores, chosen, axis=1), rule)
    return order_routes(weights.astype(np.float32), chosen, count=rule.experts, where=where)


def _weights(scores: Float64, rule: GateRule) -> Float64:
    """Weights of chosen scores [T,k] under the rule."""
    shares = scores / scores.sum(axis=1, keepdims=True) if rule.normalised else scores
    return np.asarray(shares * rule.scale)


def _require_shape(routes: Routes, rule: GateRule, where: str) -> None:
    if routes.experts.shape[1] != rule.top_k:
        raise unknown_contract(where, f"{routes.experts.shape[1]} experts a token for top_k {rule.top_k}")


def _require_choice(scores: Float64, routes: Routes, where: str) -> None:
    """No expert left out scores above a chosen one, so equal scores at the boundary may go either way."""
    if len(scores) != len(routes.experts):
        raise unknown_contract(where, f"{len(scores)} rows of logits for {len(routes.experts)} routes")
    chosen = routes.experts.astype(np.int64)
    lowest = np.take_along_axis(scores, chosen, axis=1).min(axis=1)
    others = scores.copy()
    np.put_along_axis(others, chosen, 0.0, axis=1)
    wrong = int(np.count_nonzero(others.max(axis=1) * (1 - _CHOICE_TOLERANCE) > lowest))
    if wrong:
        raise unknown_contract(where, f"{wrong} tokens whose experts aren't the top-k of the logits' softmax")


def _require_weights(scores: Float64, routes: Routes, rule: GateRule, where: str, *, tolerance: float) -> None:
    wanted = _weights(np.take_along_axis(scores, routes.experts.astype(np.int64), axis=1), rule)
    wrong = int(np.count_nonzero((np.abs(routes.weights - wanted) > tolerance * np.abs(wanted)).any(axis=1)))
    if wrong:
        raise unknown_contract(where, f"{wrong} tokens whose weights aren't what the rule makes of the logits")


def _choice_alone(output: GateOutput, rule: GateRule, where: str) -> Routes:
    if output.weights is None or output.experts is None:
        raise RuntimeError("neither logits nor a choice")
    routes = order_routes(output.weights, output.experts, count=rule.experts, where=where)
    _require_shape(routes, rule, where)
    sums = routes.weights.sum(axis=1)
    if (routes.weights < 0).any() or (sums > rule.scale * (1 + _SUM_TOLERANCE)).any():
        raise unknown_contract(where, "weights that are no part of a softmax times the scale")
    return routes
