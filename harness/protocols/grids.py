"""Grids as lists of identities: units (source x replicate) and rows (cells, edges), and their counts.

Everything that has a denominator gets it here. Joining is by identity, never by position.
"""

from dataclasses import dataclass

from harness.records.manifest import Denominators
from harness.records.profile import Profile
from harness.records.protocol import AnyProtocol, Gate, Grid, Protocol

REGISTRATION_FILES = ("protocol.toml", "manifest.json", "prompt_contract", "model_profile", "special_ids")


@dataclass(frozen=True, slots=True, order=True)
class UnitKey:
    """One batch: a source (by domain and rank within it) and a replicate."""

    domain: str
    index: int
    source_id: str
    replicate: str

    @property
    def name(self) -> str:
        """File-name form, unique within a grid: the ID's slashes become dashes."""
        return f"{self.domain}-{self.index:02d}-{self.source_id.replace('/', '-')}-{self.replicate}"


@dataclass(frozen=True, slots=True, order=True)
class RowKey:
    """What one gate row judges: a unit, and within it a condition or an edge; or a named whole."""

    unit: UnitKey | None
    item: str
    variant: str = ""

    @property
    def name(self) -> str:
        """The test ID's part: variant, source and condition or edge."""
        parts = [self.variant] if self.variant else []
        if self.unit is not None:
            parts += (
                [self.unit.source_id, self.unit.replicate] if self.unit.replicate != "greedy" else [self.unit.source_id]
            )
        return ":".join([*parts, self.item] if self.item else parts)


def grid_of(protocol: Protocol, name: str) -> Grid:
    """The named grid; an unknown name is misuse."""
    if name not in protocol.grids:
        raise RuntimeError(f"{protocol.id} has no grid {name!r}, only {sorted(protocol.grids)}")
    return protocol.grids[name]


def unit_keys(
    protocol: Protocol, sources: dict[tuple[str, int], str], grid: str, domains: tuple[str, ...]
) -> tuple[UnitKey, ...]:
    """The grid's units in running order: domain order, rank, replicate. `sources` maps (domain, index) to the ID."""
    chosen = grid_of(protocol, grid)
    return tuple(
        UnitKey(domain.name, index, sources[domain.name, index], replicate)
        for domain in protocol.domains
        if domain.name in domains
        for index in range(chosen.per_domain)
        for replicate in chosen.replicates
    )


def denominators(protocol: Protocol, grid: str, domains: int) -> Denominators:
    """Counts of a grid over that many domains."""
    chosen = grid_of(protocol, grid)
    sources = domains * chosen.per_domain
    units = sources * len(chosen.replicates)
    return Denominators(
        sources=sources,
        units=units,
        cells=units * len(protocol.conditions),
        edges=units * len(protocol.edges),
    )


def gate_rows(protocol: AnyProtocol, profile: Profile, gate: Gate, units: tuple[UnitKey, ...]) -> tuple[RowKey, ...]:
    """The rows that a gate judges on a grid whose units are given, in order."""
    cells = [RowKey(unit, condition.id) for unit in units for condition in protocol.conditions]
    match gate.rows:
        case "whole":
            return (RowKey(None, "whole"),)
        case "identities":
            return tuple(RowKey(None, name) for name in (*REGISTRATION_FILES, *(file.name for file in profile.files)))
        case "cells":
            return tuple(cells)
        case "units":
            return tuple(RowKey(unit, "") for unit in units)
        case "edges":
            return tuple(RowKey(unit, edge.id) for unit in units for edge in protocol.edges)
        case "variant_cells":
            names = [variant.id for variant in protocol.row_determinism.variants]
            return tuple(RowKey(cell.unit, cell.item, name) for name in names for cell in cells)
