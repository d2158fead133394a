"""What goes into a container and what is recorded of it: the checker's payload, and the execution's record.

Digests stand for candidate, task and tests; no text of a test is in what it returns.
"""

from typing import NamedTuple, Protocol

from harness.canon import digest, sha256_hex
from harness.records.sandbox import Execution, ExecutionEvidence, ExecutionObservation, LimitsInForce, Task
from harness.sandbox.bundle import prefixed
from harness.sandbox.inside import codec
from harness.sandbox.verdict import Ending, judge, kept_sha256

LIMIT = 1 << 31  # bytes; what doesn't fit the container's memory is out_of_memory there


class Fit(Protocol):
    """What a record takes from an engine."""

    image_id: str
    python: str
    harness_sha256: str


class Ran(NamedTuple):
    """One container that has run: its ID, its nonce, its end, the limits it ran under, and its whole time."""

    container: str
    nonce: str
    ending: Ending
    limits: LimitsInForce
    total_ns: int


def payload(program: str, task: Task, nonce: str, deadline_ms: int) -> bytes:
    """The checker's input: length and one encoded dict. Lone surrogates travel: the container says what they are."""
    data = codec.encode(
        {
            "nonce": nonce,
            "program": utf8(program),
            "prompt": task.prompt,
            "entry_point": task.entry_point,
            "test": task.test,
            "deadline_ms": deadline_ms,
        },
        limit=LIMIT,
    )
    return prefixed(data)


def utf8(text: str) -> bytes:
    """UTF-8, with three bytes for a lone surrogate, which has no UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def candidate_sha256(program: str) -> str:
    """SHA-256 of a program's `utf8`."""
    return sha256_hex(utf8(program))


def task_sha256(task: Task) -> str:
    """SHA-256 of the canonical digests of prompt and entry point: texts of any kind have one."""
    return digest({"entry_point": sha256_hex(utf8(task.entry_point)), "prompt": sha256_hex(utf8(task.prompt))})


def tests_sha256(task: Task) -> str:
    """SHA-256 of the tests' `utf8`."""
    return sha256_hex(utf8(task.test))


def record(fit: Fit, program: str, task: Task, ran: Ran) -> Execution:
    """The execution's record."""
    judged = judge(ran.ending, ran.nonce)
    evidence = ExecutionEvidence(
        candidate_sha256=candidate_sha256(program),
        task_sha256=task_sha256(task),
        tests_sha256=tests_sha256(task),
        harness_sha256=fit.harness_sha256,
        image_id=fit.image_id,
        python=fit.python,
        limits_sha256=digest(ran.limits),
        outcome=judged.outcome,
        detail=judged.detail,
        exit_code=ran.ending.exit_code,
        nonce_returned=judged.nonce_returned,
    )
    found = judged.verdict
    observation = ExecutionObservation(
        container=ran.container,
        wall_ns=found.wall_ns if found else 0,
        cpu_ns=found.cpu_ns if found else 0,
        total_ns=ran.total_ns,
        output_bytes=found.output_bytes if found else 0,
        output_sha256=kept_sha256(found),
        output_cut=found.output_cut if found else False,
    )
    return Execution(
        schema=1, evidence=evidence, evidence_sha256=digest(evidence), limits=ran.limits, observation=observation
    )
