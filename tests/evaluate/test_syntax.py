"""`ast-r04`: which part of a text is parsed, what comes out, and that nothing in a text can hurt the interpreter."""

import subprocess
import sys
import threading
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluate.syntax import MAX_DEPTH, first_fence, syntax_r04
from harness.records.ledger import DoesNotParse, Parses, SyntaxObservation, TooDeep

FIXED = settings(deadline=None, derandomize=True)  # no verdict on time, the same cases everywhere

GOOD = "def f(x):\n    return x + 1\n"

FENCES = {
    f"Here:\n```python\n{GOOD}```\nDone.": GOOD,
    f"```\n{GOOD}```": GOOD,
    f" ```py\n{GOOD}  ```  ": GOOD,
    f"```python title=x\n{GOOD}````\n": GOOD,
    f"````python\n{GOOD}```\n````": f"{GOOD}```\n",
    f"```text\nno code\n```\n```python\n{GOOD}```": "no code\n",
    "```python\n```": "",
    "```python\r\nx = 1\r\n```\r\n": "x = 1\r\n",
    f"`a` and ```b``` then\n```python\n{GOOD}```": GOOD,
    "```python\nx = '```'\n```": "x = '```'\n",
}

NO_FENCE = {
    "no fence": GOOD,
    "never closed": f"```python\n{GOOD}",
    "first never closed, by fewer backticks": f"````python\n{GOOD}```\n```python\n{GOOD}```",
    "opening line only": "```python",
    "opening within a line": f"Here: ```python\n{GOOD}",
    "closing within a line": "```python\nx = 1```",
    "tildes": f"~~~python\n{GOOD}~~~",
    "inline": "```x = 1```",
}


@pytest.mark.parametrize(("text", "body"), FENCES.items())
def test_the_first_fenced_block_is_found(text, body):
    """Fences stand on lines of their own, may be indented and name any language; the first one counts."""
    assert first_fence(text) == body


@pytest.mark.parametrize("text", NO_FENCE.values(), ids=NO_FENCE)
def test_what_is_no_fenced_block(text):
    """A first fence that is opened and never closed is no block, also where a later one is closed."""
    assert first_fence(text) is None


def outcome(text):
    """What was parsed and what came out, in short."""
    observation = syntax_r04(text)
    return observation.part, getattr(observation.outcome, "error", type(observation.outcome).__name__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, ("whole_text", "Parses")),
        (f"Sure!\n```python\n{GOOD}```", ("fence", "Parses")),
        (f"```python\n{GOOD}", ("whole_text", "SyntaxError")),
        ("", ("whole_text", "Parses")),
        ("Hello", ("whole_text", "Parses")),
        ("Hello there", ("whole_text", "SyntaxError")),
        ("    return x", ("whole_text", "IndentationError")),
        (f" {GOOD}", ("whole_text", "IndentationError")),
        ("if x:\n\ty\n        z", ("whole_text", "TabError")),
        ("```python\n  x = 1\n```", ("fence", "IndentationError")),
        ("x = 1\0", ("whole_text", "ValueError")),
        ("x = '\ud800'", ("whole_text", "UnicodeEncodeError")),
        ("# coding: no-such-codec\nx = 1", ("whole_text", "Parses")),
        ("# coding: no-such-codec\r\nx = '\u00e9'", ("whole_text", "Parses")),
        ("return 1", ("whole_text", "Parses")),
    ],
)
def test_the_outcome_is_the_parsers(text, expected):
    """The part that was read, and Parses or the class name of the parser's error; nothing is stripped or repaired."""
    assert outcome(text) == expected


def test_only_parsing_counts_as_parsing():
    """`ast_parses` is true for Parses and for nothing else."""
    cases = (Parses(), DoesNotParse(error="SyntaxError"), TooDeep())
    assert [SyntaxObservation(part="fence", outcome=case).ast_parses for case in cases] == [True, False, False]


@pytest.mark.parametrize("action", ["error", "always"])
def test_the_parsers_warnings_neither_leak_nor_decide(action):
    """Code that parses with warnings (invalid escape, `1if`) parses: none gets out, none becomes an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        assert outcome("x = '\\d'\ny = 1if x else 2\nassert (x, 'y')\n") == ("whole_text", "Parses")
    assert caught == []


def test_nothing_is_executed_or_imported(tmp_path):
    """A text that would write a file and import a module leaves no trace of either."""
    mark = tmp_path / "executed"
    text = f"import this\nopen({str(mark)!r}, 'w').close()\n@print\ndef f(x=exit()): pass\n"
    assert outcome(text) == ("whole_text", "Parses")
    assert (mark.exists(), "this" in sys.modules) == (False, False)


HUGE = {
    "open parentheses": "'(' * 200_000",
    "closed parentheses": "'(' * 200_000 + '1' + ')' * 200_000",
    "brackets": "'[' * 200_000",
    "braces": "'{' * 200_000",
    "calls within calls": "'f(' * 200_000",
    "minus": "'-' * 200_000 + '1'",
    "minus without operand": "'-' * 200_000",
    "not": "'not ' * 200_000 + 'x'",
    "tilde": "'~' * 200_000 + '1'",
    "lambda": "'lambda:' * 200_000 + '1'",
    "attributes": "'a' + '.b' * 200_000",
    "subscripts": "'a' + '[0]' * 100_000",
    "calls": "'a' + '()' * 100_000",
    "sum": "'1' + '+1' * 200_000",
    "power": "'1' + '**1' * 200_000",
    "conditional": "'1' + ' if 1 else 1' * 50_000",
    "elif": "'if x:\\n pass\\n' + 'elif x:\\n pass\\n' * 50_000",
    "indentation": "''.join(' ' * i + 'if x:\\n' for i in range(300))",
}
REFUSED = {"open parentheses", "closed parentheses", "brackets", "braces", "calls within calls"}


@pytest.mark.parametrize("name", HUGE)
def test_deep_nesting_is_an_outcome_and_no_crash(name):
    """In a process of its own, the deepest texts come back as a refusal of the tokenizer or as too deep."""
    program = (
        "from harness.evaluate.syntax import syntax_r04\n"
        f"outcome = syntax_r04({HUGE[name]}).outcome\n"
        "print(getattr(outcome, 'error', type(outcome).__name__))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    expected = "SyntaxError" if name in REFUSED else "IndentationError" if name == "indentation" else "TooDeep"
    assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", expected)


# Module, Expr and the innermost Constant (with UnaryOp's own operator beside it) are three of the levels.
@pytest.mark.parametrize(("minuses", "kind"), [(MAX_DEPTH - 2, Parses), (MAX_DEPTH - 1, TooDeep), (1000, TooDeep)])
def test_the_bound_is_on_levels_of_the_tree(minuses, kind):
    """Up to the bound a text parses and beyond it is too deep, where the parser itself would still go on."""
    assert isinstance(syntax_r04("-" * minuses + "1").outcome, kind)


@pytest.mark.parametrize("minuses", [MAX_DEPTH - 2, MAX_DEPTH - 1, 900, 5000])
def test_the_callers_stack_doesnt_decide(minuses):
    """One outcome on an empty stack and under 500 frames of a caller, though the parser's own bound moves."""
    text, fresh = "-" * minuses + "1", []

    def under(frames):
        return under(frames - 1) if frames else syntax_r04(text)

    thread = threading.Thread(target=lambda: fresh.append(syntax_r04(text)))
    thread.start()
    thread.join()
    assert under(500) == fresh[0]


def test_an_outcome_doesnt_depend_on_the_recursion_limit():
    """Raising Python's recursion limit makes nothing parse that was too deep."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(4000)
    try:
        assert outcome("a" + ".b" * 2000) == ("whole_text", "TooDeep")
    finally:
        sys.setrecursionlimit(before)


@FIXED
@given(st.text())
def test_any_text_has_an_outcome(text):
    """No text raises, and the same text gives the same record."""
    assert syntax_r04(text) == syntax_r04(text)


@FIXED
@given(st.text(st.sampled_from("`~ \n\tpy=1(){}[]:\"'\\-")))
def test_a_block_is_a_part_of_its_text(text):
    """What is parsed is text that was written, between two fence lines."""
    block = first_fence(text)
    assert block is None or (block in text and text.count("```") >= 2)
