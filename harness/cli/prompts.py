"""`prompts`: build every registered prompt from the input files and hold it against the manifest.

Needs the tokenizer's two files and the registered inputs; needs no model. Prints IDs' hashes and lengths, never a text.
"""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import errors_to_stderr
from harness.errors import HarnessError
from harness.inputs.find import FoundInputs, find_inputs
from harness.inputs.sources import source_texts
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.manifest import Difference, differences
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.manifest import FrozenSource, UnfrozenSource

Named = Annotated[str, typer.Argument(metavar="PROTOCOL", help="ID of a protocol.")]
Folders = Annotated[
    list[Path] | None,
    typer.Option("--inputs", metavar="DIR", envvar="HARNESS_INPUTS", help="Folder of input files; repeatable."),
]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Folder with the tokenizer's files.")
]

WHOLE_TEXT = (
    "Each prompt holds the whole source text. The routing study took its first 23 tokens: the same source is not the "
    "same input length there and here."
)


def prompts(protocol: Named, inputs: Folders = None, checkpoint: Checkpoint = None) -> None:
    """List every cell's length and hash: as registered, differs or unfrozen.

    Exit 0: all frozen ones agree; 1: not all.
    """
    with errors_to_stderr():
        loaded = load_protocol(protocol)
        tokenizer = locate_tokenizer(loaded, checkpoint, places())
        found = find_inputs(loaded.protocol, inputs or [])
    typer.echo(WHOLE_TEXT)
    agreed = [_domain(loaded, tokenizer, found, domain) for domain in loaded.domains]
    _say_unfrozen(loaded.unfrozen)
    if not all(agreed):
        raise typer.Exit(1)


def _domain(loaded: LoadedProtocol, tokenizer: PromptTokenizer, found: FoundInputs, domain: str) -> bool:
    """Print a domain's cells; whether all its frozen ones agree. A domain that can't be checked doesn't."""
    listed = [source for source in loaded.manifest.sources if source.domain == domain]
    if not any(isinstance(source, FrozenSource) for source in listed):
        return True
    try:
        sources = source_texts(loaded, found, domains=[domain], per_domain=len(listed))
        batches = [build_batch(loaded.protocol, tokenizer, source) for source in sources]
    except HarnessError as error:
        typer.echo(str(error), err=True)
        return False
    # Every batch is printed before the answer: `all` over a generator would stop at the first difference.
    agreed = [_batch(loaded.source(batch.source_id), batch) for batch in batches]
    return all(agreed)


def _batch(registered: FrozenSource, batch: PromptBatch) -> bool:
    wrong = differences(registered, batch)
    for cell in batch.cells:
        own = [one for one in wrong if one.condition in ("", cell.condition)]
        state = "; ".join(_say(one) for one in own) or "as registered"
        typer.echo(f"{batch.domain}  {batch.source_id}  {cell.condition}  {cell.length}  {cell.sha256}  {state}")
    return not wrong


def _say(one: Difference) -> str:
    return f"differs: {one.field} expected {one.expected}, found {one.found}"


def _say_unfrozen(sources: tuple[UnfrozenSource, ...]) -> None:
    for source in sources:
        typer.echo(f"{source.domain}  {source.source_id}  unfrozen: {source.reason}")
