"""A study's ledger and statistics over hand-made texts: each judge, each refusal, and counts that are counted again."""

import msgspec
import pytest

from harness.canon import escaped, ids_sha256, text_sha256
from harness.claims.study import study_sources
from harness.errors import JournalError
from harness.ledgers.book import ledger_of, statistics_of
from harness.ledgers.study import study_ledger
from harness.ledgers.study_statistics import study_statistics, success
from harness.places import places
from harness.protocols.grids import UnitKey
from harness.protocols.load import load_protocol
from harness.records.ledger import NotObserved
from harness.records.run import CellRecord, NoDevice, PlacementFacts, RngStates, StateHash, StepChecks
from harness.records.study import (
    CellEdits,
    ExactJudge,
    FunctionScore,
    NumberJudge,
    PatternJudge,
    StudyEvidence,
    StudyRun,
)

replace = msgspec.structs.replace
NO_STATE = StateHash(sha256="0" * 64)
STATES = RngStates(python=NO_STATE, numpy=NO_STATE, torch_cpu=NO_STATE, torch_cuda=NoDevice())
TEXTS = {"qa": ("Yes", "no", " YES\n", "maybe"), "t": ("long enough", "no", "a", "also long")}


@pytest.fixture(scope="module")
def loaded(frozen):
    """The frozen study of the tiny Llama."""
    folder = frozen("llama")
    return load_protocol(folder.name, places().with_studies((folder,)))


def cell(condition, text):
    """A cell of that text, ended by EOS."""
    return CellRecord(
        condition=condition, prompt_ids=(1,), prompt_sha256=ids_sha256((1,)), left_padding=0, edits=(),
        generated_ids=(2, 257), generated_sha256=ids_sha256((2, 257)), text_escaped=escaped(f"{text}</s>"),
        text_sha256=text_sha256(f"{text}</s>"), eos=True, truncated=False, length=2,
    )  # fmt: skip


def unit(loaded, key: UnitKey):
    """A unit whose cells say what TEXTS has for its domain."""
    names = [one.id for one in loaded.protocol.conditions]
    return StudyEvidence(
        protocol_digest=loaded.digest, environment_sha256="0", placement_sha256="0", grid="smoke", domain=key.domain,
        index=key.index, source_id=key.source_id, source_text_sha256="0", replicate=key.replicate, rng_before=STATES,
        rng_after=STATES, max_new_tokens=5, checks=StepChecks(steps=2, rows_checked=8, finite=8, argmax=8),
        cells=tuple(cell(name, text) for name, text in zip(names, TEXTS[key.domain], strict=True)),
        edited=tuple(CellEdits(condition=name, edits=(), round_trip=True) for name in names),
    )  # fmt: skip


@pytest.fixture
def run(loaded):
    """A run of the smoke grid: one unit a domain, expected texts, scores of the function."""
    units = tuple(unit(loaded, key) for key in loaded.units("smoke", loaded.domains))
    judge = next(one for one in loaded.protocol.evaluators.judges if one.domain == "t")
    scores = tuple(
        FunctionScore(
            source_id=one.source_id,
            replicate="greedy",
            condition=row.condition,
            text_sha256=text_sha256(text),
            source_sha256=judge.source_sha256,
            outcome="returned",
            value="true" if len(text) > 3 else "1",
            detail="",
        )
        for one in units
        if one.domain == "t"
        for row, text in zip(one.cells, TEXTS["t"], strict=True)
    )
    place = PlacementFacts(
        id="resident",
        dispatched=False,
        device_map={"": "cpu"},
        parameter_bytes={},
        offloaded=(),
        offloaded_moe_layers=(),
    )
    return StudyRun(
        schema=1, protocol=loaded.protocol.id, registered_id=loaded.protocol.registered_id, result_name="r",
        protocol_digest=loaded.digest, grid="smoke", port=False, deviations=(), domains=loaded.domains,
        environment_sha256="0", placement=place, gold={}, units=units, tasks={}, scores=scores,
        answers={one.source_id: "yes" for one in units if one.domain == "qa"},
    )  # fmt: skip


def with_judge(loaded, judge):
    """The study with another judge of qa."""
    judges = (judge, *(one for one in loaded.protocol.evaluators.judges if one.domain != "qa"))
    return replace(loaded.protocol, evaluators=replace(loaded.protocol.evaluators, judges=judges))


def answers(book, domain):
    """(outcome, success, value) of a domain's cells in order."""
    rows = [row for row in book.cells if row.domain == domain]
    return [(row.answer.outcome, row.answer.success, row.answer.value) for row in rows]


def test_exact_texts(loaded, run):
    """Without white space and case; what was compared is kept."""
    book = study_ledger(loaded.protocol, run, {})
    assert answers(book, "qa") == [
        ("success", True, "yes"), ("failure", False, "no"), ("success", True, "yes"), ("failure", False, "maybe"),
    ]  # fmt: skip


@pytest.mark.parametrize(("compare", "hits"), [("verbatim", 0), ("stripped", 0), ("stripped_casefold", 2)])
def test_how_texts_are_compared(loaded, run, compare, hits):
    """Each way by its name."""
    book = study_ledger(with_judge(loaded, ExactJudge(domain="qa", field="label", compare=compare)), run, {})
    assert sum(one[1] for one in answers(book, "qa")) == hits


def test_patterns(loaded, run):
    """No match is `missing`; with a gold field the match must be it."""
    book = study_ledger(with_judge(loaded, PatternJudge(domain="qa", pattern="(?i)yes|n.", field="label")), run, {})
    assert answers(book, "qa") == [
        ("failure", False, "Yes"), ("failure", False, "no"), ("failure", False, "YES"), ("missing", False, ""),
    ]  # fmt: skip
    free = study_ledger(with_judge(loaded, PatternJudge(domain="qa", pattern="no|yes", field="")), run, {})
    assert [one[0] for one in answers(free, "qa")] == ["missing", "success", "missing", "missing"]


def test_only_true_is_a_functions_success(loaded, run):
    """1 is a value and no success."""
    book = study_ledger(loaded.protocol, run, {})
    assert answers(book, "t") == [
        ("success", True, "true"), ("failure", False, "1"), ("failure", False, "1"), ("success", True, "true"),
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", ["raised", "timeout", "ended"])
def test_a_function_that_gave_nothing(loaded, run, outcome):
    """Its own word, and no success."""
    scores = (replace(run.scores[0], outcome=outcome, value="", detail="KeyError"), *run.scores[1:])
    book = study_ledger(loaded.protocol, replace(run, scores=scores), {})
    assert answers(book, "t")[0] == (outcome, False, "KeyError")


REFUSED = {
    "no answer": (lambda run: replace(run, answers={}), "answer of q.: expected the expected text"),
    "no score": (lambda run: replace(run, scores=run.scores[1:]), "score: expected .* found none"),
    "twice": (lambda run: replace(run, scores=(*run.scores, run.scores[0])), "expected one a cell, found 5"),
    "another text": (
        lambda run: replace(run, scores=(replace(run.scores[0], text_sha256="0"), *run.scores[1:])),
        "score: expected",
    ),
    "another source": (
        lambda run: replace(run, scores=(replace(run.scores[0], source_sha256="0"), *run.scores[1:])),
        "score: expected",
    ),
    "no unit": (lambda run: replace(run, units=run.units[1:]), "units of grid smoke: expected 2 units"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_that_lacks_what_a_judge_needs(loaded, run, name):
    """JournalError, never a smaller count."""
    change, words = REFUSED[name]
    with pytest.raises(JournalError, match=words):
        study_ledger(loaded.protocol, change(run), {})


def test_every_count_is_counted_again(loaded, run):
    """Groups by domain, by condition and by both; both sides of every edge."""
    book = ledger_of(loaded.protocol, run, {})
    made = statistics_of(loaded.protocol, book)
    assert len(made.groups) == (1 + 2) * (1 + 4)
    for group in made.groups:
        rows = [r for r in book.cells if group.domain in ("", r.domain) and group.condition in ("", r.condition)]
        assert (group.cells.succeeded.count, group.cells.succeeded.of) == (sum(map(success, rows)), len(rows))
        assert (group.cells.natural_eos.count, group.cells.answer.succeeded.of) == (len(rows), len(rows))
    named = {(row.source_id, row.condition): success(row) for row in book.cells}
    for group in made.edges:
        rows = [row for row in book.edges if row.edge == group.edge and group.domain in ("", row.domain)]
        pairs = [(named[row.source_id, row.left], named[row.source_id, row.right]) for row in rows]
        found = group.succeeded
        counts = [found.both.count, found.left_only.count, found.right_only.count, found.neither.count]
        wanted = [(True, True), (True, False), (False, True), (False, False)]
        assert counts == [pairs.count(one) for one in wanted]
        assert found.both.of == len(rows)


@pytest.mark.parametrize("domain", ["qa", "t"])
def test_a_row_without_its_domains_answer_is_refused(loaded, run, domain):
    """One that is lacking would shrink a denominator, one too many would enter one."""
    book = study_ledger(loaded.protocol, run, {})
    at = next(number for number, row in enumerate(book.cells) if row.domain == domain)
    bare = replace(book.cells[at], answer=NotObserved(reason="none"))
    cells = (*book.cells[:at], bare, *book.cells[at + 1 :])
    with pytest.raises(JournalError, match="answer: expected what the domain's judge said, found nothing"):
        study_statistics(loaded.protocol, replace(book, cells=cells))


def test_an_answer_where_no_judge_is_registered_is_refused(loaded, run):
    """The ledger of one study isn't another's."""
    book = study_ledger(loaded.protocol, run, {})
    protocol = replace(loaded.protocol, evaluators=replace(loaded.protocol.evaluators, judges=()))
    with pytest.raises(JournalError, match="answer: expected nothing, found an answer"):
        study_statistics(protocol, book)


def test_a_number_is_judged_by_its_field(loaded, run):
    """Numeric rule, gold from the run, success by the number."""
    protocol = with_judge(loaded, NumberJudge(domain="qa", field="label"))
    unit_ = run.units[0]
    said = tuple(
        replace(c, text_escaped=escaped(f"so {n}</s>")) for c, n in zip(unit_.cells, (1, 2, 3, 2), strict=True)
    )
    other = replace(run, units=(replace(unit_, cells=said), *run.units[1:]), gold={unit_.source_id: "2"}, answers={})
    book = study_ledger(protocol, other, {})
    assert [success(row) for row in book.cells if row.domain == "qa"] == [False, True, False, True]
    assert [isinstance(row.answer, NotObserved) for row in book.cells if row.domain == "qa"] == [True] * 4
    made = study_statistics(protocol, book)
    assert made.groups[0].cells.numeric.fixed_budget_exact.count == 2


def test_named_counts_have_the_grids_denominators(loaded):
    """Over all cells, of a domain, of a condition, of both, and along edges: what is planned is the product."""
    sources = study_sources(loaded.protocol)
    planned = {
        name: one.planned(loaded, "formal", loaded.domains).of
        for name, one in sources.items()
        if name.startswith(("statistics.succeeded", "statistics.left_only"))
    }
    assert planned["statistics.succeeded"] == 2 * 2 * 4
    assert planned["statistics.succeeded.t"] == 2 * 4
    assert planned["statistics.succeeded.plain"] == 2 * 2
    assert planned["statistics.succeeded.t.plain_x"] == 2
    assert planned["statistics.left_only.x_plain"] == 2 * 2
    assert planned["statistics.left_only.t.x_plain"] == 2


def test_a_study_without_judges_has_no_count_of_successes(loaded):
    """Nothing that could be claimed of them."""
    protocol = replace(loaded.protocol, evaluators=replace(loaded.protocol.evaluators, judges=()))
    assert not [name for name in study_sources(protocol) if "succeeded" in name or "_only" in name]
