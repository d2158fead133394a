"""What sampling under a tape leaves: the sampler's registration, every draw, and a row's account beyond its CellRecord.

z is a 64-bit integer as 16 hex digits; u is a binary64 number in Python's `float.hex` form, exact both ways.
"""

from typing import Literal

from harness.records.base import Record

SamplerRule = Literal["icdf-r08", "icdf-v1"]


class SamplerContract(Record):
    """The sampler (R08 4.3). `device` is where all of it is computed: a CUDA cumulative sum rounds otherwise.

    `icdf-r08` forces the last CDF element to 1, as published; `icdf-v1` every element from the last surviving ID on.
    """

    rule: SamplerRule
    temperature: float
    top_p: float
    min_tokens_to_keep: int
    device: Literal["cpu", "cuda"]


class EdgeDistance(Record, tag_field="state", tag="edge"):
    """Distance from u to the nearest CDF edge, beyond which another ID would have been drawn: [0, 1), a probability."""

    distance: float


class NoEdge(Record, tag_field="state", tag="no_edge"):
    """One ID has the whole of (0, 1): no other could have been drawn."""


class StepDraw(Record):
    """One draw of one row. `gap`: a filtered ID was drawn, where float32 left the sum of the survivors below u.

    `boundary_tie`: a filtered ID has the same score as a surviving one, so that the sort chose between them.
    """

    step: int
    token: int
    gap: bool
    boundary_tie: bool
    edge: EdgeDistance | NoEdge


class ConsumedValues(Record):
    """The z that a row consumed, step 0 first: their number, the first eight, and SHA-256 of all of them.

    The hash is over their 8-byte big-endian bytes in order. The step that draws EOS consumes (DECISIONS: sampling).
    """

    count: int
    first_z: tuple[str, ...]
    first_u: tuple[str, ...]
    sha256: str


class Finished(Record, tag_field="state", tag="finished"):
    """The row drew EOS at this step, counted from 0."""

    step: int


class NotFinished(Record, tag_field="state", tag="not_finished"):
    """The row had drawn no EOS when the budget ended."""


class RowTape(Record):
    """What a row leaves beyond its CellRecord. Draws are counted over the row's own steps, EOS included.

    `gap_steps`: the steps that drew a filtered ID, `gaps` of them. `nearest_edge`: the smallest distance of all its
    draws. `attended`: columns of the row with mask 1 in the batch's last forward, as read back from the mask.
    """

    condition: str
    tape: str
    tape_sha256: str
    sampler: SamplerContract
    consumed: ConsumedValues
    gaps: int
    gap_steps: tuple[int, ...]
    boundary_ties: int
    nearest_edge: EdgeDistance | NoEdge
    finish: Finished | NotFinished
    attended: int


class LoopChecks(Record):
    """Checked in every step of every row not yet finished: logits finite."""

    steps: int
    rows_checked: int
    finite: int


class SyntheticOutcome(Record):
    """What the sampler drew on one case of the synthetic table (R08 5.1)."""

    case: str
    token: int
    gap: bool


class SyntheticDraws(Record):
    """synthetic.json: what a run's own sampler drew on the whole table before its first unit."""

    schema: Literal[1]
    sampler: SamplerContract
    outcomes: tuple[SyntheticOutcome, ...]
