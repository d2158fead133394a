"""The cells of a sampled ledger by source and condition, each over all seeds of its grid, or a refusal (R07 9).

Every denominator of the sampled statistics is settled here: each planned cell is there exactly once, with the accounts
of its domain and no others, so that nothing after this can count fewer cells than the protocol's grid plans.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from harness.compare import TODO
from harness.errors import JournalError
from harness.ledgers.accounts import require_accounts
from harness.ledgers.plan import planned_domains
from harness.ledgers.whole import Source, require_rows, sources_of
from harness.protocols.grids import grid_of
from harness.records.completion import AccountedRow, CodeAccount, CompletionEdgeRow, NotExecuted
from harness.records.protocol import SamplingProtocol
from harness.records.sampling_ledger import SampledLedger, SeedPairRow
from harness.records.sources import Domain


@dataclass(frozen=True, slots=True)
class Groups:
    """The cells of a complete grid, and its pairs of seeds, by (source ID, condition), in the order of `replicates`."""

    protocol: SamplingProtocol
    sources: tuple[Source, ...]
    rows: Mapping[tuple[str, str], tuple[AccountedRow, ...]]
    pairs: Mapping[tuple[str, str], tuple[SeedPairRow, ...]]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The IDs of the conditions in the protocol's order."""
        return tuple(condition.id for condition in self.protocol.conditions)

    def by_domain(self) -> Iterator[tuple[Domain, tuple[Source, ...]]]:
        """The domains of the run in the protocol's order, each with its sources in rank order."""
        for domain in self.protocol.domains:
            if sources := tuple(source for source in self.sources if source.domain.name == domain.name):
                yield domain, sources

    def seeds(self, source: Source, condition: str) -> tuple[AccountedRow, ...]:
        """The cells of one source under one condition, one a seed."""
        return self.rows[source.source_id, condition]

    def seed_pairs(self, source: Source, condition: str) -> tuple[SeedPairRow, ...]:
        """Every two seeds of them: the first with each later one, then the second with each later one, and so on."""
        return self.pairs[source.source_id, condition]


def grouped(protocol: SamplingProtocol, ledger: SampledLedger) -> Groups:
    """The cells of a ledger whose grid is registered, and its pairs of seeds.

    JournalError where a cell, an edge or a pair of the grid is missing, doubled or foreign, where a source's rows don't
    have one source ID of their own, or where a cell lacks an account of its domain or a program its verdict.
    """
    domains, replicates = planned_domains(protocol, ledger.domains), grid_of(protocol, ledger.grid).replicates
    _require_whole(protocol, ledger, domains)
    rows: tuple[AccountedRow | CompletionEdgeRow | SeedPairRow, ...] = (*ledger.cells, *ledger.edges, *ledger.pairs)
    sources = sources_of(((row.domain, row.index, row.source_id) for row in rows), domains)
    for row in ledger.cells:
        require_accounts(protocol, next(domain for domain in domains if domain.name == row.domain), row)
        _require_verdict(row)
    cells = {(row.source_id, row.condition, row.replicate): row for row in ledger.cells}
    pairs = {(row.source_id, row.condition, row.left, row.right): row for row in ledger.pairs}
    keys = [(source.source_id, condition.id) for source in sources for condition in protocol.conditions]
    return Groups(
        protocol=protocol,
        sources=sources,
        rows={key: tuple(cells[*key, replicate] for replicate in replicates) for key in keys},
        pairs={key: tuple(pairs[*key, *pair] for pair in combinations(replicates, 2)) for key in keys},
    )


def _require_whole(protocol: SamplingProtocol, ledger: SampledLedger, domains: Sequence[Domain]) -> None:
    """Cells, edges and pairs are exactly those of the grid over the run's domains."""
    grid = grid_of(protocol, ledger.grid)
    ranks = [(domain.name, index) for domain in domains for index in range(grid.per_domain)]
    conditions, edges = [one.id for one in protocol.conditions], [one.id for one in protocol.edges]
    twos = [_two(*pair) for pair in combinations(grid.replicates, 2)]
    require_rows(
        "ledger: cells",
        [(row.domain, row.index, row.replicate, row.condition) for row in ledger.cells],
        planned=[(*rank, *pair) for rank in ranks for pair in product(grid.replicates, conditions)],
    )
    require_rows(
        "ledger: edges",
        [(row.domain, row.index, row.replicate, row.edge) for row in ledger.edges],
        planned=[(*rank, *pair) for rank in ranks for pair in product(grid.replicates, edges)],
    )
    require_rows(
        "ledger: pairs",
        [(row.domain, row.index, _two(row.left, row.right), row.condition) for row in ledger.pairs],
        planned=[(*rank, *pair) for rank in ranks for pair in product(twos, conditions)],
    )


def _two(left: str, right: str) -> str:
    return f"{left}|{right}"


def _require_verdict(row: AccountedRow) -> None:
    """Of a program also what came of it: a tier's silence isn't a failed test."""
    verdict = row.code.verdict if isinstance(row.code, CodeAccount) else None
    if isinstance(verdict, NotExecuted) and verdict.reason == "tier":
        where = f"ledger: cell {row.source_id}, {row.replicate}, {row.condition}: code"
        raise JournalError(where, expected="a verdict", found="a program that wasn't executed", todo=TODO)
