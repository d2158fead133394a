"""Which records a protocol's runs are made of: the one place where its kind decides that."""

from collections.abc import Mapping

from harness.records.depth import DepthRun, TraceEvidence, TraceJournal
from harness.records.graph import GraphEvidence, GraphJournal, GraphRun
from harness.records.protocol import (
    AnyProtocol,
    CompletionProtocol,
    DepthProtocol,
    GraphTaskProtocol,
    SamplingProtocol,
    StudyProtocol,
    TapedStudyProtocol,
    TaskCrnProtocol,
)
from harness.records.run import CompletionRun, Journal, Run, UnitEvidence
from harness.records.sampling import SampledEvidence, SampledJournal, SampledRun
from harness.records.study import StudyEvidence, StudyJournal, StudyRun
from harness.records.taped import TapedEvidence, TapedJournal, TapedRun
from harness.records.taped_study import TapedStudyEvidence, TapedStudyJournal, TapedStudyRun

AnyUnit = (
    UnitEvidence | SampledEvidence | TapedEvidence | GraphEvidence | TraceEvidence | StudyEvidence | TapedStudyEvidence
)
AnyJournal = Journal | SampledJournal | TapedJournal | GraphJournal | TraceJournal | StudyJournal | TapedStudyJournal
AnyRun = Run | SampledRun | TapedRun | GraphRun | DepthRun | StudyRun | TapedStudyRun
JudgedRun = CompletionRun | SampledRun | TapedRun | GraphRun | StudyRun
JOURNALS: Mapping[type[AnyUnit], type[AnyJournal]] = {
    UnitEvidence: Journal,
    SampledEvidence: SampledJournal,
    TapedEvidence: TapedJournal,
    GraphEvidence: GraphJournal,
    TraceEvidence: TraceJournal,
    StudyEvidence: StudyJournal,
    TapedStudyEvidence: TapedStudyJournal,
}


def journal_type(protocol: AnyProtocol) -> type[AnyJournal]:
    """The record that journal/<unit>.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return TraceJournal
    if isinstance(protocol, TaskCrnProtocol):
        return GraphJournal if isinstance(protocol, GraphTaskProtocol) else TapedJournal
    if isinstance(protocol, StudyProtocol):
        return TapedStudyJournal if isinstance(protocol, TapedStudyProtocol) else StudyJournal
    return SampledJournal if isinstance(protocol, SamplingProtocol) else Journal


def run_type(protocol: AnyProtocol) -> type[AnyRun]:
    """The record that run.json of the protocol's runs holds."""
    if isinstance(protocol, DepthProtocol):
        return DepthRun
    if isinstance(protocol, SamplingProtocol):
        return SampledRun
    if isinstance(protocol, TaskCrnProtocol):
        return GraphRun if isinstance(protocol, GraphTaskProtocol) else TapedRun
    if isinstance(protocol, StudyProtocol):
        return TapedStudyRun if isinstance(protocol, TapedStudyProtocol) else StudyRun
    return CompletionRun if isinstance(protocol, CompletionProtocol) else Run
