"""The batches of a protocol's sources from the registered inputs, checked against contract and manifest."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.inputs.find import find_inputs
from harness.inputs.sources import source_texts
from harness.prompts.build import build_batch
from harness.prompts.manifest import compare_with_manifest
from harness.prompts.records import PromptBatch
from harness.prompts.targets import SourceTargets, source_targets
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import DepthProtocol


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """A source's prompts; where the protocol traces them, with the target of each."""

    prompts: PromptBatch
    targets: SourceTargets | None


def registered_batches(
    loaded: LoadedProtocol,
    tokenizer: PromptTokenizer,
    inputs: Sequence[Path],
    *,
    domains: tuple[str, ...],
    per_domain: int,
) -> dict[str, SourceBatch]:
    """By source ID. InputError, PromptError or ProtocolError where anything isn't the registered one."""
    found, protocol = find_inputs(loaded.protocol, inputs), loaded.protocol
    batches: dict[str, SourceBatch] = {}
    for source in source_texts(loaded, found, domains=domains, per_domain=per_domain):
        batch = build_batch(protocol, tokenizer, source)
        compare_with_manifest(loaded, batch)
        targets = source_targets(protocol, tokenizer, source, batch) if isinstance(protocol, DepthProtocol) else None
        batches[source.source_id] = SourceBatch(batch, targets)
    return batches


def rendered_batches(
    loaded: LoadedProtocol, tokenizer: PromptTokenizer, inputs: Sequence[Path], *, domain: str
) -> dict[str, PromptBatch]:
    """Prompts of all of a domain's manifest sources by source ID, not yet held against the manifest's hashes."""
    found = find_inputs(loaded.protocol, inputs)
    count = sum(1 for source in loaded.manifest.sources if source.domain == domain)
    texts = source_texts(loaded, found, domains=(domain,), per_domain=count)
    return {source.source_id: build_batch(loaded.protocol, tokenizer, source) for source in texts}
