"""Stop state and completion class (R05 4.1, 4.4): the whole table of inputs."""

from itertools import product
from typing import get_args

import pytest

from harness.evaluate.completion import completion_class, stop_state
from harness.records.evaluation import CompletionClass

BOTH = (False, True)
# By EOS, truncated, terminal, fallback number.
TABLE = {
    (True, False, False, False): "NATURAL_EOS",
    (True, False, False, True): "NATURAL_EOS",
    (True, False, True, False): "NATURAL_EOS",
    (True, False, True, True): "NATURAL_EOS",
    (False, True, True, False): "TASK_TERMINAL_BEFORE_EOS",
    (False, True, True, True): "TASK_TERMINAL_BEFORE_EOS",
    (False, True, False, True): "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY",
    (False, True, False, False): "BUDGET_TRUNCATED_UNRESOLVED",
    (False, False, False, False): "OTHER_STOP",
    (False, False, False, True): "OTHER_STOP",
    (False, False, True, False): "OTHER_STOP",
    (False, False, True, True): "OTHER_STOP",
}


def classify(eos, truncated, terminal, fallback_number):
    """The class by position."""
    return completion_class(eos=eos, truncated=truncated, terminal=terminal, fallback_number=fallback_number)


@pytest.mark.parametrize(("given", "expected"), TABLE.items(), ids=str)
def test_each_input_has_its_class(given, expected):
    """The first that holds: EOS, neither EOS nor cut, terminal, fallback number, unresolved."""
    assert classify(*given) == expected


@pytest.mark.parametrize(("terminal", "fallback_number"), list(product(BOTH, BOTH)))
def test_an_end_and_a_cut_exclude_each_other(terminal, fallback_number):
    """EOS at the last allowed step is natural: who passes both has mixed them up."""
    with pytest.raises(RuntimeError, match="ends by EOS or is cut off at the budget, never both"):
        classify(True, True, terminal, fallback_number)


def test_the_table_is_whole():
    """With the misuse, the table has all sixteen inputs, and every class occurs."""
    misuse = {(True, True, *rest) for rest in product(BOTH, BOTH)}
    assert set(TABLE) | misuse == set(product(BOTH, repeat=4))
    assert set(TABLE.values()) == set(get_args(CompletionClass))


@pytest.mark.parametrize(
    ("eos", "truncated", "state"),
    [(True, False, "natural_eos"), (False, True, "budget_truncated"), (False, False, "other_stop")],
)
def test_stop_state(eos, truncated, state):
    """R05 4.1: EOS, the budget, or neither."""
    assert stop_state(eos=eos, truncated=truncated) == state


def test_a_stop_of_both_kinds_is_misuse():
    """As for the class."""
    with pytest.raises(RuntimeError, match="never both"):
        stop_state(eos=True, truncated=True)
