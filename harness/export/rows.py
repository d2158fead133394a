"""From a judged run to rows: run.json's cells joined to the ledger's rows by identity. Values are the records' own."""

from collections.abc import Iterator

from harness.claims.judge import result_name
from harness.claims.view import RunView
from harness.export.columns import COLUMNS, Cell
from harness.records.completion import AccountedRow, CompletionRow, Executed, NumericJudged, ProgramTaken, Terminal
from harness.records.depth import TraceCell
from harness.records.depth_ledger import DepthCellRow
from harness.records.evaluation import NumericFound
from harness.records.kinds import AnyUnit
from harness.records.ledger import (
    CellRow,
    GoldCompared,
    NotObserved,
    NumberFound,
    NumberObservation,
    SyntaxObservation,
)
from harness.records.prompt import Condition, NamedCondition
from harness.records.run import CellRecord, PromptRow
from harness.records.sampling import SampledEvidence
from harness.records.study import StudyCondition
from harness.records.study_ledger import AnswerJudged, StudyRow
from harness.records.taped_study import TapedStudyRow
from harness.records.task_ledger import TapeFacts, TaskExecution, TaskNumeric, TaskRow, TaskVerdict

Fields = Iterator[tuple[str, Cell]]
NAMES = tuple(column.name for column in COLUMNS)


def rows(view: RunView) -> Iterator[dict[str, Cell]]:
    """A row a cell, in the ledger's order, with every column; None where a kind has no such value."""
    found = {
        (unit.source_id, unit.replicate, cell.condition): (unit, cell) for unit in view.run.units for cell in unit.cells
    }
    head = dict(_head(view))
    conditions = {one.id: one for one in view.loaded.protocol.conditions}
    for row in view.ledger.cells:
        unit, cell = found[row.source_id, row.replicate, row.condition]
        condition = conditions[row.condition]
        fields = dict([*_prompt(unit, cell), *_generated(cell), *_row(row)])
        known = head | dict(_condition(condition)) | fields
        if unknown := {*known} - {*NAMES}:
            raise RuntimeError(f"no such column: {sorted(unknown)}")
        yield {name: known.get(name) for name in NAMES}


def _condition(condition: NamedCondition) -> Fields:
    if isinstance(condition, Condition):
        yield from (("system", condition.system), ("boundary", condition.boundary))
    if isinstance(condition, StudyCondition):
        yield "system", any(one.role == "system" for one in condition.messages)


def _head(view: RunView) -> Fields:
    run, audit = view.run, view.audit
    yield from (("protocol", run.protocol), ("registered_id", run.registered_id), ("run_id", audit.run_id))
    yield from (("protocol_digest", run.protocol_digest), ("run_sha256", audit.run_sha256), ("tier", audit.tier))
    yield from (("result_name", result_name(view)), ("grid", run.grid), ("port", run.port))


def _prompt(unit: AnyUnit, cell: PromptRow) -> Fields:
    yield "source_text_sha256", unit.source_text_sha256
    yield "prompt_sha256", cell.prompt_sha256
    yield "prompt_tokens", len(cell.prompt_ids)
    yield "prompt_ids", cell.prompt_ids
    yield "edit_positions", tuple(edit.position for edit in cell.edits)
    yield "edit_official_ids", tuple(edit.official for edit in cell.edits)
    yield "edit_replaced_ids", tuple(edit.replaced for edit in cell.edits)
    if isinstance(cell, TraceCell):
        yield "target_start", cell.target.start
        yield "target_end", cell.target.end
    if isinstance(unit, SampledEvidence):
        yield "base_seed", unit.sampling.seeds.base
        yield "run_seed", unit.sampling.seeds.run


def _generated(cell: PromptRow) -> Fields:
    if isinstance(cell, CellRecord):
        yield "generated_sha256", cell.generated_sha256
        yield "generated_ids", cell.generated_ids
        yield "text_escaped", cell.text_escaped
        yield "text_sha256", cell.text_sha256
        yield "length", cell.length
        yield "natural_eos", cell.eos
        yield "truncated", cell.truncated


def _row(row: CellRow | AccountedRow | TaskRow | DepthCellRow) -> Fields:
    for name in ("domain", "index", "source_id", "replicate", "condition"):
        yield name, getattr(row, name)
    match row:
        case DepthCellRow():
            yield "crossing_tokens", row.crossing_tokens
            yield "route_decisions", row.route_decisions
        case CellRow():
            yield "stop", "natural_eos" if row.natural_eos else "budget_truncated" if row.truncated else "other_stop"
            yield from _behavior(row)
        case _:
            yield "stop", row.stop
            yield from _accounted(row)
            yield from _number(row)
            yield from _program(row)
            yield from _answer(row)


def _behavior(row: CellRow) -> Fields:
    if isinstance(row.number, NumberObservation):
        found, compared = row.number.last_number, row.number.comparison
        yield "number_rule", "number-r04"
        if isinstance(found, NumberFound):
            yield "number", found.value
            yield "number_start", found.start
            yield "number_end", found.end
        if isinstance(compared, GoldCompared):
            yield "gold", compared.gold
            yield "numeric_result", "last_number_match" if compared.last_number_match else "no_match"
    if isinstance(row.syntax, SyntaxObservation):
        yield "ast_parses", row.syntax.ast_parses


def _accounted(row: AccountedRow | TaskRow) -> Fields:
    if isinstance(row, TaskRow):
        yield "block", row.role
        yield from _drawn(row.tape)
        return
    if isinstance(row, TapedStudyRow):
        yield from _drawn(row.tape)
    yield "completion", row.completion
    if isinstance(row.terminal, Terminal):
        yield "terminal_explicit", row.terminal.explicit
        yield "terminal_reached", row.terminal.reached
    if isinstance(row, CompletionRow):
        yield "baseline_stop", row.baseline.stop
        yield "baseline_length", row.baseline.length
        yield "baseline_compared_tokens", row.baseline.compared
        yield "baseline_prefix_exact", row.baseline.prefix_exact


def _drawn(tape: TapeFacts) -> Fields:
    yield "tape_sha256", tape.tape_sha256
    yield "tape_consumed", tape.consumed
    yield "tape_gaps", tape.gaps
    yield "tape_boundary_ties", tape.boundary_ties


def _number(row: AccountedRow | TaskRow) -> Fields:
    numeric = row.numeric
    if isinstance(numeric, NotObserved):
        return
    found = numeric.extraction
    yield "number_rule", found.rule
    if isinstance(found, NumericFound):
        yield from (("number_method", found.method), ("number", found.value), ("number_marker", found.marker))
        yield from (("number_start", found.start), ("number_end", found.end))
    if isinstance(numeric, NumericJudged | TaskNumeric):
        yield "gold", numeric.gold
        yield "fixed_budget_success", numeric.fixed_budget_exact
        yield "strict_complete_success", numeric.strict_complete_exact
    if isinstance(numeric, NumericJudged):
        yield "evaluable", numeric.evaluable
        yield "diagnostic_fallback_exact", numeric.fallback_exact
    if isinstance(numeric, TaskNumeric):
        yield "numeric_result", numeric.result


def _answer(row: AccountedRow | TaskRow) -> Fields:
    if isinstance(row, StudyRow) and isinstance(row.answer, AnswerJudged):
        yield from (("judge", row.answer.judge), ("judge_outcome", row.answer.outcome))
        yield from (("judge_value", row.answer.value), ("fixed_budget_success", row.answer.success))


def _program(row: AccountedRow | TaskRow) -> Fields:
    code = row.code
    if isinstance(code, NotObserved):
        return
    yield "program_rule", code.program.rule
    if isinstance(code.program, ProgramTaken):
        yield "program_method", code.program.method
        yield "program_sha256", code.program.program_sha256
        yield "program_start", code.program.start
        yield "program_end", code.program.end
    if isinstance(row, TaskRow):
        yield from _task_verdict(row)
    elif isinstance(row.code, NotObserved):
        return
    elif isinstance(row.code.verdict, Executed):
        done = row.code.verdict
        yield from (("outcome", done.outcome), ("verdict", done.published), ("ast_parses", done.ast_parses))
        yield from (("executed", done.ran), ("execution_sha256", done.execution_sha256))
        yield from (
            ("fixed_budget_success", done.fixed_budget_pass),
            ("strict_complete_success", done.strict_complete_pass),
        )
    else:
        yield "verdict", row.code.verdict.reason


def _task_verdict(row: TaskRow) -> Fields:
    if isinstance(row.code, NotObserved):
        return
    if isinstance(row.code.execution, TaskExecution):
        yield "outcome", row.code.execution.outcome
        yield "execution_sha256", row.code.execution.execution_sha256
    done = row.code.verdict
    if not isinstance(done, TaskVerdict):
        yield "verdict", done.reason
        return
    yield from (("verdict", done.failure_type), ("ast_parses", done.ast_parses), ("executed", done.executed))
    yield from (("fixed_budget_success", done.passed), ("strict_complete_success", done.strict_complete_pass))
