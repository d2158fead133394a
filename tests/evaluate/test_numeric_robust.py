"""Every rule on hostile text: it never raises, and its work grows with the text, not with its square."""

import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluate.numeric import NUMERIC_RULES, final_marker_r05, same_number
from harness.records.evaluation import NumericMissing

FIXED = settings(deadline=None, derandomize=True, max_examples=150)  # no verdict on time, the same cases everywhere

PIECES = st.sampled_from(
    ["\\boxed{", "}", "{", "\\frac", "\\text{", "####", "#", "answer", " is ", "=", ":", "\u7b54\u6848", "\u662f", "1",
     "23", "456", "0", ",", ".", "/", "-", "\u2212", "\u2013", " ", "\n", "\r", "$", "\\", "%", "^", "_", "e", "x",
     "10", "\u00bd", "\u00b2", "\uff15", "\u0665", "\u200f", "\u00a0", "\x00", "\ud800", "total", "Step ", "in ",
     " days", "wait", "<answer>", "</answer>", " million", "\u4e07", "*", "May ", "\u00b1", "no solution"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(st.characters())

HOSTILE = [
    "1", "1 ", "1,", ",000", "1.", "1/", "1:", "1-", "1=", "1 is ", "2^", "x2", "x_", "\\boxed{", "\\boxed{a}",
    "\\boxed{1 is ", "{", "}", "\\frac{1", "\\frac", "#", "#### ", "#### 1, ", "answer", "answer: ", "answer:\n",
    "answer is 1+", "answer is $(", "answer is ", "\u7b54\u6848", "\u7b54: ", "<answer>", "<answer>1", "is ", "= ",
    "total ", "total=", "total is 1 ", "in 3 days ", "1 in 3 days ", "May 5 ", "\\", "*", " ", "\n", "\u200b",
    "1\u200b", "\u2007", "1\u20091", "wait ", "- ", "$",
]  # fmt: skip


@pytest.mark.parametrize("rule", NUMERIC_RULES)
@FIXED
@given(text=TEXTS)
def test_a_rule_reads_every_text(rule, text):
    """Any str, lone surrogates and NUL too, gives a record: missing, or a number in plain form with a span in it."""
    found = NUMERIC_RULES[rule](text)
    assert found.rule == rule
    if not isinstance(found, NumericMissing):
        assert 0 <= found.start < found.end <= len(text)
        assert same_number(found.value, found.value)


@FIXED
@given(st.integers(-(10**30), 10**30), st.integers(1, 10**6))
def test_a_boxed_quotient_keeps_its_value(over, under):
    """The value of a fraction is exact, whatever the size of its parts."""
    found = NUMERIC_RULES["numeric-v1"](f"\\boxed{{\\frac{{{over}}}{{{under}}}}}")
    assert Fraction(found.value) == Fraction(over, under)


def calls(function, text):
    """How many functions, Python's and C's, run while a text is read."""
    count = 0

    def counted(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
@pytest.mark.parametrize("rule", NUMERIC_RULES)
def test_twice_the_text_is_at_most_twice_the_calls(rule, piece):
    """The number of calls is linear in the size: counted, not timed. A quadratic rule makes four times as many."""
    function = NUMERIC_RULES[rule]
    assert calls(function, piece * 800) <= 2.2 * calls(function, piece * 400) + 50


@pytest.mark.parametrize(
    "piece", ["1", "1,", ",000", "1.", " ", "#", "*", "{", "}", "\\", "\n", "is ", "= "], ids=ascii
)
@pytest.mark.parametrize(
    "function", [*NUMERIC_RULES.values(), final_marker_r05], ids=lambda function: function.__name__
)
def test_no_pattern_backtracks_over_a_long_run(function, piece):
    """Each single pattern is linear: a quarter of a million repeats come back, which a square of them never would."""
    assert function(f"answer is {piece * 250_000}") is not None


@pytest.mark.parametrize(
    "function", [*NUMERIC_RULES.values(), final_marker_r05], ids=lambda function: function.__name__
)
def test_ten_megabytes_are_read(function):
    """A very long output is read to its end."""
    text = "word and more words. " * 500_000 + "\\boxed{42}"
    assert getattr(function(text), "value", "42") == "42"
