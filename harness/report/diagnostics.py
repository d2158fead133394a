"""Figures that may stand under Diagnostics and nowhere else: the cells behind them select themselves (R05 4.4)."""

from collections.abc import Iterator

from harness.ledgers.book import AnyStatistics
from harness.records.claims import Claims
from harness.records.completion import CompletionStatistics
from harness.records.study_ledger import StudyStatistics
from harness.report.head import claim_figures, diagnostic
from harness.report.page import Block, Note, Section
from harness.report.words import table_of


def diagnostics(claims: Claims, made: AnyStatistics | None) -> Section | None:
    """The section, or none where a protocol has no diagnostic."""
    blocks = (*_claims(claims), *_completion(made))
    said = Note("Diagnostics, never accuracies: which cells are counted depends on how they ended.")
    return Section("diagnostics", "Diagnostics", (said, *blocks)) if blocks else None


def _claims(claims: Claims) -> Iterator[Block]:
    for one in diagnostic(claims):
        yield Note(f"{one.status}: {one.statement or one.text}")
        for reason in one.why:
            yield Note(f"Why: {reason}")
        if (figures := claim_figures(one)) is not None:
            yield figures


def _completion(made: AnyStatistics | None) -> Iterator[Block]:
    if not isinstance(made, CompletionStatistics | StudyStatistics) or not made.groups:
        return
    rows = [((one.domain or "all", one.condition or "all"), one.cells.diagnostics) for one in made.groups]
    caption = f"{made.groups[0].cells.diagnostics.label}: by condition and domain"
    yield table_of(caption, ("domain", "condition"), rows, without=("label",))
