"""The gates of a study, with the denominators that its grids give."""

from typing import Any

from harness.protocols.grids import gate_rows, unit_keys
from harness.protocols.study_gates import Row, grid_of, registered_rows
from harness.records.profile import Profile
from harness.records.protocol import Gate, GateGrid, RegisteredStudy


def study_gates(protocol: RegisteredStudy, profile: Profile) -> list[dict[str, Any]]:
    """The gates as plain data; `protocol` is the study without any."""
    return [_gate(protocol, profile, row) for row in registered_rows(protocol)]


def _gate(protocol: RegisteredStudy, profile: Profile, row: Row) -> dict[str, Any]:
    name, reach, rows, clause, tiers = row
    grids = {tier: grid_of(protocol, reach, tier) for tier in tiers}
    return {
        "id": name,
        "clause": f"study: {clause}",
        "reach": reach,
        "rows": rows,
        "tiers": {tier: {"grid": grid, "count": _count(protocol, profile, row, grid)} for tier, grid in grids.items()},
    }


def _count(protocol: RegisteredStudy, profile: Profile, row: Row, grid: str) -> int:
    """Rows of the gate on a grid; the sources' names don't matter to it."""
    name, reach, rows, clause, _ = row
    gate = Gate(id=name, clause=clause, reach=reach, rows=rows, tiers={"smoke": GateGrid(grid=grid, count=0)})  # type: ignore[arg-type]
    domains = tuple(domain.name for domain in protocol.domains)
    ranks = range(protocol.grids[grid].per_domain)
    sources = {(domain, rank): f"{domain}-{rank}" for domain in domains for rank in ranks}
    return len(gate_rows(protocol, profile, gate, unit_keys(protocol, sources, grid, domains)))
