"""What `compare` finds between two sides, A and B, each a run or frozen results.

Steps count from 0, as in every record. Identity is source, replicate and condition. Nothing says which side is right.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.completion import Stop
from harness.records.depth import Scope
from harness.records.ledger import Comparison, Count

SideName = Literal["a", "b"]
SideKind = Literal["run", "frozen"]
# Most telling first: what must be expected to change a token, then what may, then what changes judgements alone.
FactGroup = Literal["prompts", "draws", "checkpoint", "protocol", "port", "environment", "placement", "judging"]
Judged = Literal["passed", "not passed", "not judged", "frozen"]


class ComparedSide(Record):
    """One side. `name`: run ID, or the protocol of frozen results. `budget`: new tokens a cell, 0 for a trace.

    `run_sha256`: of run.json, of frozen results the accepted run's; `none` for a run that ended before.
    """

    kind: SideKind
    name: str
    family: str
    protocol: str
    protocol_digest: str
    tier: str
    grid: str
    budget: int
    run_sha256: str
    environment_sha256: str
    port: bool
    state: Judged
    units: int
    cells: int


class Fact(Record):
    """Something other than outputs in which the sides differ. `where`: in how many units or cells, and the first; or
    why there are no fields to show. Empty for what is one for the whole side.
    """

    group: FactGroup
    field: str
    a: str
    b: str
    where: str


class JudgedField(Record):
    """A part of who judged in which the sides differ; of a list what the other side lacks, else `none`."""

    field: str
    a: str
    b: str


class JudgedBy(Record):
    """Whether the last sessions over the sides had the same gates, harness and pytest plug-ins, by their audit records.

    `held`: what both have, where it is the same. `why`: why it is unknown. Else both are empty.
    """

    state: Literal["same", "differs", "unknown"]
    held: str
    differing: tuple[JudgedField, ...]
    why: str


class Decoded(Record, tag_field="state", tag="decoded"):
    """A token's text by the profile's tokenizer, as ASCII escapes. A part of a letter decodes to U+FFFD."""

    text_escaped: str


class NotDecoded(Record, tag_field="state", tag="not_decoded"):
    """Why there is no text."""

    reason: str


class Token(Record, tag_field="state", tag="token"):
    """A generated token."""

    id: int
    text: Decoded | NotDecoded


class NoToken(Record, tag_field="state", tag="none"):
    """The sequence has ended before this step."""


class Parting(Record, tag_field="state", tag="parted"):
    """The first step, from 0, in which the sides have other tokens; so many are the same before it."""

    step: int
    a: Token | NoToken
    b: Token | NoToken


class NoParting(Record, tag_field="state", tag="same"):
    """All compared tokens are the same."""


class End(Record):
    """How a side's output stopped, and its length in tokens, EOS counted; both within the compared budget."""

    stop: Stop
    length: int


class OutputPair(Record, tag_field="state", tag="output"):
    """The compared tokens of a cell on both sides."""

    comparison: Comparison
    parting: Parting | NoParting
    a: End
    b: End


class TracePlace(Record, tag_field="state", tag="at"):
    """A digest of a trace: `hidden` of a stage, `routes` or `weights` of a gate; `target` comes before `full`."""

    name: str
    scope: Scope
    digest: Literal["hidden", "routes", "weights"]


class NoPlace(Record, tag_field="state", tag="none"):
    """No digest that was compared differs."""


class TracePair(Record, tag_field="state", tag="trace"):
    """A traced cell: the first stage and the first gate, in the forward's order, that differ.

    `tensors`: whether digests after the embedding were compared at all.
    """

    tensors: bool
    first_stage: TracePlace | NoPlace
    first_gate: TracePlace | NoPlace


class CellPair(Record):
    """A cell that both sides have. `fields`: what differs in it; empty where it is equal."""

    domain: str
    index: int
    source_id: str
    replicate: str
    condition: str
    equal: bool
    fields: tuple[str, ...]
    found: OutputPair | TracePair


class LoneCell(Record):
    """A cell that only `side` has. `missing`: the other side's grid has it too, or isn't known."""

    side: SideName
    domain: str
    source_id: str
    replicate: str
    condition: str
    missing: bool


class CellGroup(Record):
    """Equal cells of a domain, or of a condition; the other one is empty."""

    domain: str
    condition: str
    equal: Count


class SideComparison(Record):
    """Both sides. `verdict`: equal where every common cell is and none is missing; then the exit code is 0, else 1.

    `budget`: tokens compared of each cell, the smaller one of the two; `whole`: the two budgets are one.
    `shared_units`: units that one and the same call made on both sides, of those in common: their equality shows
    nothing. With frozen results on a side: units whose process made the accepted run.
    """

    schema: Literal[1]
    verdict: Literal["equal", "different"]
    a: ComparedSide
    b: ComparedSide
    budget: int
    whole: bool
    equal: Count
    shared_units: Count
    groups: tuple[CellGroup, ...]
    facts: tuple[Fact, ...]
    judged_by: JudgedBy
    not_compared: tuple[str, ...]
    lone: tuple[LoneCell, ...]
    cells: tuple[CellPair, ...]
