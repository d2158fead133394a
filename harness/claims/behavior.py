"""Counts of a behaviour run (R04 5) that may feed a figure."""

from collections.abc import Callable, Mapping

from harness.claims.source import STATISTICS, Planned, Source, absent, cells_planned, edges_planned
from harness.claims.view import RunView
from harness.protocols.grids import denominators
from harness.protocols.load import LoadedProtocol
from harness.records.ledger import CellSummary, Count, NumberSummary, Statistics, SyntaxSummary
from harness.records.protocol import Tier


def _statistics(view: RunView) -> Statistics:
    if isinstance(view.statistics, Statistics):
        return view.statistics
    raise absent(view, "statistics of a behaviour run")


def added(counts: list[Count]) -> Count:
    """Several counts as one."""
    return Count(count=sum(one.count for one in counts), of=sum(one.of for one in counts))


def _over_domains(pick: Callable[[CellSummary], Count | None]) -> Callable[[RunView], Count]:
    def count(view: RunView) -> Count:
        found = [pick(one.cells) for one in _statistics(view).by_domain]
        counts = [one for one in found if one is not None]
        if not counts:
            raise absent(view, "a domain with this observation")
        return added(counts)

    return count


def _exact_edges(view: RunView) -> Count:
    return added([one.units.ids_exact for one in _statistics(view).by_edge])


def domain_planned(fields: frozenset[str]) -> Callable[[LoadedProtocol, Tier, tuple[str, ...]], Planned]:
    """The cells of the domains that register these gold fields."""

    def planned(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
        judged = [one for one in loaded.protocol.domains if one.name in domains and fields <= set(one.gold)]
        grid = loaded.protocol.tier_grids[tier]
        return Planned(denominators(loaded.protocol, grid, len(judged)).cells, exact=True)

    return planned


def _match(cells: CellSummary) -> Count | None:
    return cells.number.last_number_match if isinstance(cells.number, NumberSummary) else None


def _parses(cells: CellSummary) -> Count | None:
    return cells.syntax.ast_parses if isinstance(cells.syntax, SyntaxSummary) else None


NUMBERS, TESTS = frozenset({"answer"}), frozenset({"entry_point", "test"})
SOURCES: Mapping[str, Source] = {
    "statistics.natural_eos": Source((STATISTICS,), cells_planned, _over_domains(lambda one: one.natural_eos)),
    "statistics.truncated": Source((STATISTICS,), cells_planned, _over_domains(lambda one: one.truncated)),
    "statistics.ids_exact": Source((STATISTICS,), edges_planned, _exact_edges),
    "statistics.last_number_match": Source((STATISTICS,), domain_planned(NUMBERS), _over_domains(_match)),
    "statistics.ast_parses": Source((STATISTICS,), domain_planned(TESTS), _over_domains(_parses)),
}
