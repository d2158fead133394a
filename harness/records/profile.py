"""A model profile: which files are the model, what shape it has, which IDs are special."""

from typing import Literal

from harness.records.base import Digest, Record

Role = Literal[
    "weights",
    "index",
    "config",
    "generation_config",
    "tokenizer",
    "tokenizer_config",
    "chat_template",
    "code",
    "other",
]


class ProfileFile(Record):
    """A named checkpoint file. `role` says what may be done with it before its digest was checked: nothing.

    `chat_template`: the template where it has a file of its own. `other`: a file that is only held to its digest.
    """

    name: str
    role: Role
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
    """Token IDs that the tokenizer and the generation config must give. `bos`: `none` where the tokenizer has none."""

    bos: int | Literal["none"]
    eos: int
    pad: int

    @property
    def bos_id(self) -> int | None:
        """BOS as libraries have it: None where there is none."""
        return None if self.bos == "none" else self.bos


class Profile(Record):
    """profile.toml: under fixtures/models/<id>/, or beside the protocol.toml of a study."""

    schema: Literal[1]
    id: str
    repository: str
    revision: str
    identity: str
    stored_dtype: Literal["bfloat16", "float16", "float32"]
    weights: Literal["safetensors"]
    quantised: bool
    attention_kernels: Literal["eager"]
    shape: Shape
    special_ids: SpecialIds
    files: tuple[ProfileFile, ...]
