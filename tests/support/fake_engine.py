"""A pytest plugin (`-p fake_engine`) in whose sessions no container is started: a fake engine, true to the contract.

It replaces `harness.run.execute.open_sandbox`. Outcomes come from really running program and test in a plain Python
process, so it is for harmless programs only. FAKE_ENGINE: empty; `none`: no engine answers; `lost:N`: it is lost at the
Nth program. FAKE_ENGINE_LOG: a file that gets a line for each program executed.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.canon import digest, sha256_hex
from harness.errors import SandboxError
from harness.records.sandbox import (
    Execution,
    ExecutionEvidence,
    ExecutionObservation,
    Outcome,
    SandboxContract,
    Task,
)
from harness.sandbox.bundle import harness_sha256
from harness.sandbox.contract import wanted
from harness.sandbox.payload import candidate_sha256, task_sha256, tests_sha256

IMAGE = "sha256:" + "fa" * 32
RUNNER = """
import sys
program, test, entry_point = sys.argv[1:]
space = {"__name__": "candidate"}
try:
    code = compile(program, "candidate", "exec")
except SyntaxError:
    sys.exit("syntax_error")
try:
    exec(code, space)
    exec(test, space)
    space["check"](space[entry_point])
except AssertionError:
    sys.exit("assertion_failed")
except BaseException:
    sys.exit("runtime_error")
sys.exit("passed")
"""


class FakeEngine:
    """`harness.sandbox.execute.Engine` as far as its callers see it."""

    def __init__(self, contract: SandboxContract) -> None:
        self.contract = contract
        self.image_id = IMAGE
        self.python = "CPython " + ".".join(map(str, sys.version_info[:3]))
        self.registered = True
        self.limits = wanted(contract)
        self.harness_sha256 = harness_sha256()
        self._done = 0

    def __enter__(self) -> "FakeEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing was opened."""

    def execute_many(self, jobs: Iterable[tuple[Any, str, Task]]) -> Iterator[tuple[Any, Execution]]:
        """(key, program, task) as (key, execution), in order; after a loss nothing more is begun."""
        for key, program, task in jobs:
            self._done += 1
            if os.environ.get("FAKE_ENGINE") == f"lost:{self._done}":
                yield key, self._record(program, task, "infrastructure", "engine_gone", 0)
                raise _gone()
            begun = time.monotonic_ns()
            outcome = self._outcome(program, task)
            _note(str(key))
            yield key, self._record(program, task, outcome, "", time.monotonic_ns() - begun)

    def _outcome(self, program: str, task: Task) -> Outcome:
        command = [sys.executable, "-I", "-c", RUNNER, program, task.test, task.entry_point]
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=self.contract.wall_timeout_ms / 1000
            )
        except subprocess.TimeoutExpired:
            return "timeout"
        said: Any = ran.stderr.strip()
        return said  # type: ignore[no-any-return]

    def _record(self, program: str, task: Task, outcome: Outcome, detail: str, wall_ns: int) -> Execution:
        passed, began = outcome == "passed", outcome != "infrastructure"
        evidence = ExecutionEvidence(
            candidate_sha256=candidate_sha256(program),
            task_sha256=task_sha256(task),
            tests_sha256=tests_sha256(task),
            harness_sha256=self.harness_sha256,
            image_id=self.image_id,
            python=self.python,
            limits_sha256=digest(self.limits),
            outcome=outcome,
            detail=detail,
            exit_code=(0 if passed else 1) if began else None,
            nonce_returned=passed,
        )
        observation = ExecutionObservation(
            container=os.urandom(32).hex(),
            wall_ns=wall_ns,
            cpu_ns=wall_ns,
            total_ns=wall_ns,
            output_bytes=0,
            output_sha256=sha256_hex(b""),
            output_cut=False,
        )
        return Execution(
            schema=1,
            evidence=evidence,
            evidence_sha256=digest(evidence),
            limits=self.limits,
            observation=observation,
        )


def engine_arguments(kind: str = "", log: Path | None = None) -> tuple[tuple[str, ...], dict[str, str]]:
    """(arguments, environment) of a session under the fake engine of that kind."""
    env = {"FAKE_ENGINE": kind, "PYTHONPATH": str(Path(__file__).parent)}
    return ("-p", "fake_engine"), env | ({"FAKE_ENGINE_LOG": str(log)} if log else {})


def pytest_configure() -> None:
    """Put the fake in the engine's place, in the process that judges."""
    from harness.run import execute

    def open_fake(protocol: Any, call: Any) -> FakeEngine:
        del call
        if os.environ.get("FAKE_ENGINE") == "none":
            raise _gone()
        return FakeEngine(protocol.sandbox)

    execute.open_sandbox = open_fake  # type: ignore[assignment]


def _gone() -> SandboxError:
    return SandboxError(
        "container engine", expected="an engine that answers", found="none: the fake is gone", todo="Start one."
    )


def _note(key: str) -> None:
    if path := os.environ.get("FAKE_ENGINE_LOG"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{key}\n")
