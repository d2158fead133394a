"""Where two compared sides part: the first differing cell in the grid's order, and the one that parts earliest."""

from harness.difference.side import Side, SideUnit
from harness.errors import ComparisonError
from harness.explain.aspects import Cell, aspects
from harness.explain.tape import tape_step
from harness.records.difference import CellPair, OutputPair, Parting, SideComparison
from harness.records.explanation import Divergence, NoDivergence
from harness.records.ledger import Count

Named = tuple[str, str, str]  # source, replicate, condition


def step_of(cell: CellPair) -> int | None:
    """The step in which a cell's tokens part; None where they don't, or where it is a trace."""
    found = cell.found
    return found.parting.step if isinstance(found, OutputPair) and isinstance(found.parting, Parting) else None


def divergence(sides: tuple[Side, Side], compared: SideComparison, named: Named | None) -> Divergence | NoDivergence:
    """The differing cells' first and earliest, and what the records say of the explained one: `named`, or the earliest.

    ComparisonError where the named cell isn't one of both sides, or is equal.
    """
    differing = [cell for cell in compared.cells if not cell.equal]
    explained = _named(compared, named) if named else None
    if not differing:
        return NoDivergence()
    parting = [(step, at) for at, cell in enumerate(differing) if (step := step_of(cell)) is not None]
    earliest = differing[min(parting)[1]] if parting else differing[0]
    chosen = explained or earliest
    cell = cell_of(sides, compared, chosen)
    return Divergence(
        first=differing[0],
        earliest=earliest,
        explained=chosen,
        differing=Count(count=len(differing), of=len(compared.cells)),
        aspects=aspects(cell),
        tape=tape_step(cell),
    )


def cell_of(sides: tuple[Side, Side], compared: SideComparison, found: CellPair) -> Cell:
    """A compared cell with the units that it is of."""
    return Cell(*sides, _units(sides, found), found.condition, compared.facts, step_of(found))


def _units(sides: tuple[Side, Side], found: CellPair) -> tuple[SideUnit, SideUnit]:
    one, other = (side.units[found.source_id, found.replicate] for side in sides)
    return one, other


def _named(compared: SideComparison, named: Named) -> CellPair:
    for cell in compared.cells:
        if (cell.source_id, cell.replicate, cell.condition) == named:
            if cell.equal:
                todo = "Name a differing cell, or none for the one that parts earliest."
                raise ComparisonError(f"cell {' '.join(named)}", expected="a difference", found="none", todo=todo)
            return cell
    todo = "`python -m harness compare A B` lists the cells."
    found = f"none of {len(compared.cells)}"
    raise ComparisonError(f"cell {' '.join(named)}", expected="a cell of both sides", found=found, todo=todo)
