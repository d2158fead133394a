"""One engine object for all tests marked `docker`, the vectors, and a checker without a container.

Tests marked `docker` need a running engine (DOCKER_HOST) and HARNESS_SANDBOX_IMAGE, the name of an image that it has.
Without them they fail with one message.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from harness.errors import SandboxError
from harness.records.sandbox import RecordedImage, SandboxContract, Task
from harness.sandbox import execute
from harness.sandbox.bundle import COMMAND, prefixed, program
from harness.sandbox.container import Container
from harness.sandbox.execute import open_engine
from harness.sandbox.inside import codec
from harness.sandbox.verdict import Ending, judge

VECTORS = [json.loads(line) for line in (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()]
PROMPT = "from typing import List\n\ndef triple(n: int) -> List[int]:\n    pass\n"
TEST = "def check(candidate):\n    assert candidate(2) == [2, 2, 2]\n    assert candidate(3) == [3, 3, 3]\n"
NONCE = "0" * 64


def make_contract(image=None, **changes) -> SandboxContract:
    """The contract of Round 05, with changes."""
    fields = {
        "network": "none",
        "read_only": True,
        "user": "65534:65534",
        "cap_drop": ("ALL",),
        "no_new_privileges": True,
        "memory_bytes": 256 << 20,
        "memory_swap_bytes": 256 << 20,
        "pids": 64,
        "nano_cpus": 500_000_000,
        "wall_timeout_ms": 5000,
        "tmpfs_bytes": 16 << 20,
        "tmpfs_options": ("noexec", "nosuid", "nodev"),
        "image": image or RecordedImage(),
    }
    return SandboxContract(**fields | changes)


@pytest.fixture(scope="session")
def contract() -> SandboxContract:
    """The contract of Round 05 with any image."""
    return make_contract()


@pytest.fixture(scope="session")
def contract_with():
    """A factory of contracts with other fields."""
    return make_contract


def make_task(test=TEST, *, prompt=PROMPT, entry_point="triple") -> Task:
    """A task around `triple`."""
    return Task(id="triple", prompt=prompt, entry_point=entry_point, test=test)


@pytest.fixture(scope="session")
def task_of():
    """A factory of tasks around `triple`."""
    return make_task


class Watched(Container):
    """A container whose ID is remembered."""

    ids: set[str] = set()  # noqa: RUF012 - one set for the session

    @classmethod
    def create(cls, client, order):
        """Remember it."""
        made = super().create(client, order)
        cls.ids.add(made.id)
        return made


@pytest.fixture(scope="session")
def image() -> str:
    """The image's name."""
    name = os.environ.get("HARNESS_SANDBOX_IMAGE")
    if not name:
        pytest.fail("tests marked `docker` need a running engine and HARNESS_SANDBOX_IMAGE: fixtures/sandbox makes one")
    return name


@pytest.fixture(scope="session")
def engine(image, contract):
    """An engine object that remembers its containers; afterwards none of them is left."""
    patch = pytest.MonkeyPatch()
    patch.setattr(execute, "Container", Watched)
    try:
        opened = open_engine(contract, image=image)
    except SandboxError as error:
        pytest.fail(f"tests marked `docker` need an engine: {error}")
    with opened:
        yield opened
    patch.undo()


@pytest.fixture(scope="session")
def api(engine):
    """The engine's own API, past the harness."""
    client = docker.APIClient(version="auto", **docker.utils.kwargs_from_env())
    yield client
    client.close()


@pytest.fixture(scope="session")
def run_all(engine):
    """Run (key, program, task) rows and give the executions by key."""
    return lambda rows: dict(engine.execute_many(rows))


@pytest.fixture
def processes_left():
    """Host processes in a container of the session's, by their control groups."""

    def find() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cgroup"):
            try:
                text = path.read_text()
            except OSError:
                continue
            found += [path.parent.name for one in Watched.ids if one in text]
        return found

    return find


@pytest.fixture(scope="session")
def judged_here():
    """The checker as a plain child process, without container and limits: outcome and detail."""

    def run(candidate: str, task: Task, *, deadline_ms=10_000):
        fields = {"prompt": task.prompt, "entry_point": task.entry_point, "test": task.test}
        fields |= {"nonce": NONCE, "program": candidate.encode("utf-8", "surrogatepass"), "deadline_ms": deadline_ms}
        data = codec.encode(fields, limit=1 << 31)
        done = subprocess.run(
            [sys.executable, *COMMAND[1:]],
            input=prefixed(program("main")) + prefixed(data),
            stdout=subprocess.PIPE,
            env={"PYTHONHASHSEED": "0"},
            check=False,
        )
        return judge(Ending(done.stdout, exit_code=done.returncode, oom_killed=False, overdue=False, lost=""), NONCE)

    return run
