"""Executions on disk: each is held against its own digests; programs are taken again from the cells' texts."""

import msgspec
import pytest

from harness.errors import HarnessError, JournalError, StorageError
from harness.journal.folder import RunFolder, write_record
from harness.ledgers.executions import code_cells, read_execution, read_executions, task_of
from harness.protocols.grids import executed_grid
from harness.records.evaluation import CodeFound, CodeMissing

replace = msgspec.structs.replace
KEY = "code-00-code-0000-greedy-s0_eos"
FENCED = "```python\ndef f(n):\n    return n + 1\n```"


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """An empty run folder."""
    return RunFolder(tmp_path / "run")


@pytest.fixture(scope="module")
def run(books, say):
    """A run of code and mathematics; one code cell holds nothing."""
    code = books.unit("code", 0, {"*": say(FENCED), "s0_x": say("")}, grid="formal")
    math = books.unit("math", 0, {"*": say("12")}, grid="formal")
    return books.completion_run((math, code), gold={"math/0000": "12"}, grid="formal")


@pytest.fixture
def landed(folder, books):
    """`landed(execution)`: an execution on disk under the first code cell's key."""

    def write(execution, key=KEY):
        write_record(folder.path / "sandbox" / f"{key}.json", execution)
        return execution

    return write


@pytest.fixture
def execution(books):
    """A sound execution."""
    return books.execution("def f(n):\n    return n + 1\n", books.task("code/0000"), "passed")


def test_executions_are_read_by_key(folder, landed, execution):
    """What lies in sandbox/ is there by its file's name; what was put aside as a failure isn't a verdict."""
    landed(execution)
    write_record(folder.path / "sandbox" / "failed" / "one.json", execution)
    assert read_executions(folder) == {KEY: execution}


def test_a_run_without_executions_has_none(folder):
    """No folder, no verdict, no error."""
    assert read_executions(folder) == {}


FAULTS = {
    "outcome": lambda e: replace(e, evidence=replace(e.evidence, outcome="timeout")),
    "candidate": lambda e: replace(e, evidence=replace(e.evidence, candidate_sha256="0" * 64)),
    "nonce": lambda e: replace(e, evidence=replace(e.evidence, nonce_returned=False)),
    "exit code": lambda e: replace(e, evidence=replace(e.evidence, exit_code=None)),
    "digest": lambda e: replace(e, evidence_sha256="0" * 64),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_altered_evidence_is_refused(folder, landed, execution, fault):
    """Whatever of the evidence was changed, its digest says so and the file is named."""
    landed(FAULTS[fault](execution))
    with pytest.raises(JournalError, match=rf"{KEY}.json: evidence_sha256: expected"):
        read_execution(folder, KEY)


@pytest.mark.parametrize("name", ["network", "user", "pids", "memory_bytes", "mounts"])
def test_altered_limits_are_refused(folder, landed, execution, name):
    """Limits that aren't those whose digest is evidence."""
    other = {"network": "bridge", "user": "0:0", "pids": 0, "memory_bytes": 1, "mounts": ("/:/",)}[name]
    landed(replace(execution, limits=replace(execution.limits, **{name: other})))
    with pytest.raises(JournalError, match=rf"{KEY}.json: evidence.limits_sha256: expected"):
        read_executions(folder)


@pytest.mark.parametrize(
    ("data", "words"), [(b"", "expected JSON"), (b"{}", "expected a field"), (b"[]", "expected object, found array")]
)
def test_a_file_that_is_no_execution_is_refused(folder, landed, execution, data, words):
    """Half a file isn't passed over."""
    landed(execution)
    (folder.path / "sandbox" / f"{KEY}.json").write_bytes(data)
    with pytest.raises(JournalError, match=words):
        read_executions(folder)


def test_a_missing_execution_is_named(folder):
    """The one that was asked for."""
    with pytest.raises(StorageError, match=rf"{KEY}.json: expected a readable execution"):
        read_execution(folder, KEY)


def test_code_cells_are_the_code_domains(books, run):
    """Every cell of a domain that registers tests, in the protocol's order, with what was taken from it."""
    cells = list(code_cells(books.protocol, run))
    assert [cell.condition for cell in cells] == [condition.id for condition in books.protocol.conditions]
    assert {cell.source_id for cell in cells} == {"code/0000"}
    kinds = {cell.condition: type(cell.extraction) for cell in cells}
    assert (kinds["s0_x"], kinds["s0_eos"]) == (CodeMissing, CodeFound)
    assert cells[0].key == KEY


def test_keys_of_cells_differ(books, say):
    """Two sources and two replicates: no two cells share a file."""
    grown = books.with_grid("formal", per_domain=2, replicates=("r0", "r1"))
    units = tuple(
        grown.unit("code", index, {"*": say(FENCED)}, grid="formal", replicate=name)
        for index in range(2)
        for name in ("r0", "r1")
    )
    run = grown.completion_run(units, gold={}, grid="formal")
    keys = [cell.key for cell in code_cells(grown.protocol, run)]
    assert len(set(keys)) == len(keys) == 32


def test_a_source_without_a_task_is_named(run):
    """JournalError, and not the name of a missing key."""
    with pytest.raises(JournalError, match=r"run record: task of code/0001: expected prompt, entry point"):
        task_of(run, "code/0001")


def test_an_entry_point_that_is_no_name_is_refused(books, run):
    """A task record that can't be one is bad data."""
    tasks = {"code/0000": replace(run.tasks["code/0000"], entry_point="f(")}
    with pytest.raises(HarnessError, match="entry point: expected the name of a Python function"):
        list(code_cells(books.protocol, replace(run, tasks=tasks)))


@pytest.mark.parametrize(("grid", "executed"), [("smoke", False), ("formal", True), ("independent", False)])
def test_executed_grids(completion, grid, executed):
    """The formal grid's programs are executed, since a gate judges them; smoke and replay execute none."""
    assert executed_grid(completion, grid) is executed
