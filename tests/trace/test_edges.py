"""Edges against slow references, and the cases that have no direction or no value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.errors import DecodeError
from harness.trace.edges import gate_edges, stage_edges
from harness.trace.encoding import Matrix
from harness.trace.routes import Routes

from . import slow

VALUES = st.sampled_from([-3.0, -1.5, -0.25, 0.5, 1.0, 2.0])


def edge(left, right):
    """A stage edge of plain lists in float32."""
    return stage_edges("layer_01", [Matrix("float32", np.array(one, np.float32)) for one in (left, right)], [(0, 1)])[0]


def gate_edge(left, right):
    """A gate's one edge."""
    return gate_edges("g", [left, right], [(0, 1)])[0]


def routes(*rows, weights=None, count=4):
    """Ordered routes of plain lists, equal weights unless given."""
    experts = np.array(rows, np.int16)
    return Routes(count, experts, np.array(weights or np.full(experts.shape, 0.5), np.float32))


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, (2, 4, 5), elements=VALUES))
def test_a_stage_on_an_edge(pair):
    """Mean cosine of the rows, relative L2 of the whole, rows equal in every byte."""
    left, right = pair.astype(float).tolist()
    found = edge(left, right)
    cosines = [slow.cosine(a, b) for a, b in zip(left, right, strict=True)]
    assert found.cosine == pytest.approx(sum(cosines) / 4, abs=1e-14)
    assert found.relative_l2 == pytest.approx(slow.relative_l2(left, right), rel=1e-13)
    assert found.exact_rows == sum(a == b for a, b in zip(left, right, strict=True))
    assert found.rows == 4


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, (3, 17), elements=st.floats(-1e3, 1e3, width=32)))
def test_equal_sides_are_exactly_alike(numbers):
    """Cosine 1 and relative L2 0, to the last bit, rows of zeros too."""
    found = edge(numbers, numbers.copy())
    assert (found.cosine, found.relative_l2, found.exact_rows) == (1.0, 0.0, 3)


@pytest.mark.parametrize(
    ("left", "right", "cosine", "exact"),
    [
        pytest.param([[0, 0], [1, 0]], [[0, 0], [1, 0]], 1.0, 2, id="both zero"),
        pytest.param([[0, 0], [1, 0]], [[3, 0], [1, 0]], 0.5, 1, id="left zero"),
        pytest.param([[3, 0], [1, 0]], [[0, 0], [1, 0]], 0.5, 1, id="right zero"),
        pytest.param([[1, 0], [1, 0]], [[-1, 0], [0, 2]], -0.5, 0, id="opposite and square"),
        pytest.param([[0.0, 1]], [[-0.0, 1]], 1.0, 0, id="a zero's sign is a byte"),
    ],
)
def test_rows_of_zeros_and_signs(left, right, cosine, exact):
    """Zeros against zeros count 1, against anything else 0."""
    found = edge(left, right)
    assert (found.cosine, found.exact_rows) == (cosine, exact)


def test_the_left_side_is_the_measure():
    """|B - A| / |A|: the edge has a direction."""
    assert (edge([[2.0]], [[3.0]]).relative_l2, edge([[3.0]], [[2.0]]).relative_l2) == (0.5, pytest.approx(1 / 3))


def test_a_left_side_of_zeros_has_no_relative_difference():
    """0 where both are; else there is no value, and none is made up."""
    assert edge([[0.0]], [[0.0]]).relative_l2 == 0.0
    with pytest.raises(DecodeError, match="layer_01: expected a left side that isn't zero throughout"):
        edge([[0.0]], [[1.0]])


@pytest.mark.parametrize(
    ("left", "right"), [([[1.0]], [[1.0], [2.0]]), (np.zeros((0, 2)), np.zeros((0, 2)))], ids=["lengths", "empty"]
)
def test_sides_that_do_not_pair_are_misuse(left, right):
    """Target rows are as many in every cell, and not none."""
    with pytest.raises(RuntimeError, match="layer_01"):
        edge(left, right)


def test_a_gate_on_an_edge():
    """Order, set, and shares of load: three tokens, one of each kind."""
    left, right = routes([0, 1], [0, 1], [0, 1]), routes([0, 1], [1, 0], [2, 3])
    found = gate_edge(left, right)
    assert (found.tokens, found.ordered_exact, found.set_exact) == (3, 1, 2)
    assert found.load_total_variation == pytest.approx(slow.total_variation([3, 3, 0, 0], [2, 2, 1, 1]), abs=1e-15)


def test_weighted_load_is_compared_by_shares():
    """Twice the weights everywhere are the same shares."""
    left = routes([0, 1], weights=[[0.5, 0.25]])
    assert gate_edge(left, routes([0, 1], weights=[[0.25, 0.125]])).weighted_load_total_variation == 0.0
    other = gate_edge(left, routes([1, 0], weights=[[0.5, 0.25]]))
    assert other.weighted_load_total_variation == pytest.approx(1 / 3)
    assert other.load_total_variation == 0.0


def test_a_load_of_nothing_has_no_shares():
    """Weights of zero throughout."""
    with pytest.raises(DecodeError, match="g: expected a load above zero in every cell, found 1 cells without"):
        gate_edge(routes([0, 1]), routes([0, 1], weights=[[0.0, 0.0]]))


@pytest.mark.parametrize("other", [routes([0, 1], [0, 1]), routes([0]), routes([0, 1], count=5)], ids=str)
def test_gates_that_do_not_pair_are_misuse(other):
    """Tokens, top-k and experts agree."""
    with pytest.raises(RuntimeError, match="g: "):
        gate_edge(routes([0, 1]), other)


def test_many_edges_are_what_each_is_alone():
    """Cells are upcast once for all edges; each edge has the bytes of its own comparison, in the order asked for."""
    cells = np.random.default_rng(2).normal(size=(3, 5, 40)).astype(np.float32)
    pairs = [(2, 0), (0, 1), (1, 2)]
    found = stage_edges("layer_01", [Matrix("float32", one) for one in cells], pairs)
    assert found == [edge(cells[left], cells[right]) for left, right in pairs]
    choices = [routes([0, 1], [2, 3]), routes([1, 0], [0, 1]), routes([0, 2], [2, 3])]
    assert gate_edges("g", choices, pairs) == [gate_edge(choices[left], choices[right]) for left, right in pairs]
