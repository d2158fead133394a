"""What the ledger says of one cell, in words: how it ended, what was taken from its text, the verdict."""

from collections.abc import Iterator, Mapping

from harness.records.completion import (
    AccountedRow,
    CodeAccount,
    CompletionRow,
    Executed,
    NumericJudged,
    ProgramTaken,
    Terminal,
)
from harness.records.depth_ledger import DepthCellRow
from harness.records.evaluation import CodeMissing, NumericExtraction, NumericFound
from harness.records.ledger import (
    CellRow,
    DoesNotParse,
    GoldCompared,
    NotObserved,
    NumberFound,
    NumberObservation,
    SyntaxObservation,
)
from harness.records.sandbox import Execution
from harness.records.study_ledger import AnswerJudged, StudyRow
from harness.records.taped_study import TapedStudyRow
from harness.records.task_ledger import TaskCode, TaskExecution, TaskNumeric, TaskRow, TaskVerdict
from harness.report.words import flat, word

Judged = CellRow | AccountedRow | TaskRow
Facts = Iterator[tuple[str, str]]


def taken(row: Judged) -> tuple[int, int] | None:
    """[start, end) in code points of what an evaluator took from the text; none where it took nothing."""
    if isinstance(row, CellRow):
        number = row.number.last_number if isinstance(row.number, NumberObservation) else None
        return (number.start, number.end) if isinstance(number, NumberFound) else None
    if not isinstance(row.numeric, NotObserved):
        found = row.numeric.extraction
        return (found.start, found.end) if isinstance(found, NumericFound) else None
    program = None if isinstance(row.code, NotObserved) else row.code.program
    return (program.start, program.end) if isinstance(program, ProgramTaken) else None


def badge(row: Judged) -> str:  # noqa: PLR0911  one line a verdict
    """The verdict in a few words; empty where the domain has no judge."""
    if isinstance(row, CellRow):
        return _behavior_badge(row)
    if isinstance(row, StudyRow) and isinstance(row.answer, AnswerJudged):
        return row.answer.outcome
    match row.numeric:
        case NumericJudged() | TaskNumeric():
            return "exact" if row.numeric.fixed_budget_exact else "not exact"
        case NotObserved():
            pass
        case _:
            return "no gold"
    match row.code:
        case CodeAccount(verdict=Executed(published=outcome)):
            return outcome
        case CodeAccount():
            return "not executed"
        case TaskCode(verdict=TaskVerdict(failure_type=failure)):
            return failure
        case TaskCode():
            return "no verdict"
    return ""


def _behavior_badge(row: CellRow) -> str:
    if isinstance(row.number, NumberObservation):
        compared = row.number.comparison
        if not isinstance(compared, GoldCompared):
            return "no gold"
        return "number matches" if compared.last_number_match else "number doesn't match"
    if isinstance(row.syntax, SyntaxObservation):
        return "parses" if row.syntax.ast_parses else "doesn't parse"
    return ""


def accounts(row: Judged | DepthCellRow, verdicts: Mapping[str, Execution]) -> Facts:
    """(name, value) of every account of a cell."""
    match row:
        case DepthCellRow():
            yield from flat(row, without=("domain", "index", "source_id", "replicate", "condition", "prompt_tokens"))
        case CellRow():
            yield "natural EOS", word(row.natural_eos)
            yield "cut at the budget", word(row.truncated)
            yield "length", f"{row.length} tokens, EOS counted"
            yield from _behavior(row)
        case _:
            yield from _stopped(row)
            yield from _numeric(row)
            yield from _code(row, verdicts)
            yield from _answer(row)


def _behavior(row: CellRow) -> Facts:
    if isinstance(row.number, NumberObservation):
        found = row.number.last_number
        yield "last number", found.value if isinstance(found, NumberFound) else "none"
        compared = row.number.comparison
        yield "gold number", compared.gold if isinstance(compared, GoldCompared) else "absent"
    if isinstance(row.syntax, SyntaxObservation):
        outcome = row.syntax.outcome
        said = f": {outcome.error}" if isinstance(outcome, DoesNotParse) else ""
        yield "parses as Python", f"{word(row.syntax.ast_parses)} ({row.syntax.part}{said})"


def _stopped(row: AccountedRow | TaskRow) -> Facts:
    yield "stop", row.stop
    yield "length", f"{row.length} tokens, EOS counted"
    if isinstance(row, AccountedRow):
        yield "completion class", row.completion
        if isinstance(row.terminal, Terminal):
            yield "task terminal", f"explicit {word(row.terminal.explicit)}, reached {word(row.terminal.reached)}"
    if isinstance(row, CompletionRow):
        before = row.baseline
        yield (
            "at the baseline's budget",
            f"{before.stop}, {before.length} tokens; begins with its {before.compared}: " + word(before.prefix_exact),
        )
    if isinstance(row, TaskRow):
        yield "block", row.role
    if isinstance(row, TaskRow | TapedStudyRow):
        yield from flat(row.tape, prefix="tape: ")


def _answer(row: AccountedRow | TaskRow) -> Facts:
    if isinstance(row, StudyRow) and isinstance(row.answer, AnswerJudged):
        yield f"judge: {row.answer.judge}", row.answer.outcome
        yield "compared or returned", row.answer.value or "nothing"


def _numeric(row: AccountedRow | TaskRow) -> Facts:
    numeric = row.numeric
    if isinstance(numeric, NotObserved):
        return
    yield "number taken", _extraction(numeric.extraction)
    if isinstance(numeric, NumericJudged | TaskNumeric):
        yield "gold number", numeric.gold
        yield "exact within the budget", word(numeric.fixed_budget_exact)
        yield "strict: exact and complete", word(numeric.strict_complete_exact)
    else:
        yield "gold number", "absent: nothing is judged"
    if isinstance(numeric, NumericJudged):
        yield "evaluable", word(numeric.evaluable)
        yield "diagnostic: exact by the last number alone", word(numeric.fallback_exact)
    if isinstance(numeric, TaskNumeric):
        yield "result", numeric.result
        yield "final marker", word(numeric.final_marker)


def _extraction(found: NumericExtraction) -> str:
    if not isinstance(found, NumericFound):
        return f"none ({found.rule})"
    return f"{found.value} ({found.rule}, {found.method}{', by a marker' if found.marker else ''})"


def _code(row: AccountedRow | TaskRow, verdicts: Mapping[str, Execution]) -> Facts:
    code = row.code
    if isinstance(code, NotObserved):
        return
    program = code.program
    yield (
        "program taken",
        f"none ({program.rule})" if isinstance(program, CodeMissing) else f"{program.rule}, {program.method}",
    )
    if isinstance(program, ProgramTaken):
        yield "program SHA-256", program.program_sha256
    if isinstance(code, CodeAccount):
        done = code.verdict
        yield from flat(done)
        sha256 = done.execution_sha256 if isinstance(done, Executed) else ""
    else:
        yield from flat(code.execution)
        yield from flat(code.verdict)
        sha256 = code.execution.execution_sha256 if isinstance(code.execution, TaskExecution) else ""
    if sha256 in verdicts:
        evidence = verdicts[sha256].evidence
        yield "sandbox detail", evidence.detail or "none"
        yield "exit code", word(evidence.exit_code)
        yield "checker's nonce came back", word(evidence.nonce_returned)
