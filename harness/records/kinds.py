"""Which records a protocol's runs are made of: the one place where its kind decides that."""

from harness.records.depth import DepthRun, TraceEvidence, TraceJournal
from harness.records.protocol import AnyProtocol, CompletionProtocol, DepthProtocol, SamplingProtocol
from harness.records.run import CompletionRun, Journal, Run, UnitEvidence
from harness.records.sampling import SampledEvidence, SampledJournal, SampledRun

AnyUnit = UnitEvidence | SampledEvidence | TraceEvidence
AnyJournal = Journal | SampledJournal | TraceJournal
AnyRun = Run | SampledRun | DepthRun
JudgedRun = CompletionRun | SampledRun


def journal_type(protocol: AnyProtocol) -> type[Journal] | type[SampledJournal] | type[TraceJournal]:
    """The record that journal/<unit>.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return TraceJournal
    return SampledJournal if isinstance(protocol, SamplingProtocol) else Journal


def run_type(protocol: AnyProtocol) -> type[Run] | type[SampledRun] | type[DepthRun]:
    """The record that run.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return DepthRun
    if isinstance(protocol, SamplingProtocol):
        return SampledRun
    return CompletionRun if isinstance(protocol, CompletionProtocol) else Run
