"""A model profile: which files are the model, what shape it has, which IDs are special."""

from typing import Literal

from harness.records.base import Digest, Record


class ProfileFile(Record):
    """A named checkpoint file. `role` says what may be done with it before its digest was checked: nothing."""

    name: str
    role: Literal["weights", "index", "config", "generation_config", "tokenizer", "tokenizer_config", "code"]
    digest: Digest


class Shape(Record):
    """Counts that a loaded config must show. A dense model has no routed experts, and all its layers are dense."""

    architecture: str
    model_type: str
    layers: int
    dense_layers: int
    routed_experts: int
    experts_per_token: int
    hidden_size: int
    vocabulary_columns: int


class SpecialIds(Record):
    """Token IDs that the tokenizer and the generation config must give."""

    bos: int
    eos: int
    pad: int


class Profile(Record):
    """fixtures/models/<id>/profile.toml."""

    schema: Literal[1]
    id: str
    repository: str
    revision: str
    identity: str
    stored_dtype: Literal["bfloat16", "float32"]
    weights: Literal["safetensors"]
    quantised: bool
    attention_kernels: Literal["eager"]
    shape: Shape
    special_ids: SpecialIds
    files: tuple[ProfileFile, ...]
