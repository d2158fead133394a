"""The numbers of the audit (its 4.2, 4.3, 5.1 and 5.2) can be said by the ledger and its counts, and come back.

The texts are made up; which cell is cut, right or wrong follows the audit's tables. Nothing here repeats the run.
"""

import pytest

from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics
from harness.records.completion import Counted
from harness.records.ledger import Count

FENCED = "```python\ndef f(n):\n    return n + 1\n```"
OPEN = "```python\ndef f(n):\n    return n +"
# Condition -> its cells of the audit's 4.2: natural EOS, cut, strict mathematics, code that passed.
TABLE = {
    "s0_bos": (15, 1, 3, 4),
    "s0_eos": (15, 1, 3, 3),
    "s0_period": (15, 1, 3, 3),
    "s0_x": (13, 3, 2, 3),
    "s1_bos": (16, 0, 3, 4),
    "s1_eos": (15, 1, 3, 2),
    "s1_period": (16, 0, 3, 3),
    "s1_x": (16, 0, 3, 2),
}
# The audit's 4.3: (English source, condition) of the six cut cells; the seventh is of code, s1_eos.
CUT = {(0, "s0_bos"), (1, "s0_x"), (2, "s0_x"), (3, "s0_eos"), (3, "s0_x"), (3, "s0_period")}
# The audit's 5.1: 20 boxed, 8 phrases, 4 last numbers. Source 0 boxed and right, 1 and 2 boxed or phrases.
METHODS = {
    0: dict.fromkeys(TABLE, r"\boxed{%s}"),
    1: dict.fromkeys(TABLE, r"\boxed{%s}"),
    2: dict.fromkeys(TABLE, "the answer is %s"),
    3: {name: r"\boxed{%s}" if name.startswith("s0") else "so %s" for name in TABLE},
}
CODE = {"s0_x": "assertion_failed", "s0_eos": "assertion_failed", "s0_period": "assertion_failed"}
CODE |= {"s1_period": "runtime_error", "s1_x": "runtime_error"}
WORSE = {"s1_eos": "assertion_failed", "s1_x": "assertion_failed"}


def english(say, index):
    """Everything ends but the audit's cells."""
    return {name: say("Text.", eos=(index, name) not in CUT) for name in TABLE}


def code(say, index):
    """Everything is a closed program but the one cell whose fence stays open."""
    return {name: say(OPEN, eos=False) if (index, name) == (0, "s1_eos") else say(FENCED) for name in TABLE}


def math(say, index):
    """Sources 0 and 1 are right, 2 is right but for s0_x, 3 is wrong or a last number."""
    right = {0: TABLE, 1: TABLE, 2: set(TABLE) - {"s0_x"}, 3: ()}[index]
    return {name: say(METHODS[index][name] % ("12" if name in right else "7")) for name in TABLE}


@pytest.fixture(scope="module")
def statistics(completion, books, say):
    """Counts over a synthetic formal run of 128 cells."""
    full = books.with_grid("formal", per_domain=4)
    makers = {"english": english, "chinese": lambda say, _: {"*": say("完。")}, "code": code, "math": math}
    units = tuple(
        full.unit(name, index, make(say, index), grid="formal") for name, make in makers.items() for index in range(4)
    )
    run = full.completion_run(units, gold={f"math/{index:04d}": "12" for index in range(4)}, grid="formal")
    executions = {}
    for outcomes, index in ((CODE, 1), (WORSE, 2), ({}, 0), ({}, 3)):
        mine = full.executions(run, outcomes)
        executions |= {key: one for key, one in mine.items() if key.startswith(f"code-{index:02d}")}
    # The cell whose fence is open has a program by code-r05 (its definition), which doesn't parse.
    (cut,) = [key for key in executions if key == "code-00-code-0000-greedy-s1_eos"]
    executions[cut] = full.executions(run, {"s1_eos": "syntax_error"})[cut]
    assert completion.grids["formal"] == full.protocol.grids["formal"]
    return completion_statistics(full.protocol, completion_ledger(full.protocol, run, executions))


@pytest.fixture(scope="module")
def group(statistics):
    """`group(domain, condition)`: one summary."""
    found = {(one.domain, one.condition): one.cells for one in statistics.groups}
    return lambda domain="", condition="": found[domain, condition]


def of(count, total):
    """A count."""
    return Count(count=count, of=total)


def test_completion_ladder(group):
    """4.1: 121 of 128 ended by themselves, 7 were cut, none stopped otherwise."""
    found = group()
    assert (found.natural_eos, found.budget_truncated, found.other_stop) == (of(121, 128), of(7, 128), of(0, 128))
    assert found.classes["NATURAL_EOS"] == of(121, 128)
    assert found.classes["BUDGET_TRUNCATED_UNRESOLVED"] == of(7, 128)


@pytest.mark.parametrize("condition", TABLE)
def test_eight_conditions(group, condition):
    """4.2: each line of the table, with its denominators 16, 4 and 4."""
    ended, cut, strict, passed = TABLE[condition]
    found = group(condition=condition)
    assert (found.natural_eos, found.budget_truncated) == (of(ended, 16), of(cut, 16))
    assert group("math", condition).numeric.strict_complete_exact == of(strict, 4)
    assert group("code", condition).code.verdicts.strict_complete_passed == of(passed, 4)


def test_cut_cells_by_domain(group):
    """4.3: six of English, one of code."""
    names = ("english", "chinese", "code", "math")
    assert [group(name).budget_truncated.count for name in names] == [6, 0, 1, 0]


def test_mathematics(group):
    """5.1: 20 boxed, 8 by the phrase, 4 last numbers, of 32; strict and exact 23 of 32 by either reading."""
    found = group("math")
    assert found.numeric.methods == {"boxed": of(20, 32), "last": of(4, 32), "phrase": of(8, 32)}
    assert found.numeric.strict_complete_exact == of(23, 32)
    assert found.numeric.strict_marker_only_exact == of(23, 32)
    assert found.diagnostics.fallback_exact == Counted(count=0, of=4)


def test_programs(group):
    """5.2: 24 passed, 5 failed an assertion, 2 broke, of 32; the audit's "not run" doesn't parse."""
    found = group("code").code.verdicts
    assert found.outcomes == {
        "assertion_failed": of(5, 32), "ast_error": of(1, 32), "passed": of(24, 32), "runtime_error": of(2, 32)
    }  # fmt: skip
    assert (found.executed, found.ast_parses) == (of(31, 32), of(31, 32))
    assert found.fixed_budget_passed == of(24, 32)
