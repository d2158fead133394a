"""The ledger of a task run (R08 6): each cell's accounts and tape facts, and each contrast's two cells.

A function of the protocol, run.json and the sandbox records, so it can be made again byte for byte.
"""

from harness.compare import cells_by_condition
from harness.ledgers.drawn import drawn_by_condition
from harness.ledgers.heads import ledger_head
from harness.ledgers.plan import units_in_order
from harness.ledgers.reading import Executions, Reading, verdicts_of
from harness.ledgers.task_blocks import roles_of
from harness.ledgers.task_pairs import pair_rows
from harness.ledgers.task_rows import task_row
from harness.records.protocol import TaskCrnProtocol
from harness.records.taped import TapedRun
from harness.records.task_ledger import TaskLedger


def task_ledger(protocol: TaskCrnProtocol, run: TapedRun, executions: Executions) -> TaskLedger:
    """Rows of a run; JournalError where it isn't exactly a grid of this protocol, or the verdicts aren't its own."""
    units = units_in_order(protocol, run, run.units)
    verdicts, roles = verdicts_of(protocol, run, executions), roles_of(protocol, run.grid)
    return TaskLedger(
        **ledger_head(protocol, run),
        pairing=protocol.decode.pairing,
        evaluators=protocol.evaluators,
        cells=tuple(
            task_row(reading, cell, drawn[cell.condition], verdicts, role=roles[unit.index, unit.replicate])
            for domain, unit in units
            for reading, drawn in ((Reading(protocol, run, domain, unit), drawn_by_condition(protocol, unit)),)
            for cell in cells_by_condition(protocol, unit).values()
        ),
        pairs=tuple(
            row for _, unit in units for row in pair_rows(protocol, unit, role=roles[unit.index, unit.replicate])
        ),
    )
