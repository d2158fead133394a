"""How cells ended, by condition and domain: the five completion classes, or the stop alone where a kind has no class.

Counts rows of the ledger, each beside the number of rows of its group.
"""

from collections.abc import Sequence
from typing import get_args

from harness.ledgers.book import AnyLedger
from harness.records.completion import AccountedRow, CompletionLedger, CompletionRow, Stop
from harness.records.depth_ledger import DepthLedger
from harness.records.evaluation import CompletionClass
from harness.records.ledger import CellRow, Ledger
from harness.records.sampling_ledger import SampledLedger
from harness.records.study_ledger import StudyLedger
from harness.records.task_ledger import TaskRow
from harness.report.figures import Bars, chart, stacked
from harness.report.page import Note, Section, table

Row = CellRow | AccountedRow | CompletionRow | TaskRow
CLASSES: tuple[str, ...] = get_args(CompletionClass)
STOPS: tuple[str, ...] = get_args(Stop)


def state(row: Row) -> str:
    """How a cell ended: its completion class, or its stop where its kind has no class."""
    if isinstance(row, AccountedRow):
        return row.completion
    if isinstance(row, TaskRow):
        return row.stop
    return "natural_eos" if row.natural_eos else "budget_truncated" if row.truncated else "other_stop"


def states(book: AnyLedger) -> tuple[str, ...]:
    """The states that a cell of this ledger can have; none where nothing was generated."""
    if isinstance(book, DepthLedger):
        return ()
    return CLASSES if isinstance(book, CompletionLedger | SampledLedger | StudyLedger) else STOPS


def ladder(book: AnyLedger, conditions: Sequence[str]) -> Section | None:
    """The section, or none for a trace, in which nothing ends."""
    if isinstance(book, DepthLedger):
        return None
    names, panels, rows = states(book), [], []
    for domain in book.domains:
        found = {one: [state(row) for row in book.cells if _at(row) == (domain, one)] for one in conditions}
        parts = {name: tuple(found[one].count(name) for one in conditions) for name in names}
        panels.append(Bars(domain, tuple(conditions), parts))
        rows += [
            (domain, one, *(f"{found[one].count(name)}/{len(found[one])}" for name in names)) for one in conditions
        ]
    title = "Completion ladder" if names is CLASSES else "How cells ended"
    said = (
        f"{len(book.cells)} cells in {len(panels)} panels, a domain each; a bar is a condition, its parts are states."
    )
    behind = table(f"{title}: cells by condition and domain", ("domain", "condition", *names), rows, heads=2)
    made = chart("ladder", title, said, stacked(panels, unit="cells"), behind)
    note = (
        "Stopping alone: a text that was cut is no answer, and one that ended isn't a right one."
        if isinstance(book, Ledger)
        else "How an output ended says nothing of whether it is right."
    )
    return Section("ladder", title, (Note(note), made))


def _at(row: Row) -> tuple[str, str]:
    return row.domain, row.condition
