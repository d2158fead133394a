"""The published-order rule and our best reading on the twenty vectors, executed; and the page's table of both."""

import json
import re
from pathlib import Path

import pytest
from pregate_support.programs import passes

from harness.evaluate.code import CODE_RULES

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "evaluators-code.md"
VECTORS = {
    row["id"]: row for row in map(json.loads, (HERE / "vectors_code.jsonl").read_text(encoding="utf-8").splitlines())
}
ROW = re.compile(r"^\| `([\w.-]+)` \| (\w+) \| (\w+|-) \| (\w+) \| (\w+|-) \| (\w+) \|$", re.MULTILINE)
WORDS = {True: "passes", False: "fails"}


def outcome(rule, row):
    """(method or `-`, `passes` or `fails`) of a rule on a vector."""
    found = CODE_RULES[rule](row["text"], row["prompt"], row["entry_point"])
    program = getattr(found, "program", None)
    passed = program is not None and passes(program, row["test"], row["entry_point"])
    return getattr(found, "method", "-"), WORDS[passed]


@pytest.fixture(scope="module")
def table():
    """The page's rows by vector: (expected, code-r05 method, result, code-v1 method, result)."""
    return {row[0]: row[1:] for row in ROW.findall(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", VECTORS)
def test_v1_is_right_on_every_vector(name):
    """The extracted program passes exactly where the vector says so."""
    assert outcome("code-v1", VECTORS[name])[1] == WORDS[VECTORS[name]["passes"]]


@pytest.mark.parametrize("name", VECTORS)
def test_the_page_says_what_both_rules_do(name, table):
    """Method and result of both rules on each vector, and what the vector expects."""
    row = VECTORS[name]
    assert table[name] == (WORDS[row["passes"]], *outcome("code-r05", row), *outcome("code-v1", row))


def test_the_page_has_the_vectors_and_no_other(table):
    """Twenty rows, in the vectors' order."""
    assert list(table) == list(VECTORS)
    assert len(table) == 20
