"""Registered contrasts within a source (R07 9.3), and the directions carried over from an earlier round (R07 9.5).

A contrast is a dot for each source, from its own cell means alone. Dots are fractions until they are written; medians,
extremes and signs are of the exact dots. How many dots share a sign is a count over the fixed sources and says nothing
of sources that aren't in the grid.
"""

from collections.abc import Iterator
from fractions import Fraction
from statistics import median

from harness.ledgers.counts import count
from harness.ledgers.sampling_groups import Groups
from harness.ledgers.sampling_measures import cell_mean, measures_of
from harness.ledgers.whole import Source
from harness.records.protocol import SamplingProtocol
from harness.records.sampling import CarriedDirection, Contrast
from harness.records.sampling_ledger import CarriedOver, ContrastSummary, Measure
from harness.records.sources import Domain


def contrast_dot(groups: Groups, source: Source, contrast: Contrast, measure: Measure) -> Fraction:
    """(sum of the cell means of `plus` - sum of those of `minus`) / `divisor` of one source, exactly."""
    plus = sum((cell_mean(groups, source, condition, measure) for condition in contrast.plus), Fraction(0))
    minus = sum((cell_mean(groups, source, condition, measure) for condition in contrast.minus), Fraction(0))
    return (plus - minus) / contrast.divisor


def contrast_summaries(groups: Groups) -> Iterator[ContrastSummary]:
    """Every contrast of every measure that a domain has, by domain, in the protocol's order (R07 9.3)."""
    for domain, sources in groups.by_domain():
        for contrast in groups.protocol.contrasts:
            for measure in measures_of(domain):
                dots = [contrast_dot(groups, source, contrast, measure) for source in sources]
                yield ContrastSummary(
                    domain=domain.name,
                    contrast=contrast.id,
                    measure=measure,
                    sources=tuple(source.source_id for source in sources),
                    dots=tuple(map(float, dots)),
                    median=float(median(dots)),
                    minimum=float(min(dots)),
                    maximum=float(max(dots)),
                    positive=count(dot > 0 for dot in dots),
                    zero=count(dot == 0 for dot in dots),
                    negative=count(dot < 0 for dot in dots),
                )


def carried_directions(groups: Groups) -> Iterator[CarriedOver]:
    """Every carried-over direction in every domain, by source (R07 9.5)."""
    for direction in groups.protocol.carried_over:
        contrast = _contrast(groups.protocol, direction)
        for domain, sources in groups.by_domain():
            yield _carried(groups, direction, contrast, domain, sources)


def _carried(
    groups: Groups, direction: CarriedDirection, contrast: Contrast, domain: Domain, sources: tuple[Source, ...]
) -> CarriedOver:
    """A dot of the other sign doesn't have the direction, and neither does a dot of zero."""
    sign = 1 if direction.direction == "positive" else -1
    holds = tuple(sign * contrast_dot(groups, source, contrast, direction.measure) > 0 for source in sources)
    return CarriedOver(
        id=direction.id,
        domain=domain.name,
        sources=tuple(source.source_id for source in sources),
        holds=holds,
        count=count(holds),
    )


def _contrast(protocol: SamplingProtocol, direction: CarriedDirection) -> Contrast:
    for contrast in protocol.contrasts:
        if contrast.id == direction.contrast:
            return contrast
    raise RuntimeError(f"{protocol.id}: direction {direction.id} is of {direction.contrast!r}, which is no contrast")
