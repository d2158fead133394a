"""The ledger of a task run: exactly the places of the grid's blocks, in order, each row with its block's role."""

from itertools import product

import msgspec
import pytest
from pregate_support.books import Said

from harness.canon import canonical_bytes, digest
from harness.errors import JournalError, ProtocolError
from harness.ledgers.book import ledger_of, ledger_type, statistics_of
from harness.ledgers.task import task_ledger
from harness.ledgers.task_blocks import Blocks, blocks_of, roles_of
from harness.protocols.grids import denominators, grid_places
from harness.records.taped import GridBlock
from harness.records.task_ledger import NoTaskStatistics, TaskLedger, TaskStatistics
from harness.snapshots.content import snapshot_bytes, unit_snapshot, verdict_snapshot

from .tasks import CONTRASTS, DOMAINS, FOUR, TaskBuilder, task_protocol

replace = msgspec.structs.replace
FENCE = "```python\ndef f(n):\n    return n + 1\n```"
SAID = {
    "code": {"*": Said(FENCE), "s0_period": Said("", eos=False)},
    "math": {"*": Said("so 12"), "s0_period": Said("so \\boxed{13}", eos=False)},
}
PLACES = [(0, "T0"), (0, "T1"), (1, "T0")]


@pytest.fixture(scope="module")
def tasks():
    """Two tasks a domain under T0, the first of them under T1 too."""
    return TaskBuilder(task_protocol(tasks=2, diagnostic=(0,), tapes=2))


@pytest.fixture(scope="module")
def run(tasks):
    """The formal run."""
    return tasks.task_run(tasks.units(SAID))


@pytest.fixture(scope="module")
def executions(tasks, run):
    """Verdicts on its programs."""
    return tasks.executions(run, {"*": "passed", "s1_period": "timeout"})


@pytest.fixture(scope="module")
def book(tasks, run, executions):
    """Its ledger."""
    return task_ledger(tasks.protocol, run, executions)


def test_rows_are_the_places_of_the_blocks(book):
    """Domain, rank, tape, condition or contrast: each once, and no rank x tape that no block has."""
    places = [(domain, *place) for domain, place in product(DOMAINS, PLACES)]
    found = [(row.domain, row.index, row.replicate, row.condition) for row in book.cells]
    assert found == [(*place, name) for place, name in product(places, FOUR)]
    pairs = [(row.domain, row.index, row.replicate, row.contrast) for row in book.pairs]
    assert pairs == [(*place, one.id) for place, one in product(places, CONTRASTS)]


def test_rows_have_their_blocks_role(book):
    """T0 is the primary block, what goes beyond it the diagnostic one."""
    for row in (*book.cells, *book.pairs):
        assert row.role == ("primary" if row.replicate == "T0" else "diagnostic")


def test_the_registered_shape_has_352_cells():
    """R08: 32 tasks under T0, four of them under three more tapes, two domains: 256 + 96 cells of 88 units."""
    protocol = task_protocol(tasks=32, diagnostic=(0, 8, 16, 24))
    counts = denominators(protocol, "formal", 2)
    assert (counts.sources, counts.units, counts.cells) == (64, 88, 352)
    roles = list(roles_of(protocol, "formal").values())
    assert (roles.count("primary"), roles.count("diagnostic")) == (32, 12)
    assert blocks_of(protocol, "formal") == Blocks(
        tape="T0", tasks=tuple(range(32)), diagnostic_tasks=(0, 8, 16, 24), tapes=("T0", "T1", "T2", "T3")
    )


CHANGES = {
    "lost": (lambda units: units[1:], "expected 6 units, each once, found 5.*missing .*'code', 0, 'T0'"),
    "doubled": (lambda units: (*units, units[0]), "expected 6 units, each once, found 7, 6 of them different"),
    "of no block": (lambda units: (replace(units[2], replicate="T1"), *units[1:]), ".*foreign .*'code', 1, 'T1'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_that_is_not_the_grid_is_refused(tasks, run, executions, name):
    """A lost, a doubled or a foreign batch, by domain, rank and tape."""
    change, message = CHANGES[name]
    with pytest.raises(JournalError, match=f"^run record: units of grid formal: {message}"):
        task_ledger(tasks.protocol, replace(run, units=change(run.units)), executions)


def test_the_order_of_the_units_changes_no_row(tasks, run, executions, book):
    """Units are joined by identity; only the run's own digest knows their order."""
    turned = task_ledger(tasks.protocol, replace(run, units=run.units[::-1]), executions)
    assert replace(turned, run_sha256=book.run_sha256) == book


def test_the_books_of_a_task_run(tasks, run, executions, book):
    """Its ledger and statistics are the task ones, and read back from their bytes; another kind of run is refused."""
    assert ledger_type(tasks.protocol) is TaskLedger
    assert ledger_of(tasks.protocol, run, executions) == book
    found = statistics_of(tasks.protocol, book)
    assert (found.ledger_sha256, found.run_sha256) == (digest(book), digest(run))
    for record, kind in ((book, TaskLedger), (found, TaskStatistics)):
        assert msgspec.convert(msgspec.json.decode(canonical_bytes(record)), kind, strict=True) == record
    with pytest.raises(JournalError, match="expected a run of hand-made-tasks, found CompletionRun"):
        ledger_of(tasks.protocol, tasks.completion_run(run.units, gold=run.gold, grid="formal"), executions)
    with pytest.raises(RuntimeError, match="hand-made-tasks has no SampledLedger"):
        statistics_of(tasks.protocol, msgspec.defstruct("SampledLedger", [])())


def test_a_grid_that_is_not_the_formal_one_has_no_statistics(tasks):
    """R08 5.1: smoke outputs enter none, and the record says so."""
    run = tasks.task_run(tasks.units(SAID, grid="smoke"), grid="smoke")
    book = ledger_of(tasks.protocol, run, {})
    assert {row.role for row in book.cells} == {"check"}
    found = statistics_of(tasks.protocol, book)
    assert isinstance(found, NoTaskStatistics)
    assert (found.grid, found.reason) == ("smoke", "only a complete formal run has statistics")


def test_a_failed_sandbox_leaves_no_statistics(tasks, run):
    """A lost container is no failed program: nothing is counted, and the record says why."""
    made = tasks.executions(run, {"*": "passed", "s0_eos": "infrastructure"})
    found = statistics_of(tasks.protocol, ledger_of(tasks.protocol, run, made))
    assert isinstance(found, NoTaskStatistics)
    assert found.reason == "the sandbox failed: a program has no verdict"


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        pytest.param([("primary", (0, 1), ("T0",)), ("diagnostic", (0,), ("T0",))], "disjoint", id="shared place"),
        pytest.param([("primary", (0, 1), ("T0", "T1"))], "under one tape", id="two primary tapes"),
        pytest.param([("diagnostic", (0,), ("T1",))], "under one tape", id="no primary block"),
        pytest.param([("primary", (0,), ("T0",)), ("check", (1,), ("T0",))], "under one tape", id="another role"),
        pytest.param([("primary", (0,), ("T0",)), ("diagnostic", (1,), ("T1",))], "of the primary", id="another task"),
        pytest.param(
            [("primary", (0, 1), ("T0",)), ("diagnostic", (0,), ("T1",)), ("diagnostic", (1,), ("T2",))],
            "each under all further tapes",
            id="no rectangle",
        ),
        pytest.param([("primary", (0, 5), ("T0",))], "within the grid", id="outside the grid"),
    ],
)
def test_blocks_that_are_not_apart_are_refused(tasks, blocks, message):
    """Where primary and diagnostic cells can't be told apart, no number is made."""
    made = tuple(GridBlock(role=role, indices=indices, replicates=tapes) for role, indices, tapes in blocks)
    grids = {**tasks.protocol.grids, "formal": replace(tasks.protocol.grids["formal"], replicates=("T0", "T1", "T2"))}
    protocol = replace(tasks.protocol, grids=grids, grid_blocks={**tasks.protocol.grid_blocks, "formal": made})
    with pytest.raises(ProtocolError, match=f"grid_blocks of formal: .*{message}"):
        blocks_of(protocol, "formal")


def test_a_grid_without_blocks_is_a_whole_product(builder):
    """Families that register no block keep ranks x replicates."""
    protocol = builder.protocol
    grid = protocol.grids["formal"]
    assert grid_places(protocol, "formal") == tuple(product(range(grid.per_domain), grid.replicates))


def test_a_snapshot_has_what_any_machine_gives(tasks, run, executions, book):
    """Tokens, accounts and consumed values; verdicts apart from them, and no distance from a CDF edge."""
    code, math = run.units[0], run.units[3]
    cells = unit_snapshot(math, book)["cells"]
    assert cells[0]["numeric"]["result"] == "exact"
    assert cells[0]["consumed"]["consumed_sha256"] == math.tape.rows[0].consumed.sha256
    assert b"distance" not in snapshot_bytes(unit_snapshot(math, book))
    assert "verdict" not in unit_snapshot(code, book)["cells"][0]
    words = [cell["verdict"]["failure_type"] for cell in verdict_snapshot(code, book, executions)["cells"]]
    assert words == ["passed", "passed", "extract_failed", "timeout"]
    assert all("candidate_sha256" in cell["verdict"] for cell in verdict_snapshot(code, book, executions)["cells"][:2])
