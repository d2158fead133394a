"""The completion ledger (R05 4): stopping, task terminal, evaluable and correct as four accounts of each cell.

A function of the protocol, run.json and the sandbox records, so it can be made again byte for byte. No account is
filled in from another: a text that stopped needn't be an answer, an answer that can be judged needn't be right.
"""

from collections.abc import Iterator, Mapping

from harness.canon import digest, text_sha256
from harness.compare import TODO, cells_by_condition, common_prefix, unit_edges
from harness.errors import JournalError
from harness.evaluate.completion import completion_class, stop_state
from harness.evaluate.numeric import NUMERIC_RULES, final_marker_r05, parse_gold, same_number
from harness.evaluate.terminal import Kind, closed_python_fence, terminal_r05
from harness.ledgers.executions import TODO as EVIDENCE
from harness.ledgers.executions import CodeCell, code_cells, execution_key, extracted, task_of
from harness.ledgers.plan import units_in_order
from harness.ledgers.text import observed_text
from harness.protocols.grids import executed_grid, is_executed
from harness.records.completion import (
    BaselineCompared,
    CodeAccount,
    CompletionEdgeRow,
    CompletionLedger,
    CompletionRow,
    Executed,
    NotExecuted,
    NumericJudged,
    NumericWithoutGold,
    ProgramTaken,
    PublishedOutcome,
    Terminal,
)
from harness.records.evaluation import CodeFound, CodeMissing, CompletionClass, NumericFound
from harness.records.ledger import NotObserved
from harness.records.protocol import CompletionProtocol, Domain
from harness.records.run import BaselineCell, CellRecord, CompletionRun, UnitEvidence
from harness.records.sandbox import Execution, Outcome

NO_NUMBER = NotObserved(reason="the domain registers no gold answer")
NO_PROGRAM = NotObserved(reason="the domain registers no tests")
NO_TERMINAL = NotObserved(reason="the domain has no terminal judge")

# The document's words (R05 6); the sandbox's own word is kept beside them.
PUBLISHED: dict[Outcome, PublishedOutcome] = {
    "passed": "passed",
    "assertion_failed": "assertion_failed",
    "runtime_error": "runtime_error",
    "timeout": "timeout",
    "out_of_memory": "runtime_error",
    "syntax_error": "ast_error",
    "extract_failed": "extract_failed",
    "infrastructure": "sandbox_error",
}

Executions = Mapping[str, Execution]


def completion_ledger(protocol: CompletionProtocol, run: CompletionRun, executions: Executions) -> CompletionLedger:
    """Rows of a run; JournalError where the run isn't exactly a grid of this protocol, or the verdicts aren't its own.

    Where a gate judges the grid's programs, each of them has one execution; everywhere else there is none. InputError
    where a gold number of the run is none.
    """
    units = units_in_order(protocol, run, run.units)
    verdicts = _verdicts(protocol, run, executions)
    baseline = {(cell.source_id, cell.replicate, cell.condition): cell for cell in run.baseline.cells}
    rows = tuple(
        _row(Reading(protocol, run, domain, unit), cell, verdicts, _baseline_cell(baseline, unit, cell))
        for domain, unit in units
        for cell in cells_by_condition(protocol, unit).values()
    )
    classes = {(row.source_id, row.replicate, row.condition): row.completion for row in rows}
    return CompletionLedger(
        schema=1,
        protocol=run.protocol,
        registered_id=run.registered_id,
        protocol_digest=run.protocol_digest,
        run_sha256=digest(run),
        baseline_run_sha256=run.baseline.run_sha256,
        result_name=run.result_name,
        grid=run.grid,
        port=run.port,
        domains=tuple(domain.name for domain in protocol.domains if domain.name in run.domains),
        evaluators=protocol.evaluators,
        cells=rows,
        edges=tuple(row for _, unit in units for row in _edges(protocol, unit, classes)),
    )


def _verdicts(protocol: CompletionProtocol, run: CompletionRun, executions: Executions) -> Executions | None:
    """The executions, one for each program and of that program; None where this grid's programs aren't executed."""
    executed = executed_grid(protocol, run.grid)
    cells = {cell.key: cell for cell in code_cells(protocol, run) if isinstance(cell.extraction, CodeFound)}
    for key in sorted({*cells, *executions} if executed else executions):
        where = f"sandbox/{key}.json"
        if not executed or key not in cells:
            raise JournalError(where, expected="no execution: the run has no such program", found="one", todo=EVIDENCE)
        if key not in executions:
            raise JournalError(
                where,
                expected="the verdict on this cell's program",
                found="none",
                todo="Restore it; only a run without a ledger is judged further (--run, with a container engine).",
            )
        _require_own(where, run, cells[key], executions[key])
    return executions if executed else None


def _require_own(where: str, run: CompletionRun, cell: CodeCell, execution: Execution) -> None:
    """The execution is of the cell's program and of its source's tests; JournalError names the digest that isn't."""
    program = cell.extraction.program if isinstance(cell.extraction, CodeFound) else ""
    pairs = (
        ("candidate_sha256", text_sha256(program), execution.evidence.candidate_sha256),
        ("tests_sha256", task_of(run, cell.source_id).tests_sha256, execution.evidence.tests_sha256),
    )
    for name, expected, found in pairs:
        if expected != found:
            raise JournalError(f"{where}: {name}", expected=expected, found=found, todo=EVIDENCE)


class Reading:
    """A unit as its cells are read: the protocol, the run and the domain that they belong to."""

    def __init__(self, protocol: CompletionProtocol, run: CompletionRun, domain: Domain, unit: UnitEvidence) -> None:
        self.protocol, self.run, self.domain, self.unit = protocol, run, domain, unit

    def where(self, cell: CellRecord) -> str:
        """The cell's identity, for messages."""
        return f"cell {self.unit.source_id}, {self.unit.replicate}, {cell.condition}"

    def text(self, cell: CellRecord) -> str:
        """The cell's text as evaluators read it."""
        return observed_text(self.protocol, cell, where=self.where(cell))


def _row(at: Reading, cell: CellRecord, verdicts: Executions | None, baseline: BaselineCell) -> CompletionRow:
    text, unit = at.text(cell), at.unit
    _require_one_end(at.where(cell), eos=cell.eos, truncated=cell.truncated)
    _require_one_end(f"baseline {at.where(cell)}", eos=baseline.eos, truncated=baseline.truncated)
    terminal = _terminal(at.domain, text, natural_eos=cell.eos)
    numeric = _numeric(at, text, cell) if "answer" in at.domain.gold else NO_NUMBER
    return CompletionRow(
        domain=unit.domain,
        index=unit.index,
        source_id=unit.source_id,
        replicate=unit.replicate,
        condition=cell.condition,
        generated_sha256=cell.generated_sha256,
        length=cell.length,
        stop=stop_state(eos=cell.eos, truncated=cell.truncated),
        completion=completion_class(
            eos=cell.eos,
            truncated=cell.truncated,
            terminal=isinstance(terminal, Terminal) and terminal.reached,
            fallback_number=by_place_alone(numeric),
        ),
        terminal=terminal,
        numeric=numeric,
        code=_code(at, cell, text, verdicts) if is_executed(at.domain) else NO_PROGRAM,
        baseline=_compared(at.run.baseline.max_new_tokens, baseline, cell),
    )


def _require_one_end(where: str, *, eos: bool, truncated: bool) -> None:
    if eos and truncated:
        raise JournalError(where, expected="EOS or the budget's end", found="both", todo=TODO)


def _terminal(domain: Domain, text: str, *, natural_eos: bool) -> Terminal | NotObserved:
    """R05 4.2: mathematics by its final marker; code by a closed fence or EOS; other domains have no judge."""
    if "answer" in domain.gold:
        marker = final_marker_r05(text)
        return Terminal(explicit=marker, reached=_reached("math", text, natural_eos=natural_eos, marker=marker))
    if is_executed(domain):
        closed = closed_python_fence(text)
        return Terminal(explicit=closed, reached=_reached("code", text, natural_eos=natural_eos, marker=False))
    return NO_TERMINAL


def _reached(kind: Kind, text: str, *, natural_eos: bool, marker: bool) -> bool:
    return terminal_r05(kind, text, natural_eos=natural_eos, marker=marker) == "reached"


def by_place_alone(numeric: NumericJudged | NumericWithoutGold | NotObserved) -> bool:
    """Whether a number was found by its place in the text and by no marker: the fallback (R05 4.3)."""
    found = None if isinstance(numeric, NotObserved) else numeric.extraction
    return isinstance(found, NumericFound) and not found.marker


def _numeric(at: Reading, text: str, cell: CellRecord) -> NumericJudged | NumericWithoutGold:
    extraction = NUMERIC_RULES[at.protocol.evaluators.numeric](text)
    recorded = at.run.gold.get(at.unit.source_id)
    if recorded is None:
        return NumericWithoutGold(extraction=extraction)
    gold = parse_gold(recorded, where=f"run record: gold of {at.unit.source_id}")
    found = extraction if isinstance(extraction, NumericFound) else None
    exact = found is not None and same_number(found.value, gold)
    by_marker = found is not None and found.marker
    evaluable = found is not None and (by_marker or cell.eos)
    return NumericJudged(
        extraction=extraction,
        gold=gold,
        evaluable=evaluable,
        fixed_budget_exact=exact,
        strict_complete_exact=exact and evaluable,
        strict_marker_only_exact=exact and by_marker,
        fallback_exact=exact and not by_marker,
    )


def _code(at: Reading, cell: CellRecord, text: str, verdicts: Executions | None) -> CodeAccount:
    found = extracted(at.protocol, at.run, at.unit, cell)
    if isinstance(found, CodeMissing):
        return CodeAccount(program=found, verdict=NotExecuted(reason="tier" if verdicts is None else "extract_failed"))
    taken = ProgramTaken(
        rule=found.rule,
        method=found.method,
        program_sha256=text_sha256(found.program),
        start=found.start,
        end=found.end,
    )
    if verdicts is None:
        return CodeAccount(program=taken, verdict=NotExecuted(reason="tier"))
    execution = verdicts[execution_key(at.unit, cell.condition)]
    return CodeAccount(program=taken, verdict=_executed(execution, complete=cell.eos or closed_python_fence(text)))


def _executed(execution: Execution, *, complete: bool) -> Executed:
    outcome = execution.evidence.outcome
    parses = outcome not in ("syntax_error", "infrastructure", "extract_failed")
    return Executed(
        outcome=outcome,
        published=PUBLISHED[outcome],
        execution_sha256=execution.evidence_sha256,
        ast_parses=parses,
        ran=parses,
        fixed_budget_pass=outcome == "passed",
        strict_complete_pass=outcome == "passed" and complete,
    )


def _baseline_cell(
    baseline: Mapping[tuple[str, str, str], BaselineCell], unit: UnitEvidence, cell: CellRecord
) -> BaselineCell:
    identity = (unit.source_id, unit.replicate, cell.condition)
    if identity not in baseline:
        where = f"baseline: {unit.source_id}, {unit.replicate}, {cell.condition}"
        raise JournalError(where, expected="the same cell of the baseline", found="none", todo=TODO)
    return baseline[identity]


def _compared(budget: int, baseline: BaselineCell, cell: CellRecord) -> BaselineCompared:
    """R05 2: the first min(baseline budget, baseline length) tokens, and how the baseline's cell had stopped."""
    compared = min(budget, len(baseline.generated_ids))
    return BaselineCompared(
        stop=stop_state(eos=baseline.eos, truncated=baseline.truncated),
        length=baseline.length,
        compared=compared,
        prefix_exact=common_prefix(cell.generated_ids, baseline.generated_ids[:compared]) == compared,
    )


def _edges(
    protocol: CompletionProtocol, unit: UnitEvidence, classes: Mapping[tuple[str, str, str], CompletionClass]
) -> Iterator[CompletionEdgeRow]:
    for row in unit_edges(protocol, unit):
        yield CompletionEdgeRow(
            domain=row.domain,
            index=row.index,
            source_id=row.source_id,
            replicate=row.replicate,
            edge=row.edge,
            kind=row.kind,
            left=row.left,
            right=row.right,
            left_completion=classes[unit.source_id, unit.replicate, row.left],
            right_completion=classes[unit.source_id, unit.replicate, row.right],
            comparison=row.comparison,
        )
