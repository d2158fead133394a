"""Prompts of a run: registered inputs read, prompts built, checked against the contract and the manifest."""

from pathlib import Path

from harness.inputs.find import find_inputs
from harness.inputs.sources import source_texts
from harness.places import places
from harness.prompts.build import build_batch
from harness.prompts.manifest import compare_with_manifest
from harness.prompts.records import PromptBatch
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.load import LoadedProtocol
from harness.run.request import Request


def prepare(loaded: LoadedProtocol, request: Request) -> tuple[PromptTokenizer, dict[str, PromptBatch]]:
    """The tokenizer and the batches by source ID. InputError, PromptError or ModelError before any model is loaded."""
    found = find_inputs(loaded.protocol, [Path(folder) for folder in request.inputs])
    tokenizer = locate_tokenizer(loaded, Path(request.checkpoint), places())
    per_domain = loaded.protocol.grids[request.grid].per_domain
    batches: dict[str, PromptBatch] = {}
    for source in source_texts(loaded, found, domains=request.domains, per_domain=per_domain):
        batch = build_batch(loaded.protocol, tokenizer, source)
        compare_with_manifest(loaded, batch)
        batches[source.source_id] = batch
    return tokenizer, batches
