"""The sandbox as data: its contract, the image it runs, and what one execution leaves.

No test text, no assertion line and no traceback is in any of these records: digests, an outcome and times.
"""

from typing import Literal

from harness.records.base import Digest, Record

Outcome = Literal[
    "passed",
    "assertion_failed",
    "runtime_error",
    "timeout",
    "out_of_memory",
    "syntax_error",
    "extract_failed",
    "infrastructure",
]


class RegisteredImage(Record, tag_field="policy", tag="registered"):
    """The image is `reference` at `digest` (the manifest's SHA-256); another one makes the run a port."""

    reference: str
    digest: Digest


class RecordedImage(Record, tag_field="policy", tag="recorded"):
    """Any image that has a Python serves; its ID and the Python it ran are recorded."""


class SandboxContract(Record):
    """Flags of every container (R05 6), asked for at creation and read back from the engine afterwards.

    Sizes in bytes, `nano_cpus` in 1e-9 CPU, `wall_timeout_ms` in ms from the start of the candidate's process.
    `memory_swap_bytes` is memory and swap together: equal to `memory_bytes`, there is no swap.
    """

    network: Literal["none"]
    read_only: bool
    user: str
    cap_drop: tuple[str, ...]
    no_new_privileges: bool
    memory_bytes: int
    memory_swap_bytes: int
    pids: int
    nano_cpus: int
    wall_timeout_ms: int
    tmpfs_bytes: int
    tmpfs_options: tuple[str, ...]
    image: RegisteredImage | RecordedImage


class LimitsInForce(Record):
    """What the engine says of a created container: read back, not repeated from what was asked for.

    `mounts`: host paths and volumes mounted (none). `tmpfs`: options by path.
    """

    network: str
    read_only: bool
    user: str
    cap_drop: tuple[str, ...]
    cap_add: tuple[str, ...]
    security_options: tuple[str, ...]
    privileged: bool
    memory_bytes: int
    memory_swap_bytes: int
    pids: int
    nano_cpus: int
    tmpfs: dict[str, str]
    mounts: tuple[str, ...]
    ipc: str


class ExecutionEvidence(Record):
    """One candidate run against one task's tests in one fresh container.

    Digests: `candidate_sha256` of the program's UTF-8 (a lone surrogate as its three bytes); `task_sha256` of the
    canonical digests of prompt and entry point; `tests_sha256` of the tests' UTF-8; `harness_sha256` of the checker's
    source; `limits_sha256` of the canonical limits in force. `detail` is a word of the checker's or an exception's
    class name, never a message. `exit_code` is the container's; none where it had to be killed or never ran.
    `nonce_returned`: the checker said with its nonce that the last assertion held.
    """

    candidate_sha256: str
    task_sha256: str
    tests_sha256: str
    harness_sha256: str
    image_id: str
    python: str
    limits_sha256: str
    outcome: Outcome
    detail: str
    exit_code: int | None
    nonce_returned: bool


class ExecutionObservation(Record):
    """How an execution went; never evidence. `container`: the engine's ID of it, empty where there was none.

    Times in ns: `wall_ns` and `cpu_ns` of the candidate's process from its start to the verdict, `total_ns` of the
    whole container. Output of the candidate: bytes seen, SHA-256 of what was kept, and whether it was cut at the cap.
    """

    container: str
    wall_ns: int
    cpu_ns: int
    total_ns: int
    output_bytes: int
    output_sha256: str
    output_cut: bool


class Execution(Record):
    """sandbox/<key>.json: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: ExecutionEvidence
    evidence_sha256: str
    limits: LimitsInForce
    observation: ExecutionObservation


class SandboxFacts(Record):
    """sandbox.json: the one engine, image and checker that all executions of a run share, as the probe found them.

    `registered`: the contract's image policy is met. Under `registered` that is the registered digest, under `recorded`
    any image.
    """

    schema: Literal[1]
    image_id: str
    python: str
    registered: bool
    limits: LimitsInForce
    harness_sha256: str


class Task(Record):
    """What a candidate is judged by. Never written to a run folder: a record holds its digests."""

    id: str
    prompt: str
    entry_point: str
    test: str
