"""Statistics of sampled runs (R07 9): every figure of a ledger that was written by hand."""

from collections.abc import Iterator
from itertools import product

import msgspec
import pytest
from pregate_support.books import PROTOCOLS

from harness.canon import canonical_bytes, digest
from harness.errors import JournalError
from harness.ledgers.reading import NO_NUMBER, NO_PROGRAM
from harness.ledgers.sampling_sources import absolute_majority
from harness.ledgers.sampling_statistics import sampled_statistics
from harness.protocols.load import read_protocol
from harness.records.base import decode_json
from harness.records.sampling_ledger import (
    CarriedOver,
    CodeSeeds,
    ContrastSummary,
    LengthSummary,
    Majority,
    MathSeeds,
    MeasureSummary,
    NoMajority,
    SampledStatistics,
    SourceMatrix,
)

from .sampled import (
    CARRIED,
    CONTRASTS,
    DOMAINS,
    EIGHT,
    FOUR,
    HAND,
    Draw,
    draws_of,
    of,
    one,
    said,
    sampled_ledger,
    sampling_protocol,
    seeds,
)

replace = msgspec.structs.replace
MATH = ("math/0000", "math/0001")


@pytest.fixture(scope="module")
def protocol():
    """Round 07's shape: four conditions, four seeds, two sources a domain."""
    return sampling_protocol()


@pytest.fixture(scope="module")
def book(protocol):
    """A formal ledger in which the cells that `HAND` doesn't name said (7, 1), ended, and were right."""
    return sampled_ledger(protocol, HAND, domains=DOMAINS)


@pytest.fixture(scope="module")
def found(protocol, book):
    """Its statistics."""
    return sampled_statistics(protocol, book)


def test_a_source_of_mathematics_over_its_seeds(found):
    """R07 9.1: two of four ended, three trajectories, 12 by three of four, two of them strict."""
    row = one(found.by_source, source_id="math/0000", condition="s0_eos")
    assert (row.domain, row.index) == ("math", 0)
    assert (row.natural_eos, row.truncated, row.other_stop) == (of(2), of(2), of(0))
    assert row.unique_trajectories == of(3)
    assert row.length == LengthSummary(sum=12, n=4, minimum=1, maximum=5)
    assert row.code == NO_PROGRAM
    assert row.math == MathSeeds(
        answers=("12", "12", "12", None),
        gold_absent=of(0),
        fixed_budget_exact=of(3),
        strict_complete_exact=of(2),
        majority=Majority(value="12", count=of(3)),
    )


def test_another_stop_is_a_count_of_its_own(protocol, book):
    """A cell that neither ended nor reached the budget is counted as neither, and stays in every denominator."""
    at = next(n for n, row in enumerate(book.cells) if (row.source_id, row.condition) == ("math/0001", "s1_eos"))
    odd = replace(book.cells[at], stop="other_stop", completion="OTHER_STOP")
    other = replace(book, cells=(*book.cells[:at], odd, *book.cells[at + 1 :]))
    row = one(sampled_statistics(protocol, other).by_source, source_id="math/0001", condition="s1_eos")
    assert (row.natural_eos, row.truncated, row.other_stop) == (of(3), of(0), of(1))


def test_similarities_are_in_the_order_of_the_seeds(found):
    """R07 9.1: six pairs of four seeds, each once; 1 - distance / longer length."""
    row = one(found.by_source, source_id="math/0000", condition="s0_eos")
    fifth = 1.0 - 4 / 5
    assert [(pair.left, pair.right, pair.similarity) for pair in row.similarities] == [
        ("R0", "R1", 1.0),
        ("R0", "R2", fifth),
        ("R0", "R3", 0.0),
        ("R1", "R2", fifth),
        ("R1", "R3", 0.0),
        ("R2", "R3", 0.0),
    ]


def test_half_is_no_majority(found):
    """Two of four gave 13 and one gave nothing: two of the three that answered, and not more than half of all."""
    row = one(found.by_source, source_id="math/0000", condition="s0_period")
    assert row.math == MathSeeds(
        answers=("13", "13", None, "12"),
        gold_absent=of(0),
        fixed_budget_exact=of(1),
        strict_complete_exact=of(1),
        majority=NoMajority(most=of(2)),
    )


@pytest.mark.parametrize(
    ("answers", "majority"),
    [
        (("1", "1", "1", "2"), Majority(value="1", count=of(3))),
        (("1", "1", "2", "2"), NoMajority(most=of(2))),
        (("1", "1", None, None), NoMajority(most=of(2))),
        ((None, None, None, "1"), NoMajority(most=of(1))),
        ((None, None, None, None), NoMajority(most=of(0))),
        (("1", "1", None), Majority(value="1", count=of(2, 3))),
        (("3",) * 4 + (None,) * 4, NoMajority(most=of(4, 8))),
        (("3",) * 5 + (None,) * 3, Majority(value="3", count=of(5, 8))),
    ],
)
def test_a_majority_is_more_than_half_of_all_seeds(answers, majority):
    """Cells without an answer count among all, and their lack of one is never the majority's answer."""
    assert absolute_majority(answers) == majority


def test_programs_over_their_seeds(found):
    """R07 9.1: what wasn't extracted or doesn't parse stays in every denominator; a cut pass isn't strict."""
    row = one(found.by_source, source_id="code/0000", condition="s0_eos")
    assert row.math == NO_NUMBER
    assert row.code == CodeSeeds(
        extracted=of(3),
        ast_parses=of(2),
        executed=of(2),
        passed=of(2),
        strict_complete_passed=of(1),
        observed_any_pass=True,
    )
    assert one(found.by_source, source_id="code/0000", condition="s1_eos").code == CodeSeeds(
        extracted=of(3),
        ast_parses=of(1),
        executed=of(1),
        passed=of(0),
        strict_complete_passed=of(0),
        observed_any_pass=False,
    )


def test_a_domain_without_a_judge_has_no_account(found):
    """English has neither answers nor programs, and no success anywhere."""
    row = one(found.by_source, source_id="english/0001", condition="s1_period")
    assert (row.math, row.code) == (NO_NUMBER, NO_PROGRAM)
    unjudged = {"natural_eos_rate", "generated_length"}
    assert {one.measure for row in found.by_domain if row.domain == "english" for one in row.measures} == unjudged
    for rows in (found.matrices, found.contrasts):
        assert {row.measure for row in rows if row.domain == "english"} == unjudged
        assert len({row.measure for row in rows if row.domain == "math"}) == 4


def test_a_domain_under_a_condition(found):
    """R07 9.2 and 9.4: outputs summed, sources of equal weight, the range of both layers."""
    eos, length, fixed, strict = one(found.by_domain, domain="math", condition="s0_eos").measures
    assert length == MeasureSummary(
        measure="generated_length",
        micro_sum=20,
        micro_n=8,
        sources=MATH,
        source_means=(3.0, 2.0),
        macro=2.5,
        minimum=2.0,
        maximum=3.0,
        seed_ranges=(4, 0),
        between_range=1.0,
    )
    assert fixed == MeasureSummary(
        measure="fixed_budget_success",
        micro_sum=7,
        micro_n=8,
        sources=MATH,
        source_means=(0.75, 1.0),
        macro=0.875,
        minimum=0.75,
        maximum=1.0,
        seed_ranges=(1, 0),
        between_range=0.25,
    )
    assert (eos.measure, eos.micro_sum, eos.macro) == ("natural_eos_rate", 6, 0.75)
    assert (strict.measure, strict.micro_sum, strict.source_means) == ("strict_complete_success", 6, (0.5, 1.0))


def test_the_matrix_of_sources_and_conditions(found):
    """R07 9.2: a row a source, a column a condition."""
    assert one(found.matrices, domain="math", measure="generated_length") == SourceMatrix(
        domain="math",
        measure="generated_length",
        sources=MATH,
        conditions=FOUR,
        means=((3.0, 2.0, 1.25, 2.0), (2.0, 2.0, 2.0, 2.0)),
    )
    code = one(found.matrices, domain="code", measure="strict_complete_success")
    assert code.means == ((0.25, 0.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("contrast", "measure", "dot"),
    [
        ("system_main", "generated_length", -0.125),
        ("boundary_main", "generated_length", -0.875),
        ("interaction", "generated_length", 1.75),
        ("system_main", "natural_eos_rate", 0.625),
        ("boundary_main", "natural_eos_rate", -0.125),
        ("interaction", "natural_eos_rate", 0.25),
        ("system_main", "fixed_budget_success", 0.5),
        ("system_main", "strict_complete_success", 0.625),
    ],
)
def test_contrasts_by_hand(found, contrast, measure, dot):
    """R07 9.3: one source has the dot, the other, whose cells are all alike, has zero."""
    assert one(found.contrasts, domain="math", contrast=contrast, measure=measure) == ContrastSummary(
        domain="math",
        contrast=contrast,
        measure=measure,
        sources=MATH,
        dots=(dot, 0.0),
        median=dot / 2,
        minimum=min(dot, 0.0),
        maximum=max(dot, 0.0),
        positive=of(int(dot > 0), 2),
        zero=of(1, 2),
        negative=of(int(dot < 0), 2),
    )


def test_the_median_of_three_is_the_middle_dot():
    """Of an odd number the middle one, of an even one the mean of the middle two (above)."""
    lengths = {("english", index, seed, "s1_eos"): said(*range(3, 3 + length)) for index, length in enumerate((4, 8, 6))
               for seed in seeds(4)}  # fmt: skip
    three = sampling_protocol(per_domain=3)
    found = sampled_statistics(three, sampled_ledger(three, lengths, domains=("english",)))
    row = one(found.contrasts, contrast="system_main", measure="generated_length")
    assert (row.dots, row.median) == ((1.0, 3.0, 2.0), 2.0)


def test_a_carried_over_direction_is_told_by_source(found):
    """R07 9.5: the source with the registered sign holds, the one whose dot is zero doesn't."""
    assert one(found.carried_over, id="period_shortens", domain="math") == CarriedOver(
        id="period_shortens", domain="math", sources=MATH, holds=(True, False), count=of(1, 2)
    )
    assert one(found.carried_over, id="system_raises_eos", domain="math").holds == (True, False)
    assert one(found.carried_over, id="system_raises_eos", domain="code").holds == (True, False)
    assert one(found.carried_over, id="period_shortens", domain="code").holds == (False, False)
    assert len(found.carried_over) == 2 * len(DOMAINS)


def test_order_and_identity(found, protocol, book):
    """The protocol's order of domains, sources and conditions; the record names its ledger and its pairing."""
    keys = [(row.domain, row.index, row.condition) for row in found.by_source]
    assert keys == list(product(DOMAINS, (0, 1), FOUR))
    assert [(row.domain, row.condition) for row in found.by_domain] == list(product(DOMAINS, FOUR))
    assert [row.contrast for row in found.contrasts if (row.domain, row.measure) == ("code", "generated_length")] == [
        each.id for each in CONTRASTS
    ]
    assert (found.ledger_sha256, found.run_sha256, found.grid) == (digest(book), book.run_sha256, "formal")
    assert (found.protocol, found.pairing) == (protocol.id, "batch-seed aligned")
    again = decode_json(canonical_bytes(found), SampledStatistics, where="statistics", error=JournalError, todo="")
    assert again == found


def test_a_domain_that_is_left_out_is_nowhere(protocol, book, found):
    """A port without English: the other domains' figures are the same, and English has none."""
    rest = sampled_statistics(protocol, sampled_ledger(protocol, HAND, domains=("code", "math")))
    for name in ("by_source", "by_domain", "matrices", "contrasts", "carried_over"):
        kept = [row for row in getattr(found, name) if row.domain != "english"]
        assert list(getattr(rest, name)) == kept
    with pytest.raises(
        JournalError, match=r"^ledger: cells: expected 64 rows, each once, found 96: 32 foreign, english"
    ):
        sampled_statistics(protocol, replace(book, domains=("code", "math")))


def test_eight_conditions_eight_seeds_and_no_contrast():
    """Round 06's shape: 28 pairs in order, four of eight are no majority, nothing contrasted or carried over."""
    six = sampling_protocol(conditions=EIGHT, replicates=8, per_domain=1, contrasts=(), carried_over=())
    answers = ["12"] * 4 + [None] * 4
    draws = draws_of("math", 0, "s1_x", [said(7, 1, answer=answer) for answer in answers])
    found = sampled_statistics(six, sampled_ledger(six, draws, domains=("math",)))
    assert (found.contrasts, found.carried_over) == ((), ())
    row = one(found.by_source, condition="s1_x")
    assert [(pair.left, pair.right) for pair in row.similarities] == [
        (f"R{left}", f"R{right}") for left in range(8) for right in range(left + 1, 8)
    ]
    assert len(row.similarities) == 28
    assert row.math.majority == NoMajority(most=of(4, 8))
    assert row.natural_eos == of(8, 8)
    matrix = one(found.matrices, measure="fixed_budget_success")
    assert (matrix.conditions, matrix.means) == (EIGHT, ((1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0),))


@pytest.mark.parametrize(
    ("name", "shape", "contrasts", "carried"),
    [
        ("nano-cross-source-sampling", (64, 4, 6), CONTRASTS, CARRIED),
        ("deepseek-cross-source-sampling", (64, 4, 6), CONTRASTS, CARRIED),
        ("nano-single-source-sampling", (32, 8, 28), (), ()),
        ("deepseek-single-source-sampling", (32, 8, 28), (), ()),
    ],
)
def test_the_registered_protocols(name, shape, contrasts, carried):
    """They register 9.3's contrasts and 9.5's directions, or none: sources x conditions, seeds, pairs of seeds."""
    registered = read_protocol(PROTOCOLS / name / "protocol.toml")
    assert (registered.contrasts, registered.carried_over) == (contrasts, carried)
    domains = tuple(domain.name for domain in registered.domains)
    found = sampled_statistics(registered, sampled_ledger(registered, {}, domains=domains))
    first = found.by_source[0]
    assert (len(found.by_source), first.natural_eos.of, len(first.similarities)) == shape
    assert {row.zero for row in found.contrasts} == ({of(4)} if contrasts else set())
    assert {row.count for row in found.carried_over} == ({of(0)} if carried else set())


def test_without_gold_answers_are_kept_and_none_is_right(protocol):
    """The run has no gold number: four answers and their majority, none of four exact."""
    draws = draws_of("math", 0, "s1_eos", [Draw(gold=False)] * 4)
    found = sampled_statistics(protocol, sampled_ledger(protocol, draws, domains=("math",)))
    assert one(found.by_source, source_id="math/0000", condition="s1_eos").math == MathSeeds(
        answers=("12",) * 4,
        gold_absent=of(4),
        fixed_budget_exact=of(0),
        strict_complete_exact=of(0),
        majority=Majority(value="12", count=of(4)),
    )


FORBIDDEN = (
    "p-value", "p_value", "pvalue", "interval", "confidence", "pass@", "pass_at", "pooled", "signific", "stderr",
    "variance", "accuracy",
)  # fmt: skip


def words_of(value) -> Iterator[str]:
    """Every key and every text in plain data."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from words_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from words_of(inner)
    elif isinstance(value, str):
        yield value


def claims(value) -> list[str]:
    """Keys and texts that claim more than was observed."""
    return [word for word in words_of(value) if any(forbidden in word.lower() for forbidden in FORBIDDEN)]


def test_nothing_is_named_as_inference(found, protocol):
    """R07 9.1, 9.3, 11: no key and no label says p-value, interval, pass@4, pooled or significance."""
    none = sampled_statistics(protocol, sampled_ledger(protocol, {}, domains=DOMAINS, grid="smoke"))
    assert claims(msgspec.to_builtins(found)) == []
    assert claims(msgspec.to_builtins(none)) == []
    assert claims({"rows": [{"observed_pass@4": 1}, "95% confidence"]}) == ["observed_pass@4", "95% confidence"]
