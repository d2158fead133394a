"""Task terminals: `terminal-r05` (R05 4.2) and `terminal-r07` (R07 8.2) are two rules, and two languages have none."""

from itertools import product

import pytest

from harness.evaluate.terminal import terminal_r05, terminal_r07

CLOSED, OTHER, OPEN = "```python\nx\n```", "```\nx\n```", "```python\nx"
BOTH = (False, True)


@pytest.mark.parametrize(("marker", "state"), [(True, "reached"), (False, "not_reached")])
@pytest.mark.parametrize("text", [CLOSED, "The answer is 5."])
def test_math_ends_by_its_marker_alone(text, marker, state):
    """Under both rules, whatever the text looks like, EOS or not."""
    assert {terminal_r05("math", text, natural_eos=eos, marker=marker) for eos in BOTH} == {state}
    assert {terminal_r07("math", text, tests_passed=passed, marker=marker) for passed in BOTH} == {state}


@pytest.mark.parametrize(
    ("text", "natural_eos", "state"),
    [
        (CLOSED, False, "reached"),
        (CLOSED, True, "reached"),
        (OTHER, False, "not_reached"),
        (OTHER, True, "reached"),
        (OPEN, False, "not_reached"),
        (OPEN, True, "reached"),
        ("x = 1", False, "not_reached"),
    ],
)
def test_code_under_r05(text, natural_eos, state):
    """A closed Python fence or natural EOS (R05 4.2)."""
    assert {terminal_r05("code", text, natural_eos=natural_eos, marker=marker) for marker in BOTH} == {state}


@pytest.mark.parametrize(
    ("text", "tests_passed", "state"),
    [
        (CLOSED, False, "reached"),
        (OTHER, False, "reached"),
        (OPEN, False, "not_reached"),
        (OPEN, True, "reached"),
        ("x = 1", True, "reached"),
        ("x = 1", False, "not_reached"),
    ],
)
def test_code_under_r07(text, tests_passed, state):
    """A closed fence, whatever its tag, or passed tests (R07 8.2); EOS isn't asked for."""
    assert {terminal_r07("code", text, tests_passed=tests_passed, marker=marker) for marker in BOTH} == {state}


@pytest.mark.parametrize("kind", ["english", "chinese"])
@pytest.mark.parametrize("text", ["It ends. ", "\u5b8c\u4e86\u3002", CLOSED, ""])
def test_languages_have_no_judge(kind, text):
    """`no_judge` isn't `not_reached`: a full stop is no completion, and its lack no failure."""
    states = {terminal_r05(kind, text, natural_eos=one, marker=other) for one, other in product(BOTH, BOTH)}
    states |= {terminal_r07(kind, text, tests_passed=one, marker=other) for one, other in product(BOTH, BOTH)}
    assert states == {"no_judge"}


def test_the_two_rules_differ():
    """Where they part: EOS without a fence, passed tests without either, a fence without a Python tag."""
    assert terminal_r05("code", "x", natural_eos=True, marker=False) == "reached"
    assert terminal_r07("code", "x", tests_passed=False, marker=False) == "not_reached"
    assert terminal_r05("code", OTHER, natural_eos=False, marker=False) == "not_reached"
    assert terminal_r07("code", OTHER, tests_passed=False, marker=False) == "reached"


def test_another_kind_is_misuse():
    """A kind that no rule knows has no state."""
    with pytest.raises(RuntimeError, match="knows math, code, english, chinese, got 'maths'"):
        terminal_r05("maths", "", natural_eos=False, marker=False)
    with pytest.raises(RuntimeError, match="got ''"):
        terminal_r07("", "", tests_passed=False, marker=False)
