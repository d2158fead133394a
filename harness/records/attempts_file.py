"""The entries of a protocol's attempts file: every formal run that was started, went on, ended or was refused.

One line an entry, canonical JSON. `number` counts lines from 1; `previous_sha256` is the SHA-256 of the line before it
without its line break (64 zeros for the first), so that no line can be altered, dropped or put in between unseen.
"""

from typing import Literal

from harness.records.base import Record

NO_AUDIT = "none: no audit record was written"  # in the place of its digest
Outcome = Literal["passed", "failed", "incomplete", "out_of_memory"]


class Begun(Record, tag_field="event", tag="begun"):
    """A formal session that is about to generate. Written before any unit is; `at_us` is Unix time in microseconds.

    `how`: a new run, or one that goes on from the `units_there` that an earlier session landed.
    """

    schema: Literal[1]
    number: int
    previous_sha256: str
    at_us: int
    protocol: str
    protocol_digest: str
    run_id: str
    port: bool
    how: Literal["new", "resumed"]
    units_there: int


class Ended(Record, tag_field="event", tag="ended"):
    """The end of such a session. A run without one was killed, or is still on.

    `placements`: those that the run was tried under, in order; more than one where memory ran out. `audit_sha256`: of
    the audit record that the session left, or why there is none. `reason`: why the run isn't whole; empty where it is.
    """

    schema: Literal[1]
    number: int
    previous_sha256: str
    at_us: int
    protocol: str
    protocol_digest: str
    run_id: str
    outcome: Outcome
    placements: tuple[str, ...]
    audit_sha256: str
    reason: str


class Refused(Record, tag_field="event", tag="refused"):
    """A formal session that was refused before anything was generated; `run_id` is the name that its run would have."""

    schema: Literal[1]
    number: int
    previous_sha256: str
    at_us: int
    protocol: str
    protocol_digest: str
    run_id: str
    port: bool
    reason: str


Entry = Begun | Ended | Refused


class AttemptRow(Record):
    """One attempt as it reads: a run with everything that was entered of it, or a refusal.

    `number`: of its first line. `outcome`: `refused`, `no end on record`, or those that were entered, in order, such as
    `incomplete then passed`.
    """

    number: int
    at_us: int
    protocol_digest: str
    run_id: str
    port: bool
    resumed: int
    outcome: str
    placements: tuple[str, ...]
    reason: str
