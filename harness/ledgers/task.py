"""Ledger of a task run: stub."""

from harness.compare import cells_by_condition
from harness.ledgers.heads import ledger_head, statistics_head
from harness.ledgers.plan import units_in_order
from harness.ledgers.reading import Executions, Reading, stopped_at, verdicts_of
from harness.records.completion import StoppedRow
from harness.records.protocol import TaskCrnProtocol
from harness.records.taped import TapedRun
from harness.records.task_ledger import TaskLedger, TaskStatistics


def task_ledger(protocol: TaskCrnProtocol, run: TapedRun, executions: Executions) -> TaskLedger:
    """Rows of a run."""
    units = units_in_order(protocol, run, run.units)
    verdicts_of(protocol, run, executions)
    rows = tuple(
        StoppedRow(**stopped_at(Reading(protocol, run, domain, unit), cell))
        for domain, unit in units
        for cell in cells_by_condition(protocol, unit).values()
    )
    return TaskLedger(**ledger_head(protocol, run), cells=rows)


def task_statistics(protocol: TaskCrnProtocol, ledger: TaskLedger) -> TaskStatistics:
    """Nothing yet."""
    return TaskStatistics(**statistics_head(ledger))
