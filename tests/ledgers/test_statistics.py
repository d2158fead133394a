"""Statistics over hand-made ledgers: right counts with their denominators; a ledger with a row too few is refused."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canon import digest
from harness.errors import JournalError
from harness.ledgers.behavior import NO_CODE, NO_NUMBERS, ledger
from harness.ledgers.counts import edge_summary, mean
from harness.ledgers.statistics import statistics
from harness.records.ledger import (
    CellSummary,
    Count,
    EdgeSummary,
    Mean,
    NumberSummary,
    SyntaxSummary,
    Total,
    Undefined,
)

FIXED = settings(deadline=None, derandomize=True)  # no verdict on time, the same cases everywhere


@pytest.fixture(scope="module")
def book(protocol, two_sources):
    """The ledger of the hand-made run."""
    return ledger(protocol, two_sources)


@pytest.fixture(scope="module")
def counted(protocol, book):
    """Its statistics."""
    return statistics(protocol, book)


def test_statistics_name_their_ledger_and_run(book, counted):
    """Digests lead from the counts to the rows and to the run."""
    assert (counted.ledger_sha256, counted.run_sha256) == (digest(book), book.run_sha256)
    assert (counted.protocol, counted.grid, counted.result_name) == (book.protocol, "smoke", book.result_name)


def test_counts_of_mathematics(counted):
    """Eight cells: seven ended, one cut; seven with a number, two of them the gold's; lengths 12 + 9 + 5 + 5 x 6."""
    (found,) = [each.cells for each in counted.by_domain if each.domain == "math"]
    assert found == CellSummary(
        natural_eos=Count(count=7, of=8),
        truncated=Count(count=1, of=8),
        length=Total(sum=56, n=8),
        number=NumberSummary(
            last_number_found=Count(count=7, of=8),
            last_number_match=Count(count=2, of=8),
            gold_absent=Count(count=0, of=8),
        ),
        syntax=NO_CODE,
    )


def test_counts_of_code(counted):
    """Eight cells: four fenced ones parse, so do one whole text and one empty one; one is cut, one too deep."""
    (found,) = [each.cells for each in counted.by_domain if each.domain == "code"]
    fenced, whole, cut = len("```python\ndef f():\n    return 1\n```") + 1, len("def f():\n    return 1") + 1, 18
    assert found == CellSummary(
        natural_eos=Count(count=7, of=8),
        truncated=Count(count=1, of=8),
        length=Total(sum=4 * fenced + whole + cut + 1 + 402, n=8),
        number=NO_NUMBERS,
        syntax=SyntaxSummary(
            ast_parses=Count(count=6, of=8), fenced=Count(count=4, of=8), too_deep=Count(count=1, of=8)
        ),
    )


def test_a_condition_in_a_domain_is_counted_alone(protocol, counted):
    """Every condition of every domain has its own counts, in the protocol's order; here each is of one source."""
    names = [(domain, condition.id) for domain in ("code", "math") for condition in protocol.conditions]
    assert [(each.domain, each.condition) for each in counted.by_condition] == names
    found = {(each.domain, each.condition): each.cells for each in counted.by_condition}
    assert found["math", "s1_eos"].truncated == Count(count=1, of=1)
    assert found["math", "s0_bos"].number.last_number_found == Count(count=0, of=1)
    assert found["code", "s1_period"].syntax.ast_parses == Count(count=0, of=1)


def test_counts_of_edges(protocol, counted):
    """An edge over both units: math 1,234.50 against 1234.5 cut off (prefix 4, distance 3 of 12), code exact (36)."""
    assert [each.edge for each in counted.by_edge] == [edge.id for edge in protocol.edges]
    found = {each.edge: each.units for each in counted.by_edge}
    assert found["system_eos"] == EdgeSummary(
        ids_exact=Count(count=1, of=2),
        common_prefix_tokens=Total(sum=4 + 36, n=2),
        distance=Total(sum=3, n=2),
        similarity=Mean(mean=(0.75 + 1.0) / 2, n=2),
    )


def test_an_edge_in_a_domain_is_counted_alone(protocol, counted):
    """Every edge has its own counts in each domain, and they add up to the edge's."""
    names = [(edge.id, domain) for edge in protocol.edges for domain in ("code", "math")]
    assert [(each.edge, each.domain) for each in counted.by_edge_and_domain] == names
    found = {(each.edge, each.domain): each.units for each in counted.by_edge_and_domain}
    whole = {each.edge: each.units for each in counted.by_edge}
    sums = {
        edge.id: found[edge.id, "code"].distance.sum + found[edge.id, "math"].distance.sum for edge in protocol.edges
    }
    assert sums == {name: units.distance.sum for name, units in whole.items()}
    assert found["system_eos", "math"].ids_exact == Count(count=0, of=1)


def test_a_cell_without_gold_stays_in_the_denominator(protocol, two_sources):
    """Without gold nothing matches, everything is still counted, and the lack is a count of its own."""
    book = ledger(protocol, msgspec.structs.replace(two_sources, gold={}))
    (found,) = [each.cells.number for each in statistics(protocol, book).by_domain if each.domain == "math"]
    assert found == NumberSummary(
        last_number_found=Count(count=7, of=8), last_number_match=Count(count=0, of=8), gold_absent=Count(count=8, of=8)
    )


def test_denominators_follow_a_larger_grid(builder, say):
    """Three sources and two replicates: six cells a condition, 48 a domain, six units an edge."""
    grown = builder.with_grid("smoke", per_domain=3, replicates=("r0", "r1"))
    units = tuple(
        grown.unit("math", index, {"*": say(str(index))}, replicate=name) for index in range(3) for name in ("r0", "r1")
    )
    gold = {f"math/{index:04d}": "1" for index in range(3)}
    book = ledger(grown.protocol, grown.run(units, domains=("math",), gold=gold))
    found = statistics(grown.protocol, book)
    assert found.by_domain[0].cells.number.last_number_match == Count(count=16, of=48)
    assert {each.cells.number.last_number_match for each in found.by_condition} == {Count(count=2, of=6)}
    assert {each.units.ids_exact for each in found.by_edge} == {Count(count=6, of=6)}


def lost(book, rows):
    """The ledger without its last row of a kind."""
    return msgspec.structs.replace(book, **{rows: getattr(book, rows)[:-1]})


def doubled(book, rows):
    """The ledger with its first row of a kind in place of its last."""
    listed = getattr(book, rows)
    return msgspec.structs.replace(book, **{rows: (*listed[:-1], listed[0])})


@pytest.mark.parametrize(("rows", "planned"), [("cells", 16), ("edges", 20)])
@pytest.mark.parametrize("damage", [lost, doubled])
def test_a_lost_or_doubled_row_is_refused(protocol, book, damage, rows, planned):
    """A row too few is a broken ledger, never a smaller denominator; a doubled one doesn't make up for it."""
    with pytest.raises(JournalError, match=f"^ledger: different {rows}: expected {planned} rows, found {planned - 1}"):
        statistics(protocol, damage(book, rows))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("domain", "code", "^ledger: cells of code: expected 8 rows, found 9"),
        ("condition", "s0_other", "^ledger: cells of math, s1_period: expected 1 rows, found 0"),
    ],
)
def test_a_row_of_another_group_is_refused(protocol, book, field, value, message):
    """A row moved to another domain or condition shows in the size of its group."""
    moved = msgspec.structs.replace(book.cells[-1], **{field: value})
    with pytest.raises(JournalError, match=message):
        statistics(protocol, msgspec.structs.replace(book, cells=(*book.cells[:-1], moved)))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("edge", "other", "^ledger: edges period_s1: expected 2 rows, found 1"),
        ("domain", "code", "^ledger: edges period_s1 of code: expected 1 rows, found 2"),
    ],
)
def test_an_edge_of_another_group_is_refused(protocol, book, field, value, message):
    """An edge's row moved to another edge or domain shows in the size of its group."""
    moved = msgspec.structs.replace(book.edges[-1], **{field: value})
    with pytest.raises(JournalError, match=message):
        statistics(protocol, msgspec.structs.replace(book, edges=(*book.edges[:-1], moved)))


def test_a_row_without_its_domains_observation_is_refused(protocol, book):
    """A cell of mathematics without a number observation can't be counted as one without a match."""
    blank = msgspec.structs.replace(book.cells[-1], number=NO_NUMBERS)
    with pytest.raises(
        JournalError, match=r"^ledger: cell math/0000, s1_period: expected an observation of its domain"
    ):
        statistics(protocol, msgspec.structs.replace(book, cells=(*book.cells[:-1], blank)))


def test_a_ledger_of_another_protocol_is_refused(protocol, book):
    """Counts are made only with the protocol that gives their denominators."""
    with pytest.raises(JournalError, match=r"^ledger: protocol: expected nano-behavior, found other"):
        statistics(protocol, msgspec.structs.replace(book, protocol="other"))


def test_no_units_have_no_mean():
    """Without a row the mean is undefined, not 0 or 1; the counts are 0 of 0."""
    found = edge_summary([])
    assert (found.similarity, found.ids_exact) == (Undefined(reason="no rows"), Count(count=0, of=0))


@FIXED
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_order_doesnt_change_a_mean(values, random):
    """The sum is exact before it is rounded, so rows in another order give the same bits."""
    shuffled = list(values)
    random.shuffle(shuffled)
    assert mean(shuffled) == mean(values)
    assert min(values) <= mean(values).mean <= max(values) or len(set(values)) == 1
