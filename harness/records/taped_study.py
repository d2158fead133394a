"""What a study that is drawn under tapes leaves beyond a greedy one: how each unit was drawn, what each row consumed.

A replicate of such a study is a tape: all conditions of a source read the same u_t in the same step (R08 4.2).
"""

from typing import Literal

from harness.records.base import Record
from harness.records.run import UnitObservation
from harness.records.study import StudyEvidence, StudyRun
from harness.records.study_ledger import StudyLedger, StudyRow
from harness.records.taped import TapedBatch, TapedEvidence
from harness.records.task_ledger import TapeFacts


class TapedStudyEvidence(StudyEvidence):
    """A study's unit whose tokens were drawn under a tape. `checks.argmax` counts row steps that drew the argmax."""

    tape: TapedBatch


class TapedStudyJournal(Record):
    """journal/<unit>.json of such a unit: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: TapedStudyEvidence
    evidence_sha256: str
    observation: UnitObservation


class TapedStudyRun(StudyRun):
    """run.json of a study under tapes."""

    units: tuple[TapedStudyEvidence, ...]


class TapedStudyRow(StudyRow):
    """A cell of a study under tapes. `replicate` is the tape that it was drawn under."""

    tape: TapeFacts


class TapedStudyLedger(StudyLedger):
    """ledger.json of a study under tapes: rows in the protocol's order (domain, index, tape, condition or edge)."""

    cells: tuple[TapedStudyRow, ...]


# A unit that was drawn under a tape, whatever else its protocol's kind records of it.
TapedUnit = TapedEvidence | TapedStudyEvidence
