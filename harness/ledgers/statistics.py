"""Counts over a behaviour ledger (R04 5): numerators with their denominators, sums with their number of terms.

A function of the protocol and ledger.json alone. Each group must have exactly the rows that the protocol's grid plans,
so that no absent row makes a denominator smaller. There is no interval, no percentage and no accuracy (R04 5: a few
sources aren't a benchmark), and nothing here says which side of an edge is better (R04 7).
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from harness.compare import TODO
from harness.errors import JournalError
from harness.ledgers.behavior import NO_CODE, NO_NUMBERS, observed_in
from harness.ledgers.counts import count, edge_summary, require_size, total
from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import planned_domains, require_protocol, units_per_domain
from harness.records.ledger import (
    CellRow,
    CellSummary,
    ConditionStatistics,
    DomainStatistics,
    EdgeDomainStatistics,
    EdgeStatistics,
    GoldAbsent,
    GoldCompared,
    Ledger,
    NotObserved,
    NumberFound,
    NumberObservation,
    NumberSummary,
    Statistics,
    SyntaxObservation,
    SyntaxSummary,
    TooDeep,
)
from harness.records.protocol import Protocol
from harness.records.sources import Domain


def statistics(protocol: Protocol, ledger: Ledger) -> Statistics:
    """Counts by domain, by condition in a domain, by edge, and by edge in a domain.

    JournalError where a group of the ledger isn't as large as the protocol's grid says.
    """
    require_protocol(protocol, ledger.protocol, where="ledger")
    domains = planned_domains(protocol, ledger.domains)
    units = units_per_domain(protocol, ledger.grid)
    cells = {(row.source_id, row.replicate, row.condition) for row in ledger.cells}
    edges = {(row.source_id, row.replicate, row.edge) for row in ledger.edges}
    require_size("ledger: different cells", cells, planned=len(domains) * units * len(protocol.conditions))
    require_size("ledger: different edges", edges, planned=len(domains) * units * len(protocol.edges))
    return Statistics(
        **statistics_head(ledger),
        by_domain=tuple(_by_domain(protocol, ledger, domains, units=units)),
        by_condition=tuple(_by_condition(protocol, ledger, domains, units=units)),
        by_edge=tuple(_by_edge(protocol, ledger, units=units * len(domains))),
        by_edge_and_domain=tuple(_by_edge_and_domain(protocol, ledger, domains, units=units)),
    )


def _by_domain(
    protocol: Protocol, ledger: Ledger, domains: Sequence[Domain], *, units: int
) -> Iterable[DomainStatistics]:
    for domain in domains:
        rows = [row for row in ledger.cells if row.domain == domain.name]
        require_size(f"ledger: cells of {domain.name}", rows, planned=units * len(protocol.conditions))
        yield DomainStatistics(domain=domain.name, cells=cell_summary(domain, rows))


def _by_condition(
    protocol: Protocol, ledger: Ledger, domains: Sequence[Domain], *, units: int
) -> Iterable[ConditionStatistics]:
    for domain in domains:
        for condition in protocol.conditions:
            rows = [row for row in ledger.cells if (row.domain, row.condition) == (domain.name, condition.id)]
            require_size(f"ledger: cells of {domain.name}, {condition.id}", rows, planned=units)
            yield ConditionStatistics(domain=domain.name, condition=condition.id, cells=cell_summary(domain, rows))


def _by_edge(protocol: Protocol, ledger: Ledger, *, units: int) -> Iterable[EdgeStatistics]:
    for edge in protocol.edges:
        rows = [row for row in ledger.edges if row.edge == edge.id]
        require_size(f"ledger: edges {edge.id}", rows, planned=units)
        yield EdgeStatistics(edge=edge.id, kind=edge.kind, units=edge_summary([row.comparison for row in rows]))


def _by_edge_and_domain(
    protocol: Protocol, ledger: Ledger, domains: Sequence[Domain], *, units: int
) -> Iterable[EdgeDomainStatistics]:
    for edge in protocol.edges:
        for domain in domains:
            rows = [row for row in ledger.edges if (row.edge, row.domain) == (edge.id, domain.name)]
            require_size(f"ledger: edges {edge.id} of {domain.name}", rows, planned=units)
            summary = edge_summary([row.comparison for row in rows])
            yield EdgeDomainStatistics(edge=edge.id, kind=edge.kind, domain=domain.name, units=summary)


def cell_summary(domain: Domain, rows: Sequence[CellRow]) -> CellSummary:
    """Counts over cells of one domain; every count is of all of them."""
    return CellSummary(
        natural_eos=count(row.natural_eos for row in rows),
        truncated=count(row.truncated for row in rows),
        length=total(row.length for row in rows),
        number=_numbers(rows) if "number" in observed_in(domain) else NO_NUMBERS,
        syntax=_syntax(rows) if "syntax" in observed_in(domain) else NO_CODE,
    )


def _numbers(rows: Sequence[CellRow]) -> NumberSummary:
    seen = [_observed(row, row.number) for row in rows]
    return NumberSummary(
        last_number_found=count(isinstance(each.last_number, NumberFound) for each in seen),
        last_number_match=count(
            isinstance(each.comparison, GoldCompared) and each.comparison.last_number_match for each in seen
        ),
        gold_absent=count(isinstance(each.comparison, GoldAbsent) for each in seen),
    )


def _syntax(rows: Sequence[CellRow]) -> SyntaxSummary:
    seen = [_observed(row, row.syntax) for row in rows]
    return SyntaxSummary(
        ast_parses=count(each.ast_parses for each in seen),
        fenced=count(each.part == "fence" for each in seen),
        too_deep=count(isinstance(each.outcome, TooDeep) for each in seen),
    )


Observation = TypeVar("Observation", NumberObservation, SyntaxObservation)


def _observed(row: CellRow, observation: Observation | NotObserved) -> Observation:
    if isinstance(observation, NotObserved):
        where = f"ledger: cell {row.source_id}, {row.condition}"
        raise JournalError(where, expected="an observation of its domain", found=observation.reason, todo=TODO)
    return observation
