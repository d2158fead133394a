"""The audit record of a session on one protocol, and the index of frozen snapshots."""

from typing import Literal

from harness.records.base import Record
from harness.records.run import Deviation


class GateAccount(Record):
    """A gate's rows: how many passed, out of how many the protocol registers; `failed` names the others."""

    id: str
    clause: str
    passed: int
    registered: int
    failed: tuple[str, ...]


class SmokeReference(Record):
    """The smoke record that a formal run stands on, by digests."""

    run_id: str
    audit_sha256: str
    run_sha256: str


class Audit(Record):
    """audit.json: what a session judged, and every file's SHA-256 in its run folder. Its own digest is detached.

    `not_compared`: gates over frozen results that belong to another environment than this one, with the reason.
    """

    schema: Literal[1]
    protocol: str
    registered_id: str
    protocol_digest: str
    result_name: str
    tier: str
    run_id: str
    port: bool
    deviations: tuple[Deviation, ...]
    frozen: bool
    not_compared: tuple[str, ...]
    unfrozen_sources: tuple[str, ...]
    run_sha256: str
    environment_sha256: str
    smoke: SmokeReference | None
    gates: tuple[GateAccount, ...]
    collected: int
    reported: int
    errors: int
    books: tuple[str, ...]
    judge: dict[str, str]
    passed: bool
    files: dict[str, str]


class SnapshotIndex(Record):
    """snapshots/<protocol>/<tier>/index.json: the accepted run by digests, and the digest of every unit's snapshot.

    `origins` are digests of the accepted run's model loads and containers: what one of them made is that run's own,
    and a run can't be compared with its own snapshot.
    """

    schema: Literal[1]
    protocol: str
    protocol_digest: str
    tier: str
    run_sha256: str
    environment_sha256: str
    audit_sha256: str
    origins: tuple[str, ...]
    units: dict[str, str]
