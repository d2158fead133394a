"""Text in a page: shown exactly, read back exactly, acting as nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from harness.report.render import attribute
from harness.report.visible import HIDDEN, SHOWN, passage, visible

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
EVIL = st.lists(
    st.sampled_from(["<", ">", "&", '"', "'", "</bdi>", "<script>", "\r", "\n", "\x00", "\u202e", "\\x07", "]]>", "a"]),
    max_size=30,
).map("".join)


def back(reading, markup: Markup) -> str:
    """What a browser's parser makes of it, read back."""
    return reading.text_in(reading.parsed(f"<!DOCTYPE html><div>{markup}</div>").find(".//div"))


@given(text=TEXT | EVIL)
def test_a_text_is_read_back_exactly(reading, text):
    """For every text: no character is lost, changed or invented."""
    assert back(reading, visible(text)) == text


@given(text=TEXT | EVIL)
def test_nothing_hidden_is_left(text):
    """No control, bidi mark or other character that can't be seen stands in the markup itself."""
    assert HIDDEN.search(str(visible(text))) is None


@pytest.mark.parametrize(
    "one",
    ["\x00", "\t", "\r", "\x1b", "\x7f", "\x85", "\xa0", "\xad", "\u200b", "\u202e", "\u2028", "\u2066", "\ufeff",
     "\ufffe", "\U0001fffe", "\ue000", "\U000e0041", "\U0010ffff", "\u3164", "\ufe0f"],
    ids=ascii,
)  # fmt: skip
def test_each_kind_is_escaped(one):
    """As Python writes it, in a span of its own."""
    assert str(visible(f"a{one}b")) == f'a<span class="x">{one.encode("unicode_escape").decode()}</span>b'


@pytest.mark.parametrize("one", ["\n", "a", "\u4e2d", "\u0627", "\u0353", "\U0001f600", " "], ids=ascii)
def test_what_can_be_seen_stays(one):
    """A line feed, letters of any script, marks on them, pictures."""
    assert str(visible(one)) == one


@given(text=TEXT | EVIL)
def test_nothing_hidden_is_in_an_attribute(text):
    """Where no span can stand the escape stands in the value, and no quote ends it."""
    made = str(attribute(text))
    assert HIDDEN.search(made) is None
    assert not {'"', "'", "<", ">"} & set(made)


@given(text=TEXT, data=st.data(), limit=st.integers(1, 200))
def test_a_passage_is_the_text_cut_in_places(text, data, limit):
    """Segments put together are the text, and a mark covers exactly its span."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    made = passage(text, {"taken": (start, end)}, limit=limit)
    assert "".join(one.text for one in (*made.shown, *made.rest)) == text
    assert "".join(one.text for one in (*made.shown, *made.rest) if one.mark) == text[start:end]
    assert "".join(one.text for one in made.shown) == text[:limit]
    assert made.rest_length == len(text[limit:])


def test_a_long_text_is_folded():
    """What is shown at once is bounded, and the rest is there."""
    made = passage("x" * (SHOWN + 5), {})
    assert [len(one.text) for one in made.shown] == [SHOWN]
    assert [len(one.text) for one in made.rest] == [5]
