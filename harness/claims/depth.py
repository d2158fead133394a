"""Counts of a trace (R05 depth 8-10) that may feed a figure."""

from collections.abc import Callable, Iterable, Mapping

from harness.claims.behavior import added
from harness.claims.source import REPLAY, RUN, STATISTICS, Planned, Source, absent, decided_by_run, edges_planned
from harness.claims.view import RunView
from harness.protocols.grids import denominators
from harness.protocols.load import LoadedProtocol
from harness.protocols.stages import expected_gates, expected_stages
from harness.records.depth import TraceCell
from harness.records.depth_ledger import DepthStatistics
from harness.records.ledger import Count
from harness.records.protocol import DepthProtocol, Tier

Digests = Callable[[TraceCell], Iterable[tuple[str, str]]]


def _statistics(view: RunView) -> DepthStatistics:
    if isinstance(view.statistics, DepthStatistics):
        return view.statistics
    raise absent(view, "statistics of a trace")


def _embedding(view: RunView) -> Count:
    return _statistics(view).embedding_exact_rows


def _outputs(view: RunView) -> Count:
    return added([one.units.output_ids_exact for one in _statistics(view).by_edge])


def _hidden(cell: TraceCell) -> Iterable[tuple[str, str]]:
    for one in cell.hidden:
        yield from ((f"{one.stage}.target", one.target.sha256), (f"{one.stage}.full", one.full.sha256))


def _routes(cell: TraceCell) -> Iterable[tuple[str, str]]:
    for one in cell.gates:
        yield from ((f"{one.gate}.target", one.target.routes_sha256), (f"{one.gate}.full", one.full.routes_sha256))


def _weights(cell: TraceCell) -> Iterable[tuple[str, str]]:
    for one in cell.gates:
        yield from ((f"{one.gate}.target", one.target.weights_sha256), (f"{one.gate}.full", one.full.weights_sha256))


def _replayed(digests: Digests) -> Callable[[RunView], Count]:
    """Digests of the replay that are the run's, of those that the replay's own grid has."""

    def count(view: RunView) -> Count:
        first, second = (_by_cell(run.units, digests) for run in (view.run, view.replay))
        keys = view.loaded.units(view.loaded.protocol.independent_replay.grid, view.spec.domains)
        cells = [(key.source_id, condition.id) for key in keys for condition in view.loaded.protocol.conditions]
        equal = [first.get(one, {}).get(name) == value for one in cells for name, value in second.get(one, {}).items()]
        return Count(count=sum(equal), of=len(equal))

    return count


def _by_cell(units: object, digests: Digests) -> dict[tuple[str, str], dict[str, str]]:
    listed = units if isinstance(units, tuple) else ()
    return {(unit.source_id, cell.condition): dict(digests(cell)) for unit in listed for cell in unit.cells}


def _per_cell(names: Callable[[LoadedProtocol], int]) -> Callable[[LoadedProtocol, Tier, tuple[str, ...]], Planned]:
    def planned(loaded: LoadedProtocol, _tier: Tier, domains: tuple[str, ...]) -> Planned:
        scopes = len(loaded.protocol.forward.scopes) if isinstance(loaded.protocol, DepthProtocol) else 0
        grid = loaded.protocol.independent_replay.grid
        return Planned(denominators(loaded.protocol, grid, len(domains)).cells * names(loaded) * scopes, exact=True)

    return planned


def _stages(loaded: LoadedProtocol) -> int:
    return len(expected_stages(loaded.profile.shape))


def _gates(loaded: LoadedProtocol) -> int:
    return len(expected_gates(loaded.profile.shape))


SOURCES: Mapping[str, Source] = {
    "statistics.embedding_exact_rows": Source((STATISTICS,), decided_by_run, _embedding),
    "statistics.output_ids_exact": Source((STATISTICS,), edges_planned, _outputs),
    "replay.hidden": Source((RUN, REPLAY), _per_cell(_stages), _replayed(_hidden)),
    "replay.routes": Source((RUN, REPLAY), _per_cell(_gates), _replayed(_routes)),
    "replay.weights": Source((RUN, REPLAY), _per_cell(_gates), _replayed(_weights)),
}
