"""The four accounts of a judged cell (R05 4, R07 8): stopping, task terminal, evaluable and correct.

Shared by the families that have all four. No account is filled in from another: a text that stopped needn't be an
answer, an answer that can be judged needn't be right.
"""

from collections.abc import Iterator, Mapping

from harness.compare import TODO, unit_edges
from harness.errors import JournalError
from harness.evaluate.code.fences import closed_fence
from harness.evaluate.completion import completion_class
from harness.evaluate.numeric import final_marker_r05
from harness.evaluate.terminal import Kind, closed_python_fence, final_marker_v1, terminal_r05, terminal_r07
from harness.ledgers.executions import code_cell
from harness.ledgers.reading import (
    NO_NUMBER,
    NO_PROGRAM,
    Executions,
    Reading,
    is_exact,
    number_read,
    program_taken,
    stopped_at,
)
from harness.protocols.grids import is_executed, number_field
from harness.records.completion import (
    AccountedRow,
    CodeAccount,
    CompletionEdgeRow,
    Executed,
    NotExecuted,
    NumericJudged,
    NumericWithoutGold,
    PublishedOutcome,
    Terminal,
)
from harness.records.evaluation import CodeMissing, CompletionClass, NumericFound
from harness.records.ledger import NotObserved
from harness.records.protocol import CompletionProtocol, SamplingProtocol, StudyProtocol
from harness.records.run import CellRecord, CompletionRun, UnitEvidence
from harness.records.sampling import SampledRun
from harness.records.sandbox import Execution, Outcome
from harness.records.sources import Domain
from harness.records.study import StudyRun

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

# The families that have all four accounts; the others have their own.
Accounted = CompletionProtocol | SamplingProtocol | StudyProtocol
AccountedReading = Reading[Accounted, CompletionRun | SampledRun | StudyRun]


def accounts(at: AccountedReading, cell: CellRecord, verdicts: Executions | None) -> AccountedRow:
    """A cell's row: its identity, how it stopped, and the four accounts, each from its own evidence alone."""
    stopped, text = stopped_at(at, cell), at.text(cell)
    code = _code(at, cell, text, verdicts) if is_executed(at.domain) else NO_PROGRAM
    terminal = _terminal(at, text, natural_eos=cell.eos, passed=_passed(code))
    numeric = _numeric(at, text, cell) if number_field(at.protocol, at.domain) is not None else NO_NUMBER
    return AccountedRow(
        **stopped,
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


def _terminal(at: AccountedReading, text: str, *, natural_eos: bool, passed: bool) -> Terminal | NotObserved:
    """The registered rule (R05 4.2 or R07 8.2): mathematics by its final marker; code by its end; else no judge."""
    if number_field(at.protocol, at.domain) is not None:
        marker = _final_marker(at, text, eos=natural_eos)
        return Terminal(explicit=marker, reached=_reached(at, "math", text, eos=natural_eos, passed=passed))
    if is_executed(at.domain):
        r07 = at.protocol.evaluators.terminal == "terminal-r07"
        explicit = closed_fence(text) if r07 else closed_python_fence(text)
        return Terminal(explicit=explicit, reached=_reached(at, "code", text, eos=natural_eos, passed=passed))
    return NO_TERMINAL


def _reached(at: AccountedReading, kind: Kind, text: str, *, eos: bool, passed: bool) -> bool:
    marker = kind == "math" and _final_marker(at, text, eos=eos)
    match at.protocol.evaluators.terminal:
        case "terminal-r05" | "terminal-v1":
            return terminal_r05(kind, text, natural_eos=eos, marker=marker) == "reached"
        case "terminal-r07":
            return terminal_r07(kind, text, tests_passed=passed, marker=marker) == "reached"


def _final_marker(at: AccountedReading, text: str, *, eos: bool) -> bool:
    """Whether mathematics has its final marker: R05's own, or under `terminal-v1` the registered numeric rule's."""
    if at.protocol.evaluators.terminal == "terminal-v1":
        return final_marker_v1(number_read(at, text)[0], text, natural_eos=eos)
    return final_marker_r05(text)


def _passed(code: CodeAccount | NotObserved) -> bool:
    verdict = code.verdict if isinstance(code, CodeAccount) else None
    return isinstance(verdict, Executed) and verdict.fixed_budget_pass


def require_accounts(protocol: Accounted, domain: Domain, row: AccountedRow) -> None:
    """The domain's accounts and no others: one that is lacking would shrink a denominator. JournalError."""
    number, program = number_field(protocol, domain) is not None, is_executed(domain)
    where = f"ledger: cell {row.source_id}, {row.replicate}, {row.condition}"
    for name, owed in (("terminal", number or program), ("numeric", number), ("code", program)):
        if owed == isinstance(getattr(row, name), NotObserved):
            words = ("an account", "none") if owed else ("no account", "one")
            raise JournalError(f"{where}: {name}", expected=f"{words[0]} of its domain", found=words[1], todo=TODO)


def by_place_alone(numeric: NumericJudged | NumericWithoutGold | NotObserved) -> bool:
    """Whether a number was found by its place in the text and by no marker: the fallback (R05 4.3)."""
    found = None if isinstance(numeric, NotObserved) else numeric.extraction
    return isinstance(found, NumericFound) and not found.marker


def _numeric(at: AccountedReading, text: str, cell: CellRecord) -> NumericJudged | NumericWithoutGold:
    extraction, gold = number_read(at, text)
    if gold is None:
        return NumericWithoutGold(extraction=extraction)
    found = extraction if isinstance(extraction, NumericFound) else None
    exact = is_exact(extraction, gold)
    by_marker = found is not None and found.marker
    if at.protocol.evaluators.terminal == "terminal-v1":
        by_marker = final_marker_v1(extraction, text, natural_eos=cell.eos)
    evaluable = found is not None and (by_marker or cell.eos)
    return NumericJudged(
        extraction=extraction,
        gold=gold,
        evaluable=evaluable,
        fixed_budget_exact=exact,
        strict_complete_exact=exact and evaluable,
        strict_marker_only_exact=exact and by_marker,
        fallback_exact=exact and found is not None and not found.marker,
    )


def _code(at: AccountedReading, cell: CellRecord, text: str, verdicts: Executions | None) -> CodeAccount:
    own = code_cell(at.protocol, at.run, at.unit, cell)
    program = program_taken(own)
    if verdicts is None:
        return CodeAccount(program=program, verdict=NotExecuted(reason="tier"))
    if isinstance(program, CodeMissing):
        return CodeAccount(program=program, verdict=NotExecuted(reason="extract_failed"))
    execution = verdicts[own.key]
    return CodeAccount(program=program, verdict=_executed(execution, complete=cell.eos or closed_python_fence(text)))


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
    protocol: Accounted, unit: UnitEvidence, classes: Mapping[tuple[str, str, str], CompletionClass]
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
