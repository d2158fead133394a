"""The manifest of a protocol: which sources, in which rank, with which text and prompt hashes, and how many cells."""

from typing import Literal

from harness.records.base import Record


class PromptEntry(Record):
    """SHA-256 over the canonical list of the unpadded, edited prompt IDs, and their number."""

    sha256: str
    length: int


class FrozenSource(Record, tag_field="state", tag="frozen"):
    """A source whose text was available: UTF-8 text hash and a prompt for every condition."""

    domain: str
    index: int
    source_id: str
    selection_rank: str
    text_sha256: str
    prompts: dict[str, PromptEntry]


class UnfrozenSource(Record, tag_field="state", tag="unfrozen"):
    """A published source whose registered input isn't available: no hash of it is invented."""

    domain: str
    index: int
    source_id: str
    selection_rank: str
    reason: str


ManifestSource = FrozenSource | UnfrozenSource


class Denominators(Record):
    """Counts of a grid: sources, units (one batch: source x replicate), cells (rows), edges (paired comparisons)."""

    sources: int
    units: int
    cells: int
    edges: int


class Manifest(Record):
    """fixtures/protocols/<id>/manifest.json; sources are in the protocol's domain order, then by rank."""

    schema: Literal[1]
    protocol: str
    tokenizer_sha256: str
    sources: tuple[ManifestSource, ...]
    denominators: dict[str, Denominators]
