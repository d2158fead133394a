"""Counts over a depth ledger (R05 depth 7-9): rows and tokens pooled over sources, each with its denominator.

A function of the protocol and ledger.json alone. A curve over the stages is a description: nothing here sums it up as
growing, and nothing relates a gate to an output.
"""

import math
from collections.abc import Iterable, Sequence

from harness.compare import TODO
from harness.errors import JournalError
from harness.ledgers.counts import count, mean, require_size, total
from harness.ledgers.heads import statistics_head
from harness.ledgers.plan import planned_domains, require_protocol, units_per_domain
from harness.protocols.stages import EMBEDDING
from harness.records.depth import GateEdge, StageEdge
from harness.records.depth_ledger import (
    At,
    BoundarySummary,
    DepthEdgeDomainStatistics,
    DepthEdgeRow,
    DepthEdgeStatistics,
    DepthEdgeSummary,
    DepthLedger,
    DepthStatistics,
    GateSummary,
    Nowhere,
    ScaleIdentity,
    StageSummary,
)
from harness.records.ledger import Count
from harness.records.protocol import DepthProtocol


def depth_statistics(protocol: DepthProtocol, ledger: DepthLedger) -> DepthStatistics:
    """Counts over all sources, by edge, and by edge in a domain; JournalError where a group isn't the grid's size."""
    require_protocol(protocol, ledger.protocol, where="ledger")
    domains = planned_domains(protocol, ledger.domains)
    units = units_per_domain(protocol, ledger.grid)
    _require_groups(protocol, ledger, units=units)
    return DepthStatistics(
        **statistics_head(ledger),
        hidden_stages=len(_names(ledger, "stages")),
        gates=len(_names(ledger, "gates")),
        scale=_scale(protocol, ledger),
        boundary=BoundarySummary(
            crossing_tokens=total(row.crossing_tokens for row in ledger.cells),
            crossing_cells=count(row.crossing_tokens > 0 for row in ledger.cells),
        ),
        embedding_exact_rows=_embedding(ledger.edges),
        by_edge=tuple(_by_edge(protocol, ledger, units=units * len(domains))),
        by_edge_and_domain=tuple(_by_edge_and_domain(protocol, ledger, units=units)),
    )


def _require_groups(protocol: DepthProtocol, ledger: DepthLedger, *, units: int) -> None:
    """Every cell and edge of the grid once and no row besides; the edges' own groups are sized where they're made."""
    planned = len(ledger.domains) * units
    cells = {(row.source_id, row.replicate, row.condition) for row in ledger.cells}
    edges = {(row.source_id, row.replicate, row.edge) for row in ledger.edges}
    require_size("ledger: different cells", cells, planned=planned * len(protocol.conditions))
    require_size("ledger: different edges", edges, planned=planned * len(protocol.edges))
    require_size("ledger: all cells", ledger.cells, planned=planned * len(protocol.conditions))
    require_size("ledger: all edges", ledger.edges, planned=planned * len(protocol.edges))
    for condition in protocol.conditions:
        for name in ledger.domains:
            rows = [row for row in ledger.cells if (row.domain, row.condition) == (name, condition.id)]
            require_size(f"ledger: cells {condition.id} of {name}", rows, planned=units)


def _scale(protocol: DepthProtocol, ledger: DepthLedger) -> ScaleIdentity:
    """Target tokens are a source's, the same in each of its cells; a source whose cells differ is a JournalError."""
    sources: dict[tuple[str, str], int] = {}
    for row in ledger.cells:
        found = sources.setdefault((row.source_id, row.replicate), row.target_tokens)
        if found != row.target_tokens:
            where = f"ledger: target tokens of {row.source_id} {row.condition}"
            raise JournalError(where, expected=str(found), found=str(row.target_tokens), todo=TODO)
    gates = len(_names(ledger, "gates"))
    decisions = sum(row.route_decisions for row in ledger.cells)
    places = sum(sources.values()) * len(protocol.conditions) * gates
    return ScaleIdentity(
        target_tokens=total(sources.values()),
        conditions=len(protocol.conditions),
        gates=gates,
        top_k=_whole(decisions, places),
        route_decisions=decisions,
    )


def _whole(decisions: int, places: int) -> int:
    """Experts a token and gate; JournalError where it isn't one number."""
    if places and decisions % places:
        where = "ledger: route decisions"
        raise JournalError(where, expected=f"a multiple of {places}", found=str(decisions), todo=TODO)
    return decisions // places if places else 0


def _names(ledger: DepthLedger, line: str) -> tuple[str, ...]:
    """The stages or gates of all edges; JournalError unless every edge has the same."""
    kinds = {tuple(one.stage for one in row.stages) for row in ledger.edges}
    if line == "gates":
        kinds = {tuple(one.gate for one in row.gates) for row in ledger.edges}
    if len(kinds) > 1:
        raise JournalError(f"ledger: {line}", expected="the same on every edge", found=f"{len(kinds)} lists", todo=TODO)
    return next(iter(kinds), ())


def _by_edge(protocol: DepthProtocol, ledger: DepthLedger, *, units: int) -> Iterable[DepthEdgeStatistics]:
    for edge in protocol.edges:
        rows = [row for row in ledger.edges if row.edge == edge.id]
        require_size(f"ledger: edges {edge.id}", rows, planned=units)
        yield DepthEdgeStatistics(edge=edge.id, kind=edge.kind, units=edge_summary(rows))


def _by_edge_and_domain(
    protocol: DepthProtocol, ledger: DepthLedger, *, units: int
) -> Iterable[DepthEdgeDomainStatistics]:
    for edge in protocol.edges:
        for name in ledger.domains:
            rows = [row for row in ledger.edges if (row.edge, row.domain) == (edge.id, name)]
            require_size(f"ledger: edges {edge.id} of {name}", rows, planned=units)
            yield DepthEdgeDomainStatistics(edge=edge.id, kind=edge.kind, domain=name, units=edge_summary(rows))


def edge_summary(rows: Sequence[DepthEdgeRow]) -> DepthEdgeSummary:
    """One edge over the rows of one or more sources, which have the same stages and gates."""
    stages = [stage_summary(one) for one in zip(*(row.stages for row in rows), strict=True)]
    gates = [gate_summary(one) for one in zip(*(row.gates for row in rows), strict=True)]
    lowest_cosine = min(stages, key=lambda one: one.cosine, default=None)
    lowest_exact = min(gates, key=lambda one: one.ordered_exact.count, default=None)
    return DepthEdgeSummary(
        embedding_exact_rows=_embedding(rows),
        output_ids_exact=count(row.output.ids_exact for row in rows),
        lowest_cosine=At(name=lowest_cosine.stage) if lowest_cosine else Nowhere(reason="no stage"),
        lowest_ordered_exact=At(name=lowest_exact.gate) if lowest_exact else Nowhere(reason="the model has no gate"),
        stages=tuple(stages),
        gates=tuple(gates),
    )


def stage_summary(edges: Sequence[StageEdge]) -> StageSummary:
    """One stage over several sources, by their rows and not by their means; JournalError where it has no value."""
    rows = sum(one.rows for one in edges)
    length = math.fsum(one.left_squared for one in edges)
    difference = math.fsum(one.difference_squared for one in edges)
    where = f"ledger: {edges[0].stage}"
    if rows == 0:
        raise JournalError(where, expected="target rows", found="0", todo=TODO)
    if difference and not length:
        raise JournalError(where, expected="a left side that isn't zero throughout", found="zeros", todo=TODO)
    return StageSummary(
        stage=edges[0].stage,
        exact_rows=Count(count=sum(one.exact_rows for one in edges), of=rows),
        cosine=math.fsum(one.cosine_sum for one in edges) / rows,
        relative_l2=math.sqrt(difference / length) if length else 0.0,
    )


def gate_summary(edges: Sequence[GateEdge]) -> GateSummary:
    """One gate over several sources, by their tokens."""
    tokens = sum(one.tokens for one in edges)
    return GateSummary(
        gate=edges[0].gate,
        ordered_exact=Count(count=sum(one.ordered_exact for one in edges), of=tokens),
        set_exact=Count(count=sum(one.set_exact for one in edges), of=tokens),
        load_total_variation=mean([one.load_total_variation for one in edges]),
        weighted_load_total_variation=mean([one.weighted_load_total_variation for one in edges]),
    )


def _embedding(rows: Sequence[DepthEdgeRow]) -> Count:
    """Target rows of the embedding that are byte-exact, of all rows of all edges."""
    found = [one for row in rows for one in row.stages if one.stage == EMBEDDING]
    return Count(count=sum(one.exact_rows for one in found), of=sum(one.rows for one in found))
