"""Statistics of sampled runs (R07 9): what holds for every ledger, against the raw rows."""

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ledgers.sampling_statistics import sampled_statistics

from .sampled import DOMAINS, HAND, Draw, cells_of, of, sampled_ledger, sampling_protocol, shuffled

replace = msgspec.structs.replace
EXAMPLES = settings(max_examples=20)

ANY_DRAW = st.builds(
    lambda ids, eos, **what: Draw(ids=(*ids, 1) if eos else ids, eos=eos, **what),
    ids=st.lists(st.integers(2, 4), min_size=1, max_size=6).map(tuple),
    eos=st.booleans(),
    answer=st.sampled_from([None, "12", "13", "12.0"]),
    marker=st.booleans(),
    outcome=st.sampled_from(["passed", "assertion_failed", "syntax_error", "extract_failed"]),
    closed=st.booleans(),
)


@st.composite
def ledgers(draw):
    """A protocol with one to three sources a domain and two to five seeds, and any draws of code and mathematics."""
    protocol = sampling_protocol(replicates=draw(st.integers(2, 5)), per_domain=draw(st.integers(1, 3)))
    domains = draw(st.sampled_from([("code",), ("math",), ("english", "math")]))
    cells = cells_of(protocol, domains)
    drawn = draw(st.lists(ANY_DRAW, min_size=len(cells), max_size=len(cells)))
    return protocol, sampled_ledger(protocol, dict(zip(cells, drawn, strict=True)), domains=domains)


def raw_value(row, measure):
    """A cell's value, read off the row anew."""
    plain = msgspec.to_builtins(row)
    if measure == "generated_length":
        return plain["length"]
    if measure == "natural_eos_rate":
        return int(plain["stop"] == "natural_eos")
    names = {"fixed_budget_success": "fixed_budget_", "strict_complete_success": "strict_complete_"}[measure]
    return int(plain["numeric"].get(f"{names}exact", plain["code"].get("verdict", {}).get(f"{names}pass", False)))


def raw_dots(protocol, book, row) -> Iterator[Fraction]:
    """A contrast's dots from all rows of each source at once: signed sums over seeds x divisor, no cell means."""
    (contrast,) = [each for each in protocol.contrasts if each.id == row.contrast]
    signs = {**dict.fromkeys(contrast.plus, 1), **dict.fromkeys(contrast.minus, -1)}
    number = len(protocol.grids["formal"].replicates)
    for index in range(protocol.grids["formal"].per_domain):
        rows = [cell for cell in book.cells if (cell.domain, cell.index) == (row.domain, index)]
        total = sum(signs[cell.condition] * raw_value(cell, row.measure) for cell in rows)
        yield Fraction(total, number * contrast.divisor)


@given(made=ledgers())
@EXAMPLES
def test_contrasts_are_those_of_the_raw_rows(made):
    """Each dot equals a direct computation, and median, extremes and signs are of those dots."""
    protocol, book = made
    for row in sampled_statistics(protocol, book).contrasts:
        dots = list(raw_dots(protocol, book, row))
        assert row.dots == tuple(map(float, dots))
        middle = sorted(dots)[(len(dots) - 1) // 2 : len(dots) // 2 + 1]
        assert row.median == float(sum(middle) / len(middle))
        assert (row.minimum, row.maximum) == (float(min(dots)), float(max(dots)))
        signs = [(dot > 0) - (dot < 0) for dot in dots]
        assert [row.positive, row.zero, row.negative] == [of(signs.count(sign), len(dots)) for sign in (1, 0, -1)]


@given(made=ledgers(), random=st.randoms(use_true_random=False))
@EXAMPLES
def test_the_order_of_the_rows_changes_nothing(made, random):
    """Rows are joined by identity; only the ledger's own digest knows their order."""
    protocol, book = made
    mixed = sampled_statistics(protocol, shuffled(book, random))
    found = sampled_statistics(protocol, book)
    assert replace(mixed, ledger_sha256=found.ledger_sha256) == found


@given(made=ledgers())
@EXAMPLES
def test_swapped_sides_negate_the_dots(made):
    """The two sides of every contrast exchanged: dots and median negated, extremes and sign counts exchanged."""
    protocol, book = made
    swapped = tuple(replace(each, plus=each.minus, minus=each.plus) for each in protocol.contrasts)
    found = sampled_statistics(protocol, book).contrasts
    other = sampled_statistics(replace(protocol, contrasts=swapped), book).contrasts
    for row, turned in zip(found, other, strict=True):
        assert turned.dots == tuple(-dot for dot in row.dots)
        assert (turned.median, turned.minimum, turned.maximum) == (-row.median, -row.maximum, -row.minimum)
        assert (turned.positive, turned.zero, turned.negative) == (row.negative, row.zero, row.positive)


@given(made=ledgers())
@EXAMPLES
def test_micro_and_macro_agree_where_seeds_are_equal_in_number(made):
    """R07 9.2: the two are computed apart and have the same value in every complete grid."""
    protocol, book = made
    for row in sampled_statistics(protocol, book).by_domain:
        cells = [cell for cell in book.cells if (cell.domain, cell.condition) == (row.domain, row.condition)]
        for summary in row.measures:
            values = [raw_value(cell, summary.measure) for cell in cells]
            assert (summary.micro_sum, summary.micro_n) == (sum(values), len(values))
            assert summary.macro == float(Fraction(summary.micro_sum, summary.micro_n))
            assert summary.between_range >= 0
            assert summary.minimum <= summary.macro <= summary.maximum


def test_the_builder_shuffles():
    """The control of the order's test: the shuffled ledger is another one."""
    book = sampled_ledger(sampling_protocol(), HAND, domains=DOMAINS)
    assert shuffled(book, Random(1)).cells != book.cells
