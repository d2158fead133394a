"""The comparison of two sides as one record: cells joined by identity, and everything else that differs beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.difference.facts import facts
from harness.difference.frozen import frozen_side
from harness.difference.judges import judged_by
from harness.difference.outputs import cut, has_verdict, output_fields, output_pair
from harness.difference.runs import run_side
from harness.difference.side import Side, SideUnit
from harness.difference.tokens import Decoders
from harness.difference.traces import trace_fields, trace_pair
from harness.errors import ComparisonError
from harness.places import Places, places, places_of_run
from harness.protocols.grids import UnitKey
from harness.records.difference import (
    CellGroup,
    CellPair,
    ComparedSide,
    LoneCell,
    OutputPair,
    SideComparison,
    SideName,
    TracePair,
)
from harness.records.ledger import Count
from harness.records.protocol import DepthProtocol
from harness.snapshots.environments import tensors_apart
from harness.snapshots.store import FROZEN_TIER

RUN_FILE, FROZEN_FILE = "spec.json", "index.json"
NAME_TWO = "Name two run folders, or frozen results (snapshots/PROTOCOL), of one family of protocols."


def compare_sides(
    one: Path, other: Path, *, checkpoint: Path | None = None, tree: Places | None = None
) -> SideComparison:
    """The comparison of two folders; HarnessError where one can't be read or the two can't be compared.

    `checkpoint`: where a tokenizer is looked for that the tree doesn't hold.
    """
    return comparison(*read_sides(one, other, tree=tree), checkpoint=checkpoint)


def read_sides(one: Path, other: Path, *, tree: Places | None = None) -> tuple[Side, Side]:
    """Two folders as sides of one family; HarnessError where one can't be read or they can't be compared."""
    folders = [_folder(path) for path in (one, other)]
    if folders[0].samefile(folders[1]):
        found = f"one folder twice, {folders[0].name}"
        raise ComparisonError(f"{one} and {other}", expected="two things", found=found, todo=NAME_TWO)
    tree = tree or places()
    a, b = (_side(path, beside, tree) for path, beside in (folders, folders[::-1]))
    if a.family != b.family:
        where = f"{a.name} and {b.name}"
        raise ComparisonError(where, expected="one kind of protocol", found=f"{a.family} and {b.family}", todo=NAME_TWO)
    return a, b


def comparison(a: Side, b: Side, *, checkpoint: Path | None = None) -> SideComparison:
    """The comparison of two sides; ComparisonError where they have no cell in common."""
    return _Pair(a, b, checkpoint).record()


def _folder(path: Path) -> Path:
    """The folder that a path means, links followed: a run, or the formal folder of frozen results."""
    try:
        folder = path.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise ComparisonError(str(path), expected="a folder", found=str(error), todo=NAME_TWO) from error
    if (folder / RUN_FILE).is_file():
        return folder
    named = next((one for one in (folder, folder / FROZEN_TIER) if (one / FROZEN_FILE).is_file()), None)
    if named is None:
        found = "neither" if folder.is_dir() else "no such folder"
        expected = f"a run folder ({RUN_FILE}) or frozen results ({FROZEN_FILE})"
        raise ComparisonError(str(path), expected=expected, found=found, todo=NAME_TWO)
    return named


def _side(path: Path, beside: Path, tree: Places) -> Side:
    """Frozen results hold no protocol: an author's own may be the one that the run beside them keeps a copy of."""
    if (path / RUN_FILE).is_file():
        return run_side(path, tree)
    return frozen_side(path, places_of_run(beside, tree))


@dataclass(frozen=True)
class _Pair:
    a: Side
    b: Side
    checkpoint: Path | None

    def record(self) -> SideComparison:
        """Everything; ComparisonError where the sides have no cell in common."""
        cells, lone = tuple(self._cells()), (*self._lone("a", self.a, self.b), *self._lone("b", self.b, self.a))
        if not cells:
            where, found = f"{self.a.name} and {self.b.name}", f"{len(lone)} cells, none on both sides"
            raise ComparisonError(where, expected="cells in common", found=found, todo=NAME_TWO)
        equal = sum(cell.equal for cell in cells)
        same = equal == len(cells) and not any(one.missing for one in lone) and not self.nowhere
        return SideComparison(
            schema=1,
            verdict="equal" if same else "different",
            a=_said(self.a),
            b=_said(self.b),
            budget=self.budget,
            whole=self.whole,
            equal=Count(count=equal, of=len(cells)),
            shared_units=Count(count=sum(map(self._shared, self.common)), of=len(self.common)),
            groups=tuple(_groups(cells)),
            facts=facts(self.a, self.b, self.common),
            judged_by=judged_by(self.a, self.b),
            not_compared=tuple(self._not_compared()),
            lone=lone,
            cells=cells,
        )

    @cached_property
    def common(self) -> list[tuple[SideUnit, SideUnit]]:
        """The units that both sides have, in the running order of A's grid: domain, rank, replicate as listed."""
        kind = self.a.registered.kind
        domains = {domain.name: at for at, domain in enumerate(kind.domains)}
        grid = kind.grids.get(self.a.grid)
        replicates = {name: at for at, name in enumerate(grid.replicates if grid else ())}

        def place(pair: tuple[SideUnit, SideUnit]) -> tuple[int, int, int, UnitKey]:
            key = pair[0].key
            last = len(domains), len(replicates)
            return domains.get(key.domain, last[0]), key.index, replicates.get(key.replicate, last[1]), key

        pairs = [(unit, self.b.units[name]) for name, unit in self.a.units.items() if name in self.b.units]
        return sorted(pairs, key=place)

    @cached_property
    def nowhere(self) -> int:
        """Cells that both grids have, and neither side: both ended early."""
        here = {
            (*unit.identity, name) for side in (self.a, self.b) for unit in side.units.values() for name in unit.cells
        }
        return len(((self.a.planned or frozenset()) & (self.b.planned or frozenset())) - here)

    @property
    def budget(self) -> int:
        """Tokens of a cell that both sides could generate."""
        return min(self.a.budget, self.b.budget)

    @property
    def whole(self) -> bool:
        """Outputs are compared whole."""
        return self.a.budget == self.b.budget

    @property
    def traced(self) -> bool:
        """The sides are traces."""
        return isinstance(self.a.registered.kind, DepthProtocol)

    @cached_property
    def no_tensors(self) -> str:
        """Why tensor digests aren't compared; empty where they are."""
        if self.a.environment is None or self.b.environment is None:
            return "a side doesn't hold the environment that its digests belong to"
        if any(unit.tensors is None for pair in self.common for unit in pair):
            return "a side holds none of a unit"
        apart = tensors_apart(self.a.environment, self.b.environment)
        named = "; ".join(f"{name}: {one} and {other}" for name, one, other in apart)
        return f"they belong to two environments ({named})" if apart else ""

    @cached_property
    def decoders(self) -> Decoders:
        """Of both sides."""
        return Decoders((self.a, self.b), self.checkpoint)

    def _cells(self) -> Iterator[CellPair]:
        """Every cell that both sides have."""
        for a, b in self.common:
            yield from (self._cell(a, b, name) for name in a.cells if name in b.cells)

    def _cell(self, a: SideUnit, b: SideUnit, condition: str) -> CellPair:
        if self.traced:
            tensors = not self.no_tensors
            differing = tuple(trace_fields(a, b, condition, tensors=tensors, edges=self._edges))
            return _cell_pair(a, condition, differing, trace_pair(a, b, condition, tensors=tensors))
        cuts = cut(a.cells[condition], self.budget), cut(b.cells[condition], self.budget)
        fields = tuple(output_fields(a, b, condition, cuts, whole=self.whole))
        return _cell_pair(a, condition, fields, output_pair(*cuts, self.decoders))

    @cached_property
    def _edges(self) -> Mapping[str, tuple[str, str]]:
        return {edge.id: (edge.left, edge.right) for edge in self.a.registered.kind.edges}

    def _lone(self, name: SideName, has: Side, lacks: Side) -> Iterator[LoneCell]:
        """Cells of one side alone. Missing: the other's grid has them, or nobody says what its grid has."""
        for unit in sorted(has.units.values(), key=lambda one: one.key):
            there = lacks.units.get(unit.identity)
            for condition in (one for one in unit.cells if there is None or one not in there.cells):
                planned = lacks.planned is None or (*unit.identity, condition) in lacks.planned
                yield LoneCell(
                    side=name,
                    domain=unit.key.domain,
                    source_id=unit.key.source_id,
                    replicate=unit.key.replicate,
                    condition=condition,
                    missing=planned,
                )

    def _shared(self, pair: tuple[SideUnit, SideUnit]) -> bool:
        """One call made the unit on both sides; of frozen results, the accepted run's own process did."""
        a, b = pair
        if a.call and b.call:
            return a.call == b.call
        if a.origin or b.origin:
            return a.origin in self.b.origins or b.origin in self.a.origins
        return bool(self.a.origins & self.b.origins)

    def _not_compared(self) -> Iterator[str]:
        """What one would expect to be compared and isn't, each with its reason."""
        if self.nowhere:
            yield f"{self.nowhere} cells that both grids have: neither side has them"
        if self.traced and self.no_tensors:
            yield f"tensor digests after the embedding: {self.no_tensors}"
        if not self.traced:
            yield from self._outputs_not_compared()
        if self.a.environment is None or self.b.environment is None:
            same = self.a.environment_sha256 == self.b.environment_sha256
            if not same:
                yield "fields of the environment: frozen results hold its digest alone"
        if self.a.placement is None or self.b.placement is None:
            yield "placement: frozen results hold none"
        if self.a.checkpoint is None or self.b.checkpoint is None:
            yield "checkpoint: the profile that pins it isn't at hand"

    def _outputs_not_compared(self) -> Iterator[str]:
        if not self.whole:
            budgets = f"budgets {self.a.budget} and {self.b.budget}"
            yield f"tokens after {self.budget}, texts, accounts and verdicts: {budgets}"
            return
        for name, side in (("A", self.a), ("B", self.b)):
            lacking = [unit for unit in side.units.values() if not unit.accounts]
            if lacking:
                yield f"accounts and verdicts: {name} has no ledger"
                return
        codes = [(a, b, name) for a, b in self.common for name in a.cells if name in {**a.verdicts, **b.verdicts}]
        judged = sum(has_verdict(a, name) and has_verdict(b, name) for a, b, name in codes)
        if judged < len(codes):
            yield f"verdicts on programs of {len(codes) - judged} of {len(codes)} cells: a side has none"


def _cell_pair(unit: SideUnit, condition: str, fields: tuple[str, ...], found: OutputPair | TracePair) -> CellPair:
    return CellPair(
        domain=unit.key.domain,
        index=unit.key.index,
        source_id=unit.key.source_id,
        replicate=unit.key.replicate,
        condition=condition,
        equal=not fields,
        fields=fields,
        found=found,
    )


def _said(side: Side) -> ComparedSide:
    return ComparedSide(
        kind=side.kind,
        name=side.name,
        family=side.family,
        protocol=side.protocol,
        protocol_digest=side.digest,
        tier=side.tier,
        grid=side.grid,
        budget=side.budget,
        run_sha256=side.run_sha256,
        environment_sha256=side.environment_sha256,
        port=side.port,
        state=side.state,
        units=len(side.units),
        cells=sum(len(unit.cells) for unit in side.units.values()),
    )


def _groups(cells: tuple[CellPair, ...]) -> Iterator[CellGroup]:
    """Each domain, then each condition, in the order of the cells."""
    for domain in dict.fromkeys(cell.domain for cell in cells):
        equal = [cell.equal for cell in cells if cell.domain == domain]
        yield CellGroup(domain=domain, condition="", equal=Count(count=sum(equal), of=len(equal)))
    for name in dict.fromkeys(cell.condition for cell in cells):
        equal = [cell.equal for cell in cells if cell.condition == name]
        yield CellGroup(domain="", condition=name, equal=Count(count=sum(equal), of=len(equal)))
