"""Sandbox checks (R05 6): each program's verdict is one of a fresh container under the contract, as it was read back.

Executes nothing and needs no engine. Test text is never part of a difference.
"""

import re
from collections.abc import Iterator

from harness.canon import digest
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.journal.folder import read_record
from harness.ledgers.executions import SANDBOX, code_cell, read_execution
from harness.protocols.grids import RowKey
from harness.records.base import Frozen
from harness.records.evaluation import CodeMissing
from harness.records.kinds import JudgedRun
from harness.records.protocol import JudgedProtocol
from harness.records.sandbox import (
    Execution,
    ExecutionObservation,
    LimitsInForce,
    RegisteredImage,
    SandboxContract,
    SandboxFacts,
    Task,
)
from harness.sandbox.contract import wanted
from harness.sandbox.payload import candidate_sha256, task_sha256, tests_sha256

Pairs = Iterator[tuple[str, object, object]]
WORD = re.compile(r"[A-Za-z0-9_]{0,80}")
DIGEST = re.compile(r"[0-9a-f]{64}")


def sandbox_verdicts(evidence: RunEvidence, row: RowKey) -> Differences:
    """R05 6: the cell's program, taken again from its text, was run against the registered tests in its own container.

    What had nothing to run needs no container; an infrastructure failure is no verdict and fails.
    """
    protocol, run = evidence.loaded.protocol, evidence.run
    if not isinstance(protocol, JudgedProtocol) or not isinstance(run, JudgedRun):
        raise RuntimeError(f"{protocol.id} executes nothing")
    unit = evidence.unit(row)
    own = code_cell(protocol, run, unit, evidence.cell(row))
    found, key = own.extraction, own.key
    if isinstance(found, CodeMissing):
        there = evidence.folder.file(f"sandbox/{key}.json").exists()
        return (differs(cell_name(row), "no verdict: nothing was extracted", "one"),) if there else ()
    if not evidence.folder.file(f"sandbox/{key}.json").exists():
        reason = evidence.unjudged or "no execution"
        return (differs(cell_name(row), "a verdict of the sandbox", f"infrastructure: {reason}"),)
    execution = read_execution(evidence.folder, key)
    facts = read_record(evidence.folder.file("sandbox.json"), SandboxFacts, what="sandbox facts")
    pairs = (
        *_inputs(execution, found.program, evidence.registered_tasks[unit.source_id]),
        *_verdict(execution),
        *_shared(execution, facts, evidence),
        *_alone(evidence, execution),
        *_contract("container", protocol.sandbox, execution.limits),
        *_contract("probe", protocol.sandbox, facts.limits),
    )
    return tuple(differs(f"{cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other)


def _inputs(execution: Execution, program: str, task: Task) -> Pairs:
    evidence = execution.evidence
    yield "candidate_sha256", candidate_sha256(program), evidence.candidate_sha256
    yield "task_sha256", task_sha256(task), evidence.task_sha256
    yield "tests_sha256", tests_sha256(task), evidence.tests_sha256


def _verdict(execution: Execution) -> Pairs:
    """What no sandbox says: free words, a verdict without a container's time, a pass without its two signs."""
    evidence, seen = execution.evidence, execution.observation
    none = evidence.outcome in ("infrastructure", "extract_failed")
    yield "outcome", "a verdict", evidence.outcome if none else "a verdict"
    yield "detail", "a word", "a word" if WORD.fullmatch(evidence.detail) else "something else"
    yield "output_sha256", "a SHA-256", "a SHA-256" if DIGEST.fullmatch(seen.output_sha256) else "something else"
    yield "bytes of output", True, seen.output_bytes >= 0
    yield "times", "0 <= wall <= total, CPU >= 0", _times(seen)
    # The checker may have said its nonce and then ended badly: that is no pass, and both are needed for one.
    if evidence.outcome == "passed":
        yield "exit code of a pass", 0, evidence.exit_code
        yield "nonce of the last assertion", True, evidence.nonce_returned
        yield "time of a pass", True, seen.wall_ns > 0
    else:
        said = evidence.nonce_returned and evidence.exit_code == 0
        yield "nonce of the last assertion with exit code 0", False, said


def _times(seen: ExecutionObservation) -> str:
    whole = 0 <= seen.wall_ns <= seen.total_ns and seen.total_ns > 0 and seen.cpu_ns >= 0
    return "0 <= wall <= total, CPU >= 0" if whole else f"wall {seen.wall_ns}, total {seen.total_ns}, CPU {seen.cpu_ns}"


def _shared(execution: Execution, facts: SandboxFacts, run: RunEvidence) -> Pairs:
    """All executions are one image's and one checker's; a registered image is that one, or a port's deviation."""
    evidence = execution.evidence
    yield "image_id", facts.image_id, evidence.image_id
    yield "python", facts.python, evidence.python
    yield "harness_sha256", run.checker_sha256, evidence.harness_sha256
    yield "harness_sha256 of the probe", run.checker_sha256, facts.harness_sha256
    yield "limits_sha256", digest(execution.limits), evidence.limits_sha256
    protocol = run.loaded.protocol
    if isinstance(protocol, JudgedProtocol) and isinstance(protocol.sandbox.image, RegisteredImage):
        listed = run.spec.port and any(one.field == "sandbox.image" for one in run.spec.deviations)
        yield "registered image", True, facts.registered or listed


def _alone(run: RunEvidence, execution: Execution) -> Pairs:
    """A container serves one execution: no other of the run names the same."""
    own = execution.observation.container
    same = [one for one in _executions(run).values() if one.observation.container == own]
    yield "a container", True, own != ""
    yield "executions in this container", 1, len(same)


def _executions(run: RunEvidence) -> dict[str, Execution]:
    cache = run.__dict__
    if "_executions" not in cache:
        # Without their digests: what another cell's record says of itself is that cell's row.
        paths = sorted((run.folder.path / SANDBOX).rglob("*.json"))  # what failed had a container too
        cache["_executions"] = {str(path): read_record(path, Execution, what="execution") for path in paths}
    executions: dict[str, Execution] = cache["_executions"]
    return executions


def _contract(what: str, contract: SandboxContract, limits: LimitsInForce) -> Pairs:
    """Every flag of the contract against what the engine said of the container."""
    expected = wanted(contract)
    for name in LimitsInForce.__struct_fields__:
        yield f"{what} flag {name}", getattr(expected, name), getattr(limits, name)


def registered_reference(image: RegisteredImage) -> str:
    """A registered image as one word: `reference@sha256:digest`."""
    return f"{image.reference}@sha256:{image.digest.sha256 if isinstance(image.digest, Frozen) else 'unfrozen'}"
