"""What a process is asked to make again, and what it says. Never evidence: files of a folder that goes again."""

from typing import Any, Literal

from harness.records.base import Record
from harness.records.decoding import DecodeContract
from harness.records.explanation import NoTrace, Untried
from harness.records.graph import GraphExecution
from harness.records.profile import Profile
from harness.records.protocol import Execution, Placement
from harness.records.run import Environment, PlacementFacts
from harness.records.tapes import EdgeDistance, NoEdge, SamplerContract

REQUEST, REPORT = "request.json", "report.json"
Program = Literal["generate", "own_loop", "executor", "whole"]


class Load(Record):
    """A process: variables of its environment, and one load of a model.

    Words that a protocol may not register are allowed here, as `sdpa`: the library says whether it has them.
    """

    profile: Profile
    checkpoint: str
    placement: Placement
    device: Literal["cpu", "cuda"]
    dtype: Literal["float32", "bfloat16"]
    attention: str
    experts: str
    threads: int
    deterministic_algorithms: bool
    float32_matmul_precision: str
    variables: dict[str, str]


class Executed(Record):
    """What the executor over a fixed cache is given: as registered, captured or not, and the budget of its columns."""

    graph: GraphExecution
    captured: bool
    budget: int


class Row(Record):
    """A row of the batch: its prompt, padding on the left, and the tokens that it is given before the step."""

    condition: str
    prompt_ids: tuple[int, ...]
    left_padding: int
    forced: tuple[int, ...]


class ByArgmax(Record, tag_field="rule", tag="argmax"):
    """The first ID of the largest logit."""


class ByTape(Record, tag_field="rule", tag="tape"):
    """The registered sampler at u, a `float.hex`."""

    sampler: SamplerContract
    u: str


class BySeed(Record, tag_field="rule", tag="seed"):
    """torch's draw for the whole batch, after one draw a step since the seed (16 hex digits)."""

    seed: str
    temperature: float
    top_k: int
    top_p: float


class Forward(Record):
    """A step of one row of a batch. `program`: what decodes up to it; `whole`: one forward over all, without a cache.

    `executed` belongs to the program `executor` alone. `candidates`: the two IDs whose logits are asked for.
    """

    rows: tuple[Row, ...]
    row: int
    step: int
    program: Program
    executed: Executed | None
    contract: DecodeContract
    rule: ByArgmax | ByTape | BySeed
    candidates: tuple[int, int]


class Trial(Record):
    """request.json: forwards under one load, in order. `trace`: the rows of each are traced too."""

    load: Load
    forwards: tuple[Forward, ...]
    trace: bool


class CandidateReport(Record):
    """An ID's logit and rank; its part of a tape's CDF, its probability after the warpers: 0 where none is drawn."""

    logit: float
    rank: int
    lower: float
    upper: float
    probability: float


class ForwardReport(Record, tag_field="state", tag="made"):
    """What a forward gave. `logits_sha256`: of the row's float32 logits, little-endian."""

    token: int
    candidates: tuple[CandidateReport, CandidateReport]
    edge: EdgeDistance | NoEdge
    logits_sha256: str


class TraceDigests(Record, tag_field="state", tag="traced"):
    """Digests of the row by stage and gate, [target, full] each; the target is the row's last token."""

    hidden_sha256: dict[str, tuple[str, str]]
    routes_sha256: dict[str, tuple[str, str]]
    weights_sha256: dict[str, tuple[str, str]]


class TrialReport(Record):
    """report.json: what was read back and what each forward gave, in the request's order; traces where asked for."""

    environment: Environment
    placement: PlacementFacts
    forwards: tuple[ForwardReport | Untried, ...]
    traces: tuple[TraceDigests | NoTrace, ...]


def execution_of(load: Load) -> Execution:
    """A load's settings as what is loaded by. A record's words are checked where it is read: here others can stand."""
    settings: dict[str, Any] = {name: getattr(load, name) for name in Execution.__struct_fields__}
    return Execution(**settings)
