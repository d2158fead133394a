"""What `explain` finds between two sides that differ: from their records, and from forwards that were made again.

Nothing here is a cause by itself. A record says what was so on a side; a rerun says which token this machine gives
under which conditions. Steps count from 0. A is the side whose token is asked back for, B the other.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.difference import CellPair, ComparedSide, JudgedBy, SideName, Token, TracePair
from harness.records.ledger import Count
from harness.records.run import Environment, PlacementFacts
from harness.records.tapes import EdgeDistance, NoEdge

# What decides a token by itself first, then what changes the last bits of the arithmetic.
AspectName = Literal[
    "prompt",
    "batch",
    "draws",
    "sampler",
    "program",
    "cache",
    "checkpoint",
    "protocol",
    "dtype",
    "attention",
    "experts",
    "settings",
    "kernels",
    "libraries",
    "machine",
    "threads",
    "placement",
]
AspectState = Literal["same", "differs", "unknown"]
Gives = Literal["a", "b", "other"]
ChangeKind = Literal["between the sides", "tried besides"]


class AspectField(Record):
    """A field in which the sides differ; `absent` where a side has none."""

    field: str
    a: str
    b: str


class Aspect(Record):
    """What the records say of one condition. `held`: what both have, where it is the same; else empty.

    `why`: why it can't be said, or what of it a side doesn't hold; else empty.
    """

    name: AspectName
    state: AspectState
    held: str
    differing: tuple[AspectField, ...]
    why: str


class NotHeld(Record, tag_field="state", tag="not_held"):
    """What a side's records don't have, and why."""

    reason: str


class TapeSide(Record, tag_field="state", tag="taped"):
    """The number that a side's tape has for the step: z of 16 hex digits, u as `float.hex` and in decimal.

    `nearest`: the smallest distance from u to a CDF edge over all draws of the row, so that of this step isn't smaller.
    A journal has no distance of one step; a rerun does.
    """

    tape: str
    z: str
    u: str
    u_decimal: float
    nearest: EdgeDistance | NoEdge | NotHeld


class NoTape(Record, tag_field="state", tag="no_tape"):
    """The side draws under no tape, or the tree at hand doesn't say which."""

    reason: str


class TapeStep(Record):
    """The step's number on both sides."""

    a: TapeSide | NoTape
    b: TapeSide | NoTape


class Divergence(Record, tag_field="state", tag="diverged"):
    """Where the sides part. `first` differing cell in the grid's order; `earliest`: the one that parts in the smallest
    step, ties in the grid's order, the same where no cell parts in a token. Aspects and tape are of `explained`.
    """

    first: CellPair
    earliest: CellPair
    explained: CellPair
    differing: Count
    aspects: tuple[Aspect, ...]
    tape: TapeStep


class NoDivergence(Record, tag_field="state", tag="none"):
    """No cell that both sides have differs."""


class Interval(Record, tag_field="state", tag="interval"):
    """A token's part of the CDF, [lower, upper], by the tape's sampler, and its probability after the warpers."""

    lower: float
    upper: float
    probability: float


class Probability(Record, tag_field="state", tag="probability"):
    """A token's probability after the warpers of a seeded draw."""

    probability: float


class NoChance(Record, tag_field="state", tag="greedy"):
    """The argmax is taken: no token has a chance."""


class Candidate(Record):
    """One of the two tokens under one set of conditions. `rank`: tokens with a larger logit."""

    token: Token
    logit: float
    rank: int
    chance: Interval | Probability | NoChance


class StepResult(Record, tag_field="state", tag="made"):
    """The step as it was made again. `margin`: A's token's logit minus B's. `edge`: distance of u to the nearer end of
    the drawn token's interval, where there is a tape. `logits_sha256`: of the row's float32 logits, little-endian.
    """

    token: Token
    gives: Gives
    a: Candidate
    b: Candidate
    margin: float
    edge: EdgeDistance | NoEdge
    logits_sha256: str


class Untried(Record, tag_field="state", tag="untried"):
    """What couldn't be made here, and why."""

    reason: str


class SideRerun(Record, tag_field="state", tag="rerun"):
    """A side's conditions as far as this machine has them. `elsewise`: recorded on the side (`a`) and read back here
    (`b`) where the two aren't the same. `reproduced`: the token is the one that the side's record has.
    """

    elsewise: tuple[AspectField, ...]
    environment: Environment
    placement: PlacementFacts
    outcome: StepResult
    reproduced: bool


class NoTrace(Record, tag_field="state", tag="no_trace"):
    """Why the prefix wasn't traced under both sides' conditions."""

    reason: str


class Change(Record):
    """One change to the conditions of `base`. `restores`: it gives the token that is looked for."""

    kind: ChangeKind
    field: str
    before: str
    after: str
    outcome: StepResult | Untried
    restores: bool


class Search(Record, tag_field="state", tag="searched"):
    """Single changes to one side's conditions. `base`: the side that was changed, B where it is reproduced, else A.

    `wanted`: the side whose token is looked for, the other one.
    """

    base: SideName
    wanted: SideName
    changes: tuple[Change, ...]


class NoSearch(Record, tag_field="state", tag="no_search"):
    """Why no change was tried."""

    reason: str


class Rerun(Record, tag_field="state", tag="rerun"):
    """The step of the explained cell made again, `prefix` tokens forced, in processes of their own.

    `trace`: of prompt and prefix in one forward without a cache; `target` in it is the last token. `same_bits`: both
    sides' conditions gave the same logits here.
    """

    step: int
    a: SideRerun | Untried
    b: SideRerun | Untried
    same_bits: bool
    trace: TracePair | NoTrace
    search: Search | NoSearch


class NoRerun(Record, tag_field="state", tag="not_rerun"):
    """Why nothing was made again."""

    reason: str


class Explanation(Record):
    """`explain A B`. `verdict` as `compare` gives it: the exit code is 0 or 1. `sentence`: one line to quote."""

    schema: Literal[1]
    verdict: Literal["equal", "different"]
    a: ComparedSide
    b: ComparedSide
    equal: Count
    budget: int
    judged_by: JudgedBy
    found: Divergence | NoDivergence
    rerun: Rerun | NoRerun
    sentence: str
