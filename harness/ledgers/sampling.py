"""The ledger of a sampled run (R07 8): each cell's four accounts, and each pair of seeds of a source and condition.

A function of the protocol, run.json and the sandbox records. A cell that no evaluator covers keeps its row.
"""

from collections.abc import Iterator
from itertools import combinations

from harness.compare import cells_by_condition, compare_ids
from harness.ledgers.accounts import accounts, edge_rows
from harness.ledgers.heads import ledger_head
from harness.ledgers.plan import units_in_order
from harness.ledgers.reading import Executions, Reading, verdicts_of
from harness.records.protocol import SamplingProtocol
from harness.records.sampling import SampledEvidence, SampledRun
from harness.records.sampling_ledger import SampledLedger, SeedPairRow


def sampled_ledger(protocol: SamplingProtocol, run: SampledRun, executions: Executions) -> SampledLedger:
    """Rows of a run; JournalError where it isn't exactly a grid of this protocol, or the verdicts aren't its own."""
    units = units_in_order(protocol, run, run.units)
    verdicts = verdicts_of(protocol, run, executions)
    rows = tuple(
        accounts(reading, cell, verdicts)
        for domain, unit in units
        for reading in (Reading(protocol, run, domain, unit),)
        for cell in cells_by_condition(protocol, unit).values()
    )
    classes = {(row.source_id, row.replicate, row.condition): row.completion for row in rows}
    return SampledLedger(
        **ledger_head(protocol, run),
        baseline_run_sha256=run.baseline.run_sha256,
        evaluators=protocol.evaluators,
        cells=rows,
        edges=tuple(row for _, unit in units for row in edge_rows(protocol, unit, classes)),
        pairs=tuple(_pairs(protocol, [unit for _, unit in units])),
    )


def _pairs(protocol: SamplingProtocol, units: list[SampledEvidence]) -> Iterator[SeedPairRow]:
    """Every two seeds of a source under one condition, in the order of the replicates (R07 9.1)."""
    sources: dict[str, list[SampledEvidence]] = {}
    for unit in units:
        sources.setdefault(unit.source_id, []).append(unit)
    for seeds in sources.values():
        for condition in protocol.conditions:
            for one, other in combinations(seeds, 2):
                left, right = (cells_by_condition(protocol, unit)[condition.id] for unit in (one, other))
                yield SeedPairRow(
                    domain=one.domain,
                    index=one.index,
                    source_id=one.source_id,
                    condition=condition.id,
                    left=one.replicate,
                    right=other.replicate,
                    comparison=compare_ids(left.generated_ids, right.generated_ids),
                )
