"""Ordered routes against a slow reference: ties, k = 1, and any order in which a library returns them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import DecodeError, ModelError
from harness.trace.routes import entropy, order_routes, route_facts, weight_moments

from . import slow

EXPERTS = 9
LEVELS = [0.0, 0.125, 0.25, 0.5]  # few, so that ties are common


@st.composite
def choices(draw):
    """Weights and experts of 1 to 5 tokens, 1 to 6 experts each, unordered, and another order of each token's."""
    top_k = draw(st.integers(1, 6))
    experts = [draw(st.permutations(range(EXPERTS)))[:top_k] for _ in range(draw(st.integers(1, 5)))]
    weights = [[draw(st.sampled_from(LEVELS)) for _ in row] for row in experts]
    orders = [draw(st.permutations(range(top_k))) for _ in experts]
    return weights, experts, orders


def ordered(weights, experts, count=EXPERTS):
    """Routes of plain lists."""
    return order_routes(np.array(weights, np.float32), np.array(experts, np.int64), count=count, where="the gate")


def facts(routes):
    """What is kept of them."""
    return route_facts(routes, weight_moments(routes, "the gate"))


@settings(max_examples=80, deadline=None)
@given(choices())
def test_routes_are_the_references(choice):
    """Order, digests and loads, on tokens full of ties."""
    weights, experts, _ = choice
    wanted = [slow.route(*one) for one in zip(weights, experts, strict=True)]
    load, weighted = slow.loads(wanted, EXPERTS)
    found = facts(ordered(weights, experts))
    assert found.routes_sha256 == slow.sha256("int16", [[expert for _, expert in one] for one in wanted])
    assert found.weights_sha256 == slow.sha256("float32", [[weight for weight, _ in one] for one in wanted])
    assert (list(found.load), list(found.weighted_load)) == (load, weighted)
    assert (found.tokens, found.top_k) == (len(experts), len(experts[0]))
    assert found.experts_used == sum(map(bool, load))


@settings(max_examples=60, deadline=None)
@given(choices())
def test_the_librarys_order_does_not_matter(choice):
    """A top-k that comes unsorted, in any order, has the same facts."""
    weights, experts, orders = choice
    again = [
        ([w[i] for i in order], [e[i] for i in order]) for w, e, order in zip(weights, experts, orders, strict=True)
    ]
    assert facts(ordered([w for w, _ in again], [e for _, e in again])) == facts(ordered(weights, experts))


def test_a_tie_goes_to_the_lower_expert():
    """Also where the library gave the higher one first; the sign of a zero is no order."""
    found = ordered([[0.25, 0.25, 0.5, 0.0, -0.0]], [[8, 3, 5, 7, 1]])
    assert found.experts.tolist() == [[5, 3, 8, 1, 7]]
    assert found.experts.dtype == np.int16


@pytest.mark.parametrize(
    ("weights", "experts", "count"),
    [
        pytest.param([[0.5, 0.5]], [[3, 3]], 9, id="twice"),
        pytest.param([[0.5, 0.5]], [[3, 9]], 9, id="above"),
        pytest.param([[0.5, 0.5]], [[-1, 3]], 9, id="below"),
        pytest.param([[0.5, 0.5]], [[0, 1]], 40000, id="too many experts"),
    ],
)
def test_a_choice_that_is_none_is_refused(weights, experts, count):
    """A token chooses distinct experts that exist, and that int16 can name."""
    with pytest.raises(ModelError, match="the gate: expected distinct expert IDs below"):
        ordered(weights, experts, count)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_weight_that_is_not_finite_is_refused(value):
    """It has no place in an order."""
    with pytest.raises(DecodeError, match="the gate: expected finite weights") as caught:
        ordered([[0.5, value]], [[0, 1]])
    assert caught.value.kind == "non_finite"


def test_weights_in_another_dtype_are_misuse():
    """Their bytes are float32's."""
    with pytest.raises(RuntimeError, match="float64"):
        order_routes(np.zeros((1, 2)), np.array([[0, 1]]), count=2, where="the gate")


@pytest.mark.parametrize(
    ("load", "nats"),
    [([4, 0, 0], 0.0), ([1, 1], math.log(2)), ([2, 2, 2, 2], math.log(4)), ([1, 3], 0.5623351446188083)],
    ids=str,
)
def test_entropy_in_nats(load, nats):
    """0 for a single expert, log n for n equal ones; experts without load count nothing."""
    assert entropy(load) == pytest.approx(nats, abs=1e-15)
