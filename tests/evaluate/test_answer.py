"""Text judges on texts whose answer is known."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProtocolError
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


HANGS = ("(a+)+$", "(a|aa)+$", "(a|b|ab?)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$")


@pytest.mark.parametrize("pattern", HANGS)
def test_no_pattern_hangs(pattern):
    """On 40 characters as on 20 000."""
    assert last_match("a" * 40 + "!", pattern) is None
    assert last_match("a" * 20_000 + "!", pattern) is None


def test_python_hangs_on_it():
    """What the engine is for: in seconds Python's own has no answer to the first of them."""
    script = f"import re; re.search({HANGS[0]!r}, {'a' * 40 + '!'!r})"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-I", "-c", script], timeout=2, check=True)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(?=b)", "invalid perl operator: (?=)"),
        ("(?<!a)b", "invalid perl operator: (?<!)"),
        (r"(a)\1", r"invalid escape sequence: \1)"),
        (r"a\Z", r"invalid escape sequence: \Z)"),
        (r"\u4e00", r"invalid escape sequence: \u)"),
        ("a++", "bad repetition operator: ++)"),
        ("(?>a)", "invalid perl operator: (?>)"),
        ("(?x)a", "invalid perl operator: (?x)"),
        ("a{1001}", "invalid repetition size: {1001})"),
        (r"a\C", r"\C is a byte and no character)"),
        (r"\\\C", r"\C is a byte and no character)"),
        ("\udc00", "half a surrogate pair is no character)"),
        ("(", "missing ): ()"),
        ("", "it is empty)"),
    ],
)
def test_what_re2_does_not_have(pattern, reason):
    """Refused with its reason and what to write."""
    shown = pattern.encode("ascii", "backslashreplace").decode() or "nothing"
    with pytest.raises(ProtocolError, match=re.escape(f"found {shown} ({reason}. Patterns are RE2's")):
        last_match("a", pattern)


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("3\n", r"\d$", None),
        ("3\n", r"(\d)\n?$", "3"),
        ("3\n4", r"(?m)\d$", "4"),
        ("答案：二", r"\w", None),
        ("答案：二", r"[\pL\pN_]+", "二"),
        ("答案：二", r"：(\p{Han})\z", "二"),
        ("答案：二", r"\x{4e8c}", "二"),
        ("x٣", r"\d", None),
        ("x٣", r"\p{Nd}", "٣"),
        ("a\u2003b", r"a[\s\pZ]b", "a\u2003b"),
        ("Éa", "(?i)éA", "Éa"),
        (r"a\C", r"a\\C", r"a\C"),
        ("a\x00b", "\x00(.)", "b"),
        ("😀é", "(?s:.)", "é"),
    ],
)
def test_where_the_syntax_is_not_pythons(text, pattern, found):
    """Each line of the page's table."""
    assert last_match(text, pattern) == found


ORDINARY = (
    r"(?i)answer: (yes|no)", r"Answer: (\w+)", r"#### (-?[0-9.,]+)", r"(\d+)(?: apples)?", r"^[a-c]+", r"(?m)^(a)|b$",
    "a|ab|b", "(a)?b", "a*?b", "[^ab]+", r"\bno\b", "(?P<word>[a-z]+)[.]", "x{2,3}", "(?s)a.b", r"\((a|b)\)",
    "(?:a|b)+c", "é|答",
)  # fmt: skip
PARTS = st.sampled_from((
    "a", "b", "ab", "c", "x", " ", "\n", ".", "no", "NO", "yes", "Answer: ", "#### ", "1", "23", " apples", "(a)", "é",
    "答",
))  # fmt: skip


def last_of_python(text, pattern):
    """The same by Python's engine."""
    matches = list(re.finditer(pattern, text, re.ASCII if "(?i)" not in pattern else 0))
    if not matches:
        return None
    return matches[-1][1] if matches[-1].re.groups and matches[-1][1] is not None else matches[-1][0]


@given(st.sampled_from(ORDINARY), st.lists(PARTS, max_size=12))
def test_ordinary_patterns_find_what_pythons_engine_finds(pattern, parts):
    """The same text, by the same group, also after characters of several bytes."""
    text = "".join(parts)
    assert last_match(text, pattern) == last_of_python(text, pattern)
