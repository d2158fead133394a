"""Which ledger and statistics a protocol has: the one place where a protocol's kind decides."""

from collections.abc import Mapping

from harness.compare import TODO
from harness.errors import JournalError
from harness.ledgers.behavior import ledger
from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics
from harness.ledgers.statistics import statistics
from harness.records.completion import CompletionLedger, CompletionStatistics
from harness.records.ledger import Ledger, Statistics
from harness.records.protocol import AnyProtocol, BehaviorProtocol
from harness.records.run import CompletionRun, Run
from harness.records.sandbox import Execution

AnyLedger = Ledger | CompletionLedger
AnyStatistics = Statistics | CompletionStatistics


def ledger_of(protocol: AnyProtocol, run: Run, executions: Mapping[str, Execution]) -> AnyLedger:
    """The ledger of a run of the protocol's kind; JournalError where the run isn't one."""
    if isinstance(protocol, BehaviorProtocol):
        return ledger(protocol, run)
    if not isinstance(run, CompletionRun):
        raise JournalError("run record", expected="a completion run", found=type(run).__name__, todo=TODO)
    return completion_ledger(protocol, run, executions)


def statistics_of(protocol: AnyProtocol, book: AnyLedger) -> AnyStatistics:
    """The counts over a ledger of the protocol's kind; any other ledger is misuse."""
    if isinstance(protocol, BehaviorProtocol) and isinstance(book, Ledger):
        return statistics(protocol, book)
    if not isinstance(protocol, BehaviorProtocol) and isinstance(book, CompletionLedger):
        return completion_statistics(protocol, book)
    raise RuntimeError(f"{protocol.id} has no {type(book).__name__}")


def ledger_type(protocol: AnyProtocol) -> type[Ledger] | type[CompletionLedger]:
    """The record that ledger.json of the protocol's runs holds."""
    return Ledger if isinstance(protocol, BehaviorProtocol) else CompletionLedger
