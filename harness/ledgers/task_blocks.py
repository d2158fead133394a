"""A task grid's blocks (R08 5.2): which (rank, tape) has which role, and what the primary and diagnostic ones cover.

No two blocks share a place. The primary block has one tape; a diagnostic task is a primary one under further tapes.
"""

from dataclasses import dataclass

from harness.errors import ProtocolError
from harness.protocols.grids import grid_of, grid_places
from harness.records.protocol import TaskCrnProtocol
from harness.records.task_ledger import BlockRole

TODO = "Register disjoint blocks within ranks x replicates: one tape for the primary, whole rectangles for diagnoses."


@dataclass(frozen=True, slots=True)
class Blocks:
    """Ranks within each domain, ascending, and tapes in the grid's order.

    `tasks` under `tape` are the primary block; `diagnostic_tasks` are also under the other `tapes`, `tape` among them.
    """

    tape: str
    tasks: tuple[int, ...]
    diagnostic_tasks: tuple[int, ...]
    tapes: tuple[str, ...]


def roles_of(protocol: TaskCrnProtocol, grid: str) -> dict[tuple[int, str], BlockRole]:
    """The role of each (rank, replicate) of a grid, in the grid's order; ProtocolError where two blocks share one."""
    listed: list[tuple[tuple[int, str], BlockRole]] = [
        ((index, replicate), block.role)
        for block in protocol.grid_blocks[grid]
        for index in block.indices
        for replicate in block.replicates
    ]
    roles, places = dict(listed), grid_places(protocol, grid)
    if len(roles) != len(listed) or set(roles) != set(places):
        raise _refused(protocol, grid, "disjoint blocks within the grid", f"{len(listed)} places")
    return {place: roles[place] for place in places}


def blocks_of(protocol: TaskCrnProtocol, grid: str) -> Blocks:
    """The primary and the diagnostic block of a formal grid; ProtocolError where they aren't apart."""
    roles = roles_of(protocol, grid)
    primary = [place for place, role in roles.items() if role == "primary"]
    diagnostic = [place for place, role in roles.items() if role == "diagnostic"]
    tapes = {tape for _, tape in primary}
    if len(tapes) != 1 or len(primary) + len(diagnostic) != len(roles):
        raise _refused(protocol, grid, "a primary block under one tape, and diagnostic ones", f"tapes {sorted(tapes)}")
    # Blocks share no place, so a diagnostic task of the primary block is never under the primary tape again.
    tasks, chosen = tuple(index for index, _ in primary), {index for index, _ in diagnostic}
    others = {tape for _, tape in diagnostic}
    if len(diagnostic) != len(chosen) * len(others) or not chosen <= set(tasks):
        raise _refused(protocol, grid, "diagnostic tasks of the primary block, each under all further tapes", "others")
    return Blocks(
        tape=next(iter(tapes)),
        tasks=tasks,
        diagnostic_tasks=tuple(index for index in tasks if index in chosen),
        tapes=tuple(tape for tape in grid_of(protocol, grid).replicates if tape in tapes | others),
    )


def _refused(protocol: TaskCrnProtocol, grid: str, expected: str, found: str) -> ProtocolError:
    return ProtocolError(f"protocol {protocol.id}: grid_blocks of {grid}", expected=expected, found=found, todo=TODO)
