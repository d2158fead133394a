"""Every attempt at the protocol's formal run that is on record: those that passed, and all others."""

from collections.abc import Iterator
from datetime import UTC, datetime

from harness.claims.view import RunView
from harness.journal.attempts_file import attempt_rows, beginning, chained, lines_for
from harness.records.attempts_file import AttemptRow, Entry
from harness.report.page import Block, Note, Section, table

SAID = (
    "Every formal session of this protocol is entered before it generates anything, and every refusal; a run without "
    "an end was killed, or was still on. Below are the attempts file's first {count} lines; {own}. Later ones stand in "
    "attempts.jsonl beside the run folder."
)
HEAD = ("line", "began (UTC)", "run", "outcome", "reason", "resumed", "placements", "protocol digest")


def attempts(view: RunView, lines: int | None) -> tuple[Section, int]:
    """The section, and how many lines of the attempts file it shows: `lines`, or None for all that are here.

    JournalError where they aren't a chain.
    """
    data = b"".join(lines_for(view.folder.path).splitlines(keepends=True)[:lines])
    entries = chained(data, "attempts.jsonl")
    blocks = tuple(_blocks(view, attempt_rows(entries), entries))
    return Section("attempts", "Attempts", blocks), len(entries)


def _blocks(view: RunView, rows: tuple[AttemptRow, ...], entries: tuple[Entry, ...]) -> Iterator[Block]:
    if view.audit.tier != "formal":
        yield Note(f"Formal runs are entered in the attempts file of their protocol; this is a {view.audit.tier} run.")
        return
    begun = beginning(entries, view.audit.run_id)
    own = f"this run begins on line {begun.number}" if begun else "this run isn't among them"
    yield Note(SAID.format(count=len(entries), own=own))
    if rows:
        yield table("Attempts on record", HEAD, [_cells(row) for row in rows])


def _cells(row: AttemptRow) -> tuple[str, ...]:
    began = datetime.fromtimestamp(row.at_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    run = f"{row.run_id} (port)" if row.port else row.run_id
    tried = ", ".join(row.placements) or "none"
    return (str(row.number), began, run, row.outcome, row.reason, str(row.resumed), tried, row.protocol_digest[:16])
