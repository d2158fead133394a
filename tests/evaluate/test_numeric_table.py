"""The shared test lines: `numeric-v1` is right on each, and the documented table of all rules is what they give."""

import json
from pathlib import Path

import pytest

from harness.evaluate.number import last_number_r04
from harness.evaluate.numeric import NUMERIC_RULES, numeric_v1, parse_gold

PAGE = Path(__file__).parents[2] / "docs" / "evaluators-numeric.md"
LINES = Path(__file__).with_name("vectors_numeric.jsonl")
VECTORS = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]


def cell(observation):
    """A value with its method, as the page shows it."""
    value = getattr(observation, "value", None)
    method = getattr(observation, "method", None)
    if value is None:
        return "none"
    return value if method is None else f"{value} ({method})"


def row(vector):
    """One line of the page's table, recomputed."""
    rules = ("numeric-r05", "numeric-r08", "numeric-v1")
    cells = [cell(last_number_r04(vector["text"])), *(cell(NUMERIC_RULES[rule](vector["text"])) for rule in rules)]
    shown = vector["gold"] if vector["exact"] else f"not {vector['gold']}"
    return f"| {' | '.join([vector['id'], shown, *cells])} |"


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_the_best_reading_is_right_on_every_line(vector):
    """`exact` says whether what is extracted is the gold number."""
    assert (getattr(numeric_v1(vector["text"]), "value", None) == parse_gold(vector["gold"])) is vector["exact"]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_the_page_shows_what_the_rules_give(vector):
    """The table in the docs is recomputed and compared line by line."""
    assert row(vector) in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_shows_nothing_else():
    """The table has one row a line of the file, in its order."""
    names = {vector["id"] for vector in VECTORS}
    shown = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[2:].split(" |")[0] in names]
    assert shown == [row(vector) for vector in VECTORS]


@pytest.mark.parametrize("name", ["WORD_R05", "LINK_R05", "BOXED_R05", "HASH_R05"])
def test_the_page_publishes_the_patterns(name):
    """The frozen patterns of `numeric-r05` stand in the docs as the code has them."""
    from harness.evaluate.numeric import r05

    assert f"{name} = {getattr(r05, name).pattern}" in PAGE.read_text(encoding="utf-8").splitlines()
