"""A revision of a frozen protocol, what had been made by then, and the anchor in time of a protocol digest.

Files beside a protocol: `revisions/NNNN/revision.json` and `anchor/anchor.json`, both canonical JSON.
"""

from typing import Literal

from harness.records.base import Record

OutputKind = Literal["run", "attempt", "snapshots"]


class FoundOutput(Record):
    """Something that was made of a protocol, as it was found. `where`: below the tree, with `/`.

    `protocol_digest`: as the output itself says, or `unreadable` where nothing in it says so.
    """

    kind: OutputKind
    where: str
    protocol_digest: str


class Revision(Record):
    """revision.json: that a protocol was changed after it was frozen, why, and what there was of it by then.

    `number` counts from 1. `supersedes`: the protocol digest until then. `content_sha256`: over protocol, manifest and
    profile from then on; the protocol digest from then on covers that content and this record. `previous_sha256`: of
    the record before, 64 zeros for the first. `at_us`: Unix time in microseconds by the clock of that machine.
    `outputs`: what was found in `looked_in`, by looking and not by asking; `outputs_existed`: whether that is anything.
    """

    schema: Literal[1]
    protocol: str
    number: int
    reason: str
    supersedes: str
    content_sha256: str
    previous_sha256: str
    at_us: int
    looked_in: tuple[str, ...]
    outputs_existed: bool
    outputs: tuple[FoundOutput, ...]


class Anchor(Record):
    """anchor.json: which answer of which authority anchors which protocol digest.

    `authority`: the signing certificate's subject, `serial` the token's number in hex, `at` what the token says (UTC,
    ISO 8601). All three are the token's words, for pages that verify none. `certificates_sha256`: of the PEM file kept
    beside it, against which it was verified when it was kept.
    """

    schema: Literal[1]
    protocol_digest: str
    request_sha256: str
    response_sha256: str
    certificates_sha256: str
    authority: str
    serial: str
    at: str
