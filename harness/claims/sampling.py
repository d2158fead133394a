"""Counts of a sampled run (R07 9) that may feed a figure. Each is over outputs of this grid, never over tasks."""

from collections.abc import Callable, Mapping

from harness.claims.behavior import NUMBERS, TESTS, added, domain_planned
from harness.claims.source import STATISTICS, Planned, Source, absent, cells_planned
from harness.claims.view import RunView
from harness.protocols.load import LoadedProtocol
from harness.records.ledger import Count
from harness.records.protocol import Tier
from harness.records.sampling_ledger import CodeSeeds, MathSeeds, SampledStatistics, SourceCondition

Pick = Callable[[SourceCondition], Count | None]


def _over_sources(pick: Pick) -> Callable[[RunView], Count]:
    def count(view: RunView) -> Count:
        if not isinstance(view.statistics, SampledStatistics):
            raise absent(view, "statistics of a complete formal run")
        counts = [found for one in view.statistics.by_source if (found := pick(one)) is not None]
        if not counts:
            raise absent(view, "a domain with this judge")
        return added(counts)

    return count


def _math(pick: Callable[[MathSeeds], Count]) -> Pick:
    return lambda one: pick(one.math) if isinstance(one.math, MathSeeds) else None


def _code(pick: Callable[[CodeSeeds], Count]) -> Pick:
    return lambda one: pick(one.code) if isinstance(one.code, CodeSeeds) else None


def _any_pass(code: CodeSeeds) -> Count:
    return Count(count=int(code.observed_any_pass), of=1)


def any_pass_planned(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    """Each code source under each condition once, whatever its number of draws."""
    outputs = domain_planned(TESTS)(loaded, tier, domains).of
    draws = len(loaded.protocol.grids[loaded.protocol.tier_grids[tier]].replicates)
    return Planned(outputs // draws, exact=True)


def _source(pick: Pick, planned: Callable[[LoadedProtocol, Tier, tuple[str, ...]], Planned]) -> Source:
    return Source((STATISTICS,), planned, _over_sources(pick))


SOURCES: Mapping[str, Source] = {
    "statistics.natural_eos": _source(lambda one: one.natural_eos, cells_planned),
    "statistics.truncated": _source(lambda one: one.truncated, cells_planned),
    "statistics.numeric_fixed_budget": _source(_math(lambda one: one.fixed_budget_exact), domain_planned(NUMBERS)),
    "statistics.numeric_strict": _source(_math(lambda one: one.strict_complete_exact), domain_planned(NUMBERS)),
    "statistics.code_fixed_budget": _source(_code(lambda one: one.passed), domain_planned(TESTS)),
    "statistics.code_strict": _source(_code(lambda one: one.strict_complete_passed), domain_planned(TESTS)),
    "statistics.observed_any_pass": _source(_code(_any_pass), any_pass_planned),
}
