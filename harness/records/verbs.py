"""What verbs print under `--json`, where no record of a run or a protocol says it already.

A path is text: a byte of it that isn't UTF-8 stands as its escape.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.manifest import UnfrozenSource
from harness.records.revision import Revision
from harness.records.verification import State

FileState = Literal["present", "altered", "missing", "unfrozen", "fetched", "already there", "not fetched", "failed"]
DigestState = Literal["as registered", "owed", "differs"]


class InputLine(Record):
    """One registered input file. `registered`: its SHA-256, or `unfrozen`; `where`: its path, or why it isn't there."""

    protocol: str
    input: str
    state: FileState
    registered: str
    where: str


class InputList(Record):
    """`inputs verify` and `inputs fetch`. `complete`: every file is there, which is exit code 0."""

    schema: Literal[1]
    complete: bool
    inputs: tuple[InputLine, ...]


class CheckedCell(Record):
    """A cell's prompt as it is built here. `differences`: of it and its source from the manifest; none: it agrees."""

    domain: str
    source_id: str
    condition: str
    length: int
    sha256: str
    differences: tuple[str, ...]


class PromptList(Record):
    """`prompts`. `unchecked`: what can't be built here, and why; `agrees`: none of these and no difference."""

    schema: Literal[1]
    protocol: str
    protocol_digest: str
    agrees: bool
    cells: tuple[CheckedCell, ...]
    unfrozen: tuple[UnfrozenSource, ...]
    unchecked: tuple[str, ...]


class CheckpointFile(Record):
    """A file of a checkpoint. `state`: of its digest beside the profile's; owed: the profile has none yet."""

    name: str
    role: str
    sha256: str
    state: DigestState


class CheckpointList(Record):
    """`profile record`: every file that the profile names, in its order."""

    schema: Literal[1]
    profile: str
    files: tuple[CheckpointFile, ...]


class FreezeChecks(Record):
    """What was checked before a digest was written, with how much of it there was.

    `claims`: permitted conclusions that were seen to be able to hold and to fail. `checkpoint_owed`: files whose digest
    the profile owes, with the one that was found. `longest`: the longest prompt with its grid's new tokens; `context`:
    how many tokens the model takes. Where something wasn't checked its count is 0 and its note says why.
    """

    claims: int
    claims_note: str
    inputs: int
    inputs_of: int
    checkpoint_files: int
    checkpoint_files_of: int
    checkpoint_owed: tuple[str, ...]
    longest: int
    context: int
    context_note: str


class FrozenProtocol(Record):
    """`freeze`: what was frozen. `frozen`: how many sources have their hashes; `unfrozen`: those that are owed.

    `anew`: other digest files lay there, which are no more. `timestamp`: the anchor in time, or that it is owed.
    """

    schema: Literal[1]
    protocol: str
    protocol_digest: str
    frozen: int
    unfrozen: tuple[UnfrozenSource, ...]
    anew: bool
    checks: FreezeChecks
    timestamp: str


class AmendedProtocol(Record):
    """`amend`: the revision that was made, and the protocol digest from now on."""

    schema: Literal[1]
    protocol: str
    protocol_digest: str
    revision: Revision
    checks: FreezeChecks


class AnchoredProtocol(Record):
    """`anchor`: how a protocol's digest stands in time. `state`: as `verify` has it; `none` is a timestamp owed."""

    schema: Literal[1]
    protocol: str
    protocol_digest: str
    state: State
    said: str


class WrittenReport(Record):
    """`report`: the page that was written. `bytes`: its size."""

    schema: Literal[1]
    path: str
    bytes: int
    sha256: str


class WrittenTable(Record):
    """`export`: the table that was written. `rows`: cells; `bytes`: the file's size."""

    schema: Literal[1]
    path: str
    format: Literal["parquet", "csv"]
    bytes: int
    sha256: str
    rows: int
    columns: tuple[str, ...]


class WriteUpLine(Record):
    """Something at a line of the write-up, counted from 1, that the run doesn't support."""

    line: int
    what: str
    expected: str
    found: str


class CheckedWriteUp(Record):
    """`claims --check`: a write-up beside the run's claims. `claims_sha256`: of the registration."""

    schema: Literal[1]
    path: str
    protocol: str
    run_id: str
    claims_sha256: str
    findings: tuple[WriteUpLine, ...]


class WrittenStudy(Record):
    """What `init` wrote. `joined`: conditions of which a prompt's IDs aren't what its text is tokenised to."""

    schema: Literal[1]
    protocol: str
    files: tuple[str, ...]
    sources: int
    prompts: int
    edited: int
    joined: tuple[str, ...]
