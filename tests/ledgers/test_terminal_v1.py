"""`terminal-v1`: the registered numeric rule's own marker, and a number that a cut ends is unfinished."""

import msgspec
import pytest
from pregate_support.books import PROTOCOLS, CompletionBuilder, Said

from harness.evaluate.numeric import NUMERIC_RULES
from harness.evaluate.terminal import final_marker_v1
from harness.ledgers.completion import completion_ledger
from harness.protocols.load import read_protocol

replace = msgspec.structs.replace
# As SmolLM2 gave it for gsm8k/test/1069: numbered steps that go on until the budget.
LOOP = "".join(f"{n}. Calculate the total number of trucks: {n} trucks * 2 = {2 * n} trucks\n" for n in range(1, 7))
CUT = f"{LOOP}7. Calculate the"


def row(text, *, eos, terminal, numeric="numeric-v1"):
    """The first cell's row of a run of one mathematics source whose gold number is 12, every cell saying that."""
    protocol = read_protocol(PROTOCOLS / "nano-completion" / "protocol.toml")
    registered = replace(protocol.evaluators, terminal=terminal, numeric=numeric)
    books = CompletionBuilder(replace(protocol, evaluators=registered)).with_grid("formal", per_domain=1)
    unit = books.unit("math", 0, {"*": Said(text, eos=eos)}, grid="formal")
    run = books.completion_run((unit,), gold={unit.source_id: "12"}, grid="formal")
    return completion_ledger(books.protocol, run, books.executions(run, {})).cells[0]


def states(found):
    """What the accounts and the class say."""
    number = found.numeric
    accounts = (number.evaluable, number.fixed_budget_exact, number.strict_complete_exact, number.fallback_exact)
    return found.terminal.reached, found.completion, accounts


@pytest.mark.parametrize(
    ("text", "eos", "expected"),
    [
        (CUT, False, (False, "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY", (False, True, False, True))),
        (CUT, True, (False, "NATURAL_EOS", (True, True, True, True))),
        ("The answer is 12", False, (False, "BUDGET_TRUNCATED_UNRESOLVED", (False, True, False, False))),
        ("The answer is 12.", False, (False, "BUDGET_TRUNCATED_UNRESOLVED", (False, True, False, False))),
        ("#### 12", False, (False, "BUDGET_TRUNCATED_UNRESOLVED", (False, True, False, False))),
        ("The answer is 12", True, (True, "NATURAL_EOS", (True, True, True, False))),
        ("The answer is 12 trucks", False, (True, "TASK_TERMINAL_BEFORE_EOS", (True, True, True, False))),
        ("The answer is 12.\n", False, (True, "TASK_TERMINAL_BEFORE_EOS", (True, True, True, False))),
        ("so \\boxed{12}", False, (True, "TASK_TERMINAL_BEFORE_EOS", (True, True, True, False))),
        ("so", False, (False, "BUDGET_TRUNCATED_UNRESOLVED", (False, False, False, False))),
    ],
)
def test_the_terminal_of_a_number(text, eos, expected):
    """Terminal, class, and the four figures of the account."""
    assert states(row(text, eos=eos, terminal="terminal-v1")) == expected


def test_under_the_published_rule_a_loop_has_a_final_marker():
    """What the rule is for: R05's phrase, "total ... = number", stands in every step; and R05 reads a cut number."""
    assert row(CUT, eos=False, terminal="terminal-r05").completion == "TASK_TERMINAL_BEFORE_EOS"
    strict = row("The answer is 12", eos=False, terminal="terminal-r05").numeric.strict_complete_exact
    assert strict is True


@pytest.mark.parametrize(("end", "whole"), [("", False), (".", False), (",", False), (" ", True), (" apples", True)])
def test_what_stands_after_a_number_says_whether_it_is_whole(end, whole):
    """A point or a comma may be the middle of it."""
    text = f"The answer is 12{end}"
    found = NUMERIC_RULES["numeric-v1"](text)
    assert final_marker_v1(found, text, natural_eos=False) is whole
    assert final_marker_v1(found, text, natural_eos=True) is True


@pytest.mark.parametrize("text", ["12 apples are here", "no number"])
def test_a_number_by_its_place_is_no_marker(text):
    """Neither is none."""
    assert final_marker_v1(NUMERIC_RULES["numeric-v1"](text), text, natural_eos=True) is False
