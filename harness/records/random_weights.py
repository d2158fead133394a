"""Checkpoints whose weights are drawn: what a random profile registers, and what a creation leaves beside its files."""

from typing import Literal

from harness.records.base import Record

SeedRule = Literal["sha256-profile-tensor"]
Device = Literal["cuda", "cpu"]


class RandomWeights(Record):
    """fixtures/models/<id>/random.toml: how the weights of a random profile are drawn.

    `seed_rule`: each tensor's generator is seeded by the first 8 bytes, big-endian, of SHA-256 of `<profile>/<tensor>`.
    `draw`: float32 numbers of a normal distribution, mean 0, standard deviation `initializer_range` of config.json,
    rounded to BF16; router and embedding weights too. `norms`: what the weights of RMS norms are.
    """

    schema: Literal[1]
    profile: str
    seed_rule: SeedRule
    draw: Literal["normal"]
    norms: Literal["ones"]


class MadeFile(Record):
    """A file of a checkpoint as it was made."""

    name: str
    role: str
    bytes: int
    sha256: str


class MadeCheckpoint(Record):
    """checkpoint.json: written last, so a creation that was cut off has none.

    The digests belong to `device` and `torch`: another generator or another version draws other numbers.
    """

    schema: Literal[1]
    profile: str
    profile_sha256: str
    seed_rule: SeedRule
    draw: Literal["normal"]
    standard_deviation: float
    norms: Literal["ones"]
    parameters: int
    device: Device
    device_name: str
    torch: str
    cuda: str
    safetensors: str
    files: tuple[MadeFile, ...]
