"""The four accounts of a judged cell (R05 4, R07 8): stopping, task terminal, evaluable and correct.

Shared by the ledgers of every family whose outputs are judged. No account is filled in from another: a text that
stopped needn't be an answer, an answer that can be judged needn't be right.
"""

from collections.abc import Iterator, Mapping

from harness.canon import text_sha256
from harness.compare import TODO, unit_edges
from harness.errors import JournalError
from harness.evaluate.code.fences import closed_fence
from harness.evaluate.completion import completion_class, stop_state
from harness.evaluate.numeric import NUMERIC_RULES, final_marker_r05, parse_gold, same_number
from harness.evaluate.terminal import Kind, closed_python_fence, terminal_r05, terminal_r07
from harness.ledgers.executions import TODO as EVIDENCE
from harness.ledgers.executions import CodeCell, code_cell, code_cells, task_of
from harness.ledgers.text import observed_text
from harness.protocols.grids import executed_grid, is_executed
from harness.records.completion import (
    AccountedRow,
    CodeAccount,
    CompletionEdgeRow,
    Executed,
    NotExecuted,
    NumericJudged,
    NumericWithoutGold,
    ProgramTaken,
    PublishedOutcome,
    Terminal,
)
from harness.records.evaluation import CodeFound, CodeMissing, CompletionClass, NumericFound
from harness.records.kinds import JudgedRun
from harness.records.ledger import NotObserved
from harness.records.protocol import AnyJudged, CompletionProtocol, Domain
from harness.records.run import CellRecord, UnitEvidence
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


def verdicts_of(protocol: AnyJudged, run: JudgedRun, executions: Executions) -> Executions | None:
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


def _require_own(where: str, run: JudgedRun, cell: CodeCell, execution: Execution) -> None:
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

    def __init__(self, protocol: AnyJudged, run: JudgedRun, domain: Domain, unit: UnitEvidence) -> None:
        self.protocol, self.run, self.domain, self.unit = protocol, run, domain, unit

    def where(self, cell: CellRecord) -> str:
        """The cell's identity, for messages."""
        return f"cell {self.unit.source_id}, {self.unit.replicate}, {cell.condition}"

    def text(self, cell: CellRecord) -> str:
        """The cell's text as evaluators read it."""
        return observed_text(self.protocol, cell, where=self.where(cell))


def accounts(at: Reading, cell: CellRecord, verdicts: Executions | None) -> AccountedRow:
    """A cell's row: its identity, how it stopped, and the four accounts, each from its own evidence alone."""
    text, unit = at.text(cell), at.unit
    require_one_end(at.where(cell), eos=cell.eos, truncated=cell.truncated)
    code = _code(at, cell, text, verdicts) if is_executed(at.domain) else NO_PROGRAM
    terminal = _terminal(at, text, natural_eos=cell.eos, passed=_passed(code))
    numeric = _numeric(at, text, cell) if "answer" in at.domain.gold else NO_NUMBER
    return AccountedRow(
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
        code=code,
    )


def require_one_end(where: str, *, eos: bool, truncated: bool) -> None:
    """JournalError for a cell that ended in two ways."""
    if eos and truncated:
        raise JournalError(where, expected="EOS or the budget's end", found="both", todo=TODO)


def _terminal(at: Reading, text: str, *, natural_eos: bool, passed: bool) -> Terminal | NotObserved:
    """The registered rule (R05 4.2 or R07 8.2): mathematics by its final marker; code by its end; else no judge."""
    if "answer" in at.domain.gold:
        marker = final_marker_r05(text)
        return Terminal(explicit=marker, reached=_reached(at, "math", text, eos=natural_eos, passed=passed))
    if is_executed(at.domain):
        r05 = isinstance(at.protocol, CompletionProtocol)
        explicit = closed_python_fence(text) if r05 else closed_fence(text)
        return Terminal(explicit=explicit, reached=_reached(at, "code", text, eos=natural_eos, passed=passed))
    return NO_TERMINAL


def _reached(at: Reading, kind: Kind, text: str, *, eos: bool, passed: bool) -> bool:
    marker = kind == "math" and final_marker_r05(text)
    match at.protocol.evaluators.terminal:
        case "terminal-r05":
            return terminal_r05(kind, text, natural_eos=eos, marker=marker) == "reached"
        case "terminal-r07":
            return terminal_r07(kind, text, tests_passed=passed, marker=marker) == "reached"


def _passed(code: CodeAccount | NotObserved) -> bool:
    verdict = code.verdict if isinstance(code, CodeAccount) else None
    return isinstance(verdict, Executed) and verdict.fixed_budget_pass


def require_accounts(domain: Domain, row: AccountedRow) -> None:
    """The domain's accounts and no others: one that is lacking would shrink a denominator. JournalError."""
    number, program = "answer" in domain.gold, is_executed(domain)
    where = f"ledger: cell {row.source_id}, {row.replicate}, {row.condition}"
    for name, owed in (("terminal", number or program), ("numeric", number), ("code", program)):
        if owed == isinstance(getattr(row, name), NotObserved):
            words = ("an account", "none") if owed else ("no account", "one")
            raise JournalError(f"{where}: {name}", expected=f"{words[0]} of its domain", found=words[1], todo=TODO)


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
    own = code_cell(at.protocol, at.run, at.unit, cell)
    found = own.extraction
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
    execution = verdicts[own.key]
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


def edge_rows(
    protocol: AnyJudged, unit: UnitEvidence, classes: Mapping[tuple[str, str, str], CompletionClass]
) -> Iterator[CompletionEdgeRow]:
    """A unit's registered edges, with the completion class of each side."""
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
