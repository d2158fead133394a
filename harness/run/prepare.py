"""Prompts of a run: registered inputs read, prompts built, checked against the contract and the manifest."""

from pathlib import Path

from harness.places import places
from harness.prompts.registered import SourceBatch, registered_batches
from harness.prompts.tokenizer import PromptTokenizer, locate_tokenizer
from harness.protocols.load import LoadedProtocol
from harness.run.request import Request


def prepare(loaded: LoadedProtocol, request: Request) -> tuple[PromptTokenizer, dict[str, SourceBatch]]:
    """The tokenizer and the batches by source ID. InputError, PromptError or ModelError before any model is loaded."""
    tokenizer = locate_tokenizer(loaded, Path(request.checkpoint), places())
    inputs = [Path(folder) for folder in request.inputs]
    per_domain = loaded.protocol.grids[request.grid].per_domain
    batches = registered_batches(loaded, tokenizer, inputs, domains=request.domains, per_domain=per_domain)
    return tokenizer, batches
