"""Ledger of a task run: stub."""

from harness.records.completion import StoppedRow
from harness.records.ledger import LedgerHead, StatisticsHead


class TaskLedger(LedgerHead):
    """ledger.json."""

    cells: tuple[StoppedRow, ...]


class TaskStatistics(StatisticsHead):
    """statistics.json."""
