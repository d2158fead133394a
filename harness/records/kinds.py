"""Which records a protocol's runs are made of: the one place where its kind decides that."""

from harness.records.depth import DepthRun, TraceEvidence, TraceJournal
from harness.records.graph import GraphEvidence, GraphJournal, GraphRun
from harness.records.protocol import (
    AnyProtocol,
    CompletionProtocol,
    DepthProtocol,
    GraphTaskProtocol,
    SamplingProtocol,
    TaskCrnProtocol,
)
from harness.records.run import CompletionRun, Journal, Run, UnitEvidence
from harness.records.sampling import SampledEvidence, SampledJournal, SampledRun
from harness.records.taped import TapedEvidence, TapedJournal, TapedRun

AnyUnit = UnitEvidence | SampledEvidence | TapedEvidence | GraphEvidence | TraceEvidence
AnyJournal = Journal | SampledJournal | TapedJournal | GraphJournal | TraceJournal
AnyRun = Run | SampledRun | TapedRun | GraphRun | DepthRun
JudgedRun = CompletionRun | SampledRun | TapedRun | GraphRun


def journal_type(protocol: AnyProtocol) -> type[AnyJournal]:
    """The record that journal/<unit>.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return TraceJournal
    if isinstance(protocol, TaskCrnProtocol):
        return GraphJournal if isinstance(protocol, GraphTaskProtocol) else TapedJournal
    return SampledJournal if isinstance(protocol, SamplingProtocol) else Journal


def run_type(protocol: AnyProtocol) -> type[AnyRun]:
    """The record that run.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return DepthRun
    if isinstance(protocol, SamplingProtocol):
        return SampledRun
    if isinstance(protocol, TaskCrnProtocol):
        return GraphRun if isinstance(protocol, GraphTaskProtocol) else TapedRun
    return CompletionRun if isinstance(protocol, CompletionProtocol) else Run
