"""Counts of a study that may feed a figure: over all cells, of a domain, of a condition, of both, and along its edges.

`statistics.<measure>`, followed by `.<domain>`, `.<condition>` or `.<domain>.<condition>`, where an edge has
`statistics.<measure>.<edge>`. Which there are follows from the protocol alone.
"""

from collections.abc import Callable, Iterator, Mapping

from harness.claims.source import STATISTICS, Planned, Source, absent
from harness.claims.view import RunView
from harness.protocols.check_study import judge_of
from harness.protocols.grids import denominators
from harness.protocols.load import LoadedProtocol
from harness.records.ledger import Count, NotObserved
from harness.records.protocol import StudyProtocol, Tier
from harness.records.study_ledger import PairedOutcomes, StudyEdgeGroup, StudyStatistics, StudySummary

ALL = ""
Pick = Callable[[StudySummary], Count | NotObserved]
EdgePick = Callable[[StudyEdgeGroup], Count | NotObserved]

# Of all cells of a group.
CELLS: Mapping[str, Pick] = {
    "natural_eos": lambda one: one.natural_eos,
    "budget_truncated": lambda one: one.budget_truncated,
    "other_stop": lambda one: one.other_stop,
}
# Of the cells whose domain has a judge.
JUDGED: Mapping[str, Pick] = {"succeeded": lambda one: one.succeeded}


def _paired(pick: Callable[[PairedOutcomes], Count]) -> EdgePick:
    return lambda one: pick(one.succeeded) if isinstance(one.succeeded, PairedOutcomes) else one.succeeded


EDGES: Mapping[str, EdgePick] = {"ids_exact": lambda one: one.units.ids_exact}
JUDGED_EDGES: Mapping[str, EdgePick] = {
    "left_only": _paired(lambda one: one.left_only),
    "right_only": _paired(lambda one: one.right_only),
}


def study_sources(protocol: StudyProtocol) -> dict[str, Source]:
    """Every source of the study by name."""
    domains = [domain.name for domain in protocol.domains]
    judged = [name for name in domains if judge_of(protocol, name) is not None]
    found = dict(_group_sources(protocol, CELLS, domains))
    found |= dict(_group_sources(protocol, JUDGED, judged)) if judged else {}
    found |= dict(_edge_sources(protocol, EDGES, domains))
    return found | (dict(_edge_sources(protocol, JUDGED_EDGES, judged)) if judged else {})


def _group_sources(
    protocol: StudyProtocol, picks: Mapping[str, Pick], domains: list[str]
) -> Iterator[tuple[str, Source]]:
    conditions = [condition.id for condition in protocol.conditions]
    for measure, pick in picks.items():
        for domain in (ALL, *domains):
            for condition in (ALL, *conditions):
                name = ".".join(part for part in ("statistics", measure, domain, condition) if part)
                counted = [domain] if domain else domains
                share = 1 if condition else len(conditions)
                yield name, Source((STATISTICS,), _planned(counted, share), _in_group(domain, condition, pick))


def _edge_sources(
    protocol: StudyProtocol, picks: Mapping[str, EdgePick], domains: list[str]
) -> Iterator[tuple[str, Source]]:
    for measure, pick in picks.items():
        for edge in protocol.edges:
            for domain in (ALL, *domains):
                name = ".".join(part for part in ("statistics", measure, domain, edge.id) if part)
                counted = [domain] if domain else domains
                yield name, Source((STATISTICS,), _planned(counted, 1), _on_edge(domain, edge.id, pick))


def _planned(domains: list[str], rows: int) -> Callable[[LoadedProtocol, Tier, tuple[str, ...]], Planned]:
    """So many rows of each unit of these domains."""

    def planned(loaded: LoadedProtocol, tier: Tier, ran: tuple[str, ...]) -> Planned:
        counted = [name for name in domains if name in ran]
        units = denominators(loaded.protocol, loaded.protocol.tier_grids[tier], len(counted)).units
        return Planned(units * rows, exact=True)

    return planned


def _statistics(view: RunView) -> StudyStatistics:
    if isinstance(view.statistics, StudyStatistics):
        return view.statistics
    raise absent(view, "statistics of a study")


def _in_group(domain: str, condition: str, pick: Pick) -> Callable[[RunView], Count]:
    def count(view: RunView) -> Count:
        groups = [one for one in _statistics(view).groups if (one.domain, one.condition) == (domain, condition)]
        return _counted(view, [pick(one.cells) for one in groups])

    return count


def _on_edge(domain: str, edge: str, pick: EdgePick) -> Callable[[RunView], Count]:
    def count(view: RunView) -> Count:
        groups = [one for one in _statistics(view).edges if (one.domain, one.edge) == (domain, edge)]
        return _counted(view, [pick(one) for one in groups])

    return count


def _counted(view: RunView, found: list[Count | NotObserved]) -> Count:
    if len(found) != 1:
        raise absent(view, "one such group")
    if isinstance(found[0], NotObserved):
        raise absent(view, found[0].reason)
    return Count(count=found[0].count, of=found[0].of)
