"""`prompts`: build every registered prompt from the input files and hold it against the manifest.

Needs the tokenizer's two files and the registered inputs; needs no model. Prints IDs' hashes and lengths, never a text.
"""

from collections.abc import Iterator, Sequence

import typer

from harness.cli import show
from harness.cli.errors import errors_to_stderr
from harness.cli.options import Checkpoint, Folders, Json, Named
from harness.cli.working import Note, working
from harness.errors import HarnessError
from harness.inputs.find import FoundInputs, find_inputs
from harness.inputs.sources import source_texts
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.manifest import Difference, differences
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.folders import beside, named_protocol
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.manifest import FrozenSource
from harness.records.verbs import CheckedCell, PromptList

WHOLE_TEXT = (
    "Each prompt holds the whole source text. The routing study took its first 23 tokens: the same source is not the "
    "same input length there and here."
)
HEADINGS = ("domain", "source", "condition", "tokens", "SHA-256", "state")


def prompts(protocol: Named, inputs: Folders = None, checkpoint: Checkpoint = None, *, json: Json = False) -> None:
    """List the length and hash of every cell's prompt: as registered, differs or unfrozen.

    Exit 0: all frozen ones agree; 1: one differs, or can't be built here.
    """
    with errors_to_stderr(), working("prompts") as note:
        loaded = load_protocol(*named_protocol(protocol, places()))
        tokenizer = locate_tokenizer(loaded, checkpoint, places())
        note("input files")
        folders = (*(inputs or []), *beside(loaded.folder, "inputs"))
        made = _checked(loaded, tokenizer, find_inputs(loaded.protocol, folders), note)
    for one in made.unchecked:
        show.tell(one)
    if json:
        show.document(made)
    else:
        show.tell(WHOLE_TEXT)
        show.table(HEADINGS, _rows(made), {"as registered": "green"})
    if not made.agrees:
        raise typer.Exit(1)


def _checked(loaded: LoadedProtocol, tokenizer: PromptTokenizer, found: FoundInputs, note: Note) -> PromptList:
    """Every cell, domain by domain; a domain that can't be checked has its error instead, and isn't one that agrees."""
    cells: list[CheckedCell] = []
    unchecked: list[str] = []
    for domain in loaded.domains:
        note(domain)
        try:
            for batch in _batches(loaded, tokenizer, found, domain):
                wrong = differences(loaded.source(batch.source_id), batch)
                cells += _cells(batch, wrong)
                unchecked += _not_built(batch, wrong)
        except HarnessError as error:
            unchecked.append(str(error))
    return PromptList(
        schema=1,
        protocol=loaded.protocol.id,
        protocol_digest=loaded.digest,
        agrees=not unchecked and not any(one.differences for one in cells),
        cells=tuple(cells),
        unfrozen=loaded.unfrozen,
        unchecked=tuple(unchecked),
    )


def _batches(loaded: LoadedProtocol, tokenizer: PromptTokenizer, found: FoundInputs, domain: str) -> list[PromptBatch]:
    listed = [source for source in loaded.manifest.sources if source.domain == domain]
    if not any(isinstance(source, FrozenSource) for source in listed):
        return []
    sources = source_texts(loaded, found, domains=[domain], per_domain=len(listed))
    return [build_batch(loaded.protocol, tokenizer, source) for source in sources]


def _cells(batch: PromptBatch, wrong: Sequence[Difference]) -> Iterator[CheckedCell]:
    for cell in batch.cells:
        yield CheckedCell(
            domain=batch.domain,
            source_id=batch.source_id,
            condition=cell.condition,
            length=cell.length,
            sha256=cell.sha256,
            differences=tuple(_say(one) for one in wrong if one.condition in ("", cell.condition)),
        )


def _not_built(batch: PromptBatch, wrong: Sequence[Difference]) -> Iterator[str]:
    """Differences of cells that the manifest has and the protocol here doesn't build."""
    made = {"", *(cell.condition for cell in batch.cells)}
    for one in wrong:
        if one.condition not in made:
            yield f"{batch.source_id} {one.condition}: {_say(one)}"


def _say(one: Difference) -> str:
    return f"{one.field} expected {one.expected}, found {one.found}"


def _rows(made: PromptList) -> Iterator[tuple[str, ...]]:
    for one in made.cells:
        state = "; ".join(f"differs: {words}" for words in one.differences) or "as registered"
        yield (one.domain, one.source_id, one.condition, str(one.length), one.sha256, state)
    for source in made.unfrozen:
        yield (source.domain, source.source_id, "-", "-", "-", f"unfrozen: {source.reason}")
