"""Which ledger and statistics a protocol has: the one place where a protocol's kind decides."""

from collections.abc import Mapping

from harness.compare import TODO
from harness.errors import JournalError
from harness.ledgers.behavior import ledger
from harness.ledgers.completion import completion_ledger
from harness.ledgers.completion_statistics import completion_statistics
from harness.ledgers.depth import depth_ledger
from harness.ledgers.depth_statistics import depth_statistics
from harness.ledgers.sampling import sampled_ledger
from harness.ledgers.sampling_statistics import sampled_statistics
from harness.ledgers.statistics import statistics
from harness.ledgers.study import study_ledger
from harness.ledgers.study_statistics import study_statistics
from harness.ledgers.task import task_ledger
from harness.ledgers.task_statistics import task_statistics
from harness.records.completion import CompletionLedger, CompletionStatistics
from harness.records.depth import DepthRun
from harness.records.depth_ledger import DepthLedger, DepthStatistics
from harness.records.kinds import AnyRun
from harness.records.ledger import Ledger, Statistics
from harness.records.protocol import (
    AnyProtocol,
    BehaviorProtocol,
    CompletionProtocol,
    DepthProtocol,
    SamplingProtocol,
    StudyProtocol,
    TapedStudyProtocol,
    TaskCrnProtocol,
)
from harness.records.run import CompletionRun, Run
from harness.records.sampling import SampledRun
from harness.records.sampling_ledger import NoSampledStatistics, SampledLedger, SampledStatistics
from harness.records.sandbox import Execution
from harness.records.study import StudyRun
from harness.records.study_ledger import StudyLedger, StudyStatistics
from harness.records.taped import TapedRun
from harness.records.taped_study import TapedStudyLedger
from harness.records.task_ledger import NoTaskStatistics, TaskLedger, TaskStatistics

GenerationLedger = Ledger | CompletionLedger | SampledLedger | StudyLedger
OutputLedger = GenerationLedger | TaskLedger
AnyLedger = OutputLedger | DepthLedger
AnyStatistics = (
    Statistics
    | CompletionStatistics
    | SampledStatistics
    | NoSampledStatistics
    | TaskStatistics
    | NoTaskStatistics
    | StudyStatistics
    | DepthStatistics
)


def ledger_of(protocol: AnyProtocol, run: AnyRun, executions: Mapping[str, Execution]) -> AnyLedger:
    """The ledger of a run of the protocol's kind; JournalError where the run isn't one."""
    if isinstance(protocol, DepthProtocol) and isinstance(run, DepthRun):
        return depth_ledger(protocol, run)
    if isinstance(protocol, CompletionProtocol) and isinstance(run, CompletionRun):
        return completion_ledger(protocol, run, executions)
    if isinstance(protocol, SamplingProtocol) and isinstance(run, SampledRun):
        return sampled_ledger(protocol, run, executions)
    if isinstance(protocol, TaskCrnProtocol) and isinstance(run, TapedRun):
        return task_ledger(protocol, run, executions)
    if isinstance(protocol, StudyProtocol) and isinstance(run, StudyRun):
        return study_ledger(protocol, run, executions)
    if isinstance(protocol, BehaviorProtocol) and isinstance(run, Run):
        return ledger(protocol, run)
    raise JournalError("run record", expected=f"a run of {protocol.id}", found=type(run).__name__, todo=TODO)


def statistics_of(protocol: AnyProtocol, book: AnyLedger) -> AnyStatistics:
    """The counts over a ledger of the protocol's kind; any other ledger is misuse."""
    if isinstance(protocol, BehaviorProtocol) and isinstance(book, Ledger):
        return statistics(protocol, book)
    if isinstance(protocol, CompletionProtocol) and isinstance(book, CompletionLedger):
        return completion_statistics(protocol, book)
    if isinstance(protocol, DepthProtocol) and isinstance(book, DepthLedger):
        return depth_statistics(protocol, book)
    if isinstance(protocol, SamplingProtocol) and isinstance(book, SampledLedger):
        return sampled_statistics(protocol, book)
    if isinstance(protocol, TaskCrnProtocol) and isinstance(book, TaskLedger):
        return task_statistics(protocol, book)
    if isinstance(protocol, StudyProtocol) and isinstance(book, StudyLedger):
        return study_statistics(protocol, book)
    raise RuntimeError(f"{protocol.id} has no {type(book).__name__}")


def ledger_type(protocol: AnyProtocol) -> type[AnyLedger]:
    """The record that ledger.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return DepthLedger
    if isinstance(protocol, SamplingProtocol):
        return SampledLedger
    if isinstance(protocol, TaskCrnProtocol):
        return TaskLedger
    if isinstance(protocol, StudyProtocol):
        return TapedStudyLedger if isinstance(protocol, TapedStudyProtocol) else StudyLedger
    return CompletionLedger if isinstance(protocol, CompletionProtocol) else Ledger
