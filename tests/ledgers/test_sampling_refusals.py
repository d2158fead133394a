"""Sampled ledgers that have no statistics: other grids, and whatever isn't exactly the formal grid (R07 7.1, 9)."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canon import digest
from harness.errors import JournalError
from harness.ledgers.accounts import NO_TERMINAL
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.sampling_statistics import sampled_statistics
from harness.records.sampling_ledger import NoSampledStatistics

from .sampled import CONTRASTS, DOMAINS, HAND, Draw, one, sampled_ledger, sampling_protocol

replace = msgspec.structs.replace
EXAMPLES = settings(max_examples=20)
ROWS = pytest.mark.parametrize("rows", ["cells", "edges", "pairs"])


@pytest.fixture(scope="module")
def protocol():
    """Round 07's shape: four conditions, four seeds, two sources a domain."""
    return sampling_protocol()


@pytest.fixture(scope="module")
def book(protocol):
    """A formal ledger in which the cells that `HAND` doesn't name said (7, 1), ended, and were right."""
    return sampled_ledger(protocol, HAND, domains=DOMAINS)


@pytest.mark.parametrize("grid", ["smoke", "independent"])
def test_no_other_grid_has_statistics(protocol, grid):
    """R07 7.1: a smoke or a replayed grid says that there are none, and nothing else."""
    book = sampled_ledger(protocol, HAND, domains=DOMAINS, grid=grid)
    none = sampled_statistics(protocol, book)
    assert isinstance(none, NoSampledStatistics)
    assert (none.grid, none.ledger_sha256, none.reason) == (
        grid,
        digest(book),
        "only a complete formal run has statistics",
    )


def test_a_ledger_that_is_not_the_protocols_is_refused(protocol, book):
    """Another protocol, or a grid that isn't registered, has no statistics here."""
    with pytest.raises(JournalError, match=r"^ledger: protocol: expected hand-made-sampling, found other"):
        sampled_statistics(protocol, replace(book, protocol="other"))
    with pytest.raises(JournalError, match=r"^run record: grid: expected one of .*, found other"):
        sampled_statistics(protocol, replace(book, grid="other"))


def test_a_direction_of_no_contrast_is_misuse(protocol, book):
    """A protocol that was loaded names only its own contrasts."""
    lacking = replace(protocol, contrasts=CONTRASTS[:1])
    with pytest.raises(RuntimeError, match="direction period_shortens is of 'boundary_main', which is no contrast"):
        sampled_statistics(lacking, book)


def changed(book, rows, at, **fields):
    """The ledger with fields of one of its rows changed."""
    listed = list(getattr(book, rows))
    listed[at] = replace(listed[at], **fields)
    return replace(book, **{rows: tuple(listed)})


@ROWS
@given(data=st.data())
@EXAMPLES
def test_a_lost_row_is_refused(protocol, book, rows, data):
    """Whichever it is: it is never a smaller denominator."""
    listed = getattr(book, rows)
    at = data.draw(st.integers(0, len(listed) - 1))
    with pytest.raises(JournalError, match=f"^ledger: {rows}: .* found {len(listed) - 1}: 1 missing, "):
        sampled_statistics(protocol, replace(book, **{rows: listed[:at] + listed[at + 1 :]}))


@ROWS
@given(data=st.data())
@EXAMPLES
def test_a_doubled_row_is_refused(protocol, book, rows, data):
    """In addition to the others, or in the place of one of them."""
    listed = getattr(book, rows)
    first, second = data.draw(st.lists(st.integers(0, len(listed) - 1), min_size=2, max_size=2, unique=True))
    with pytest.raises(JournalError, match=f"^ledger: {rows}: .* found {len(listed) + 1}: 1 doubled, "):
        sampled_statistics(protocol, replace(book, **{rows: (*listed, listed[first])}))
    instead = list(listed)
    instead[second] = listed[first]
    with pytest.raises(JournalError, match=f"^ledger: {rows}: .* found {len(listed)}: 1 missing, .*; 1 doubled, "):
        sampled_statistics(protocol, replace(book, **{rows: tuple(instead)}))


@pytest.mark.parametrize(
    ("rows", "fields", "message"),
    [
        ("cells", {"domain": "chinese"}, "1 missing, math 1 R3 s1_period; 1 foreign, chinese 1 R3 s1_period"),
        ("cells", {"index": 2}, "1 missing, math 1 R3 s1_period; 1 foreign, math 2 R3 s1_period"),
        ("cells", {"replicate": "R4"}, "1 missing, math 1 R3 s1_period; 1 foreign, math 1 R4 s1_period"),
        ("cells", {"condition": "s1_x"}, "1 missing, math 1 R3 s1_period; 1 foreign, math 1 R3 s1_x"),
        ("edges", {"edge": "other"}, "1 missing, math 1 R3 period_s1; 1 foreign, math 1 R3 other"),
        (
            "pairs",
            {"left": "R3", "right": "R2"},
            "1 missing, math 1 R2|R3 s1_period; 1 foreign, math 1 R3|R2 s1_period",
        ),
    ],
)
def test_a_foreign_row_is_refused(protocol, book, rows, fields, message):
    """A row of no planned cell, edge or pair is named, beside the one that it leaves out."""
    with pytest.raises(JournalError) as error:
        sampled_statistics(protocol, changed(book, rows, -1, **fields))
    assert message in str(error.value)


@pytest.mark.parametrize("rows", ["cells", "edges", "pairs"])
@pytest.mark.parametrize("name", ["other", "math/0000", "code/0000"])
def test_a_source_has_one_id_of_its_own(protocol, book, rows, name):
    """A row under another source's ID, or under one that nobody has, isn't counted for the source of its rank."""
    with pytest.raises(JournalError, match=r"^ledger: source \d of (math|code): expected one ID of its own, found "):
        sampled_statistics(protocol, changed(book, rows, -1, source_id=name))


def test_two_ranks_are_not_one_source(protocol, book):
    """All rows of one source under the ID of another: one task isn't two."""
    moved = {
        rows: tuple(
            replace(row, source_id="math/0000") if row.source_id == "math/0001" else row for row in getattr(book, rows)
        )
        for rows in ("cells", "edges", "pairs")
    }
    with pytest.raises(JournalError, match=r"^ledger: source 0 of math: expected one ID of its own"):
        sampled_statistics(protocol, replace(book, **moved))


@pytest.mark.parametrize(
    ("domain", "fields", "message"),
    [
        (
            "math",
            {"numeric": NO_NUMBER},
            "math/0000, R0, s0_eos: numeric: expected an account of its domain, found none",
        ),
        ("math", {"terminal": NO_TERMINAL}, "math/0000, R0, s0_eos: terminal: expected an account of its domain"),
        ("code", {"code": NO_PROGRAM}, "code/0000, R0, s0_eos: code: expected an account of its domain, found none"),
    ],
)
def test_a_cell_has_its_domains_accounts(protocol, book, domain, fields, message):
    """A lacking account would read as a failure, so it is refused."""
    at = next(n for n, row in enumerate(book.cells) if row.domain == domain)
    with pytest.raises(JournalError, match=f"^ledger: cell {message}"):
        sampled_statistics(protocol, changed(book, "cells", at, **fields))


def test_a_cell_has_no_other_domains_account(protocol, book):
    """Nor may English be judged as mathematics."""
    math = one(book.cells, source_id="math/0001", replicate="R0", condition="s0_eos")
    with pytest.raises(JournalError, match="english/0000, R0, s0_eos: numeric: expected no account of its domain"):
        sampled_statistics(protocol, changed(book, "cells", 0, numeric=math.numeric))


def test_a_program_that_was_not_executed_is_no_failure(protocol):
    """A formal grid without verdicts is refused: "0 passed" would be said of programs that nobody ran."""
    draws = {("code", 1, "R2", "s1_eos"): Draw(outcome="tier")}
    with pytest.raises(JournalError, match="code/0001, R2, s1_eos: code: expected a verdict"):
        sampled_statistics(protocol, sampled_ledger(protocol, draws, domains=DOMAINS))


def test_an_answer_is_a_number(protocol):
    """A value that is no number can't be held against another one."""
    draws = {("math", 0, "R1", "s0_eos"): Draw(answer="twelve")}
    with pytest.raises(JournalError, match="math/0000, R1, s0_eos: numeric: expected a number in plain form, found tw"):
        sampled_statistics(protocol, sampled_ledger(protocol, draws, domains=DOMAINS))
