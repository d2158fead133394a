"""The ledger of a study: each cell's accounts, and what its domain's own judge says of its text.

A function of the protocol, run.json and the sandbox records, so it can be made again byte for byte: what an author's
function gave is part of the run, and no code of an author's is loaded here.
"""

import json
from collections.abc import Iterator, Mapping

import msgspec

from harness.canon import escaped, text_sha256
from harness.compare import TODO, cells_by_condition
from harness.errors import JournalError
from harness.evaluate.answer import compared, exact, last_match
from harness.ledgers.accounts import accounts, edge_rows
from harness.ledgers.drawn import drawn_by_condition, tape_facts
from harness.ledgers.heads import ledger_head
from harness.ledgers.plan import units_in_order
from harness.ledgers.reading import Executions, Reading, verdicts_of
from harness.protocols.check_study import judge_of
from harness.records.ledger import NotObserved
from harness.records.protocol import StudyProtocol, TapedStudyProtocol
from harness.records.run import CellRecord
from harness.records.study import ExactJudge, FunctionJudge, FunctionScore, PatternJudge, StudyRun
from harness.records.study_ledger import AnswerJudged, AnswerJudgeName, AnswerOutcome, StudyLedger, StudyRow
from harness.records.taped_study import TapedStudyEvidence, TapedStudyLedger, TapedStudyRow

NO_ANSWER = NotObserved(reason="the domain has no text judge and no function")
Scores = Mapping[tuple[str, str, str], FunctionScore]
At = Reading[StudyProtocol, StudyRun]


def study_ledger(protocol: StudyProtocol, run: StudyRun, executions: Executions) -> StudyLedger:
    """Rows of a run; JournalError where the run isn't exactly a grid of this protocol, or a cell's verdict or score
    isn't its own.
    """
    units = units_in_order(protocol, run, run.units)
    verdicts, scores = verdicts_of(protocol, run, executions), scores_of(run)
    rows = tuple(
        row
        for domain, unit in units
        for at in (Reading(protocol, run, domain, unit),)
        for row in _rows(at, verdicts, scores)
    )
    classes = {(row.source_id, row.replicate, row.condition): row.completion for row in rows}
    shared = ledger_head(protocol, run) | {
        "evaluators": protocol.evaluators,
        "edges": tuple(row for _, unit in units for row in edge_rows(protocol, unit, classes)),
    }
    if isinstance(protocol, TapedStudyProtocol):
        return TapedStudyLedger(**shared, cells=tuple(row for row in rows if isinstance(row, TapedStudyRow)))
    return StudyLedger(**shared, cells=rows)


def _rows(at: At, verdicts: Executions | None, scores: Scores) -> Iterator[StudyRow]:
    """A unit's cells in the protocol's order; under a tape each with what its row drew."""
    rows = {
        condition: StudyRow(**msgspec.structs.asdict(accounts(at, cell, verdicts)), answer=_answer(at, cell, scores))
        for condition, cell in cells_by_condition(at.protocol, at.unit).items()
    }
    if not isinstance(at.unit, TapedStudyEvidence):
        yield from rows.values()
        return
    drawn = drawn_by_condition(at.protocol, at.unit)
    for condition, row in rows.items():
        yield TapedStudyRow(**msgspec.structs.asdict(row), tape=tape_facts(drawn[condition]))


def scores_of(run: StudyRun) -> Scores:
    """What functions gave, by cell; JournalError for two of one cell."""
    scores = {(one.source_id, one.replicate, one.condition): one for one in run.scores}
    if len(scores) != len(run.scores):
        raise JournalError("run record: scores", expected="one a cell", found=f"{len(run.scores)}", todo=TODO)
    return scores


def _answer(at: At, cell: CellRecord, scores: Scores) -> AnswerJudged | NotObserved:
    match judge_of(at.protocol, at.domain.name):
        case ExactJudge() as judge:
            expected, text = _expected(at), at.text(cell)
            return _said(
                judge="exact", success=exact(text, expected, judge.compare), value=compared(text, judge.compare)
            )
        case PatternJudge() as judge:
            found = last_match(at.text(cell), judge.pattern)
            if found is None:
                return AnswerJudged(judge="regex", outcome="missing", success=False, value="")
            return _said(judge="regex", success=not judge.field or found == _expected(at).strip(), value=found)
        case FunctionJudge() as judge:
            return _scored(at, cell, judge, scores)
    return NO_ANSWER


def _said(*, judge: AnswerJudgeName, success: bool, value: str) -> AnswerJudged:
    outcome: AnswerOutcome = "success" if success else "failure"
    return AnswerJudged(judge=judge, outcome=outcome, success=success, value=escaped(value))


def _expected(at: At) -> str:
    source_id = at.unit.source_id
    if source_id not in at.run.answers:
        where = f"run record: answer of {source_id}"
        raise JournalError(where, expected="the expected text", found="none", todo=TODO)
    return at.run.answers[source_id]


def _scored(at: At, cell: CellRecord, judge: FunctionJudge, scores: Scores) -> AnswerJudged:
    """The cell's own score: of this text, by the registered source."""
    score = scores.get((at.unit.source_id, at.unit.replicate, cell.condition))
    found = (score.text_sha256, score.source_sha256) if score is not None else "none"
    expected = (text_sha256(at.text(cell)), judge.source_sha256)
    if score is None or found != expected:
        raise JournalError(f"{at.where(cell)}: score", expected=str(expected), found=str(found), todo=TODO)
    if score.outcome != "returned":
        return AnswerJudged(judge="function", outcome=score.outcome, success=False, value=score.detail)
    success = json.loads(score.value) is True
    outcome: AnswerOutcome = "success" if success else "failure"
    return AnswerJudged(judge="function", outcome=outcome, success=success, value=score.value)
