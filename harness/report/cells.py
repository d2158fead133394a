"""A page for each cell: its prompt with the edited ID marked, its output with the span marked that was taken, verdicts.

Text of a prompt is shown where the model's tokenizer is part of the tree (it's found by the profile's digest); else the
IDs, which are the evidence, stand alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from harness.canon import unescaped
from harness.claims.view import RunView
from harness.ledgers.text import eos_text
from harness.places import Places, places
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.folders import beside
from harness.records.completion import AccountedRow, CompletionRow
from harness.records.depth import TraceCell
from harness.records.depth_ledger import DepthCellRow
from harness.records.kinds import AnyUnit
from harness.records.ledger import CellRow
from harness.records.protocol import Protocol
from harness.records.run import CellRecord, PromptRow
from harness.records.sampling import SampledEvidence
from harness.records.sandbox import Execution
from harness.records.study import CellEdits, StudyEvidence
from harness.records.task_ledger import TaskRow
from harness.report.accounts import accounts, badge, taken
from harness.report.ladder import Row, state
from harness.report.visible import Passage, Segment, passage

TRACED = "traced"
AnyRow = Row | DepthCellRow


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as it is shown. `facts`: (name, value). No `prompt_text` without a tokenizer, no `output` of a trace."""

    anchor: str
    title: str
    domain: str
    source_id: str
    replicate: str
    condition: str
    state: str
    badge: str
    facts: tuple[tuple[str, str], ...]
    prompt_text: Passage | None
    prompt_ids: Passage
    output: Passage | None
    generated_ids: Passage | None


def anchor(domain: str, index: int, replicate: str, condition: str) -> str:
    """The ID of a cell's element: letters, digits and hyphens, whatever the names are."""
    parts = (domain, f"{index:02d}", replicate, condition)
    return "-".join(["cell", *(re.sub(r"[^a-z0-9]+", "-", one.lower()) for one in parts)])


def cells(view: RunView, executions: Mapping[str, Execution], tree: Places | None = None) -> Iterator[Cell]:
    """Every cell of the run in the ledger's order, joined by identity to its row."""
    rows = {(row.source_id, row.replicate, row.condition): row for row in view.ledger.cells}
    found = {
        (unit.source_id, unit.replicate, cell.condition): (unit, cell) for unit in view.run.units for cell in unit.cells
    }
    reading = Reading(
        view.loaded.protocol,
        tokenizer(view, tree or places()),
        {one.evidence_sha256: one for one in executions.values()},
    )
    for key, row in rows.items():
        unit, cell = found[key]
        yield _cell(reading, row, unit, cell)


@dataclass(frozen=True, slots=True)
class Reading:
    """What cells are read with: the protocol, a tokenizer where there is one, executions by their evidence's digest."""

    protocol: Protocol
    words: PromptTokenizer | None
    verdicts: Mapping[str, Execution]


def tokenizer(view: RunView, tree: Places) -> PromptTokenizer | None:
    """The model's tokenizer where the tree has it; never one that happens to be installed."""
    here = next(iter(beside(view.loaded.folder, "checkpoint")), tree.models / view.loaded.profile.id / "checkpoint")
    return locate_tokenizer(view.loaded, here, tree) if (here / "tokenizer.json").is_file() else None


def _cell(reading: Reading, row: AnyRow, unit: AnyUnit, cell: PromptRow) -> Cell:
    generated = cell if isinstance(cell, CellRecord) else None
    return Cell(
        anchor=anchor(row.domain, row.index, row.replicate, row.condition),
        title=f"{row.source_id} {row.replicate} {row.condition}",
        domain=row.domain,
        source_id=row.source_id,
        replicate=row.replicate,
        condition=row.condition,
        state=TRACED if isinstance(row, DepthCellRow) else state(row),
        badge="" if isinstance(row, DepthCellRow) else badge(row),
        facts=(*_edited(unit, cell), *accounts(row, reading.verdicts), *_identity(unit, cell)),
        prompt_text=None if reading.words is None else _prompt_text(cell, reading.words),
        prompt_ids=_ids(cell.prompt_ids, _marked(cell)),
        output=None
        if generated is None or isinstance(row, DepthCellRow)
        else _output(reading.protocol, row, generated),
        generated_ids=None if generated is None else _ids(generated.generated_ids, {}),
    )


def _edited(unit: AnyUnit, cell: PromptRow) -> Iterator[tuple[str, str]]:
    if isinstance(unit, StudyEvidence):
        yield from _spans(next(one for one in unit.edited if one.condition == cell.condition))
        return
    for edit in cell.edits:
        yield "edited ID", f"position {edit.position} from 0: {edit.official} replaced by {edit.replaced}"
    if not cell.edits:
        yield "edited ID", "none: the official sequence"


def _spans(edited: CellEdits) -> Iterator[tuple[str, str]]:
    for one in edited.edits:
        taken, put = (list(ids) or "nothing" for ids in (one.official, one.put))
        yield "edited IDs", f"position {one.position} from 0 of the rendered prompt: {taken} replaced by {put}"
    if not edited.edits:
        yield "edited IDs", "none: the rendered prompt"
    if not edited.round_trip:
        yield "tokenised again", "its text gives other IDs: no text would have given the model this prompt"


def _identity(unit: AnyUnit, cell: PromptRow) -> Iterator[tuple[str, str]]:
    if isinstance(unit, SampledEvidence):
        yield "seeds", f"base {unit.sampling.seeds.base}, batch {unit.sampling.seeds.run} (hex)"
    yield "prompt tokens", str(len(cell.prompt_ids))
    yield "source text SHA-256", unit.source_text_sha256
    yield "prompt IDs SHA-256", cell.prompt_sha256
    if isinstance(cell, CellRecord):
        yield "generated IDs SHA-256", cell.generated_sha256
        yield "text SHA-256", cell.text_sha256


def _marked(cell: PromptRow) -> dict[str, tuple[int, int]]:
    """Marks in positions of the prompt: each edited ID, and in a trace the target."""
    marks = {f"edited {at}": (edit.position, edit.position + 1) for at, edit in enumerate(cell.edits)}
    if isinstance(cell, TraceCell):
        marks["target"] = (cell.target.start, cell.target.end)
    return marks


def _ids(ids: tuple[int, ...], marks: Mapping[str, tuple[int, int]]) -> Passage:
    """IDs as text, marked by position."""
    parts = [str(one) for one in ids]
    starts = [0, *accumulate(len(part) + 1 for part in parts)]
    text = " ".join(parts)
    spans = {
        name: (starts[start], starts[end - 1] + len(parts[end - 1]))
        for name, (start, end) in marks.items()
        if start < end <= len(ids)
    }
    return passage(text, spans)


def _prompt_text(cell: PromptRow, words: PromptTokenizer) -> Passage:
    """Decoded apart before, at and after each mark, so that a mark covers exactly its IDs."""
    marks = sorted(_marked(cell).items(), key=lambda one: one[1])
    text, at, spans = "", 0, {}
    for name, (start, end) in marks:
        text += words.decode(cell.prompt_ids[at:start])
        inside = words.decode(cell.prompt_ids[start:end])
        spans[name] = (len(text), len(text) + len(inside))
        text, at = text + inside, end
    return passage(text + words.decode(cell.prompt_ids[at:]), spans)


def _output(protocol: Protocol, row: CellRow | AccountedRow | CompletionRow | TaskRow, cell: CellRecord) -> Passage:
    text = unescaped(cell.text_escaped)
    marks = {}
    if (span := taken(row)) is not None:
        marks["taken"] = span
    ending = eos_text(protocol)
    if cell.eos and text.endswith(ending):
        marks["eos"] = (len(text) - len(ending), len(text))
    return passage(text, marks)


def kind(segment: Segment) -> str:
    """What a segment is marked as, without its number: a word of the style sheet."""
    return segment.mark.partition(" ")[0]
