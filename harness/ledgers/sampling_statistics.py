"""The registered statistics of a sampled run (R07 9), over the complete formal grid or not at all.

A function of the protocol and ledger.json alone. Seeds of one source are draws of one task and sources are fixed: there
is no p-value, no interval, no estimate over tasks that weren't run.
"""

from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import require_protocol, units_per_domain
from harness.ledgers.sampling_contrasts import carried_directions, contrast_summaries
from harness.ledgers.sampling_groups import grouped
from harness.ledgers.sampling_measures import domain_conditions, source_matrices
from harness.ledgers.sampling_sources import source_conditions
from harness.records.protocol import SamplingProtocol
from harness.records.sampling_ledger import NoSampledStatistics, SampledLedger, SampledStatistics


def sampled_statistics(protocol: SamplingProtocol, ledger: SampledLedger) -> SampledStatistics | NoSampledStatistics:
    """Statistics of the formal grid; of any other registered grid the statement that there are none (R07 7.1).

    JournalError where the ledger isn't this protocol's or isn't exactly the grid over its domains.
    """
    require_protocol(protocol, ledger.protocol, where="ledger")
    units_per_domain(protocol, ledger.grid)  # an unregistered grid is refused here
    if ledger.grid != protocol.tier_grids["formal"]:
        return _none(ledger)
    groups = grouped(protocol, ledger)
    return SampledStatistics(
        **statistics_head(ledger),
        pairing=protocol.decode.pairing,
        by_source=tuple(source_conditions(groups)),
        by_domain=tuple(domain_conditions(groups)),
        matrices=tuple(source_matrices(groups)),
        contrasts=tuple(contrast_summaries(groups)),
        carried_over=tuple(carried_directions(groups)),
    )


def _none(ledger: SampledLedger) -> NoSampledStatistics:
    return NoSampledStatistics(
        **statistics_head(ledger),
        reason="only a complete formal run has statistics",
    )
