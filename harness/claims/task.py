"""Counts of tasks under tapes (R08 7, 8) that may feed a figure: of the primary tasks, never of tasks x tapes."""

from collections.abc import Callable, Iterable, Mapping

from harness.claims.behavior import added
from harness.claims.source import STATISTICS, Planned, Source, absent
from harness.claims.view import RunView
from harness.protocols.grids import grid_blocks
from harness.protocols.load import LoadedProtocol
from harness.records.ledger import Count
from harness.records.protocol import TaskCrnProtocol, Tier
from harness.records.task_ledger import TaskStatistics

OUTCOMES = 3  # success, natural EOS, length: a contrast has a value of each


def _over(pick: Callable[[TaskStatistics], Iterable[Count]]) -> Callable[[RunView], Count]:
    def count(view: RunView) -> Count:
        if not isinstance(view.statistics, TaskStatistics):
            raise absent(view, "statistics of a complete formal run of tasks")
        return added(list(pick(view.statistics)))

    return count


def _banded(numbers: TaskStatistics) -> Iterable[Count]:
    """Primary contrasts whose band has the registered name."""
    return [Count(count=int(one.band.name == numbers.bootstrap.name), of=1) for one in numbers.contrasts]


def _agreeing(numbers: TaskStatistics) -> Iterable[Count]:
    return [Count(count=int(one.agree), of=1) for domain in numbers.diagnostics for one in domain.directions]


def _primary(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> int:
    """Tasks of the primary block, over the domains."""
    blocks = grid_blocks(loaded.protocol, loaded.protocol.tier_grids[tier])
    return len(domains) * sum(len(one.indices) * len(one.replicates) for one in blocks if one.role == "primary")


def _cells(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    return Planned(_primary(loaded, tier, domains) * len(loaded.protocol.conditions), exact=True)


def _pairs(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    return Planned(_primary(loaded, tier, domains) * _contrasts(loaded), exact=True)


def _summaries(loaded: LoadedProtocol, _tier: Tier, domains: tuple[str, ...]) -> Planned:
    return Planned(len(domains) * _contrasts(loaded) * OUTCOMES, exact=True)


def _contrasts(loaded: LoadedProtocol) -> int:
    return len(loaded.protocol.contrasts) if isinstance(loaded.protocol, TaskCrnProtocol) else 0


SOURCES: Mapping[str, Source] = {
    "statistics.success": Source((STATISTICS,), _cells, _over(lambda one: [row.success for row in one.conditions])),
    "statistics.strict_complete": Source(
        (STATISTICS,), _cells, _over(lambda one: [row.strict_complete for row in one.conditions])
    ),
    "statistics.natural_eos": Source(
        (STATISTICS,), _cells, _over(lambda one: [row.natural_eos for row in one.conditions])
    ),
    "statistics.diverged": Source((STATISTICS,), _pairs, _over(lambda one: [row.diverged for row in one.pairs])),
    "statistics.banded": Source((STATISTICS,), _summaries, _over(_banded)),
    "statistics.directions_agree": Source((STATISTICS,), _summaries, _over(_agreeing)),
}
