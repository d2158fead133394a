"""The ledger of a sampled run (R07 8 and 9.1): a row a cell, a row a pair of seeds, and refusals by identity."""

from itertools import combinations, product

import msgspec
import pytest
from pregate_support.books import PROTOCOLS, Said
from pregate_support.sampled_runs import FENCED, SampledBuilder, gold_of

from harness.canon import digest
from harness.compare import compare_ids
from harness.errors import JournalError
from harness.ledgers.accounts import NO_TERMINAL
from harness.ledgers.book import ledger_of, ledger_type, statistics_of
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.sampling import sampled_ledger
from harness.protocols.load import read_protocol
from harness.records.completion import CodeAccount, Executed, NotExecuted, NumericJudged, NumericWithoutGold
from harness.records.evaluation import CodeMissing, NumericMissing
from harness.records.sampling_ledger import NoSampledStatistics, SampledLedger, SampledStatistics

replace = msgspec.structs.replace
FOUR = ("s0_eos", "s1_eos", "s0_period", "s1_period")
SEEDS = ("R0", "R1", "R2")
TWICE = "```python\ndef f(n):\n    return n + n\n```"


@pytest.fixture(scope="module")
def samples():
    """A builder of two sources a domain and three seeds."""
    protocol = read_protocol(PROTOCOLS / "nano-cross-source-sampling" / "protocol.toml")
    grown = SampledBuilder(protocol).with_grid("formal", per_domain=2, replicates=SEEDS)
    return grown.with_grid("smoke", per_domain=2, replicates=SEEDS[:2])


def units_of(samples, grid="formal", seeds=SEEDS):
    """Two sources each of English, code and mathematics. What varies: s0_eos by seed, the others not."""
    math = {"R0": Said("so \\boxed{12}"), "R1": Said("so 12", eos=False), "R2": Said("no number")}
    code = {"R0": Said(FENCED), "R1": Said(TWICE), "R2": Said("", eos=False)}
    said = {"english": {seed: Said(f"word {seed}", eos=False) for seed in seeds}, "code": code, "math": math}
    same = {"english": Said("words"), "code": Said(FENCED), "math": Said("\\boxed{13}")}
    return tuple(
        samples.drawn(domain, index, {"s0_eos": said[domain][seed], "*": same[domain]}, replicate=seed, grid=grid)
        for domain in ("english", "code", "math")
        for index in range(2)
        for seed in seeds
    )


@pytest.fixture(scope="module")
def run(samples):
    """The formal run."""
    return samples.sampled_run(units_of(samples))


@pytest.fixture(scope="module")
def executions(samples, run):
    """Verdicts on its programs: the one that returns n + n fails."""
    return samples.verdicts(run, {"return n + n": "assertion_failed"})


@pytest.fixture(scope="module")
def book(samples, run, executions):
    """Its ledger."""
    return sampled_ledger(samples.protocol, run, executions)


def cell(book, source_id, replicate, condition):
    """The one row of a cell."""
    identity = (source_id, replicate, condition)
    (row,) = [one for one in book.cells if (one.source_id, one.replicate, one.condition) == identity]
    return row


def test_a_row_for_every_cell_in_the_protocols_order(book):
    """Domain, index, replicate, condition: each once."""
    rows = [(row.domain, row.index, row.replicate, row.condition) for row in book.cells]
    assert rows == list(product(("english", "code", "math"), (0, 1), SEEDS, FOUR))


def test_a_row_is_its_own_cells(book, run):
    """Hash and length of the row are those of the cell with that identity."""
    cells = {
        (unit.source_id, unit.replicate, cell.condition): (cell.generated_sha256, cell.length)
        for unit in run.units
        for cell in unit.cells
    }
    found = {(row.source_id, row.replicate, row.condition): (row.generated_sha256, row.length) for row in book.cells}
    assert found == cells


def test_an_edge_for_every_registered_pair_of_a_batch(samples, book):
    """Rows of one batch are compared, with both completion classes; no edge joins two seeds."""
    edges = [(row.source_id, row.replicate, row.edge) for row in book.edges]
    assert len(set(edges)) == len(edges) == 6 * len(SEEDS) * len(samples.protocol.edges)
    classes = {(row.source_id, row.replicate, row.condition): row.completion for row in book.cells}
    for row in book.edges:
        sides = (row.left_completion, row.right_completion)
        assert sides == tuple(classes[row.source_id, row.replicate, one] for one in (row.left, row.right))


def test_every_two_seeds_are_a_pair(book):
    """R07 9.1: within a source and a condition, in the order of the seeds, each once."""
    pairs = [(row.domain, row.index, row.condition, row.left, row.right) for row in book.pairs]
    assert pairs == [
        (*place, *two) for place in product(("english", "code", "math"), (0, 1), FOUR) for two in combinations(SEEDS, 2)
    ]


def test_a_pair_compares_the_two_seeds_ids(samples, book, run):
    """English s0_eos says `word R0` and so on: one token of seven differs; other conditions say the same."""
    wanted = ("english/0001", "s0_eos", "R0", "R2")
    (row,) = [pair for pair in book.pairs if (pair.source_id, pair.condition, pair.left, pair.right) == wanted]
    one, other = (samples.ids(Said(f"word {seed}", eos=False)) for seed in ("R0", "R2"))
    assert row.comparison == compare_ids(one, other)
    assert (row.comparison.distance, row.comparison.common_prefix_tokens) == (1, 6)
    assert row.comparison.similarity == 1 - 1 / 7
    same = [one.comparison for one in book.pairs if one.condition != "s0_eos"]
    assert {(one.distance, one.similarity) for one in same} == {(0, 1.0)}
    assert digest(run) == book.run_sha256


def test_one_seed_has_no_pair(samples):
    """Nor a row that stands for one."""
    single = samples.with_grid("formal", per_domain=2, replicates=("R0",))
    run = single.sampled_run(units_of(single, seeds=("R0",)))
    assert sampled_ledger(single.protocol, run, single.verdicts(run, {})).pairs == ()


def test_an_uncovered_cell_keeps_its_row(book):
    """R07 10: no number, no program, no judge at all. The row is there and says which."""
    nothing = cell(book, "math/0000", "R2", "s0_eos").numeric
    assert isinstance(nothing, NumericJudged)
    assert nothing.extraction == NumericMissing(rule="numeric-r05")
    assert (nothing.evaluable, nothing.fixed_budget_exact) == (False, False)
    empty = cell(book, "code/0001", "R2", "s0_eos").code
    assert empty == CodeAccount(program=CodeMissing(rule="code-r05"), verdict=NotExecuted(reason="extract_failed"))
    words = cell(book, "english/0000", "R1", "s0_eos")
    assert (words.terminal, words.numeric, words.code) == (NO_TERMINAL, NO_NUMBER, NO_PROGRAM)
    assert words.completion == "BUDGET_TRUNCATED_UNRESOLVED"


def test_a_source_without_gold_keeps_its_rows(samples, run, executions):
    """The extraction stays, and nothing is judged."""
    found = sampled_ledger(samples.protocol, replace(run, gold={"math/0000": "12"}), executions)
    assert len(found.cells) == len(run.units) * len(FOUR)
    assert isinstance(cell(found, "math/0001", "R0", "s0_eos").numeric, NumericWithoutGold)
    assert isinstance(cell(found, "math/0000", "R0", "s0_eos").numeric, NumericJudged)


def test_cells_that_share_a_program_each_have_its_verdict(book, executions):
    """R07 8: two programs a source were executed once each; every cell has a row with its own program's verdict."""
    assert len(executions) == 2 * 2
    verdicts = {
        (row.source_id, row.replicate, row.condition): row.code.verdict for row in book.cells if row.domain == "code"
    }
    assert len(verdicts) == 2 * len(SEEDS) * len(FOUR)
    passed = [key for key, one in verdicts.items() if isinstance(one, Executed) and one.fixed_budget_pass]
    assert len(passed) == 2 * (1 + 3 * len(SEEDS))
    assert verdicts["code/0000", "R1", "s0_eos"].outcome == "assertion_failed"


def test_the_order_of_the_units_changes_no_row(samples, run, executions, book):
    """Units are joined by identity; only the run's own digest knows their order."""
    turned = sampled_ledger(samples.protocol, replace(run, units=run.units[::-1]), executions)
    assert replace(turned, run_sha256=book.run_sha256) == book


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda units: units[1:], "expected 18 units, each once, found 17.*missing .*'english', 0, 'R0'"),
        (lambda units: (*units, units[0]), "expected 18 units, each once, found 19, 18 of them different"),
        (lambda units: (replace(units[0], replicate="R9"), *units[1:]), ".*foreign .*'english', 0, 'R9'"),
        (lambda units: (replace(units[0], index=7), *units[1:]), ".*foreign .*'english', 7, 'R0'"),
    ],
)
def test_a_run_that_is_not_the_grid_is_refused(samples, run, executions, change, message):
    """A lost, a doubled or a foreign batch: by domain, index and replicate."""
    with pytest.raises(JournalError, match=f"^run record: units of grid formal: {message}"):
        sampled_ledger(samples.protocol, replace(run, units=change(run.units)), executions)


def test_a_lost_verdict_is_refused(samples, run, executions):
    """A shared execution that is gone takes all its cells' verdicts; none of them is dropped in silence."""
    lost = sorted(executions)[0]
    left = {key: one for key, one in executions.items() if key != lost}
    with pytest.raises(JournalError, match=rf"^sandbox/{lost}.json: expected the verdict on this cell's program"):
        sampled_ledger(samples.protocol, run, left)


def test_a_foreign_verdict_is_refused(samples, run, executions):
    """One that no program of the run asks for."""
    key = sorted(executions)[0]
    with pytest.raises(JournalError, match=r"^sandbox/other.json: expected no execution"):
        sampled_ledger(samples.protocol, run, executions | {"other": executions[key]})


def test_another_programs_verdict_is_refused(samples, run, executions):
    """Under the right name, of the right task, of another program."""
    one, other = [key for key in sorted(executions) if "code-0000" in key]
    with pytest.raises(JournalError, match=rf"^sandbox/{one}.json: candidate_sha256: expected"):
        sampled_ledger(samples.protocol, run, executions | {one: executions[other]})


def test_a_smoke_run_has_no_verdict(samples):
    """Its grid executes nothing: the program is there, and the account says that the tier executes none."""
    run = samples.sampled_run(units_of(samples, "smoke", SEEDS[:2]), grid="smoke")
    found = sampled_ledger(samples.protocol, run, {})
    verdicts = {row.code.verdict for row in found.cells if row.domain == "code"}
    assert verdicts == {NotExecuted(reason="tier")}
    assert len(found.pairs) == 6 * len(FOUR)
    (name, execution), *_ = samples.verdicts(run, {}).items()
    with pytest.raises(JournalError, match=rf"^sandbox/{name}.json: expected no execution"):
        sampled_ledger(samples.protocol, run, {name: execution})


def test_the_books_of_a_sampled_run(samples, run, executions, book):
    """Its ledger and statistics are the sampling ones; another kind of run is refused."""
    assert ledger_type(samples.protocol) is SampledLedger
    assert ledger_of(samples.protocol, run, executions) == book
    assert isinstance(statistics_of(samples.protocol, book), SampledStatistics)
    plain = samples.completion_run(run.units, gold=gold_of(run.units), grid="formal")
    with pytest.raises(JournalError, match="expected a run of nano-cross-source-sampling, found CompletionRun"):
        ledger_of(samples.protocol, plain, executions)


def test_a_grid_that_is_not_the_formal_one_has_no_statistics(samples):
    """R07 7.1: smoke outputs enter none, and the record says so."""
    run = samples.sampled_run(units_of(samples, "smoke", SEEDS[:2]), grid="smoke")
    found = statistics_of(samples.protocol, ledger_of(samples.protocol, run, {}))
    assert isinstance(found, NoSampledStatistics)
    assert (found.grid, found.run_sha256) == ("smoke", digest(run))
