"""What every ledger and every statistics record begins with, filled in one place; the rest is each family's own."""

from typing import Any

import msgspec

from harness.canon import digest
from harness.records.ledger import BookHead, LedgerHead, StatisticsHead
from harness.records.protocol import Protocol
from harness.records.run import AssembledRun


def ledger_head(protocol: Protocol, run: AssembledRun) -> dict[str, Any]:
    """The fields of LedgerHead for a run's ledger, by name."""
    head = LedgerHead(
        schema=1,
        protocol=run.protocol,
        registered_id=run.registered_id,
        protocol_digest=run.protocol_digest,
        run_sha256=digest(run),
        result_name=run.result_name,
        grid=run.grid,
        port=run.port,
        domains=tuple(domain.name for domain in protocol.domains if domain.name in run.domains),
    )
    return msgspec.structs.asdict(head)


def statistics_head(ledger: LedgerHead) -> dict[str, Any]:
    """The fields of StatisticsHead for the statistics over a ledger, by name."""
    identity = {name: getattr(ledger, name) for name in BookHead.__struct_fields__}
    return msgspec.structs.asdict(StatisticsHead(**identity, ledger_sha256=digest(ledger)))
