"""The completion ledger (R05 4): each cell's four accounts, beside the same cell at the baseline's budget.

A function of the protocol, run.json and the sandbox records, so it can be made again byte for byte.
"""

from collections.abc import Mapping

import msgspec

from harness.compare import TODO, cells_by_condition, common_prefix
from harness.errors import JournalError
from harness.evaluate.completion import stop_state
from harness.ledgers.accounts import accounts, edge_rows
from harness.ledgers.heads import ledger_head
from harness.ledgers.plan import units_in_order
from harness.ledgers.reading import Executions, Reading, require_one_end, verdicts_of
from harness.records.completion import AccountedRow, BaselineCompared, CompletionLedger, CompletionRow
from harness.records.protocol import CompletionProtocol
from harness.records.run import BaselineCell, CellRecord, CompletionRun, UnitEvidence


def completion_ledger(protocol: CompletionProtocol, run: CompletionRun, executions: Executions) -> CompletionLedger:
    """Rows of a run; JournalError where the run isn't exactly a grid of this protocol, or the verdicts aren't its own.

    Where a gate judges the grid's programs, each of them has one execution; everywhere else there is none. InputError
    where a gold number of the run is none.
    """
    units = units_in_order(protocol, run, run.units)
    verdicts = verdicts_of(protocol, run, executions)
    baseline = {(cell.source_id, cell.replicate, cell.condition): cell for cell in run.baseline.cells}
    rows = tuple(
        _row(accounts(reading, cell, verdicts), reading, cell, _baseline_cell(baseline, unit, cell))
        for domain, unit in units
        for reading in (Reading(protocol, run, domain, unit),)
        for cell in cells_by_condition(protocol, unit).values()
    )
    classes = {(row.source_id, row.replicate, row.condition): row.completion for row in rows}
    return CompletionLedger(
        **ledger_head(protocol, run),
        baseline_run_sha256=run.baseline.run_sha256,
        evaluators=protocol.evaluators,
        cells=rows,
        edges=tuple(row for _, unit in units for row in edge_rows(protocol, unit, classes)),
    )


def _row(
    row: AccountedRow, at: Reading[CompletionProtocol, CompletionRun], cell: CellRecord, baseline: BaselineCell
) -> CompletionRow:
    require_one_end(f"baseline {at.where(cell)}", eos=baseline.eos, truncated=baseline.truncated)
    compared = _compared(at.run.baseline.max_new_tokens, baseline, cell)
    return CompletionRow(**msgspec.structs.asdict(row), baseline=compared)


def _baseline_cell(
    baseline: Mapping[tuple[str, str, str], BaselineCell], unit: UnitEvidence, cell: CellRecord
) -> BaselineCell:
    identity = (unit.source_id, unit.replicate, cell.condition)
    if identity not in baseline:
        where = f"baseline: {unit.source_id}, {unit.replicate}, {cell.condition}"
        raise JournalError(where, expected="the same cell of the baseline", found="none", todo=TODO)
    return baseline[identity]


def _compared(budget: int, baseline: BaselineCell, cell: CellRecord) -> BaselineCompared:
    """R05 2: the first min(baseline budget, baseline length) tokens, and how the baseline's cell had stopped."""
    compared = min(budget, len(baseline.generated_ids))
    return BaselineCompared(
        stop=stop_state(eos=baseline.eos, truncated=baseline.truncated),
        length=baseline.length,
        compared=compared,
        prefix_exact=common_prefix(cell.generated_ids, baseline.generated_ids[:compared]) == compared,
    )
