"""What `verify` found in a run folder, line by line, for machines."""

from typing import Literal

from harness.records.base import Record

State = Literal["holds", "fails", "not checkable", "none"]
Said = Literal["passed", "not passed", "not judged", "unknown"]


class VerifiedLine(Record):
    """One thing that was verified. `step`: which part; `where`: a file or a field of one.

    `holds` and `none` (there is nothing of the kind in this run) need no `todo`; `expected` and `found` say how much.
    """

    step: str
    state: State
    where: str
    expected: str
    found: str
    todo: str


class Verification(Record):
    """The lines of all steps, in order. `verdict`: fails before not checkable before holds; of the records alone.

    `said`: whether the run passed, as its audit record has it. A run that didn't pass can hold.
    """

    schema: Literal[1]
    run: str
    protocol: str
    protocol_digest: str
    audit_sha256: str
    said: Said
    verdict: Literal["holds", "fails", "not checkable"]
    lines: tuple[VerifiedLine, ...]
