"""Executing a run's programs with an engine that isn't one: order, landing, failures put aside, what is done again."""

import json
import sys

import msgspec
import pytest
from pregate_support.books import CompletionBuilder, Said

from harness.canon import canonical_bytes
from harness.errors import JournalError, SandboxError
from harness.gold import registered_tasks
from harness.journal.folder import RunFolder
from harness.ledgers.executions import code_cells, read_executions
from harness.protocols.load import load_protocol
from harness.records.evaluation import CodeFound
from harness.run import execute as module
from harness.run.execute import ExecutionCall, execute_programs, executes, open_sandbox, require_engine
from harness.run.request import make_request

replace = msgspec.structs.replace
CALL = ExecutionCall(inputs=(), image="local")
SENTINEL = "SEALED-TEST-TEXT"


class FakeEngine:
    """An engine object without containers: outcomes by key, passed where none is planned."""

    def __init__(self, books, **facts):
        shared = books.facts()
        self.books, self.planned, self.ran, self.closed, self.images = books, {}, [], 0, []
        self.image_id, self.python, self.limits = shared.image_id, shared.python, shared.limits
        self.registered, self.harness_sha256 = shared.registered, shared.harness_sha256
        for name, value in facts.items():
            setattr(self, name, value)

    def open(self, protocol, call):
        """In place of `open_sandbox`."""
        self.images.append(call.image)
        return self

    def execute_many(self, jobs):
        """Each job once it is asked for; a planned exception is raised in its place."""
        for key, program, task in jobs:
            self.ran.append((key, program, task.id))
            outcome = self.planned.get(key, "passed")
            if isinstance(outcome, BaseException):
                raise outcome
            yield key, self.books.execution(program, task, outcome, container=key)

    def close(self):
        """Count the closing."""
        self.closed += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture(scope="module")
def loaded():
    """The nano completion protocol."""
    return load_protocol("nano-completion")


@pytest.fixture(scope="module")
def books(loaded):
    """A builder of its runs, with the registered source IDs."""
    sources = {(one.domain, one.index): one.source_id for one in loaded.manifest.sources}
    return CompletionBuilder(loaded.protocol, sources)


@pytest.fixture(scope="module")
def run(loaded, books):
    """A formal run in which each source's cells have a program, but one cell of each."""
    texts = {"english": "Text.", "chinese": "Text.", "code": "```python\ndef f(n):\n    return n\n```", "math": "12"}
    units = tuple(
        books.unit(key.domain, key.index, {"*": Said(texts[key.domain]), "s1_x": Said("")}, grid="formal")
        for key in loaded.units("formal", loaded.domains)
    )
    run = books.completion_run(units, gold={}, grid="formal")
    tasks = registered_tasks(loaded, (), loaded.units("formal", loaded.domains))
    recorded = {name: replace(run.tasks[name], entry_point=task.entry_point) for name, task in tasks.items()}
    return replace(run, tasks=recorded)


@pytest.fixture(scope="module")
def keys(loaded, run):
    """The keys of the programs, in order."""
    return [one.key for one in code_cells(loaded.protocol, run) if isinstance(one.extraction, CodeFound)]


@pytest.fixture
def engine(books, monkeypatch):
    """The engine that `execute_programs` opens."""
    fake = FakeEngine(books)
    monkeypatch.setattr(module, "open_sandbox", fake.open)
    return fake


@pytest.fixture
def folder(tmp_path):
    """An empty run folder."""
    return RunFolder(tmp_path / "run")


def test_every_program_is_executed_once_in_order(loaded, run, keys, folder, engine):
    """In the protocol's order, each against its own source's task, one file each; then the engine is closed."""
    execute_programs(loaded, run, folder, CALL)
    assert [key for key, _, _ in engine.ran] == keys
    assert len(keys) == 4 * 7
    assert list(read_executions(folder)) == sorted(keys)
    assert all(source.replace("/", "-") in key for key, _, source in engine.ran)
    assert (engine.closed, engine.images) == (1, ["local"])


def test_the_program_is_the_cells(loaded, run, folder, engine):
    """What the registered rule takes from the cell's text."""
    execute_programs(loaded, run, folder, CALL)
    programs = {
        one.key: one.extraction.program
        for one in code_cells(loaded.protocol, run)
        if isinstance(one.extraction, CodeFound)
    }
    assert {key: program for key, program, _ in engine.ran} == programs


def test_what_the_executions_share_is_noted(loaded, run, folder, engine, books):
    """sandbox.json: image, Python, checker and limits, as the probe found them."""
    execute_programs(loaded, run, folder, CALL)
    assert folder.file("sandbox.json").read_bytes() == canonical_bytes(books.facts())


def test_executions_land_one_by_one(loaded, run, keys, folder, engine):
    """What was finished before the engine went away is on disk."""
    gone = SandboxError("engine", expected="an engine that answers", found="none", todo="Start it.")
    engine.planned[keys[3]] = gone
    with pytest.raises(SandboxError, match="expected an engine that answers"):
        execute_programs(loaded, run, folder, CALL)
    assert list(read_executions(folder)) == sorted(keys[:3])
    assert engine.closed == 1


def test_an_infrastructure_failure_is_put_aside(loaded, run, keys, folder, engine):
    """It is evidence and no verdict: kept under sandbox/failed, and the execution stops with what to do."""
    engine.planned[keys[2]] = "infrastructure"
    with pytest.raises(SandboxError, match=rf"execution of {keys[2]}: expected a verdict, found infrastructure.*--run"):
        execute_programs(loaded, run, folder, CALL)
    assert list(read_executions(folder)) == sorted(keys[:2])
    (aside,) = (folder.path / "sandbox" / "failed").iterdir()
    assert aside.name.startswith(keys[2])
    assert json.loads(aside.read_bytes())["evidence"]["outcome"] == "infrastructure"


@pytest.mark.parametrize("outcome", ["timeout", "out_of_memory", "syntax_error", "runtime_error", "assertion_failed"])
def test_every_verdict_lands(loaded, run, keys, folder, engine, outcome):
    """What a candidate did is a verdict, however bad, and stops nothing."""
    engine.planned[keys[0]] = outcome
    execute_programs(loaded, run, folder, CALL)
    found = read_executions(folder)
    assert (found[keys[0]].evidence.outcome, len(found)) == (outcome, len(keys))


def test_a_second_call_executes_what_is_missing(loaded, run, keys, folder, engine):
    """Finished verdicts stay as they are, the failed one is tried again, and its first failure stays on record."""
    engine.planned[keys[2]] = "infrastructure"
    with pytest.raises(SandboxError):
        execute_programs(loaded, run, folder, CALL)
    kept = (folder.path / "sandbox" / f"{keys[0]}.json").read_bytes()
    engine.planned.clear()
    engine.ran.clear()
    execute_programs(loaded, run, folder, CALL)
    assert [key for key, _, _ in engine.ran] == keys[2:]
    assert (folder.path / "sandbox" / f"{keys[0]}.json").read_bytes() == kept
    assert list(read_executions(folder)) == sorted(keys)
    assert len(list((folder.path / "sandbox" / "failed").iterdir())) == 1


def test_a_finished_run_opens_no_engine(loaded, run, folder, engine):
    """Somebody without an engine can judge it."""
    execute_programs(loaded, run, folder, CALL)
    engine.images.clear()
    execute_programs(loaded, run, folder, CALL)
    assert engine.images == []


def test_a_run_without_programs_opens_no_engine(loaded, books, folder, engine):
    """Nothing to execute needs nothing."""
    units = tuple(
        books.unit(key.domain, key.index, {"*": Said("")}, grid="formal")
        for key in loaded.units("formal", loaded.domains)
    )
    execute_programs(loaded, books.completion_run(units, gold={}, grid="formal"), folder, CALL)
    assert (engine.images, folder.file("sandbox.json").exists()) == ([], False)


@pytest.mark.parametrize(
    ("name", "value"), [("image_id", "sha256:other"), ("python", "CPython 3.9.1"), ("harness_sha256", "0" * 64)]
)
def test_another_image_is_refused_by_name(loaded, run, keys, folder, engine, name, value):
    """One run, one image and one checker: the rest isn't executed under another."""
    engine.planned[keys[5]] = "infrastructure"
    with pytest.raises(SandboxError):
        execute_programs(loaded, run, folder, CALL)
    engine.ran.clear()
    setattr(engine, name, value)
    with pytest.raises(JournalError, match=rf"sandbox facts of this run: {name}=.*found {name}="):
        execute_programs(loaded, run, folder, CALL)
    assert engine.ran == []


def test_an_altered_verdict_isnt_taken_for_finished(loaded, run, keys, folder, engine):
    """A verdict on disk that isn't its own digest stops the execution by name."""
    execute_programs(loaded, run, folder, CALL)
    path = folder.path / "sandbox" / f"{keys[0]}.json"
    path.write_bytes(path.read_bytes().replace(b'"outcome":"passed"', b'"outcome":"timeout"'))
    with pytest.raises(JournalError, match=rf"{keys[0]}.json: evidence_sha256"):
        execute_programs(loaded, run, folder, CALL)


def test_no_test_text_is_left(loaded, run, folder, engine, monkeypatch):
    """A sentinel in every task's tests reaches the engine and no file of the folder."""
    seen = []
    real = registered_tasks

    def marked(*arguments):
        tasks = {name: replace(task, test=f"{task.test}\n# {SENTINEL}") for name, task in real(*arguments).items()}
        seen.extend(task.test for task in tasks.values())
        return tasks

    monkeypatch.setattr(module, "registered_tasks", marked)
    execute_programs(loaded, run, folder, CALL)
    assert len(seen) == 4
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert len(files) > 28
    assert not [path for path in files if SENTINEL.encode() in path.read_bytes() or b"def check" in path.read_bytes()]


def test_progress_says_which_of_how_many(loaded, run, keys, folder, engine):
    """A line for each program, and an empty one at the end."""
    said = []
    execute_programs(loaded, run, folder, CALL, sink=said.append)
    assert said[0] == f"nano-completion formal: program 1/{len(keys)} executed"
    assert (len(said), said[-1]) == (len(keys) + 1, "")


def test_only_a_completion_protocol_executes(nano, run, folder):
    """Asking for another is misuse."""
    with pytest.raises(RuntimeError, match="nano-behavior executes nothing"):
        execute_programs(nano, run, folder, CALL)


@pytest.mark.parametrize(("tier", "expected"), [("smoke", False), ("formal", True), ("replay", False)])
def test_the_tier_that_executes(loaded, options, tier, expected):
    """Where a gate judges verdicts: the formal tier."""
    assert executes(loaded, make_request(loaded, tier, "run-1", options())) is expected


def test_without_a_domain_of_programs_nothing_is_executed(loaded, options):
    """A port without code needs no engine."""
    request = make_request(loaded, "formal", "run-1", options())
    assert not executes(loaded, replace(request, domains=("english", "math")))


def test_a_behaviour_protocol_executes_nothing(nano, options):
    """Nor does a protocol that has no such gate."""
    assert not executes(nano, make_request(nano, "formal", "run-1", options()))


def test_an_engine_is_required_before(loaded, engine):
    """It is opened, proved and closed again."""
    require_engine(loaded.protocol, CALL)
    assert (engine.images, engine.closed) == (["local"], 1)


class Absent:
    """An importer's word that there is no docker here."""

    def find_spec(self, name, path=None, target=None):
        """Refuse that one package."""
        if name.split(".")[0] == "docker":
            raise ModuleNotFoundError(f"No module named {name!r}", name="docker")


def test_a_missing_library_is_one_clear_error(loaded, monkeypatch):
    """Without the extra that reaches an engine: what to install, and no traceback."""
    for name in [one for one in sys.modules if one.split(".")[0] == "docker" or one.startswith("harness.sandbox.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(SandboxError, match=r"expected the library that reaches it, found no module docker.*sandbox"):
        open_sandbox(loaded.protocol, CALL)
