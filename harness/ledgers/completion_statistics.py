"""Counts over a completion ledger (R05 7), by domain, by condition and by both: numerators with their denominators.

A function of the protocol and ledger.json alone. Each group must have exactly the rows that the protocol's grid plans.
No interval and no percentage: four sources a domain are no benchmark. Figures over completed cells only are diagnostics
and stand apart from the others (R05 4.4).
"""

from collections.abc import Iterator, Sequence

from harness.ledgers.account_counts import account_counts, tally
from harness.ledgers.accounts import require_accounts
from harness.ledgers.counts import count, edge_summary, require_size
from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import planned_domains, require_protocol, units_per_domain
from harness.records.completion import (
    CompletionEdgeGroup,
    CompletionGroup,
    CompletionLedger,
    CompletionRow,
    CompletionStatistics,
    CompletionSummary,
    Gain,
)
from harness.records.protocol import CompletionProtocol

ALL = ""

Rows = Sequence[CompletionRow]


def completion_statistics(protocol: CompletionProtocol, ledger: CompletionLedger) -> CompletionStatistics:
    """Counts by group; JournalError where a group of the ledger isn't as large as the protocol's grid says."""
    require_protocol(protocol, ledger.protocol, where="ledger")
    planned = planned_domains(protocol, ledger.domains)
    domains = [domain.name for domain in planned]
    units = units_per_domain(protocol, ledger.grid)
    cells = {(row.source_id, row.replicate, row.condition) for row in ledger.cells}
    edges = {(row.source_id, row.replicate, row.edge) for row in ledger.edges}
    require_size("ledger: different cells", cells, planned=len(domains) * units * len(protocol.conditions))
    require_size("ledger: different edges", edges, planned=len(domains) * units * len(protocol.edges))
    kinds = {domain.name: domain for domain in planned}
    for row in (row for row in ledger.cells if row.domain in kinds):  # a strange domain shows in its group's size
        require_accounts(protocol, kinds[row.domain], row)
    return CompletionStatistics(
        **statistics_head(ledger),
        groups=tuple(_groups(protocol, ledger, domains, units)),
        edges=tuple(_edge_groups(protocol, ledger, domains, units)),
    )


def _groups(
    protocol: CompletionProtocol, ledger: CompletionLedger, domains: list[str], units: int
) -> Iterator[CompletionGroup]:
    conditions = [condition.id for condition in protocol.conditions]
    for domain in (ALL, *domains):
        for condition in (ALL, *conditions):
            rows = [row for row in ledger.cells if domain in (ALL, row.domain) and condition in (ALL, row.condition)]
            planned = units * (len(domains) if domain == ALL else 1) * (len(conditions) if condition == ALL else 1)
            require_size(f"ledger: cells of {domain or 'all'}, {condition or 'all'}", rows, planned=planned)
            yield CompletionGroup(domain=domain, condition=condition, cells=completion_summary(rows))


def _edge_groups(
    protocol: CompletionProtocol, ledger: CompletionLedger, domains: list[str], units: int
) -> Iterator[CompletionEdgeGroup]:
    for edge in protocol.edges:
        for domain in (ALL, *domains):
            rows = [row for row in ledger.edges if row.edge == edge.id and domain in (ALL, row.domain)]
            planned = units * (len(domains) if domain == ALL else 1)
            require_size(f"ledger: edges {edge.id} of {domain or 'all'}", rows, planned=planned)
            pairs = [f"{row.left_completion} | {row.right_completion}" for row in rows]
            yield CompletionEdgeGroup(
                edge=edge.id,
                kind=edge.kind,
                domain=domain,
                units=edge_summary([row.comparison for row in rows]),
                classes=tally(pairs, sorted(set(pairs))),
            )


def completion_summary(rows: Rows) -> CompletionSummary:
    """Counts over any group of cells; every count is of all of them, or of those whose domain has the judge."""
    return CompletionSummary(**account_counts(rows), gain=_gain(rows))


def _gain(rows: Rows) -> Gain:
    cut = [row for row in rows if row.baseline.stop == "budget_truncated"]
    return Gain(
        baseline_natural_eos=count(row.baseline.stop == "natural_eos" for row in rows),
        natural_eos=count(row.stop == "natural_eos" for row in rows),
        newly_ended=count(row.stop == "natural_eos" for row in cut),
        prefix_exact=count(row.baseline.prefix_exact for row in rows),
    )
