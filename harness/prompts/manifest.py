"""Prompts and the manifest: a batch as the manifest's entry, and a batch against the manifest's entry.

Prompts are joined by source ID and condition. This module reads no file.
"""

from dataclasses import dataclass

from harness.errors import PromptError
from harness.prompts.records import PromptBatch
from harness.protocols.load import LoadedProtocol
from harness.records.manifest import FrozenSource, PromptEntry
from harness.selection import selection_rank


@dataclass(frozen=True, slots=True)
class Difference:
    """A value of a cell (or of the source, with an empty condition) that isn't the registered one."""

    condition: str
    field: str
    expected: str
    found: str


def manifest_source(batch: PromptBatch, salt: str) -> FrozenSource:
    """The manifest's entry for a batch."""
    return FrozenSource(
        domain=batch.domain,
        index=batch.index,
        source_id=batch.source_id,
        selection_rank=selection_rank(salt, batch.domain, batch.source_id),
        text_sha256=batch.text_sha256,
        prompts={cell.condition: PromptEntry(sha256=cell.sha256, length=cell.length) for cell in batch.cells},
    )


def differences(registered: FrozenSource, batch: PromptBatch) -> tuple[Difference, ...]:
    """All differences between a manifest entry and a batch of the same source, source first, then cells in order."""
    rows = [
        Difference("", "domain", registered.domain, batch.domain),
        Difference("", "index", str(registered.index), str(batch.index)),
        Difference("", "text_sha256", registered.text_sha256, batch.text_sha256),
    ]
    made = {cell.condition: PromptEntry(sha256=cell.sha256, length=cell.length) for cell in batch.cells}
    for condition in (*registered.prompts, *(name for name in made if name not in registered.prompts)):
        rows += _cell_rows(condition, registered.prompts.get(condition), made.get(condition))
    return tuple(row for row in rows if row.expected != row.found)


def _cell_rows(condition: str, expected: PromptEntry | None, found: PromptEntry | None) -> list[Difference]:
    return [
        Difference(condition, field, str(getattr(expected, field, "no cell")), str(getattr(found, field, "no cell")))
        for field in ("length", "sha256")
    ]


def compare_with_manifest(loaded: LoadedProtocol, batch: PromptBatch) -> None:
    """Raise PromptError on the first value of the batch that isn't the manifest's (R04 5: prompt token hash).

    A source that the manifest doesn't hold, or holds unfrozen, is a ProtocolError.
    """
    for one in differences(loaded.source(batch.source_id), batch):
        raise PromptError(
            f"{batch.source_id} {one.condition or 'source'}: {one.field}",
            expected=one.expected,
            found=one.found,
            todo="Use the registered inputs, texts and tokenizer; `python -m harness prompts` lists every cell.",
        )
