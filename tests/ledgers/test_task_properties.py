"""Statistics of task runs (R08 7): what holds for every ledger, against the raw rows and by plain loops."""

from fractions import Fraction
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import JournalError
from harness.ledgers.bootstrap import resampled_tasks
from harness.ledgers.task_statistics import task_statistics

from .tasks import Left, cells_of, shuffled, task_book, task_protocol

replace = msgspec.structs.replace
EXAMPLES = settings(max_examples=25, deadline=None)
PRIMARY = ("bootstrap", "primary_tape", "resampling", "contrasts", "conditions", "pairs", "secondary")

ANY_CELL = st.builds(
    lambda ids, eos, **what: Left(ids=(*ids, 1) if eos else ids, eos=eos, **what),
    ids=st.lists(st.integers(2, 4), min_size=1, max_size=6).map(tuple),
    eos=st.booleans(),
    answer=st.sampled_from([None, "12", "13", "12.0"]),
    marker=st.booleans(),
    outcome=st.sampled_from(["passed", "assertion_failed", "timeout", "syntax_error", "extract_failed"]),
    closed=st.booleans(),
    gaps=st.integers(0, 2),
)


@st.composite
def protocols(draw):
    """One to five tasks, some of them diagnostic under one to three further tapes."""
    tasks = draw(st.integers(1, 5))
    diagnostic = tuple(sorted(draw(st.sets(st.integers(0, tasks - 1)))))
    return task_protocol(tasks=tasks, diagnostic=diagnostic, tapes=draw(st.integers(2, 4)), resamples=40)


@st.composite
def ledgers(draw):
    """A protocol and what every cell of its formal grid left."""
    protocol = draw(protocols())
    cells = cells_of(protocol)
    left = draw(st.lists(ANY_CELL, min_size=len(cells), max_size=len(cells)))
    return protocol, dict(zip(cells, left, strict=True))


def raw_value(outcome, plain):
    """A cell's value, read off the row as plain data."""
    if outcome == "length":
        return plain["length"]
    if outcome == "natural_eos":
        return int(plain["stop"] == "natural_eos")
    return int(
        plain["numeric"].get("result") == "exact" or plain["code"].get("verdict", {}).get("failure_type") == "passed"
    )


def raw_values(book, domain, outcome, condition, tape="T0"):
    """Each task's value under one tape by rank."""
    rows = [msgspec.to_builtins(row) for row in book.cells]
    chosen = [row for row in rows if (row["domain"], row["condition"], row["replicate"]) == (domain, condition, tape)]
    return [raw_value(outcome, row) for row in sorted(chosen, key=lambda row: row["index"])]


def percentile(ordered, percent):
    """The linear method over exact numbers."""
    place = Fraction(str(percent)) * (len(ordered) - 1) / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@given(made=ledgers())
@EXAMPLES
def test_contrasts_and_bands_are_those_of_the_raw_rows(made):
    """Values, sum, mean and signs by direct computation; the band task by task in a loop over the same matrix."""
    protocol, left = made
    book = task_book(protocol, left)
    matrix = resampled_tasks(protocol.bootstrap, len(protocol.grid_blocks["formal"][0].indices)).tolist()
    for row in task_statistics(protocol, book).contrasts:
        lefts, rights = (raw_values(book, row.domain, row.outcome, side) for side in (row.left, row.right))
        values = [right - one for one, right in zip(lefts, rights, strict=True)]
        assert (list(row.values), row.sum, row.n) == (values, sum(values), len(values))
        assert row.mean == float(Fraction(sum(values), len(values)))
        signs = [(value > 0) - (value < 0) for value in values]
        assert [row.positive.count, row.zero.count, row.negative.count] == [signs.count(one) for one in (1, 0, -1)]
        means = sorted(Fraction(sum(values[task] for task in drawn), len(values)) for drawn in matrix)
        assert row.band.values == tuple(percentile(means, one) for one in row.band.percentiles)


@given(made=ledgers())
@EXAMPLES
def test_parts_add_up(made):
    """Transitions, failure types, results and stops partition the tasks; secondary ones are made of primary ones."""
    protocol, left = made
    found = task_statistics(protocol, task_book(protocol, left))
    primary = {(row.domain, row.contrast, row.outcome): row.values for row in found.contrasts}
    for row in found.pairs:
        counts = msgspec.structs.astuple(row.transitions)
        assert sum(one.count for one in counts) == len(row.tasks) == counts[0].of
        success = primary[row.domain, row.contrast, "success"]
        assert row.transitions.zero_to_one.count - row.transitions.one_to_zero.count == sum(success)
    for row in found.conditions:
        assert row.natural_eos.count + row.budget_truncated.count + row.other_stop.count == row.success.of
        parts = row.numeric.results if row.domain == "math" else row.code.failure_types
        assert sum(one.count for one in parts.values()) == row.success.of
        assert row.strict_complete.count <= row.success.count
    for row in found.secondary:
        if row.contrast == "boundary_main":
            both = zip(
                *(primary[row.domain, name, row.outcome] for name in ("period_at_s0", "period_at_s1")), strict=True
            )
            assert row.values == tuple(sum(two) / 2 for two in both)


@given(made=ledgers(), random=st.randoms(use_true_random=False))
@EXAMPLES
def test_the_order_of_the_rows_changes_nothing(made, random):
    """Rows are joined by identity; only the ledger's own digest knows their order."""
    protocol, left = made
    book = task_book(protocol, left)
    mixed, found = task_statistics(protocol, shuffled(book, random)), task_statistics(protocol, book)
    assert replace(mixed, ledger_sha256=found.ledger_sha256) == found


@given(made=ledgers(), other=st.lists(ANY_CELL, min_size=1, max_size=8))
@EXAMPLES
def test_diagnostic_cells_enter_no_primary_number(made, other):
    """Whatever they are changed to."""
    protocol, left = made
    turned = {cell: other[place % len(other)] if cell[2] != "T0" else left[cell] for place, cell in enumerate(left)}
    one, two = (task_statistics(protocol, task_book(protocol, cells)) for cells in (left, turned))
    assert {name: getattr(one, name) for name in PRIMARY} == {name: getattr(two, name) for name in PRIMARY}


@given(made=ledgers(), other=st.lists(ANY_CELL, min_size=1, max_size=8))
@EXAMPLES
def test_cells_of_other_tasks_enter_no_diagnostic_number(made, other):
    """Nor does a domain's: a diagnosis is of its own tasks, whose T0 cells it shares with the primary block."""
    protocol, left = made
    blocks = protocol.grid_blocks["formal"]
    own = set(blocks[1].indices) if len(blocks) > 1 else set()
    turned = {cell: left[cell] if cell[1] in own else other[place % len(other)] for place, cell in enumerate(left)}
    one, two = (task_statistics(protocol, task_book(protocol, cells)) for cells in (left, turned))
    assert one.diagnostics == two.diagnostics


@given(made=ledgers(), other=st.lists(ANY_CELL, min_size=1, max_size=8))
@EXAMPLES
def test_domains_are_never_pooled(made, other):
    """Every cell of code changed leaves every number of mathematics as it was, bands among them."""
    protocol, left = made
    turned = {cell: other[place % len(other)] if cell[0] == "code" else left[cell] for place, cell in enumerate(left)}
    one, two = (task_statistics(protocol, task_book(protocol, cells)) for cells in (left, turned))
    for name in ("resampling", "contrasts", "conditions", "pairs", "secondary", "diagnostics"):
        math = [[row for row in getattr(found, name) if row.domain == "math"] for found in (one, two)]
        assert math[0] == math[1]


@given(made=ledgers(), data=st.data())
@EXAMPLES
def test_a_missing_row_is_an_error(made, data):
    """Any one cell or pair, of either block."""
    protocol, left = made
    book = task_book(protocol, left)
    name = data.draw(st.sampled_from(["cells", "pairs"]))
    rows = getattr(book, name)
    place = data.draw(st.integers(0, len(rows) - 1))
    with pytest.raises(JournalError, match=f"ledger: {name}: .*1 missing"):
        task_statistics(protocol, replace(book, **{name: (*rows[:place], *rows[place + 1 :])}))


def test_the_changes_are_seen_where_they_belong():
    """The control of the four tests above: the same changes do change the other numbers."""
    protocol = task_protocol()
    cells = cells_of(protocol)
    plain = task_statistics(protocol, task_book(protocol, {}))
    failing = Left(answer="13", outcome="timeout", ids=(5, 5, 5), eos=False)

    def changed(chosen):
        return task_statistics(protocol, task_book(protocol, {cell: failing for cell in cells if chosen(cell)}))

    diagnostic = changed(lambda cell: cell[2] == "T1" and cell[3] == "s0_eos")
    assert diagnostic.diagnostics != plain.diagnostics
    assert diagnostic.contrasts == plain.contrasts
    primary = changed(lambda cell: cell[1] == 1 and cell[3] == "s0_eos")
    assert primary.diagnostics == plain.diagnostics
    assert primary.contrasts != plain.contrasts
    assert shuffled(task_book(protocol, {}), Random(1)).cells != task_book(protocol, {}).cells
