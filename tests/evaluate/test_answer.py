"""Text judges on texts whose answer is known."""

import pytest

from harness.evaluate.answer import compared, exact, last_match


@pytest.mark.parametrize(
    ("text", "how", "holds"),
    [
        ("yes", "verbatim", True),
        (" yes", "verbatim", False),
        (" yes\n", "stripped", True),
        ("Yes", "stripped", False),
        (" YES ", "stripped_casefold", True),
        ("STRASSE", "stripped_casefold", False),
        ("yes.", "stripped_casefold", False),
        ("", "stripped", False),
    ],
)
def test_the_whole_text_is_compared(text, how, holds):
    """Nothing around it, nothing of it left out."""
    assert exact(text, "yes", how) is holds


def test_case_is_folded_and_not_only_lowered():
    """The two ways of writing one word."""
    assert compared(" STRASSE", "stripped_casefold") == compared("straße ", "stripped_casefold")


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("Answer: a. Answer: b.", r"Answer: (\w)", "b"),
        ("Answer: a. Answer: b.", r"Answer: \w", "Answer: b"),
        ("x", r"(y)?x", "x"),
        ("none", r"\d", None),
        ("", r"a*", ""),
    ],
)
def test_the_last_match_counts(text, pattern, found):
    """Its first group where that took part, else the whole."""
    assert last_match(text, pattern) == found
