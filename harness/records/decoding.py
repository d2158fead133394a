"""How greedy tokens are chosen, and how a trace is computed: contracts that are passed explicitly and read back."""

from typing import Literal

from harness.records.base import Record


class DecodeContract(Record):
    """The effective generation config, passed explicitly and read back.

    `generator_seed`: every generator is set to it before each unit, so that the hashes of its untouched state are the
    same evidence in every process. Greedy decoding draws nothing from any of them.
    """

    strategy: Literal["greedy"]
    do_sample: bool
    num_beams: int
    use_cache: bool
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    cache: Literal["dynamic"]
    rows_per_batch: int
    generator_seed: int
    official_temperature: float
    official_top_p: float


class ForwardContract(Record):
    """One forward over a source's rows, prompt only, each token at its place in its own prompt (R05 depth 7).

    `generator_seed`: every generator is set to it before each forward, which draws from none. `scopes`: over which
    tokens stages and gates are recorded. `target`, `tensor_encoding` and `route_order` name the registered rules.
    """

    use_cache: bool
    rows_per_batch: int
    generator_seed: int
    positions: Literal["from_first_token"]
    scopes: tuple[Literal["target", "full"], ...]
    target: Literal["tokens_wholly_inside"]
    tensor_encoding: Literal["dtype-shape-little-endian"]
    route_order: Literal["weight-descending-lower-id"]
