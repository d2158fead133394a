"""The four accounts of a cell under `terminal-r07` (R07 8): each from its own evidence, none filled in from another."""

import msgspec
import pytest
from pregate_support.books import PROTOCOLS, CompletionBuilder, Said
from pregate_support.sampled_runs import SampledBuilder

from harness.errors import JournalError
from harness.ledgers.accounts import NO_TERMINAL, accounts, require_accounts
from harness.ledgers.completion import completion_ledger
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM, Reading, require_one_end, verdicts_of
from harness.protocols.load import read_protocol
from harness.records.completion import NotExecuted, Terminal

replace = msgspec.structs.replace
BARE = "def f(n):\n    return n + 1\n"
FENCE = f"```python\n{BARE}```"
OPEN = f"```python\n{BARE}"
REACHED, OPEN_ENDED = Terminal(explicit=True, reached=True), Terminal(explicit=False, reached=False)


@pytest.fixture(scope="module")
def samples():
    """A builder of one source a domain and one seed."""
    protocol = read_protocol(PROTOCOLS / "nano-cross-source-sampling" / "protocol.toml")
    made = SampledBuilder(protocol).with_grid("formal", per_domain=1, replicates=("R0",))
    return made.with_grid("smoke", per_domain=1, replicates=("R0",))


@pytest.fixture(scope="module")
def judge(samples):
    """`judge(domain, said, outcome)`: the first cell's row of a run in which every cell said that."""

    def row(domain, said, outcome="passed", grid="formal"):
        run = samples.sampled_run((samples.drawn(domain, 0, {"*": said}, grid=grid),), grid=grid)
        made = samples.verdicts(run, {"*": outcome}) if grid == "formal" else {}
        registered = next(one for one in samples.protocol.domains if one.name == domain)
        at = Reading(samples.protocol, run, registered, run.units[0])
        return accounts(at, run.units[0].cells[0], verdicts_of(samples.protocol, run, made))

    return row


@pytest.mark.parametrize(
    ("text", "eos", "outcome", "terminal", "completion"),
    [
        (FENCE, False, "assertion_failed", REACHED, "TASK_TERMINAL_BEFORE_EOS"),
        (f"```python\n{BARE}```\nand more", False, "timeout", REACHED, "TASK_TERMINAL_BEFORE_EOS"),
        (f"```js\nf\n```\n{OPEN}", False, "assertion_failed", REACHED, "TASK_TERMINAL_BEFORE_EOS"),
        (f"```\nf\n```\n{BARE}", False, "assertion_failed", REACHED, "TASK_TERMINAL_BEFORE_EOS"),
        (BARE, False, "passed", Terminal(explicit=False, reached=True), "TASK_TERMINAL_BEFORE_EOS"),
        (OPEN, False, "assertion_failed", OPEN_ENDED, "BUDGET_TRUNCATED_UNRESOLVED"),
        (BARE, False, "assertion_failed", OPEN_ENDED, "BUDGET_TRUNCATED_UNRESOLVED"),
        (BARE, True, "assertion_failed", OPEN_ENDED, "NATURAL_EOS"),
        (BARE, True, "passed", Terminal(explicit=False, reached=True), "NATURAL_EOS"),
        ("", True, "passed", OPEN_ENDED, "NATURAL_EOS"),
    ],
)
def test_the_terminal_of_a_program(judge, text, eos, outcome, terminal, completion):
    """R07 8.2: a closed fence of any language, or tests that passed. EOS is no terminal, and a verdict is no fence."""
    row = judge("code", Said(text, eos=eos), outcome)
    assert (row.terminal, row.completion) == (terminal, completion)


@pytest.mark.parametrize("outcome", ["runtime_error", "timeout", "out_of_memory", "syntax_error", "infrastructure"])
def test_only_a_pass_is_the_tests_terminal(judge, outcome):
    """Whatever else the sandbox said of a program without a fence."""
    row = judge("code", Said(BARE, eos=False), outcome)
    assert row.terminal == OPEN_ENDED
    assert row.code.verdict.fixed_budget_pass is False


def test_eos_is_a_terminal_by_the_other_rule():
    """The control: under `terminal-r05` the same text with EOS reached its terminal, and another language's fence
    alone did not.
    """
    protocol = read_protocol(PROTOCOLS / "nano-completion" / "protocol.toml")
    books = CompletionBuilder(protocol).with_grid("formal", per_domain=1)
    said = {"*": Said(BARE), "s0_eos": Said(f"```js\nf\n```\n{BARE}", eos=False)}
    run = books.completion_run((books.unit("code", 0, said, grid="formal"),), gold={}, grid="formal")
    rows = completion_ledger(books.protocol, run, books.executions(run, {"*": "assertion_failed"})).cells
    assert [row.terminal for row in rows[:2]] == [OPEN_ENDED, Terminal(explicit=False, reached=True)]


@pytest.mark.parametrize(
    ("text", "eos", "terminal", "completion", "strict"),
    [
        ("so \\boxed{12}", False, REACHED, "TASK_TERMINAL_BEFORE_EOS", True),
        ("so 12", False, OPEN_ENDED, "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY", False),
        ("so 12", True, OPEN_ENDED, "NATURAL_EOS", True),
        ("so", False, OPEN_ENDED, "BUDGET_TRUNCATED_UNRESOLVED", False),
        ("so \\boxed{13}", True, REACHED, "NATURAL_EOS", False),
    ],
)
def test_the_terminal_of_a_number(judge, text, eos, terminal, completion, strict):
    """R07 8.2 and 8.4: an explicit answer; a wrong one is an end too, and a right one by its place needs EOS."""
    row = judge("math", Said(text, eos=eos))
    assert (row.terminal, row.completion) == (terminal, completion)
    assert row.numeric.strict_complete_exact is strict
    assert row.code == NO_PROGRAM


@pytest.mark.parametrize(
    ("eos", "closed", "strict"), [(True, False, True), (False, True, True), (False, False, False), (True, True, True)]
)
def test_a_strict_pass_has_an_end(judge, eos, closed, strict):
    """Passed, and EOS or a closed fence: a pass that was cut off is one within the budget alone."""
    verdict = judge("code", Said(FENCE if closed else BARE, eos=eos)).code.verdict
    assert (verdict.fixed_budget_pass, verdict.strict_complete_pass) == (True, strict)


@pytest.mark.parametrize(("text", "terminal"), [(BARE, OPEN_ENDED), (FENCE, REACHED), (OPEN, OPEN_ENDED)])
def test_without_verdicts_the_fence_alone_is_the_terminal(judge, text, terminal):
    """Smoke executes nothing: no pass is read off a program that nobody ran."""
    row = judge("code", Said(text, eos=False), grid="smoke")
    assert (row.terminal, row.code.verdict) == (terminal, NotExecuted(reason="tier"))


@pytest.mark.parametrize("domain", ["english", "chinese"])
def test_a_domain_without_a_judge(judge, domain):
    """No terminal, no number, no program, whatever is in the text; a full stop is no end."""
    row = judge(domain, Said(f"so \\boxed{{12}}.\n{FENCE}.", eos=False))
    assert (row.terminal, row.numeric, row.code) == (NO_TERMINAL, NO_NUMBER, NO_PROGRAM)
    assert row.completion == "BUDGET_TRUNCATED_UNRESOLVED"


def test_two_ends_are_refused():
    """EOS and the budget's end in one cell: its identity is named."""
    require_one_end("cell a", eos=True, truncated=False)
    with pytest.raises(JournalError, match=r"^cell a: expected EOS or the budget's end, found both"):
        require_one_end("cell a", eos=True, truncated=True)


@pytest.mark.parametrize(
    ("domain", "name", "value", "words"),
    [
        ("math", "numeric", NO_NUMBER, "an account of its domain, found none"),
        ("math", "terminal", NO_TERMINAL, "an account of its domain, found none"),
        ("code", "code", NO_PROGRAM, "an account of its domain, found none"),
        ("english", "terminal", REACHED, "no account of its domain, found one"),
        ("math", "code", "code", "no account of its domain, found one"),
    ],
)
def test_a_domain_has_its_accounts_and_no_others(samples, judge, domain, name, value, words):
    """One that is lacking would leave a denominator, one too many would enter one."""
    row = judge(domain, Said("so \\boxed{12}" if domain == "math" else BARE))
    registered = next(one for one in samples.protocol.domains if one.name == domain)
    require_accounts(samples.protocol, registered, row)
    other = judge("code", Said(BARE)).code if value == "code" else value
    with pytest.raises(JournalError, match=rf"^ledger: cell {domain}/0000, R0, s0_eos: {name}: expected {words}"):
        require_accounts(samples.protocol, registered, replace(row, **{name: other}))
