"""The judge's verbs in this process, files of lines, and an engine that only pretends."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.errors import SandboxError

TASK = {
    "prompt": "def f():\n",
    "entry_point": "f",
    "test": "def check(candidate):\n    assert candidate() == 'SECRET'\n",
}


class FakeEngine:
    """Says of a program what its text says: `# outcome detail wall_ns`; `# gone` and the engine is lost.

    Runs ahead by `window` jobs, as the real one does.
    """

    image_id, python, harness_sha256 = "sha256:0", "CPython 3.11.0", "0" * 64

    def __init__(self, window=9):
        self.window = window
        self.closed = False
        self.seen = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True

    def execute_many(self, jobs):
        """Results in order, `window` behind."""
        held = []
        for key, program, task in jobs:
            held.append((key, program))
            self.seen.append((program, task))
            if len(held) > self.window:
                yield self.answer(*held.pop(0))
        for one in held:
            yield self.answer(*one)

    def answer(self, key, program):
        """One execution, as far as the judge looks at it."""
        word = program.rpartition("# ")[2].split()
        if word[0] == "gone":
            raise SandboxError("engine", expected="an engine", found="none", todo="Start it.")
        wall_ns = int(word[2]) if len(word) > 2 else 1_500_000
        evidence = SimpleNamespace(outcome=word[0], detail=word[1] if len(word) > 1 else "")
        return key, SimpleNamespace(evidence=evidence, observation=SimpleNamespace(wall_ns=wall_ns))


@pytest.fixture
def invoke():
    """`invoke(*arguments, data=b"")`: a verb's result; `lines` has standard output decoded."""

    def run(*arguments, data=b""):
        result = CliRunner().invoke(app, ["judge", *(str(one) for one in arguments)], input=data)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(
            code=result.exit_code,
            out=result.stdout,
            err=result.stderr,
            lines=[json.loads(line) for line in result.stdout.split("\n") if line.startswith("{")],
        )

    return run


@pytest.fixture
def fake(monkeypatch):
    """The engine that every `judge code` gets."""
    engine = FakeEngine()
    monkeypatch.setattr("harness.judge.code.open_sandbox", lambda protocol, call: engine)
    return engine


@pytest.fixture
def write(tmp_path):
    """Write rows (objects, or bytes as they are) as lines of a file."""

    def make(*rows, name="lines.jsonl"):
        data = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        (tmp_path / name).write_bytes(b"".join(row + b"\n" for row in data))
        return tmp_path / name

    return make


@pytest.fixture
def task():
    """The fields of a task; its tests hold the word SECRET."""
    return dict(TASK)
