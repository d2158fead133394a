"""No text hurts a rule: nothing raises, warns, is executed or takes more than the text's length deserves."""

import ast
import sys
import tracemalloc
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pregate_support.programs import PROMPT

from harness.canon import text_sha256
from harness.errors import CanonError
from harness.evaluate.code import CODE_RULES
from harness.evaluate.code import parse as parsing
from harness.evaluate.code.parse import MAX_SOURCE, NoTree, Parser, dedented, parse
from harness.records.evaluation import CodeFound
from harness.records.ledger import TooDeep

FIXED = settings(deadline=None, derandomize=True, max_examples=150)
RULES = pytest.mark.parametrize("rule", CODE_RULES)
DEF = "def triple(n):\n    return [n]*3\n"
PIECES = st.sampled_from(
    [
        "```",
        "````",
        "~~~",
        "```python\n",
        "```py",
        "\n",
        "\r\n",
        "\r",
        "    ",
        "\t",
        " ",
        DEF,
        "def triple(n):",
        "async ",
        "@a\n",
        "    return [n]*3\n",
        "triple = ",
        "x = '''",
        '"""',
        "(",
        ")",
        "Sorry, ",
        "import os\n",
        "\0",
        "\ufeff",
        "\x0c",
        "\ud800",
        "from __future__ import annotations\n",
        "class triple: pass\n",
        "if x:\n",
        "\\",
        "#",
        "\u2028",
        "1.",
        "- ",
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)


@RULES
@FIXED
@given(text=TEXTS, prompt=st.one_of(st.just(PROMPT), TEXTS))
def test_any_text_and_prompt_have_an_outcome(rule, text, prompt):
    """A record, the same each time, with a span of the text; a missing one only where nothing was found."""
    found = CODE_RULES[rule](text, prompt, "triple")
    assert found == CODE_RULES[rule](text, prompt, "triple")
    if isinstance(found, CodeFound):
        assert 0 <= found.start <= found.end <= len(text)


@FIXED
@given(text=TEXTS)
def test_a_program_only_holds_what_was_written(text):
    """Each line of a program of `code-v1` is one of the prompt's or the end of one of the text's: nothing is added."""
    found = CODE_RULES["code-v1"](text, PROMPT, "triple")
    if isinstance(found, CodeFound):
        written = [*text.replace("\r", "\n").split("\n"), *PROMPT.split("\n"), ""]
        for line in found.program.replace("\r", "\n").split("\n"):
            assert any(one.endswith(line) for one in written)


N = 250_000
HUGE = {
    "newlines": "\n",
    "spaces": " ",
    "backticks": "`",
    "bare fences": "```\n",
    "open fences": "```python\n",
    "broken fences": "```python\ndef triple(n) x\n```\n",
    "good fences": f"```python\n{DEF}```\n",
    "tildes": "~~~py\n",
    "decorators": "@a\n",
    "definitions": DEF,
    "broken definitions": "def triple(n) x\n",
    "prose": "You should do it.\n",
    "statements": "x = 1\n",
    "parentheses": "(",
    "minus": "-",
    "lambda": "lambda:",
    "NUL": "\0",
    "surrogates": "\ud800",
    "body": "    x = 1\n",
    "late fences": "a ```python\n",
    "late closings": "x```\n",
    "names": "triple:",
    "def": "def ",
}


@RULES
@pytest.mark.parametrize("piece", HUGE.values(), ids=HUGE)
def test_a_huge_text_has_an_outcome(rule, piece):
    """250,000 code points of what is hardest on a reader of fences, lines and Python."""
    text = piece * (N // len(piece))
    found = CODE_RULES[rule](text, PROMPT, "triple")
    assert found.rule == rule


@RULES
def test_a_program_among_ten_million_code_points_is_found(rule):
    """The answer in front, then ten megabytes of prose: what is read of it doesn't grow with it."""
    text = f"```python\n{DEF}```\n" + "Here's some prose.\n" * 526_315
    found = CODE_RULES[rule](text, PROMPT, "triple")
    assert (found.method, text[found.start : found.end]) == ("fence_with_entry_point", DEF)


def test_a_block_of_ten_megabytes_is_taken_as_it_is():
    """Too long to be parsed, it is found by its words and not cut."""
    body = DEF + "# filler\n" * 1_111_111
    found = CODE_RULES["code-v1"](f"```python\n{body}```", PROMPT, "triple")
    assert found.method == "unparsed_fence"
    assert found.program.endswith(body)


def test_work_is_bounded_not_only_length(monkeypatch):
    """However many ends and starts there are to try, one text has one budget of parsed code points."""
    spent = []
    real = ast.parse
    monkeypatch.setattr(parsing.ast, "parse", lambda source: (spent.append(len(source)), real(source))[1])
    CODE_RULES["code-v1"]("```python\ndef triple(n) x\n```\n" * 20_000, PROMPT, "triple")
    assert 0 < sum(spent) <= parsing.BUDGET + 4 * MAX_SOURCE


def test_a_parser_has_a_budget():
    """It parses until the sum of lengths is spent, and then nothing, also no shorter source."""
    parser = Parser()
    source = "#" * MAX_SOURCE
    results = [isinstance(parser.parse(source), ast.Module) for _ in range(6)]
    assert results == [True] * 4 + [False] * 2
    assert parser.affords(1)


@pytest.mark.parametrize("depth", [90, 150, 1_000, 50_000])
def test_nesting_is_bounded_by_the_text(depth):
    """`-` nested below the bound parses, above it doesn't, whatever the interpreter's stack."""
    assert isinstance(parse("-" * depth + "1"), ast.Module) is (depth < 200)


def test_the_bound_is_that_of_r04():
    """A source that `ast-r04` calls too deep isn't parsed here."""
    from harness.evaluate.syntax import parse_outcome

    source = "not " * 250 + "x"
    assert (parse_outcome(source), parse(source)) == (TooDeep(), NoTree(line=None))


def test_code_too_deep_to_parse_is_taken_by_its_words():
    """A sum of 300 terms is deep; the block that holds it is the answer all the same."""
    text = "```python\ndef triple(n):\n    return " + " + ".join(["0"] * 300) + "\n```"
    assert CODE_RULES["code-v1"](text, PROMPT, "triple").method == "unparsed_fence"


@RULES
@pytest.mark.parametrize("action", ["error", "always"])
def test_the_parsers_warnings_neither_leak_nor_decide(rule, action):
    """An invalid escape is no obstacle and no noise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        assert CODE_RULES[rule](f"```python\nx = '\\d'\n{DEF}```", PROMPT, "triple").method == "fence_with_entry_point"
    assert caught == []


@RULES
def test_nothing_is_executed_or_imported(rule, tmp_path):
    """A text that would write a file and import a module leaves no trace of either."""
    mark = tmp_path / "executed"
    text = f"```python\nimport this\nopen({str(mark)!r}, 'w').close()\ndef triple(n=exit()): pass\n```"
    CODE_RULES[rule](text, PROMPT, "triple")
    assert (mark.exists(), "this" in sys.modules) == (False, False)


def test_a_lone_surrogate_stays_in_the_program():
    """It isn't repaired: such a program has no digest, and who needs one is told so."""
    found = CODE_RULES["code-v1"](f"```python\n{DEF}x = '\ud800'\n```", PROMPT, "triple")
    with pytest.raises(CanonError, match="valid Unicode text"):
        text_sha256(found.program)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("  a\n    b\n", "a\n  b\n"),
        ("\ta\n\t\tb", "a\n\tb"),
        ("  a\n\n  b", "a\n\nb"),
        ("  a\n \n  b", "a\n \nb"),
        ("  a\nb", "  a\nb"),
        ("  a\n\tb", "  a\n\tb"),
        ("  a\r\n  b\r\n", "a\r\nb\r\n"),
        ("  a\x0c\n  b", "a\x0c\nb"),
        ("", ""),
        ("   \n", "   \n"),
    ],
)
def test_a_block_is_dedented_by_one_cut(block, expected):
    """The white space that all lines with something on them share, and no more; tabs aren't spaces."""
    assert dedented(block) == expected


def test_memory_stays_near_the_text():
    """A text of two million code points of fences isn't copied many times over."""
    text = "```python\n" * 200_000
    tracemalloc.start()
    CODE_RULES["code-v1"](text, PROMPT, "triple")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * len(text)
