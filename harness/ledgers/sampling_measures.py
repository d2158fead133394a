"""Measures of sampled cells in a domain under a condition (R07 9.2), and their two layers of spread (R07 9.4).

A measure gives an integer for each cell: 0 or 1, or tokens. Means are exact fractions and become binary64 once, at the
end. The spread describes the fixed grid; nothing here estimates a variance or takes sources for a sample of a domain.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from harness.ledgers.sampling_groups import Groups
from harness.ledgers.whole import Source
from harness.protocols.grids import is_executed
from harness.records.completion import AccountedRow, CodeAccount, Executed, NumericJudged
from harness.records.sampling_ledger import DomainCondition, Measure, MeasureSummary, SourceMatrix
from harness.records.sources import Domain

OF_EVERY_DOMAIN: tuple[Measure, ...] = ("natural_eos_rate", "generated_length")
OF_JUDGED_DOMAINS: tuple[Measure, ...] = ("fixed_budget_success", "strict_complete_success")


def measures_of(domain: Domain) -> tuple[Measure, ...]:
    """The measures of a domain: success only where the domain registers an answer or tests."""
    judged = "answer" in domain.gold or is_executed(domain)
    return (*OF_EVERY_DOMAIN, *OF_JUDGED_DOMAINS) if judged else OF_EVERY_DOMAIN


def value_of(measure: Measure, row: AccountedRow) -> int:
    """One cell: 1 or 0, or tokens. What has no number, no gold, no program or no verdict is no success."""
    return VALUES[measure](row)


def _natural_eos(row: AccountedRow) -> int:
    return int(row.stop == "natural_eos")


def _length(row: AccountedRow) -> int:
    return row.length


def _fixed_budget(row: AccountedRow) -> int:
    if isinstance(row.numeric, NumericJudged):
        return int(row.numeric.fixed_budget_exact)
    return int((verdict := executed(row)) is not None and verdict.fixed_budget_pass)


def _strict_complete(row: AccountedRow) -> int:
    if isinstance(row.numeric, NumericJudged):
        return int(row.numeric.strict_complete_exact)
    return int((verdict := executed(row)) is not None and verdict.strict_complete_pass)


def executed(row: AccountedRow) -> Executed | None:
    """What the sandbox said of a cell's program; None where there was nothing to execute."""
    verdict = row.code.verdict if isinstance(row.code, CodeAccount) else None
    return verdict if isinstance(verdict, Executed) else None


VALUES: Mapping[Measure, Callable[[AccountedRow], int]] = {
    "natural_eos_rate": _natural_eos,
    "generated_length": _length,
    "fixed_budget_success": _fixed_budget,
    "strict_complete_success": _strict_complete,
}


def exact_mean(values: Iterable[int | Fraction]) -> Fraction:
    """The mean as a fraction; no value is misuse."""
    listed = list(values)
    if not listed:
        raise RuntimeError("exact_mean takes at least one value")
    return Fraction(sum(listed)) / len(listed)


def cell_mean(groups: Groups, source: Source, condition: str, measure: Measure) -> Fraction:
    """Mean of a measure over the seeds of one source and condition."""
    return exact_mean(value_of(measure, row) for row in groups.seeds(source, condition))


def domain_conditions(groups: Groups) -> Iterator[DomainCondition]:
    """Every domain under every condition, in the protocol's order (R07 9.2)."""
    for domain, sources in groups.by_domain():
        for condition in groups.conditions:
            yield DomainCondition(
                domain=domain.name,
                condition=condition,
                measures=tuple(
                    measure_summary(
                        measure,
                        [source.source_id for source in sources],
                        [[value_of(measure, row) for row in groups.seeds(source, condition)] for source in sources],
                    )
                    for measure in measures_of(domain)
                ),
            )


def measure_summary(measure: Measure, sources: Sequence[str], values: Sequence[Sequence[int]]) -> MeasureSummary:
    """One measure over sources (outer) and seeds (inner). Each output counts once in micro, each source in macro."""
    means = [exact_mean(seeds) for seeds in values]
    return MeasureSummary(
        measure=measure,
        micro_sum=sum(sum(seeds) for seeds in values),
        micro_n=sum(len(seeds) for seeds in values),
        sources=tuple(sources),
        source_means=tuple(map(float, means)),
        macro=float(exact_mean(means)),
        minimum=float(min(means)),
        maximum=float(max(means)),
        seed_ranges=tuple(max(seeds) - min(seeds) for seeds in values),
        between_range=float(max(means) - min(means)),
    )


def source_matrices(groups: Groups) -> Iterator[SourceMatrix]:
    """Cell means of each domain and measure: a row a source, a column a condition (R07 9.2)."""
    for domain, sources in groups.by_domain():
        for measure in measures_of(domain):
            yield SourceMatrix(
                domain=domain.name,
                measure=measure,
                sources=tuple(source.source_id for source in sources),
                conditions=groups.conditions,
                means=tuple(
                    tuple(float(cell_mean(groups, source, condition, measure)) for condition in groups.conditions)
                    for source in sources
                ),
            )
