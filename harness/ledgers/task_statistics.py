"""The registered statistics of a task run (R08 7), over the complete formal grid or not at all.

A function of the protocol and ledger.json alone. Domains are never pooled, and a band describes the resampling of the
fixed tasks under one tape: it is no interval of a benchmark, a model, a sampling seed or a cause (R08 7.2, 8).
"""

from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import require_protocol, units_per_domain
from harness.ledgers.task_contrasts import contrast_summaries, pair_summaries, secondary_summaries
from harness.ledgers.task_diagnostics import tape_diagnostics
from harness.ledgers.task_groups import task_groups, without_verdict
from harness.ledgers.task_measures import condition_summaries
from harness.records.protocol import TaskCrnProtocol
from harness.records.task_ledger import NoTaskStatistics, TaskLedger, TaskStatistics


def task_statistics(protocol: TaskCrnProtocol, ledger: TaskLedger) -> TaskStatistics | NoTaskStatistics:
    """Statistics of the formal grid; of any other one, or where the sandbox failed a cell, that there are none.

    JournalError where the ledger isn't this protocol's or isn't exactly the grid over its domains. ProtocolError where
    the grid's blocks aren't apart or a domain has no judge.
    """
    require_protocol(protocol, ledger.protocol, where="ledger")
    units_per_domain(protocol, ledger.grid)  # an unregistered grid is refused here
    if ledger.grid != protocol.tier_grids["formal"]:
        return NoTaskStatistics(**statistics_head(ledger), reason="only a complete formal run has statistics")
    groups = task_groups(protocol, ledger)
    if without_verdict(ledger):
        return NoTaskStatistics(**statistics_head(ledger), reason="the sandbox failed: a program has no verdict")
    contrasts = [contrast_summaries(protocol, block) for block in groups.primary]
    return TaskStatistics(
        **statistics_head(ledger),
        pairing=protocol.decode.pairing,
        bootstrap=protocol.bootstrap,
        primary_tape=groups.tape,
        resampling=tuple(resampling for resampling, _ in contrasts),
        contrasts=tuple(summary for _, summaries in contrasts for summary in summaries),
        conditions=tuple(one for block in groups.primary for one in condition_summaries(protocol, block)),
        pairs=tuple(one for block in groups.primary for one in pair_summaries(protocol, block)),
        secondary=tuple(one for block in groups.primary for one in secondary_summaries(protocol, block)),
        diagnostics=tuple(tape_diagnostics(protocol, block) for block in groups.diagnostic),
    )
