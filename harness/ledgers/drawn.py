"""What a unit's rows drew of their tape, by condition, as ledgers have it (R08 4.3)."""

from harness.compare import TODO
from harness.errors import JournalError
from harness.records.protocol import Protocol
from harness.records.taped_study import TapedUnit
from harness.records.tapes import RowTape
from harness.records.task_ledger import TapeFacts


def drawn_by_condition(protocol: Protocol, unit: TapedUnit) -> dict[str, RowTape]:
    """A unit's tape accounts in the protocol's order; JournalError unless each condition has exactly one."""
    found = [row.condition for row in unit.tape.rows]
    expected = [condition.id for condition in protocol.conditions]
    if sorted(found) != sorted(expected):
        where = f"unit {unit.source_id}, {unit.replicate}: tape rows"
        raise JournalError(where, expected=str(expected), found=str(found), todo=TODO)
    rows = {row.condition: row for row in unit.tape.rows}
    return {name: rows[name] for name in expected}


def tape_facts(drawn: RowTape) -> TapeFacts:
    """A row's account as its cell has it in a ledger."""
    return TapeFacts(
        tape=drawn.tape,
        tape_sha256=drawn.tape_sha256,
        consumed=drawn.consumed.count,
        consumed_sha256=drawn.consumed.sha256,
        gaps=drawn.gaps,
        boundary_ties=drawn.boundary_ties,
        nearest_edge=drawn.nearest_edge,
    )
