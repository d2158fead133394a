"""Named sources: the closed vocabulary of counts that may feed a figure, and what every kind of protocol has.

A source says what it is a count of before any run is there, so that a threshold can be held against the grids.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harness.checks.sampling import replay_exact
from harness.checks.taped_replay import replay_exact as taped_exact
from harness.claims.view import RunView
from harness.errors import JournalError
from harness.evidence import RunEvidence, guarded
from harness.journal.assemble import units_by_key
from harness.protocols.grids import RowKey, denominators, gate_rows
from harness.protocols.load import LoadedProtocol
from harness.records.kinds import AnyUnit
from harness.records.ledger import Count
from harness.records.protocol import Gate, PairRule, Tier
from harness.records.sampling import SampledEvidence
from harness.records.taped_study import TapedUnit

RUN, LEDGER, STATISTICS, AUDIT, REPLAY = "run.json", "ledger.json", "statistics.json", "audit.json", "replay/run.json"


@dataclass(frozen=True, slots=True)
class Planned:
    """A denominator that follows from the protocol; or, where `exact` is false, one that a run decides."""

    of: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A count by name. `planned` over a tier's grid and domains; `reads`: the files of the run folder it rests on."""

    reads: tuple[str, ...]
    planned: Callable[[LoadedProtocol, Tier, tuple[str, ...]], Planned]
    count: Callable[[RunView], Count]
    diagnostic: bool = False


def cells_planned(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    """Every cell of the tier's grid."""
    return Planned(denominators(loaded.protocol, loaded.protocol.tier_grids[tier], len(domains)).cells, exact=True)


def edges_planned(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    """Every edge of every unit of the tier's grid."""
    return Planned(denominators(loaded.protocol, loaded.protocol.tier_grids[tier], len(domains)).edges, exact=True)


def decided_by_run(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
    """A denominator that no protocol registers: which cells completed, how many tokens a text has."""
    return Planned(cells_planned(loaded, tier, domains).of, exact=False)


def replay_planned(loaded: LoadedProtocol, _tier: Tier, domains: tuple[str, ...]) -> Planned:
    """The cells of the replay's own grid, never those of the run."""
    return Planned(
        denominators(loaded.protocol, loaded.protocol.independent_replay.grid, len(domains)).cells, exact=True
    )


def gate_source(gate: Gate) -> Source:
    """`audit.<gate>`: rows passed of rows that the protocol registers."""

    def planned(loaded: LoadedProtocol, tier: Tier, domains: tuple[str, ...]) -> Planned:
        if tier not in gate.tiers:
            return Planned(0, exact=True)
        units = loaded.units(gate.tiers[tier].grid, domains)
        return Planned(len(gate_rows(loaded.protocol, loaded.profile, gate, units)), exact=True)

    def count(view: RunView) -> Count:
        account = view.gates.get(gate.id)
        if account is None:
            raise _absent(view, f"an account of gate {gate.id}", "none: it wasn't judged")
        return Count(count=account.passed, of=account.registered)

    return Source((AUDIT,), planned, count)


def replayed_cells(view: RunView) -> Count:
    """Cells of the replay that agree with the run's on every registered field, of the cells of the replay's grid."""
    rule = view.loaded.protocol.independent_replay
    if not isinstance(rule, PairRule):
        raise _absent(view, "a replay of generated cells", "a replay of traces")
    first, second = units_by_key(view.run.units), units_by_key(view.replay.units)
    planned = [
        (key.source_id, key.replicate, condition.id)
        for key in view.loaded.units(rule.grid, view.spec.domains)
        for condition in view.loaded.protocol.conditions
    ]
    if any(isinstance(unit, TapedUnit) for unit in first.values()):
        return _replayed_under_tapes(view, rule)
    equal = sum(_same(first.get(one[:2]), second.get(one[:2]), one[2], rule.fields) for one in planned)
    return Count(count=equal, of=len(planned))


def _replayed_under_tapes(view: RunView, rule: PairRule) -> Count:
    """The same of cells under tapes, some of whose fields are the run's own: its weights, its contract."""
    one, other = (RunEvidence(view.loaded, at, verified=True) for at in (view.folder, view.folder.part("replay")))
    rows = [
        RowKey(key, condition.id)
        for key in view.loaded.units(rule.grid, view.spec.domains)
        for condition in view.loaded.protocol.conditions
    ]
    equal = sum(not guarded(lambda _, row: taped_exact(one, other, row, rule.fields), None, row) for row in rows)
    return Count(count=equal, of=len(rows))


def _same(one: AnyUnit | None, other: AnyUnit | None, condition: str, fields: tuple[str, ...]) -> bool:
    """Every registered field of a cell; of a sampled unit also its seed and the states before its draws."""
    if isinstance(one, SampledEvidence) and isinstance(other, SampledEvidence):
        return not replay_exact(one, other, condition, fields)
    cells = [[cell for cell in unit.cells if cell.condition == condition] for unit in (one, other) if unit is not None]
    if [len(found) for found in cells] != [1, 1] or "generated_ids" not in fields:
        return False
    return all(getattr(cells[0][0], name) == getattr(cells[1][0], name) for name in fields)


def _absent(view: RunView, expected: str, found: str) -> JournalError:
    return JournalError(str(view.folder.path), expected=expected, found=found, todo="Run the protocol's formal tier.")


def absent(view: RunView, what: str) -> JournalError:
    """What a source raises whose count this run doesn't have."""
    return _absent(view, what, "nothing of the kind in this run's statistics")


def common_sources(loaded: LoadedProtocol) -> dict[str, Source]:
    """What every kind has: an account of each registered gate, and the replay's cells where cells are replayed."""
    found = {f"audit.{gate.id}": gate_source(gate) for gate in loaded.protocol.gates}
    if isinstance(loaded.protocol.independent_replay, PairRule):
        found["replay.cells"] = Source((RUN, REPLAY), replay_planned, replayed_cells)
    return found
