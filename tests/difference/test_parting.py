"""Where two sequences part and what a budget leaves of one, for any sequences; fields of any two tables."""

from hypothesis import given
from hypothesis import strategies as st

from harness.difference.leaves import differing, leaves
from harness.difference.outputs import cut, output_pair
from harness.difference.tokens import Decoder
from harness.records.difference import NoParting, NotDecoded, NoToken, Token

EOS = 1
IDS = st.lists(st.integers(2, 5), max_size=12)


class Undecoded:
    """Two sides without tokenizers."""

    a = b = Decoder("no tokenizer")


def generated(stream: list[int], ends: int, budget: int) -> dict:
    """What decoding a stream gives that draws EOS in step `ends`, cut at a budget."""
    ids = ([*stream[:ends], EOS] if ends <= len(stream) else stream)[:budget]
    eos = bool(ids) and ids[-1] == EOS
    return {"generated_ids": ids, "eos": eos, "truncated": not eos}


@given(
    st.lists(st.integers(2, 5), min_size=12, max_size=12), st.integers(0, 14), st.integers(1, 12), st.integers(1, 12)
)
def test_a_larger_budget_cut_is_the_smaller_one(stream, ends, one, other):
    """Generating under the smaller budget and cutting the larger one's output are the same, stop and all."""
    small, large = sorted((one, other))
    assert cut(generated(stream, ends, large), small) == cut(generated(stream, ends, small), small)


@given(IDS, IDS)
def test_two_sequences_part_at_the_first_difference(one, other):
    """All before it is the same, and there it isn't: another token, or none."""
    sides = [cut({"generated_ids": ids, "eos": False, "truncated": True}, 12) for ids in (one, other)]
    found = output_pair(*sides, Undecoded())
    if one == other:
        assert isinstance(found.parting, NoParting)
        assert found.comparison.ids_exact
        return
    step = found.parting.step
    assert one[:step] == other[:step]
    assert one[step : step + 1] != other[step : step + 1]
    for ids, token in ((one, found.parting.a), (other, found.parting.b)):
        expected = Token(id=ids[step], text=NotDecoded(reason="no tokenizer")) if step < len(ids) else NoToken()
        assert token == expected


def test_a_stop_that_is_neither_is_kept():
    """It ended within the budget and says neither EOS nor cut; or says both."""
    for flag in (True, False):
        assert cut({"generated_ids": [2], "eos": flag, "truncated": flag}, 8).stop == "other_stop"


NAMES = st.text("abc", min_size=1, max_size=3)
TABLES = st.recursive(
    st.integers() | st.lists(st.integers(), max_size=3),
    lambda inner: (
        st.dictionaries(NAMES, inner, min_size=1, max_size=3)
        | st.lists(st.fixed_dictionaries({"id": NAMES, "x": inner}), min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(TABLES, TABLES)
def test_two_tables_have_the_same_leaves_only_if_they_are_the_same(one, other):
    """Also members that were reordered or share a name."""
    assert (list(differing(leaves(one), leaves(other))) == []) == (one == other)


def test_a_member_is_named_by_its_own_name():
    """And a change of order is a difference."""
    one = {"edges": [{"id": "a", "kind": "x"}, {"id": "b", "kind": "y"}]}
    other = {"edges": [{"id": "a", "kind": "x"}, {"id": "b", "kind": "z"}]}
    assert list(differing(leaves(one), leaves(other))) == [("edges[b].kind", "y", "z")]
    turned = {"edges": one["edges"][::-1]}
    assert list(differing(leaves(one), leaves(turned))) == [("edges[]", "a, b", "b, a")]
