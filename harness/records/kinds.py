"""Which records a protocol's runs are made of: the one place where its kind decides that."""

from harness.records.depth import DepthRun, TraceEvidence, TraceJournal
from harness.records.protocol import AnyProtocol, CompletionProtocol, DepthProtocol
from harness.records.run import CompletionRun, Journal, Run, UnitEvidence

AnyUnit = UnitEvidence | TraceEvidence
AnyJournal = Journal | TraceJournal
AnyRun = Run | DepthRun


def journal_type(protocol: AnyProtocol) -> type[Journal] | type[TraceJournal]:
    """The record that journal/<unit>.json of the protocol's runs holds."""
    return TraceJournal if isinstance(protocol, DepthProtocol) else Journal


def run_type(protocol: AnyProtocol) -> type[Run] | type[DepthRun]:
    """The record that run.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return DepthRun
    return CompletionRun if isinstance(protocol, CompletionProtocol) else Run
