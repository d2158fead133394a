"""Grids as lists of identities: units (source x replicate) and rows (cells, edges), and their counts.

Everything that has a denominator gets it here. Joining is by identity, never by position.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from harness.protocols.stages import expected_gates, expected_stages
from harness.records.manifest import Denominators
from harness.records.profile import Profile
from harness.records.protocol import (
    AnyProtocol,
    BehaviorProtocol,
    BlockedProtocol,
    DepthProtocol,
    Gate,
    GenerationProtocol,
    Grid,
    PairRule,
    Protocol,
    StudyDesign,
    Variant,
)
from harness.records.reaches import Rows
from harness.records.sources import Domain
from harness.records.study import NumberJudge
from harness.records.taped import GridBlock

# Replicates of protocols that have one only: not worth a word in every test ID.
SINGLE = ("greedy", "forward")
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
        """File-name form: the ID's slashes become dashes. That it's unique within a grid is checked at loading."""
        return f"{self.domain}-{self.index:02d}-{self.source_id.replace('/', '-')}-{self.replicate}"


@dataclass(frozen=True, slots=True, order=True)
class RowKey:
    """What one gate row judges: a unit, and within it a condition or an edge; or a named whole.

    `variant`: of several things of one condition which: the way of running, or a stage or gate with its scope.
    """

    unit: UnitKey | None
    item: str
    variant: str = ""

    @property
    def name(self) -> str:
        """The test ID's part: variant, source and condition or edge."""
        parts = [self.variant] if self.variant else []
        if self.unit is not None:
            parts += (
                [self.unit.source_id, self.unit.replicate]
                if self.unit.replicate not in (*SINGLE, "")
                else [self.unit.source_id]
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
    return tuple(
        UnitKey(domain.name, index, sources[domain.name, index], replicate)
        for domain in protocol.domains
        if domain.name in domains
        for index, replicate in grid_places(protocol, grid)
    )


def grid_places(protocol: Protocol, grid: str) -> tuple[tuple[int, str], ...]:
    """A grid's (rank, replicate) pairs within a domain, in running order: rank ascending, then the grid's replicates.

    The one place that says which of ranks x replicates a grid has: all, or those of its blocks (R08 5.2).
    """
    chosen, blocks = grid_of(protocol, grid), grid_blocks(protocol, grid)
    every = tuple((index, replicate) for index in range(chosen.per_domain) for replicate in chosen.replicates)
    if not blocks:
        return every
    listed = {pair for block in blocks for pair in product(block.indices, block.replicates)}
    return tuple(pair for pair in every if pair in listed)


def grid_blocks(protocol: Protocol, grid: str) -> tuple[GridBlock, ...]:
    """The registered blocks of a grid; none where the protocol's grids are whole products."""
    return protocol.grid_blocks[grid] if isinstance(protocol, BlockedProtocol) else ()


def denominators(protocol: Protocol, grid: str, domains: int) -> Denominators:
    """Counts of a grid over that many domains."""
    places = grid_places(protocol, grid)
    units = domains * len(places)
    return Denominators(
        sources=domains * len({index for index, _ in places}),
        units=units,
        cells=units * len(protocol.conditions),
        edges=units * len(protocol.edges),
    )


def gate_rows(protocol: AnyProtocol, profile: Profile, gate: Gate, units: tuple[UnitKey, ...]) -> tuple[RowKey, ...]:
    """The rows that a gate judges on a grid whose units are given, in order."""
    executed_domains = {domain.name for domain in protocol.domains if is_executed(domain)}
    executed = tuple(unit for unit in units if unit.domain in executed_domains)
    identities = (*REGISTRATION_FILES, *(file.name for file in profile.files))
    rows: dict[Rows, Callable[[], tuple[RowKey, ...]]] = {
        "whole": lambda: (RowKey(None, "whole"),),
        "identities": lambda: tuple(RowKey(None, name) for name in identities),
        "prompts": lambda: _prompts(protocol, units),
        "cells": lambda: _cells(protocol, units),
        "executed_cells": lambda: _cells(protocol, executed),
        "units": lambda: tuple(RowKey(unit, "") for unit in units),
        "executed_units": lambda: tuple(RowKey(unit, "") for unit in executed),
        "edges": lambda: tuple(RowKey(unit, edge.id) for unit in units for edge in protocol.edges),
        "variant_cells": lambda: tuple(
            RowKey(cell.unit, cell.item, variant.id)
            for variant in _variants(protocol)
            for cell in _cells(protocol, units)
        ),
        "stage_digests": lambda: _digests(protocol, units, expected_stages(profile.shape)),
        "gate_digests": lambda: _digests(protocol, units, expected_gates(profile.shape)),
    }
    return rows[gate.rows]()  # only the kind that is asked for: the digests of a formal grid are thousands


def _digests(protocol: AnyProtocol, units: tuple[UnitKey, ...], names: tuple[str, ...]) -> tuple[RowKey, ...]:
    """Each stage or gate of each cell, in each scope; none where the protocol traces nothing."""
    scopes = protocol.forward.scopes if isinstance(protocol, DepthProtocol) else ()
    return tuple(
        RowKey(cell.unit, cell.item, digest_variant(name, scope))
        for cell in _cells(protocol, units)
        for name in names
        for scope in scopes
    )


def digest_variant(name: str, scope: str) -> str:
    """What a row of one stage's or gate's digest in one scope is called within its cell."""
    return f"{name}.{scope}"


def _cells(protocol: AnyProtocol, units: tuple[UnitKey, ...]) -> tuple[RowKey, ...]:
    return tuple(RowKey(unit, condition.id) for unit in units for condition in protocol.conditions)


def _prompts(protocol: AnyProtocol, units: tuple[UnitKey, ...]) -> tuple[RowKey, ...]:
    """Each source x condition once, whatever the replicates: a prompt is the same under all of them."""
    sources = {unit.source_id: replace(unit, replicate="") for unit in units}
    return _cells(protocol, tuple(sources.values()))


def is_executed(domain: Domain) -> bool:
    """Whether the domain's outputs are programs that its gold tests judge: its gold fields say so, not its name."""
    return {"entry_point", "test"} <= set(domain.gold)


def number_field(protocol: Protocol, domain: Domain) -> str | None:
    """The gold field whose number a domain's outputs are compared with; None where no number is judged.

    A study's judge names it; elsewhere it is `answer`: gold fields say how a domain is judged, never its name.
    """
    if isinstance(protocol, StudyDesign):
        numbers = (judge for judge in protocol.evaluators.judges if isinstance(judge, NumberJudge))
        return next((judge.field for judge in numbers if judge.domain == domain.name), None)
    return "answer" if "answer" in domain.gold else None


def executed_grid(protocol: Protocol, grid: str) -> bool:
    """Whether the programs of a run over this grid are executed: a gate judges their verdicts."""
    return any(
        gate.rows == "executed_cells" and at.grid == grid for gate in protocol.gates for at in gate.tiers.values()
    )


def placement_rule(protocol: AnyProtocol) -> PairRule:
    """The two placements that must give the same cells; a protocol that registers none is misuse."""
    if isinstance(protocol, GenerationProtocol):
        return protocol.placement_equivalence
    raise RuntimeError(f"{protocol.id} registers no placement equivalence")


def _variants(protocol: AnyProtocol) -> tuple[Variant, ...]:
    return protocol.row_determinism.variants if isinstance(protocol, BehaviorProtocol) else ()
