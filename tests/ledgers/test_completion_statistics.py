"""Counts over a completion ledger (R05 7): every numerator and denominator of a run that was written by hand."""

import json
import re

import msgspec
import pytest

from harness.canon import canonical_bytes, digest
from harness.errors import JournalError
from harness.ledgers.account_counts import LABEL, NO_CODE, NO_JUDGE, NO_NUMERIC, NOT_RUN
from harness.ledgers.accounts import NO_TERMINAL
from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.records.base import decode_json
from harness.records.completion import (
    CodeSummary,
    CompletionStatistics,
    CompletionSummary,
    Counted,
    Diagnostics,
    Gain,
    NumericSummary,
    VerdictSummary,
)
from harness.records.ledger import Count, NotObserved, Total

replace = msgspec.structs.replace
FENCED = "```python\ndef f(n):\n    return n + 1\n```"
OPEN = "```python\ndef f(n):\n    return n + 1"
CLASSES = (
    "NATURAL_EOS",
    "TASK_TERMINAL_BEFORE_EOS",
    "BUDGET_TRUNCATED_WITH_FALLBACK_ONLY",
    "BUDGET_TRUNCATED_UNRESOLVED",
    "OTHER_STOP",
)


def of(count, total):
    """A count."""
    return Count(count=count, of=total)


def counted(count, total):
    """A count of a group that has something to count."""
    return Counted(count=count, of=total)


def classes(total, **found):
    """All five classes, those not named at 0."""
    return {name: of(found.get(name, 0), total) for name in CLASSES}


@pytest.fixture(scope="module")
def run(books, say):
    """English, code and mathematics, one source each; what each cell says is in the tests' own numbers."""
    english = books.unit("english", 0, {"*": say("It ended."), "s0_x": say("It", eos=False)}, grid="formal")
    code = books.unit(
        "code", 0,
        {
            "*": say(FENCED),  # s0_eos, s0_bos, s1_bos, s1_x: passed, assertion_failed, out_of_memory, passed
            "s1_eos": say(FENCED, eos=False),  # passed, by its fence strict
            "s0_x": say(OPEN, eos=False),  # passes, and isn't strict
            "s0_period": say("``", eos=False),  # syntax_error
            "s1_period": say(""),  # nothing to execute
        },
        grid="formal",
    )  # fmt: skip
    math = books.unit(
        "math", 0,
        {
            "s0_eos": say(r"7, so \boxed{12}"),
            "s1_eos": say(r"so \boxed{12}", eos=False),
            "s0_bos": say("so 12"),
            "s1_bos": say("so 12", eos=False),
            "s0_x": say("so 13"),
            "s1_x": say("none"),
            "s0_period": say("none", eos=False),
            "s1_period": say("the answer is 13"),
        },
        grid="formal",
    )  # fmt: skip
    said = {("math/0000", "s0_eos"): say("7x", eos=False), ("math/0000", "s1_x"): say("no", eos=True)}
    return books.completion_run((english, code, math), gold={"math/0000": "12"}, grid="formal", said=said)


@pytest.fixture(scope="module")
def book(books, run):
    """Its ledger."""
    outcomes = {"*": "passed", "s0_bos": "assertion_failed", "s1_bos": "out_of_memory", "s0_period": "syntax_error"}
    return completion_ledger(books.protocol, run, books.executions(run, outcomes))


@pytest.fixture(scope="module")
def statistics(books, book):
    """Its statistics."""
    return completion_statistics(books.protocol, book)


@pytest.fixture(scope="module")
def group(statistics):
    """`group(domain, condition)`: the one summary of a group; "" means all."""

    def find(domain="", condition=""):
        (found,) = [one.cells for one in statistics.groups if (one.domain, one.condition) == (domain, condition)]
        return found

    return find


def test_counts_of_mathematics(group):
    """Eight cells: five ended; five numbers by a marker or EOS are evaluable; 4 right, 3 strict, 2 by a marker."""
    lengths = [17, 13, 6, 5, 6, 5, 4, 17]
    assert group("math") == CompletionSummary(
        natural_eos=of(5, 8),
        budget_truncated=of(3, 8),
        other_stop=of(0, 8),
        explicit_terminal=counted(3, 8),
        evaluable=counted(5, 8),
        classes=classes(
            8,
            NATURAL_EOS=5,
            TASK_TERMINAL_BEFORE_EOS=1,
            BUDGET_TRUNCATED_WITH_FALLBACK_ONLY=1,
            BUDGET_TRUNCATED_UNRESOLVED=1,
        ),
        length=Total(sum=sum(lengths), n=8),
        numeric=NumericSummary(
            methods={"boxed": of(2, 8), "last": of(3, 8), "missing": of(2, 8), "phrase": of(1, 8)},
            gold_absent=of(0, 8),
            fixed_budget_exact=of(4, 8),
            strict_complete_exact=of(3, 8),
            strict_marker_only_exact=of(2, 8),
        ),
        code=NO_CODE,
        diagnostics=Diagnostics(
            label=LABEL,
            completion_conditioned_numeric_exact=counted(3, 6),
            completion_conditioned_code_passed=NO_CODE,
            fallback_exact=counted(2, 3),
        ),
        # Of the baseline's cells one had ended ("no", too early to be a prefix), seven were cut; two begin otherwise.
        gain=Gain(
            baseline_natural_eos=of(1, 8), natural_eos=of(5, 8), newly_ended=of(4, 7), prefix_exact=of(6, 8)
        ),
    )  # fmt: skip


def test_counts_of_code(group):
    """Eight cells: five ended, seven programs, six of which parse; four pass, three of them strictly."""
    fenced, opened = len(FENCED), len(OPEN)
    assert group("code") == CompletionSummary(
        natural_eos=of(5, 8),
        budget_truncated=of(3, 8),
        other_stop=of(0, 8),
        explicit_terminal=counted(5, 8),
        evaluable=counted(6, 8),
        classes=classes(8, NATURAL_EOS=5, TASK_TERMINAL_BEFORE_EOS=1, BUDGET_TRUNCATED_UNRESOLVED=2),
        length=Total(sum=4 * (fenced + 1) + fenced + opened + 2 + 1, n=8),
        numeric=NO_NUMERIC,
        code=CodeSummary(
            methods={
                "definition": of(1, 8), "fence_with_entry_point": of(5, 8), "missing": of(1, 8), "suffix": of(1, 8)
            },
            verdicts=VerdictSummary(
                outcomes={
                    "assertion_failed": of(1, 8),
                    "ast_error": of(1, 8),
                    "extract_failed": of(1, 8),
                    "passed": of(4, 8),
                    "runtime_error": of(1, 8),
                },
                ast_parses=of(6, 8),
                executed=of(6, 8),
                fixed_budget_passed=of(4, 8),
                strict_complete_passed=of(3, 8),
            ),
        ),
        diagnostics=Diagnostics(
            label=LABEL,
            completion_conditioned_numeric_exact=NO_NUMERIC,
            completion_conditioned_code_passed=counted(3, 6),
            fallback_exact=NO_NUMERIC,
        ),
        # The empty answer had ended within the baseline's budget of 4 too.
        gain=Gain(
            baseline_natural_eos=of(1, 8), natural_eos=of(5, 8), newly_ended=of(4, 7), prefix_exact=of(8, 8)
        ),
    )  # fmt: skip


def test_counts_of_a_domain_without_a_judge(group):
    """English: stops, classes, lengths and the gain; everything else is typed absence, never a 0."""
    found = group("english")
    assert (found.natural_eos, found.budget_truncated) == (of(7, 8), of(1, 8))
    assert (found.explicit_terminal, found.evaluable) == (NO_JUDGE, NO_JUDGE)
    assert (found.numeric, found.code) == (NO_NUMERIC, NO_CODE)
    assert found.classes == classes(8, NATURAL_EOS=7, BUDGET_TRUNCATED_UNRESOLVED=1)
    assert found.length == Total(sum=7 * 10 + 2, n=8)


def test_counts_of_all(group):
    """24 cells; what only two domains have is of their 16, what only one has of its 8."""
    found = group()
    assert found.natural_eos == of(17, 24)
    assert found.explicit_terminal == counted(8, 16)
    assert found.evaluable == counted(11, 16)
    assert found.numeric.fixed_budget_exact == of(4, 8)
    assert found.code.verdicts.fixed_budget_passed == of(4, 8)
    assert found.gain.natural_eos == of(17, 24)


def test_a_condition_is_counted_over_domains(group):
    """s0_x: three cells, English cut, code cut in an open fence, mathematics wrong by its last number."""
    found = group(condition="s0_x")
    assert (found.natural_eos, found.budget_truncated) == (of(1, 3), of(2, 3))
    assert found.explicit_terminal == counted(0, 2)
    assert found.evaluable == counted(2, 2)
    assert found.numeric.fixed_budget_exact == of(0, 1)
    assert found.code.verdicts.strict_complete_passed == of(0, 1)
    assert found.code.verdicts.fixed_budget_passed == of(1, 1)


def test_every_group_is_there_in_order(books, statistics):
    """All, each domain, each condition and each of both: the empty word means all."""
    conditions = ["", *(one.id for one in books.protocol.conditions)]
    domains = ["", "english", "code", "math"]
    assert [(one.domain, one.condition) for one in statistics.groups] == [(d, c) for d in domains for c in conditions]
    edges = [edge.id for edge in books.protocol.edges]
    assert [(one.edge, one.domain) for one in statistics.edges] == [(e, d) for e in edges for d in domains]


def test_groups_add_up(statistics):
    """A domain's cells are its conditions' cells, and all cells are the domains'."""
    sums = {}
    for one in statistics.groups:
        kind = (bool(one.domain), bool(one.condition))
        old = sums.get(kind, (0, 0, 0))
        values = (one.cells.natural_eos.count, one.cells.natural_eos.of, one.cells.length.sum)
        sums[kind] = tuple(a + b for a, b in zip(old, values, strict=True))
    assert len(set(sums.values())) == 1


def test_an_edge_counts_pairs_of_classes(statistics):
    """R05 7: in mathematics system_bos has one side that ended and one that was cut with a last number."""
    (found,) = [one for one in statistics.edges if (one.edge, one.domain) == ("system_bos", "math")]
    assert found.classes == {"NATURAL_EOS | BUDGET_TRUNCATED_WITH_FALLBACK_ONLY": of(1, 1)}
    (all_domains,) = [one for one in statistics.edges if (one.edge, one.domain) == ("system_bos", "")]
    assert all_domains.classes == {
        "NATURAL_EOS | BUDGET_TRUNCATED_WITH_FALLBACK_ONLY": of(1, 3),
        "NATURAL_EOS | NATURAL_EOS": of(2, 3),
    }
    assert all_domains.units.ids_exact == of(2, 3)
    assert all_domains.units.distance == Total(sum=1, n=3)


def test_the_record_comes_back_from_its_bytes(statistics, book):
    """Counts and absences keep apart in JSON, and digests lead to ledger and run."""
    data = canonical_bytes(statistics)
    assert decode_json(data, CompletionStatistics, where="statistics", error=JournalError, todo="") == statistics
    assert (statistics.ledger_sha256, statistics.run_sha256) == (digest(book), book.run_sha256)


def names(value):
    """Every key of a JSON value."""
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)


def test_nothing_is_called_an_accuracy(statistics):
    """R05 4.4, 7 and 8: no accuracy, rate, score, interval or pass@k anywhere; counts only."""
    plain = json.loads(canonical_bytes(statistics))
    assert not {name for name in names(plain) if re.search(r"accuracy|rate|percent|score|interval|mean_|pass@", name)}


def test_conditioned_counts_stand_in_the_diagnostics_alone(statistics):
    """R05 4.4: figures over completed cells are only under `diagnostics`, with the label beside them."""
    plain = json.loads(canonical_bytes(statistics))
    labels = set()
    for one in plain["groups"]:
        diagnostics = one["cells"].pop("diagnostics")
        labels.add(diagnostics["label"])
        assert {"completion_conditioned_numeric_exact", "completion_conditioned_code_passed"} <= set(diagnostics)
    assert labels == {"diagnostic: selection bias, not an accuracy"}
    assert not [name for name in names(plain) if "conditioned" in name or name == "fallback_exact"]


@pytest.fixture(scope="module")
def smoke(books, say):
    """Statistics of a smoke run of code: three cells have an end, one holds nothing."""
    unit = books.unit(
        "code", 0, {"*": say(OPEN, eos=False), "s0_eos": say(FENCED), "s1_eos": say("")}, grid="smoke"
    )  # fmt: skip
    run = books.completion_run((unit,), gold={}, grid="smoke")
    return completion_statistics(books.protocol, completion_ledger(books.protocol, run, {}))


def test_smoke_counts_no_verdict_as_zero(smoke):
    """No group of a smoke run says 0 passed: verdicts, coverage and the diagnostic say that none was given."""
    for one in smoke.groups:
        assert one.cells.code.verdicts == NOT_RUN
        assert one.cells.evaluable == NOT_RUN
        assert one.cells.diagnostics.completion_conditioned_code_passed == NOT_RUN
        assert isinstance(one.cells.code, CodeSummary)
    assert NotObserved(reason="this tier executes no program") == NOT_RUN


def lost(book, rows):
    """The ledger without its last row of a kind."""
    return replace(book, **{rows: getattr(book, rows)[:-1]})


def doubled(book, rows):
    """The ledger with its first row of a kind in place of its last."""
    listed = getattr(book, rows)
    return replace(book, **{rows: (*listed[:-1], listed[0])})


@pytest.mark.parametrize(("rows", "planned"), [("cells", 24), ("edges", 30)])
@pytest.mark.parametrize("damage", [lost, doubled])
def test_a_lost_or_doubled_row_is_refused(books, book, damage, rows, planned):
    """A row too few is never a smaller denominator, and a doubled one doesn't make up for it."""
    with pytest.raises(JournalError, match=f"^ledger: different {rows}: expected {planned} rows, found {planned - 1}"):
        completion_statistics(books.protocol, damage(book, rows))


@pytest.mark.parametrize("rows", ["cells", "edges"])
def test_a_row_twice_is_refused(books, book, rows):
    """Nor may a row be there in addition."""
    listed = getattr(book, rows)
    with pytest.raises(JournalError, match=r"^ledger: (cells|edges \w+) of all.*: expected \d+ rows, found \d+"):
        completion_statistics(books.protocol, replace(book, **{rows: (*listed, listed[0])}))


def moved(book, rows, **changes):
    """The ledger with fields of its last row of a kind changed."""
    listed = getattr(book, rows)
    return replace(book, **{rows: (*listed[:-1], replace(listed[-1], **changes))})


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        ("cells", {"domain": "chinese"}, "^ledger: cells of math, all: expected 8 rows, found 7"),
        ("cells", {"domain": "other"}, "^ledger: cells of math, all: expected 8 rows, found 7"),
        ("cells", {"condition": "s9_x"}, "^ledger: cells of all, s1_period: expected 3 rows, found 2"),
        ("edges", {"edge": "other"}, "^ledger: edges period_s1 of all: expected 3 rows, found 2"),
        ("edges", {"domain": "code"}, "^ledger: edges period_s1 of code: expected 1 rows, found 2"),
    ],
)
def test_a_row_of_another_group_is_refused(books, book, rows, changes, message):
    """A row moved to another domain, condition or edge shows in the size of its group."""
    with pytest.raises(JournalError, match=message):
        completion_statistics(books.protocol, moved(book, rows, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"numeric": NO_NUMBER},
            "math/0000, greedy, s1_period: numeric: expected an account of its domain, found none",
        ),
        (
            {"terminal": NO_TERMINAL},
            "math/0000, greedy, s1_period: terminal: expected an account of its domain, found none",
        ),
    ],
)
def test_a_row_without_its_domains_account_is_refused(books, book, changes, message):
    """A cell whose account is lacking would leave the denominator: it is refused."""
    with pytest.raises(JournalError, match=f"^ledger: cell {message}"):
        completion_statistics(books.protocol, moved(book, "cells", **changes))


def test_a_row_without_its_program_is_refused(books, book):
    """The same for a code cell, and for an account that a domain doesn't have."""
    at = next(n for n, row in enumerate(book.cells) if row.domain == "code")
    cells = list(book.cells)
    cells[at] = replace(cells[at], code=NO_PROGRAM)
    with pytest.raises(JournalError, match="code/0000, greedy, s0_eos: code: expected an account of its domain"):
        completion_statistics(books.protocol, replace(book, cells=tuple(cells)))
    cells[at] = replace(book.cells[at], numeric=book.cells[-1].numeric)
    with pytest.raises(JournalError, match="code/0000, greedy, s0_eos: numeric: expected no account of its domain"):
        completion_statistics(books.protocol, replace(book, cells=tuple(cells)))


def test_a_ledger_of_another_protocol_is_refused(books, book):
    """Counts are made only with the protocol that gives their denominators."""
    with pytest.raises(JournalError, match=r"^ledger: protocol: expected nano-completion, found other"):
        completion_statistics(books.protocol, replace(book, protocol="other"))


def test_a_cell_without_gold_stays_in_the_denominator(books, run):
    """Without gold nothing is right or evaluable, all eight are still counted, and the lack is a count of its own."""
    without = replace(run, gold={})
    book = completion_ledger(books.protocol, without, books.executions(without, {}))
    found = {(one.domain, one.condition): one.cells for one in completion_statistics(books.protocol, book).groups}
    numeric = found["math", ""].numeric
    assert (numeric.gold_absent, numeric.fixed_budget_exact, numeric.strict_complete_exact) == (
        of(8, 8),
        of(0, 8),
        of(0, 8),
    )
    assert found["math", ""].evaluable == counted(0, 8)
    assert numeric.methods["missing"] == of(2, 8)
