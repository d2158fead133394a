"""attestation.json: an in-toto statement, version 1, over a judged run. Names with capitals are in-toto's.

The predicate is in-toto's test result, version 0.1, with one extension field of this project's.
"""

from typing import Final, Literal

import msgspec

from harness.records.base import Record

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"


class ResourceDescriptor(Record):
    """A file by name and digest. `digest`: algorithm to lower-case hex; here always `sha256` alone."""

    name: str
    digest: dict[str, str]


class AttestedRun(Record):
    """The extension field `pregate`: which run it is, and what `verify` found of it when the statement was made.

    `not_checkable`: what couldn't be checked there, one line each; `verified` is `holds` where there is none.
    """

    schema: Literal[1]
    protocol: str
    registered_id: str
    protocol_digest: str
    result_name: str
    tier: str
    run_id: str
    port: bool
    run_sha256: str
    environment_sha256: str
    verified: Literal["holds", "not checkable"]
    not_checkable: tuple[str, ...]


class RunResult(Record):
    """The predicate: a session's gates by name. PASSED exactly where the audit record says that the session passed."""

    result: Literal["PASSED", "FAILED"]
    configuration: tuple[ResourceDescriptor, ...]
    passedTests: tuple[str, ...]  # noqa: N815 - in-toto's name
    failedTests: tuple[str, ...]  # noqa: N815 - in-toto's name
    pregate: AttestedRun


class Statement(Record):
    """What is signed. `subject`: by name, sorted; `type_` and the other names are in-toto's in the file."""

    type_: Literal["https://in-toto.io/Statement/v1"] = msgspec.field(name="_type")
    subject: tuple[ResourceDescriptor, ...]
    predicateType: Literal["https://in-toto.io/attestation/test-result/v0.1"]  # noqa: N815 - in-toto's name
    predicate: RunResult
