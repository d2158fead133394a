"""Statistics of a task run (R08 7), a hand-made ledger counted by eye, and everything that leaves none."""

from functools import partial

import msgspec
import pytest
from pregate_support.books import PROTOCOLS

from harness.canon import digest
from harness.errors import JournalError, ProtocolError
from harness.ledgers.bootstrap import indices_sha256, resampled_tasks
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.task_diagnostics import direction, spread
from harness.ledgers.task_measures import value_of
from harness.ledgers.task_statistics import task_statistics
from harness.protocols.load import read_protocol
from harness.records.ledger import Count, Total
from harness.records.task_ledger import (
    Band,
    NoTaskStatistics,
    NotShared,
    SelectedTape,
    SelectedTask,
    Spread,
    TapeContrast,
    TapeDirections,
    TaskCodeSummary,
    TaskNumericSummary,
    Transitions,
)

from .tasks import DOMAINS, RULE, Left, task_book, task_protocol

replace = msgspec.structs.replace
EOS, CUT = (7, 1), (7, 8, 9)
wrong = partial(Left, answer="13")
nothing = partial(Left, answer=None, ids=CUT, eos=False)
failed = partial(Left, outcome="assertion_failed")

# Four tasks of mathematics, two of them diagnostic under T1 too; a cell that isn't named is right, ended, of 2 tokens.
HAND = {
    ("math", 0, "T0", "s0_eos"): wrong(),
    ("math", 0, "T0", "s0_period"): Left(ids=CUT, eos=False),
    ("math", 1, "T0", "s0_eos"): Left(ids=(7, 8, 1)),
    ("math", 1, "T0", "s0_period"): nothing(),
    ("math", 2, "T0", "s0_period"): wrong(ids=CUT, eos=False, marker=True),
    ("math", 3, "T0", "s0_eos"): Left(ids=(5, 1), gaps=2),
    ("math", 3, "T0", "s0_period"): Left(ids=(6, 8, 9), eos=False, marker=True),
    ("math", 0, "T1", "s0_eos"): Left(ids=(4, 4, 4, 4, 1)),
    ("math", 2, "T1", "s0_eos"): wrong(),
    ("math", 2, "T1", "s0_period"): Left(ids=(4, 4, 1)),
    ("code", 0, "T0", "s0_eos"): failed(),
    ("code", 1, "T0", "s0_eos"): Left(outcome="extract_failed", ids=CUT, eos=False),
    ("code", 2, "T0", "s0_eos"): Left(outcome="syntax_error"),
    ("code", 3, "T0", "s0_eos"): Left(ids=CUT, eos=False),
}


@pytest.fixture(scope="module")
def protocol():
    """Four tasks a domain under T0, tasks 0 and 2 under T1 too."""
    return task_protocol(tapes=2)


@pytest.fixture(scope="module")
def book(protocol):
    """The hand-made ledger."""
    return task_book(protocol, HAND)


@pytest.fixture(scope="module")
def found(protocol, book):
    """Its statistics."""
    return task_statistics(protocol, book)


def of(count, total=4):
    """A count."""
    return Count(count=count, of=total)


def the(rows, **fields):
    """The one row that has these fields."""
    (row,) = [one for one in rows if all(getattr(one, name) == value for name, value in fields.items())]
    return row


def test_the_head(protocol, book, found):
    """Which ledger it is of, how its rows are paired, and the registered rule of its bands."""
    assert (found.ledger_sha256, found.run_sha256) == (digest(book), book.run_sha256)
    assert (found.pairing, found.primary_tape) == ("shared uniform numbers", "T0")
    assert found.bootstrap == protocol.bootstrap
    names = {row.band.name for row in found.contrasts}
    assert names == {"selected-task resampling band of the frozen 32 tasks under the fixed tape T0"}


@pytest.mark.parametrize(
    ("outcome", "values", "signs"),
    [
        ("success", (1, -1, -1, 0), (1, 1, 2)),
        ("natural_eos", (-1, -1, -1, -1), (0, 0, 4)),
        ("length", (1, 0, 1, 1), (3, 1, 0)),
    ],
)
def test_a_contrast_task_by_task(found, outcome, values, signs):
    """R08 7.1: right minus left in the order of the tasks, its sum, mean and signs."""
    row = the(found.contrasts, domain="math", contrast="period_at_s0", outcome=outcome)
    assert row.tasks == ("math/0000", "math/0001", "math/0002", "math/0003")
    assert (row.left, row.right, row.values) == ("s0_eos", "s0_period", values)
    assert (row.sum, row.n, row.mean) == (sum(values), 4, sum(values) / 4)
    assert (row.positive, row.zero, row.negative) == tuple(map(of, signs))


def test_every_domain_contrast_and_outcome_once(protocol, found):
    """Four contrasts x three outcomes for each domain, in the protocol's order; nothing is over both domains."""
    rows = [(row.domain, row.contrast, row.outcome) for row in found.contrasts]
    outcomes = ("success", "natural_eos", "length")
    assert rows == [
        (domain, one.id, outcome) for domain in DOMAINS for one in protocol.contrasts for outcome in outcomes
    ]
    assert {row.n for row in (*found.contrasts, *found.secondary)} == {4}


def test_a_band_is_that_of_the_rule(protocol, found):
    """Percentiles of the resampled means under the domain's one matrix, whose digest stands in the record."""
    matrix = resampled_tasks(protocol.bootstrap, 4)
    assert [row.indices_sha256 for row in found.resampling] == [indices_sha256(matrix)] * 2
    assert [(row.domain, row.resamples, row.tasks[0]) for row in found.resampling] == [
        ("code", 200, "code/0000"),
        ("math", 200, "math/0000"),
    ]
    row = the(found.contrasts, domain="math", contrast="period_at_s0", outcome="success")
    means = sorted(sum(row.values[task] for task in drawn) for drawn in matrix.tolist())
    places = [199 * percent / 100 for percent in (2.5, 50, 97.5)]
    values = [means[int(at)] + (at % 1) * (means[int(at) + 1] - means[int(at)]) for at in places]
    assert row.band == Band(name=RULE.name, percentiles=(2.5, 50.0, 97.5), values=tuple(one / 4 for one in values))
    ended = the(found.contrasts, domain="math", contrast="period_at_s0", outcome="natural_eos")
    assert ended.band.values == (-1.0, -1.0, -1.0)


def test_conditions_of_mathematics(found):
    """R08 6.2: within the budget, strict, and the three results; each of the four tasks under T0."""
    row = the(found.conditions, domain="math", condition="s0_period")
    assert (row.tape, row.success, row.strict_complete) == ("T0", of(2), of(1))
    assert (row.natural_eos, row.budget_truncated, row.other_stop) == (of(0), of(4), of(0))
    assert row.length == Total(sum=12, n=4)
    assert row.numeric == TaskNumericSummary(
        results={"exact": of(2), "wrong_numeric_answer": of(1), "no_numeric_answer": of(1)}
    )
    assert row.code == NO_PROGRAM
    assert the(found.conditions, domain="math", condition="s0_eos").gaps == Total(sum=2, n=4)


def test_conditions_of_code(found):
    """R08 6.1: the four accounts, and each cell under one word, those at zero too."""
    row = the(found.conditions, domain="code", condition="s0_eos")
    assert (row.success, row.strict_complete, row.numeric) == (of(1), of(0), NO_NUMBER)
    words = dict.fromkeys(("timeout", "runtime_error"), of(0))
    words |= dict.fromkeys(("extract_failed", "syntax_error", "assertion_failed", "passed"), of(1))
    assert row.code == TaskCodeSummary(
        extracted=of(3), ast_parses=of(2), executed=of(2), passed=of(1), failure_types=words
    )


def test_transitions_and_first_divergences(found):
    """R08 8: success on both sides, each transition of all tasks, and the step in which the two rows part."""
    row = the(found.pairs, domain="math", contrast="period_at_s0")
    assert row.transitions == Transitions(zero_to_zero=of(0), zero_to_one=of(1), one_to_zero=of(2), one_to_one=of(1))
    assert row.first_divergence == (1, 2, 1, 0)
    assert (row.diverged, row.shared_before) == (of(4), Total(sum=4, n=4))
    same = the(found.pairs, domain="math", contrast="system_at_period")
    assert the(found.pairs, domain="code", contrast="period_at_s1").first_divergence == (None,) * 4
    assert same.transitions.one_to_one == of(2)


def test_secondary_contrasts_have_no_band(found):
    """R08 7.1: (sum over plus - sum over minus) / divisor in each task, and no field that could be taken for a band."""
    row = the(found.secondary, domain="math", contrast="boundary_main", outcome="success")
    assert row.values == (0.5, -0.5, -0.5, 0.0)
    assert (row.mean, row.minimum, row.maximum) == (-0.125, -0.5, 0.5)
    assert (row.positive, row.zero, row.negative) == (of(1), of(1), of(2))
    assert "band" not in type(row).__struct_fields__
    interaction = the(found.secondary, domain="math", contrast="interaction", outcome="length")
    assert interaction.values == (-1.0, 0.0, -1.0, -1.0)


def test_diagnostics_by_tape_and_by_task(found):
    """R08 7.3: two tasks under a tape, two tapes of a task; every n is 2 and none is 4."""
    block = the(found.diagnostics, domain="math")
    assert (block.tasks, block.tapes) == (("math/0000", "math/0002"), ("T0", "T1"))
    assert the(block.by_tape, tape="T0", condition="s0_eos") == SelectedTape(
        tape="T0",
        condition="s0_eos",
        success=Spread(values=(0, 1), sum=1, n=2, minimum=0, maximum=1, range=1),
        natural_eos=Spread(values=(1, 1), sum=2, n=2, minimum=1, maximum=1, range=0),
        length=Spread(values=(2, 2), sum=4, n=2, minimum=2, maximum=2, range=0),
    )
    assert the(block.by_task, source_id="math/0000", condition="s0_eos") == SelectedTask(
        source_id="math/0000",
        condition="s0_eos",
        success=Spread(values=(0, 1), sum=1, n=2, minimum=0, maximum=1, range=1),
        natural_eos=Spread(values=(1, 1), sum=2, n=2, minimum=1, maximum=1, range=0),
        length=Spread(values=(2, 5), sum=7, n=2, minimum=2, maximum=5, range=3),
    )


def test_directions_by_tape(found):
    """R08 1.2: a contrast's direction under each tape, and whether one tape alone gives it."""
    block = the(found.diagnostics, domain="math")
    chosen = {"contrast": "period_at_s0", "outcome": "success"}
    assert the(block.contrasts, tape="T1", **chosen) == TapeContrast(
        contrast="period_at_s0",
        outcome="success",
        tape="T1",
        values=(0, 1),
        sum=1,
        n=2,
        direction="positive",
        positive=of(1, 2),
        zero=of(1, 2),
        negative=of(0, 2),
    )
    assert the(block.directions, **chosen) == TapeDirections(**chosen, directions=("zero", "positive"), agree=False)
    ended = the(block.directions, contrast="system_at_eos", outcome="natural_eos")
    assert (ended.directions, ended.agree) == (("zero", "zero"), True)


def test_signs_and_spreads():
    """The words for a sign; a spread of nothing is misuse."""
    assert [direction(one) for one in (3, 0, -1)] == ["positive", "zero", "negative"]
    with pytest.raises(RuntimeError, match="at least one value"):
        spread([])


def test_no_count_is_over_tasks_x_tapes():
    """Round 08's shape: n is 32 tasks, 4 diagnostic tasks or 4 tapes; 16, 64 and 128 are n of nothing."""
    protocol = task_protocol(tasks=32, diagnostic=(0, 8, 16, 24), resamples=50)
    plain = msgspec.to_builtins(task_statistics(protocol, task_book(protocol, {})))
    found = set()

    def walk(value):
        if isinstance(value, dict):
            found.update(value[name] for name in ("n", "of") if name in value)
            value = list(value.values())
        if isinstance(value, list | tuple):
            for one in value:
                walk(one)

    walk(plain)
    assert found == {32, 4}


def test_a_grid_without_diagnostics_has_none():
    """The primary numbers stand alone."""
    protocol = task_protocol(diagnostic=(), tapes=1)
    assert task_statistics(protocol, task_book(protocol, {})).diagnostics == ()


def cells(change):
    """A change of the ledger's cells."""
    return lambda book: replace(book, cells=change(book.cells))


def pairs(change):
    """A change of the ledger's pairs."""
    return lambda book: replace(book, pairs=change(book.pairs))


def first(rows, **changed):
    """The rows with other fields of the first one."""
    return (replace(rows[0], **changed), *rows[1:])


REFUSED = {
    "a cell is missing": (cells(lambda rows: rows[1:]), "ledger: cells: .*48 rows.*1 missing, code 0 T0 s0_eos"),
    "a cell is doubled": (cells(lambda rows: (*rows, rows[3])), "1 doubled, code 0 T0 s1_period"),
    "one for another": (cells(lambda rows: (rows[1], *rows[1:])), "1 missing, code 0 T0 s0_eos; 1 doubled"),
    "a cell of no block": (cells(lambda rows: first(rows, replicate="T3")), "1 foreign, code 0 T3 s0_eos"),
    "another rank": (cells(lambda rows: first(rows, index=9)), "1 foreign, code 9 T0 s0_eos"),
    "another domain": (cells(lambda rows: first(rows, domain="english")), "1 foreign, english 0 T0 s0_eos"),
    "another role": (cells(lambda rows: first(rows, role="diagnostic")), "role: expected primary, found diagnostic"),
    "another task at the rank": (cells(lambda rows: first(rows, source_id="code/0009")), "source 0 of code"),
    "a pair is missing": (pairs(lambda rows: rows[:-1]), "ledger: pairs: .*1 missing, math 3 T0 system_at_period"),
    "a pair is doubled": (pairs(lambda rows: (*rows, rows[0])), "ledger: pairs: .*1 doubled"),
    "a pair's role": (pairs(lambda rows: first(rows, role="check")), "role: expected primary, found check"),
    "a pair of another task": (pairs(lambda rows: first(rows, source_id="code/0002")), "source . of code"),
    "numbers that weren't shared": (
        pairs(lambda rows: first(rows, uniforms=NotShared(differences=("s0_eos: count",)))),
        "pair code/0000, T0, period_at_s0: expected the same z in every common step, found s0_eos: count",
    ),
    "an account less": (cells(lambda rows: first(rows, code=NO_PROGRAM)), "a judged account, found NotObserved"),
    "an account more": (cells(lambda rows: first(rows, numeric=rows[-1].numeric)), "its domain's account alone"),
    "another protocol": (lambda book: replace(book, protocol="other"), "ledger: protocol: expected hand-made-tasks"),
    "an unknown grid": (lambda book: replace(book, grid="none"), "run record: grid"),
    "a domain less": (lambda book: replace(book, domains=("code",)), "foreign, math 0 T0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_ledger_that_is_not_its_grid_is_refused(protocol, book, name):
    """By identity: never a smaller denominator, never another row in a lost one's place."""
    change, message = REFUSED[name]
    with pytest.raises(JournalError, match=message):
        task_statistics(protocol, change(book))


@pytest.mark.parametrize(
    ("left", "message"),
    [
        pytest.param({("math", 1, "T0", "s0_eos"): Left(gold=False)}, "found NumericWithoutGold", id="no gold"),
        pytest.param({("code", 1, "T0", "s0_eos"): Left(outcome="tier")}, "found TaskCode", id="not executed"),
    ],
)
def test_a_cell_that_was_not_judged_is_refused(protocol, left, message):
    """It is no failure, so it can't be counted as one."""
    with pytest.raises(JournalError, match=message):
        task_statistics(protocol, task_book(protocol, left))


def test_a_cell_that_the_sandbox_failed_leaves_no_statistics(protocol):
    """In a diagnostic cell as in a primary one: the record says that there are none."""
    for place in (("code", 1, "T0", "s0_eos"), ("code", 0, "T1", "s0_eos")):
        found = task_statistics(protocol, task_book(protocol, {place: Left(outcome="infrastructure")}))
        assert isinstance(found, NoTaskStatistics)


def test_a_domain_without_a_judge_is_refused(protocol, book):
    """Success is the primary outcome: a domain of texts alone has none."""
    english = next(
        one for one in read_protocol(PROTOCOLS / "nano-completion" / "protocol.toml").domains if one.name == "english"
    )
    math = protocol.domains[1]
    other = replace(protocol, domains=(replace(english, name="code"), math))
    with pytest.raises(ProtocolError, match="domain code: gold: expected an answer or tests"):
        task_statistics(other, book)


def test_a_value_of_an_unjudged_cell_is_misuse(protocol):
    """Nothing but groups hands cells on, and they hold none."""
    row = task_book(protocol, {("code", 0, "T0", "s0_eos"): Left(outcome="tier")}).cells[0]
    with pytest.raises(RuntimeError, match="cell code/0000, T0, s0_eos isn't judged"):
        value_of("success", row)
