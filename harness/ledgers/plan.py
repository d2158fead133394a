"""What a ledger must account for: the run's domains and units, in the protocol's order, exactly once each.

Every denominator of ledgers and statistics comes from here, and so from the protocol's grid, never from what is found.
"""

from collections.abc import Sequence
from typing import TypeVar

from harness.compare import TODO
from harness.errors import JournalError
from harness.protocols.grids import denominators, grid_places
from harness.records.protocol import Protocol
from harness.records.run import AssembledRun, BatchEvidence
from harness.records.sources import Domain

Unit = TypeVar("Unit", bound=BatchEvidence)
Place = tuple[str, int, str]


def require_protocol(protocol: Protocol, found: str, *, where: str) -> None:
    """JournalError unless a record names this protocol."""
    if found != protocol.id:
        raise JournalError(f"{where}: protocol", expected=protocol.id, found=found, todo=TODO)


def planned_domains(protocol: Protocol, names: tuple[str, ...]) -> tuple[Domain, ...]:
    """The named domains in the protocol's order; JournalError where one isn't registered or is named twice."""
    chosen = tuple(domain for domain in protocol.domains if domain.name in names)
    if len(chosen) != len(names):
        expected = f"different ones of {[domain.name for domain in protocol.domains]}"
        raise JournalError("run record: domains", expected=expected, found=str(list(names)), todo=TODO)
    return chosen


def units_per_domain(protocol: Protocol, grid: str) -> int:
    """Sources x replicates in a domain of a grid; JournalError where the grid isn't registered."""
    if grid not in protocol.grids:
        expected = f"one of {sorted(protocol.grids)}"
        raise JournalError("run record: grid", expected=expected, found=grid, todo=TODO)
    return denominators(protocol, grid, 1).units


def units_in_order(protocol: Protocol, run: AssembledRun, units: Sequence[Unit]) -> tuple[tuple[Domain, Unit], ...]:
    """The grid's units by identity (domain, index, replicate); JournalError unless the run holds each exactly once."""
    require_protocol(protocol, run.protocol, where="run record")
    domains = planned_domains(protocol, run.domains)
    units_per_domain(protocol, run.grid)
    places = grid_places(protocol, run.grid)
    planned = [(domain, index, replicate) for domain in domains for index, replicate in places]
    found = {(unit.domain, unit.index, unit.replicate): unit for unit in units}
    expected = {(domain.name, index, replicate) for domain, index, replicate in planned}
    if len(found) != len(units) or set(found) != expected:
        raise _not_the_grid(run, len(units), found=set(found), expected=expected)
    return tuple((domain, found[domain.name, index, replicate]) for domain, index, replicate in planned)


def _not_the_grid(run: AssembledRun, count: int, *, found: set[Place], expected: set[Place]) -> JournalError:
    lacking, foreign = sorted(expected - found), sorted(found - expected)
    return JournalError(
        f"run record: units of grid {run.grid}",
        expected=f"{len(expected)} units, each once",
        found=f"{count}, {len(found)} of them different; missing {lacking}, foreign {foreign}",
        todo=TODO,
    )
