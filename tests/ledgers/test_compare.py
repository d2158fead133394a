"""Comparisons of token IDs against a slow reference and by their laws, and a unit's edges by identity."""

from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare import cells_by_condition, common_prefix, compare_ids, similarity, unit_edges
from harness.errors import JournalError
from harness.records.ledger import Comparison

FIXED = settings(deadline=None, derandomize=True)  # no verdict on time, the same cases everywhere

# Few different IDs make agreement likely; the large ones are the ends of the registered vocabulary.
IDS = st.lists(st.sampled_from([0, 1, 13, 87, 100000, 100001, 102399]), max_size=12).map(tuple)


def slow_distance(left, right):
    """Levenshtein distance by its definition."""

    @cache
    def distance(i, j):
        if not i or not j:
            return i + j
        replaced = distance(i - 1, j - 1) + (left[i - 1] != right[j - 1])
        return min(replaced, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(left), len(right))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((), (), (True, 0, 0, 0, 1.0)),
        ((), (5, 1), (False, 0, 2, 2, 0.0)),
        ((5, 6, 1), (5, 6, 1), (True, 3, 0, 3, 1.0)),
        ((5, 6, 7, 1), (5, 6, 1), (False, 2, 1, 4, 0.75)),
        ((5, 6, 7), (6, 7, 5), (False, 0, 2, 3, 1.0 - 2 / 3)),
        ((5, 6, 7), (5, 6, 1), (False, 2, 1, 3, 1.0 - 1 / 3)),
        ((5, 6), (5, 6, 1), (False, 2, 1, 3, 1.0 - 1 / 3)),
        (tuple(range(512)), tuple(range(1, 513)), (False, 0, 2, 512, 1.0 - 2 / 512)),
    ],
)
def test_hand_made_pairs(left, right, expected):
    """Exactness, prefix, distance, longest and similarity of pairs whose values were worked out by hand."""
    names = ("ids_exact", "common_prefix_tokens", "distance", "longest", "similarity")
    assert compare_ids(left, right) == Comparison(**dict(zip(names, expected, strict=True)))


def test_similarity_is_evaluated_as_written():
    """1 - d / n in binary64, not (n - d) / n: for one edit in three the two differ in the last bit."""
    assert similarity(1, 3) == 0.6666666666666667
    assert similarity(1, 3) != 2 / 3


@FIXED
@given(IDS, IDS)
def test_distance_is_the_slow_references(left, right):
    """The library's distance is the definition's, and similarity follows from it and the longer length."""
    found = compare_ids(left, right)
    assert (found.distance, found.longest) == (slow_distance(left, right), max(len(left), len(right)))
    assert found.similarity == (1.0 - found.distance / found.longest if found.longest else 1.0)


@FIXED
@given(IDS, IDS)
def test_comparison_is_symmetric(left, right):
    """Which side is left changes nothing."""
    assert compare_ids(left, right) == compare_ids(right, left)


@FIXED
@given(IDS, IDS)
def test_exact_means_distance_zero_and_a_whole_prefix(left, right):
    """Exact, distance 0, similarity 1 and a prefix as long as both sequences are one and the same fact."""
    found = compare_ids(left, right)
    whole_prefix = found.common_prefix_tokens == len(left) == len(right)
    facts = (found.distance == 0, found.similarity == 1.0, left == right, whole_prefix)
    assert set(facts) == {found.ids_exact}


@FIXED
@given(IDS, IDS)
def test_bounds_of_prefix_and_distance(left, right):
    """The prefix is no longer than the shorter one, and the distance lies between what lengths and prefix allow."""
    found = compare_ids(left, right)
    assert found.common_prefix_tokens <= min(len(left), len(right))
    assert abs(len(left) - len(right)) <= found.distance <= found.longest - found.common_prefix_tokens
    assert 0.0 <= found.similarity <= 1.0


@FIXED
@given(IDS, IDS, IDS)
def test_triangle_inequality(one, two, three):
    """A detour is never shorter."""
    direct = compare_ids(one, three).distance
    assert direct <= compare_ids(one, two).distance + compare_ids(two, three).distance


@FIXED
@given(IDS, IDS, IDS)
def test_a_shared_start_is_prefix(start, left, right):
    """Putting the same tokens before both lengthens the prefix by just them and leaves the distance."""
    before, after = compare_ids(left, right), compare_ids(start + left, start + right)
    assert common_prefix(start + left, start + right) == len(start) + before.common_prefix_tokens
    assert after.distance == before.distance


def test_a_units_edges_are_the_protocols(protocol, builder, say):
    """Ten edges in registered order, each with its unit's identity and the two conditions that it joins."""
    unit = builder.unit("math", 0, {"*": say("ab"), "s1_eos": say("abc"), "s0_x": say("ab", eos=False)})
    rows = list(unit_edges(protocol, unit))
    assert [row.edge for row in rows] == [
        "system_eos", "system_bos", "system_x", "system_period",
        "bos_s0", "x_s0", "period_s0", "bos_s1", "x_s1", "period_s1",
    ]  # fmt: skip
    assert [(row.kind, row.left, row.right) for row in rows] == [
        (edge.kind, edge.left, edge.right) for edge in protocol.edges
    ]
    assert {(row.domain, row.index, row.source_id, row.replicate) for row in rows} == {
        ("math", 0, "math/0000", "greedy")
    }
    assert [row.comparison.distance for row in rows] == [1, 0, 1, 0, 0, 1, 0, 1, 1, 1]
    assert [row.comparison.common_prefix_tokens for row in rows] == [2, 3, 2, 3, 3, 2, 3, 2, 2, 2]


def test_cells_are_joined_by_condition_and_not_by_position(protocol, builder, say):
    """Rows in another order give the same edges."""
    unit = builder.unit("math", 0, {"*": say("ab"), "s1_eos": say("abc"), "s0_x": say("xy")})
    shuffled = msgspec.structs.replace(unit, cells=unit.cells[::-1])
    assert list(unit_edges(protocol, shuffled)) == list(unit_edges(protocol, unit))


@pytest.mark.parametrize("cells", [slice(0, 7), slice(0, 0)], ids=["one missing", "none"])
def test_a_unit_without_a_condition_is_refused(protocol, builder, say, cells):
    """No edge is silently dropped: a missing cell is a broken record."""
    unit = builder.unit("math", 0, {"*": say("ab")})
    broken = msgspec.structs.replace(unit, cells=unit.cells[cells])
    with pytest.raises(JournalError, match=r"^unit math/0000, greedy: conditions: expected .*s1_period"):
        cells_by_condition(protocol, broken)


def test_a_doubled_condition_is_refused(protocol, builder, say):
    """Two rows of one condition aren't one of them."""
    unit = builder.unit("math", 0, {"*": say("ab")})
    broken = msgspec.structs.replace(unit, cells=(*unit.cells, unit.cells[0]))
    with pytest.raises(JournalError, match="conditions: expected"):
        cells_by_condition(protocol, broken)
