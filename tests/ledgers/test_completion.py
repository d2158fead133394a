"""The completion ledger (R05 4): four accounts of a cell, none of which stands in for another."""

import msgspec
import pytest

from harness.canon import canonical_bytes, digest, sha256_hex, text_sha256
from harness.errors import InputError, JournalError
from harness.ledgers.accounts import NO_TERMINAL, PUBLISHED
from harness.ledgers.completion import completion_ledger
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.records.base import decode_json
from harness.records.completion import (
    BaselineCompared,
    CompletionLedger,
    NotExecuted,
    NumericWithoutGold,
    ProgramTaken,
    Terminal,
)
from harness.records.evaluation import CodeMissing, NumericFound, NumericMissing

replace = msgspec.structs.replace
DOMAINS = ("english", "chinese", "code", "math")
FENCED = "```python\ndef f(n):\n    return n + 1\n```"
OPEN = "```python\ndef f(n):\n    return n + 1"
SUFFIX = "    return n + 1\n"
STATES = {"EOS": (True, False), "cut": (False, True), "neither": (False, False)}


@pytest.fixture(scope="session")
def one_row(books, say):
    """`one_row(domain, text, stop, outcome, gold)`: the row of the first cell of a run of that one domain."""

    def make(domain, text, stop="EOS", outcome="passed", gold="12"):
        eos, truncated = STATES[stop]
        unit = books.unit(domain, 0, {"*": say("    return n\n"), "s0_eos": say(text, eos=eos)}, grid="formal")
        cells = (replace(unit.cells[0], eos=eos, truncated=truncated), *unit.cells[1:])
        golds = {} if gold is None else {"math/0000": gold}
        run = books.completion_run((replace(unit, cells=cells),), gold=golds, grid="formal")
        executions = books.executions(run, {"*": "assertion_failed", "s0_eos": outcome})
        return completion_ledger(books.protocol, run, executions).cells[0]

    return make


CLASSES = [
    ("math", r"so \boxed{12}", "EOS", "NATURAL_EOS"),
    ("math", "so 12", "EOS", "NATURAL_EOS"),
    ("math", "none", "EOS", "NATURAL_EOS"),
    ("math", r"so \boxed{12}", "cut", "TASK_TERMINAL_BEFORE_EOS"),
    ("math", r"so \boxed{x}", "cut", "TASK_TERMINAL_BEFORE_EOS"),
    ("math", r"so \boxed{x} 12", "cut", "TASK_TERMINAL_BEFORE_EOS"),
    ("math", "so 12", "cut", "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY"),
    ("math", r"so \boxed{12", "cut", "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY"),
    ("math", "none", "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("math", "", "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("math", r"so \boxed{12}", "neither", "OTHER_STOP"),
    ("code", FENCED, "EOS", "NATURAL_EOS"),
    ("code", FENCED, "cut", "TASK_TERMINAL_BEFORE_EOS"),
    ("code", OPEN, "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("code", "x = 12", "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("code", FENCED, "neither", "OTHER_STOP"),
    ("english", "It ended.", "EOS", "NATURAL_EOS"),
    ("english", r"\boxed{12} ended.", "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("english", FENCED, "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("chinese", "完了。12", "cut", "BUDGET_TRUNCATED_UNRESOLVED"),
    ("chinese", "完了。", "neither", "OTHER_STOP"),
]


@pytest.mark.parametrize(("domain", "text", "stop", "expected"), CLASSES)
def test_completion_class(one_row, domain, text, stop, expected):
    """R05 4.4: five states; a number is a fallback in mathematics only, a full stop and a fence elsewhere are none."""
    assert one_row(domain, text, stop).completion == expected


@pytest.mark.parametrize(
    ("stop", "expected"), [("EOS", "natural_eos"), ("cut", "budget_truncated"), ("neither", "other_stop")]
)
@pytest.mark.parametrize("domain", DOMAINS)
def test_stop(one_row, domain, stop, expected):
    """R05 4.1: the stop follows from EOS and the budget alone, in every domain."""
    assert one_row(domain, FENCED, stop).stop == expected


TERMINALS = [
    ("math", r"so \boxed{12}", "cut", Terminal(explicit=True, reached=True)),
    ("math", r"so \boxed{x}", "cut", Terminal(explicit=True, reached=True)),
    ("math", "#### ", "cut", Terminal(explicit=True, reached=True)),
    ("math", "the answer is 12", "cut", Terminal(explicit=True, reached=True)),
    ("math", "so 12", "EOS", Terminal(explicit=False, reached=False)),
    ("math", r"so \boxed{12", "EOS", Terminal(explicit=False, reached=False)),
    ("code", FENCED, "cut", Terminal(explicit=True, reached=True)),
    ("code", FENCED, "EOS", Terminal(explicit=True, reached=True)),
    ("code", OPEN, "EOS", Terminal(explicit=False, reached=True)),
    ("code", OPEN, "cut", Terminal(explicit=False, reached=False)),
    ("code", FENCED.replace("python", ""), "cut", Terminal(explicit=False, reached=False)),
    ("english", FENCED, "EOS", NO_TERMINAL),
    ("english", r"\boxed{12}.", "cut", NO_TERMINAL),
    ("chinese", "完了。", "EOS", NO_TERMINAL),
]


@pytest.mark.parametrize(("domain", "text", "stop", "expected"), TERMINALS)
def test_terminal(one_row, domain, text, stop, expected):
    """R05 4.2: a marker, with or without a number; a closed Python fence or EOS; no judge for English and Chinese."""
    assert one_row(domain, text, stop).terminal == expected


TEXTS = {"marker": r"7, so \boxed{%s}", "fallback": "7, so %s", "none": "nothing%s"}
# account -> evaluable, fixed budget, strict by clause 5, strict by the audit, fallback; for a right number
RIGHT = {
    ("marker", "EOS"): (True, True, True, True, False),
    ("marker", "cut"): (True, True, True, True, False),
    ("fallback", "EOS"): (True, True, True, False, True),
    ("fallback", "cut"): (False, True, False, False, True),
    ("none", "EOS"): (False, False, False, False, False),
    ("none", "cut"): (False, False, False, False, False),
}


def accounts(row):
    """The five truth values of a mathematics cell."""
    found = row.numeric
    return (
        found.evaluable,
        found.fixed_budget_exact,
        found.strict_complete_exact,
        found.strict_marker_only_exact,
        found.fallback_exact,
    )


@pytest.mark.parametrize(("method", "stop"), RIGHT)
@pytest.mark.parametrize("said", ["12", "12.0", "13"])
def test_numeric_accounts(one_row, method, stop, said):
    """R05 4.3, 4.4 and 5: the whole matrix; a wrong number is as evaluable as a right one and exact nowhere."""
    row = one_row("math", TEXTS[method] % ("" if method == "none" else said), stop)
    evaluable, *exact = RIGHT[method, stop]
    assert accounts(row) == (evaluable, *([False] * 4 if said == "13" else exact))
    kind = NumericMissing if method == "none" else NumericFound
    assert isinstance(row.numeric.extraction, kind)


@pytest.mark.parametrize(("stop", "strict"), [("EOS", True), ("cut", False)])
def test_a_marker_without_a_number_lends_a_fallback_nothing(one_row, stop, strict):
    """R05 4.3: the last number of a cut text is never strict, also where a box without a number ends the task."""
    row = one_row("math", r"\boxed{x} and 12", stop)
    assert row.terminal == Terminal(explicit=True, reached=True)
    assert accounts(row) == (strict, True, strict, False, True)


def test_no_strict_cell_is_unevaluable(one_row):
    """Whatever is strict was evaluable and exact: the accounts are apart, but never at odds."""
    texts = [text % "12" for name, text in TEXTS.items() if name != "none"] + [r"\boxed{x} 12", "#### 12", "12 ####"]
    rows = [one_row("math", text, stop).numeric for text in texts for stop in STATES]
    assert all(one.evaluable and one.fixed_budget_exact for one in rows if one.strict_complete_exact)
    assert all(one.strict_complete_exact for one in rows if one.strict_marker_only_exact)
    assert any(one.fixed_budget_exact and not one.strict_complete_exact for one in rows)


def test_without_gold_nothing_is_judged(one_row):
    """The extraction is kept, and the class still follows; no gold number is made up."""
    row = one_row("math", "so 12", "cut", gold=None)
    assert isinstance(row.numeric, NumericWithoutGold)
    assert row.numeric.extraction.value == "12"
    assert row.completion == "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY"


def test_a_gold_that_is_no_number_is_refused(one_row):
    """One error that names the source, not a mismatch of every cell."""
    with pytest.raises(InputError, match=r"gold of math/0000: expected one number .* found `twelve`"):
        one_row("math", "so 12", gold="twelve")


PUBLISHED_WORDS = {
    "passed": "passed",
    "assertion_failed": "assertion_failed",
    "runtime_error": "runtime_error",
    "timeout": "timeout",
    "out_of_memory": "runtime_error",
    "syntax_error": "ast_error",
    "extract_failed": "extract_failed",
    "infrastructure": "sandbox_error",
}


@pytest.mark.parametrize("outcome", PUBLISHED_WORDS)
def test_outcome_and_published_word(one_row, outcome):
    """R05 6: each outcome has the document's word beside it; only a pass passes, only what parses was run."""
    verdict = one_row("code", FENCED, "EOS", outcome).code.verdict
    assert (verdict.outcome, verdict.published) == (outcome, PUBLISHED_WORDS[outcome])
    parses = outcome not in ("syntax_error", "extract_failed", "infrastructure")
    assert (verdict.ast_parses, verdict.ran) == (parses, parses)
    assert (verdict.fixed_budget_pass, verdict.strict_complete_pass) == (outcome == "passed", outcome == "passed")


def test_every_outcome_has_a_published_word():
    """The table of the test is the code's."""
    assert PUBLISHED == PUBLISHED_WORDS


@pytest.mark.parametrize(
    ("text", "stop", "strict"),
    [
        (FENCED, "EOS", True),
        (FENCED, "cut", True),
        (OPEN, "EOS", True),
        (OPEN, "cut", False),
        (SUFFIX, "EOS", True),
        (SUFFIX, "cut", False),
        (FENCED.replace("python", ""), "cut", False),
        (FENCED, "neither", True),
        (SUFFIX, "neither", False),
    ],
)
def test_strict_pass_needs_an_end(one_row, text, stop, strict):
    """R05 4.4: a program that passes is a fixed-budget pass; strict only by EOS or a closed Python fence."""
    verdict = one_row("code", text, stop).code.verdict
    assert (verdict.fixed_budget_pass, verdict.strict_complete_pass) == (True, strict)


@pytest.mark.parametrize("stop", ["EOS", "cut"])
@pytest.mark.parametrize("outcome", ["assertion_failed", "timeout", "infrastructure"])
def test_an_end_is_no_pass(one_row, stop, outcome):
    """EOS and a closed fence make nothing right."""
    verdict = one_row("code", FENCED, stop, outcome).code.verdict
    assert (verdict.fixed_budget_pass, verdict.strict_complete_pass) == (False, False)


def test_a_program_is_taken_by_digest(one_row):
    """Rule, step, place and digest are in the row; the program's text isn't."""
    row = one_row("code", FENCED)
    program = FENCED[10:37]
    assert row.code.program == ProgramTaken(
        rule="code-r05", method="fence_with_entry_point", program_sha256=text_sha256(program), start=10, end=37
    )
    assert b"return" not in canonical_bytes(row)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_nothing_to_execute(one_row, text):
    """A text of white space holds no program: no verdict, and the row says why."""
    row = one_row("code", text)
    assert row.code.program == CodeMissing(rule="code-r05")
    assert row.code.verdict == NotExecuted(reason="extract_failed")


@pytest.mark.parametrize("text", [FENCED, ""])
def test_a_grid_that_executes_nothing_says_so(books, say, text):
    """In smoke every program is unexecuted for the tier's reason, also where there is none: no verdict is implied."""
    unit = books.unit("code", 0, {"*": say(text)}, grid="smoke")
    run = books.completion_run((unit,), gold={}, grid="smoke")
    book = completion_ledger(books.protocol, run, {})
    assert {row.code.verdict for row in book.cells} == {NotExecuted(reason="tier")}


@pytest.mark.parametrize("domain", DOMAINS)
def test_accounts_of_a_domain(one_row, domain):
    """Numbers in mathematics only, programs in code only; what doesn't apply is typed and says why."""
    row = one_row(domain, FENCED + " 12")
    assert (row.numeric == NO_NUMBER, row.code == NO_PROGRAM) == (domain != "math", domain != "code")


BEFORE = [
    ("abcdefgh", True, "abcd", False, ("budget_truncated", 4, 4, True)),
    ("abcdefgh", True, "abcx", False, ("budget_truncated", 4, 4, False)),
    ("abcdefgh", False, "abcdef", False, ("budget_truncated", 6, 4, True)),
    ("abcdefgh", False, "abcdxx", False, ("budget_truncated", 6, 4, True)),
    ("ab", True, "ab", True, ("natural_eos", 3, 3, True)),
    ("abc", True, "ab", True, ("natural_eos", 3, 3, False)),
    ("ab", True, "abc", False, ("budget_truncated", 3, 3, False)),
    ("", True, "", True, ("natural_eos", 1, 1, True)),
]


@pytest.mark.parametrize(("now", "eos", "before", "ended", "expected"), BEFORE)
def test_the_baselines_cell(books, say, now, eos, before, ended, expected):
    """R05 2: min(budget 4, baseline length) tokens are compared, its EOS among them, and how it had stopped is kept."""
    unit = books.unit("english", 0, {"*": say(now, eos=eos)}, grid="formal")
    said = {("english/0000", "s0_eos"): say(before, eos=ended)}
    run = books.completion_run((unit,), gold={}, grid="formal", said=said)
    stop, length, compared, exact = expected
    assert completion_ledger(books.protocol, run, {}).cells[0].baseline == BaselineCompared(
        stop=stop, length=length, compared=compared, prefix_exact=exact
    )


@pytest.fixture(scope="module")
def small(books, say):
    """A run of code and mathematics, listed out of order, with its executions."""
    math = books.unit("math", 0, {"*": say("so 12"), "s1_eos": say("so 12", eos=False)}, grid="formal")
    code = books.unit("code", 0, {"*": say(FENCED), "s0_x": say("")}, grid="formal")
    run = books.completion_run((math, code), gold={"math/0000": "12"}, grid="formal")
    return run, books.executions(run, {})


def test_rows_stand_in_the_protocols_order(books, small):
    """Domains, conditions and edges as registered, whatever order the units lie in."""
    book = completion_ledger(books.protocol, *small)
    names = ["code/0000", "math/0000"]
    conditions = [condition.id for condition in books.protocol.conditions]
    edges = [edge.id for edge in books.protocol.edges]
    assert [(row.source_id, row.condition) for row in book.cells] == [(n, c) for n in names for c in conditions]
    assert [(row.source_id, row.edge) for row in book.edges] == [(n, e) for n in names for e in edges]


def test_an_edge_shows_both_sides_class(books, small):
    """R05 7: one cut side doesn't hide in a distance."""
    book = completion_ledger(books.protocol, *small)
    (edge,) = [row for row in book.edges if (row.source_id, row.edge) == ("math/0000", "system_eos")]
    assert (edge.left_completion, edge.right_completion) == ("NATURAL_EOS", "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY")
    assert (edge.comparison.ids_exact, edge.comparison.distance) == (False, 1)


def test_the_ledger_names_what_it_follows_from(books, small):
    """Run, baseline and evaluators are named; the record comes back from its bytes as it was."""
    run, executions = small
    book = completion_ledger(books.protocol, run, executions)
    assert (book.run_sha256, book.baseline_run_sha256) == (digest(run), sha256_hex(b"baseline run"))
    assert book.evaluators == books.protocol.evaluators
    data = canonical_bytes(book)
    assert decode_json(data, CompletionLedger, where="ledger", error=JournalError, todo="") == book


KEY = "code-00-code-0000-greedy-"


@pytest.mark.parametrize("lost", [1, 7])
def test_a_missing_verdict_is_refused(books, small, lost):
    """R05 6: a program without its execution, or a run without any, is no ledger with fewer verdicts."""
    run, executions = small
    left = dict(sorted(executions.items())[lost:])
    with pytest.raises(JournalError, match=rf"^sandbox/{KEY}s0_bos.json: expected the verdict .* found none\. .*--run"):
        completion_ledger(books.protocol, run, left)


@pytest.mark.parametrize("key", [f"{KEY}s0_x", f"{KEY}s9_x", "math-00-math-0000-greedy-s0_x"])
def test_a_stranger_verdict_is_refused(books, small, key):
    """An execution of a cell with nothing extracted, or of no cell at all, isn't passed over."""
    run, executions = small
    stranger = next(iter(executions.values()))
    with pytest.raises(JournalError, match=rf"^sandbox/{key}.json: expected no execution: .* found one"):
        completion_ledger(books.protocol, run, executions | {key: stranger})


def test_a_verdict_in_a_grid_that_executes_nothing_is_refused(books, say):
    """A smoke run with a verdict isn't one that its tier gave."""
    run = books.completion_run(
        (books.unit("code", 0, {"*": say(FENCED)}, grid="smoke"),), gold={}, grid="smoke"
    )  # fmt: skip
    with pytest.raises(JournalError, match=r"s0_bos.json: expected no execution"):
        completion_ledger(books.protocol, run, books.executions(run, {}))


def test_a_verdict_on_another_program_is_refused(books, small):
    """A verdict counts for the program that it was given on, not for the place that its file lies in."""
    run, executions = small
    other = books.execution("def f(n):\n    return 2\n", books.task("code/0000"), "passed")
    with pytest.raises(JournalError, match=rf"^sandbox/{KEY}s0_eos.json: candidate_sha256: expected"):
        completion_ledger(books.protocol, run, executions | {f"{KEY}s0_eos": other})


def test_a_verdict_by_other_tests_is_refused(books, small):
    """Nor for tests that aren't the run's."""
    run, executions = small
    task = replace(books.task("code/0000"), test="def check(candidate):\n    pass\n")
    other = books.execution(FENCED[10:37], task, "passed")
    with pytest.raises(JournalError, match=rf"^sandbox/{KEY}s0_eos.json: tests_sha256: expected"):
        completion_ledger(books.protocol, run, executions | {f"{KEY}s0_eos": other})


def without(run, **changes):
    """The run with fields of its baseline changed."""
    return replace(run, baseline=replace(run.baseline, **changes))


def test_a_run_without_a_baseline_cell_is_refused(books, small):
    """Each cell has its baseline cell, by identity."""
    run, executions = small
    cells = tuple(one for one in run.baseline.cells if (one.source_id, one.condition) != ("code/0000", "s1_period"))
    with pytest.raises(JournalError, match=r"^baseline: code/0000, greedy, s1_period: expected the same cell"):
        completion_ledger(books.protocol, without(run, cells=cells), executions)


def test_a_run_without_a_task_is_refused(books, small):
    """What a program is taken for is part of the run."""
    run, executions = small
    with pytest.raises(JournalError, match=r"^run record: task of code/0000"):
        completion_ledger(books.protocol, replace(run, tasks={}), executions)


@pytest.mark.parametrize("side", ["cell", "baseline"])
def test_an_output_that_ended_twice_is_refused(books, small, side):
    """EOS and the budget's end in one record is bad data, named by its cell."""
    run, executions = small
    if side == "cell":
        unit = run.units[0]
        cells = (replace(unit.cells[0], truncated=True), *unit.cells[1:])
        damaged = replace(run, units=(replace(unit, cells=cells), *run.units[1:]))
    else:
        cell = next(one for one in run.baseline.cells if (one.source_id, one.condition) == ("math/0000", "s0_eos"))
        both = replace(cell, eos=True, truncated=True)
        damaged = without(run, cells=tuple(both if one is cell else one for one in run.baseline.cells))
    with pytest.raises(JournalError, match=r"cell math/0000, greedy, s0_eos: expected EOS or .*, found both"):
        completion_ledger(books.protocol, damaged, executions)


def test_a_lost_unit_is_refused(books, small):
    """A run that isn't its grid has no ledger."""
    run, executions = small
    with pytest.raises(JournalError, match=r"units of grid formal: expected 2 units"):
        completion_ledger(books.protocol, replace(run, units=run.units[1:]), executions)
