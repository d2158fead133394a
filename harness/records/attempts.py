"""What running out of memory leaves: the failure, the checks of the placements below it, and the list of attempts.

A placement's budget bounds resident parameters, not activations, KV or modules brought back for a forward; "offloaded"
says where weights live and never where they are computed with (R05 3).
"""

from typing import Literal

from harness.records.base import Record
from harness.records.run import PlacementFacts, ProcessIdentity


class ExactRequest(Record, tag_field="state", tag="bytes"):
    """The allocator's message says the bytes that it was asked for; `words` as it wrote them."""

    bytes: int
    words: str


class RoundedRequest(Record, tag_field="state", tag="rounded"):
    """The allocator's message says a rounded size ("400.00 MiB"), from which no exact number follows."""

    words: str


class UnsaidRequest(Record, tag_field="state", tag="not_said"):
    """The message says no size."""


Requested = ExactRequest | RoundedRequest | UnsaidRequest


class WhileLoading(Record, tag_field="stage", tag="load"):
    """Memory ran out before the model was there: it has no device map. The process by PID and start (Unix us)."""

    pid: int
    started_us: int


class WhileDecoding(Record, tag_field="stage", tag="unit"):
    """Memory ran out in a unit, with the model placed as `placement` says, read back from it."""

    source_id: str
    replicate: str
    placement: PlacementFacts
    process: ProcessIdentity


class OutOfMemory(Record):
    """oom.json: one failed allocation that ended an attempt. `message`: the allocator's first line, ASCII.

    `memory_bytes`: peak allocated and peak reserved bytes of each CUDA device since the model's load began, and the
    process's resident bytes (`rss` now, `peak_rss` since it started).
    """

    schema: Literal[1]
    protocol_digest: str
    placement: str
    stage: WhileLoading | WhileDecoding
    requested: Requested
    message: str
    memory_bytes: dict[str, int]


class Compared(Record, tag_field="state", tag="compared"):
    """The placement's smoke grid was generated: its run's SHA-256, and its cells beside those of the last smoke.

    `equal` of `of` cells agree on every one of `fields`. `two_maps`: other bytes lie on the devices than in that smoke.
    """

    run_sha256: str
    fields: tuple[str, ...]
    equal: int
    of: int
    two_maps: bool
    moe_offloaded: bool
    same_environment: bool


class NotGenerated(Record, tag_field="state", tag="out_of_memory"):
    """The placement's smoke grid ran out of memory itself: there is no run to compare."""

    out_of_memory: OutOfMemory


class PlacementCheck(Record):
    """The placement gate of a placement further down, against the last smoke, named by the SHA-256 of its run."""

    placement: str
    smoke_run_sha256: str
    result: Compared | NotGenerated
    passed: bool


class NextPlacement(Record, tag_field="state", tag="placement"):
    """The placement that the whole grid is run again under."""

    id: str


class NoPlacement(Record, tag_field="state", tag="none"):
    """There is none, and why: the run ends here."""

    reason: str


class Attempt(Record):
    """One attempt at the whole grid that ran out of memory. `number` from 1; `units_landed` of it are kept as evidence
    in attempts/NN-<placement>/ and are no result.
    """

    number: int
    placement: str
    units_landed: int
    out_of_memory: OutOfMemory
    checks: tuple[PlacementCheck, ...]
    next: NextPlacement | NoPlacement


class Attempts(Record):
    """attempts.json: every attempt that ran out of memory, in order."""

    schema: Literal[1]
    protocol_digest: str
    attempts: tuple[Attempt, ...]
