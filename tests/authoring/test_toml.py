"""TOML that is read back as what it was written from."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from harness.authoring.toml import document

TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
SCALARS = st.one_of(TEXTS, st.integers(-(2**63), 2**63 - 1), st.booleans())
INLINE = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), INLINE, max_size=5))
def test_a_document_is_read_back(content):
    """Any text, numbers, nested lists and tables, with a comment before each."""
    text = document("head\nlines", content, dict.fromkeys(content, "a comment # with = signs"))
    assert tomllib.loads(text) == content


def test_comments_stand_before_their_part():
    """One before the table, one before a field of it."""
    text = document("", {"a": 1, "t": {"f": 2}}, {"a": "one", "t": "two", "t.f": "three"})
    assert text == "# one\na = 1\n\n# two\n[t]\n# three\nf = 2\n"
