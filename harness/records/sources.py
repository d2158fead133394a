"""Where a protocol's sources come from: files by their digests, pools of sources, and the rule that selects them."""

from typing import Literal

from harness.records.base import Digest, Record


class PublishedReference(Record):
    """A digest that a protocol document publishes for a file that can't be had: a reference, never a pin."""

    name: str
    sha256: str


class Archive(Record):
    """A zip that its publisher distributes, with the input file as `member`; recognised by its own digest."""

    file_name: str
    digest: Digest
    member: str
    location: str


class InputFile(Record):
    """A data file: recognised by its digest under any name, alone or as a member of a registered archive.

    `location` is where its publisher has it ("embedded" for a file of this repository).
    """

    name: str
    file_name: str
    format: Literal["jsonl", "jsonl.gz", "csv", "parquet"]
    digest: Digest
    location: str
    licence: str
    archives: tuple[Archive, ...]


class Domain(Record):
    """A pool of sources and how its text enters the prompt.

    `source_id` is a format string over `n` (row from 0) or a row's own fields. `text_field` is the only content field
    that reaches a prompt; `gold` names fields that only evaluators may read.
    """

    name: str
    input: str
    source_id: str
    text_field: str
    gold: tuple[str, ...]
    minimum_tokens: int
    content: str


class Selection(Record):
    """Rank of a source = hex SHA-256 of `{salt}|{domain}|{source_id}`, ascending."""

    rule: Literal["sha256-salt-domain-source"]
    salt: str
