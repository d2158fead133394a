"""Snapshots of a completion run: cells without verdicts, and verdicts apart from them, by identity."""

import json

import msgspec
import pytest
from pregate_support.books import PROTOCOLS, CompletionBuilder, Said, signed

from harness.canon import digest
from harness.ledgers.completion import completion_ledger
from harness.protocols.load import load_protocol, read_protocol
from harness.snapshots.content import snapshot_bytes, unit_snapshot, verdict_snapshot
from harness.snapshots.store import executed_units, frozen_names, verdicts_name

replace = msgspec.structs.replace
FENCED = "```python\ndef f(n):\n    return n + 1\n```"
KEY = "code-00-code-0000-greedy-"


@pytest.fixture(scope="session")
def books() -> CompletionBuilder:
    """A builder of one source a domain."""
    protocol = read_protocol(PROTOCOLS / "nano-completion" / "protocol.toml")
    return CompletionBuilder(protocol).with_grid("formal", per_domain=1)


@pytest.fixture(scope="session")
def run(books):
    """Code and mathematics."""
    code = books.unit("code", 0, {"*": Said(FENCED), "s0_x": Said("")}, grid="formal")
    math = books.unit("math", 0, {"*": Said("so 12")}, grid="formal")
    return books.completion_run((code, math), gold={"math/0000": "12"}, grid="formal")


@pytest.fixture(scope="session")
def executions(books, run):
    """Seven verdicts, one of them a failure."""
    return books.executions(run, {"s1_x": "out_of_memory"})


@pytest.fixture(scope="session")
def ledger(books, run, executions):
    """The ledger."""
    return completion_ledger(books.protocol, run, executions)


@pytest.fixture(scope="session")
def verdicts(run, ledger, executions):
    """The code unit's verdicts."""
    return verdict_snapshot(run.units[0], ledger, executions)


def by_condition(content):
    """The cells of a snapshot by condition."""
    return {one["condition"]: one for one in content["cells"]}


def test_a_units_snapshot_has_accounts_and_no_verdict(run, ledger):
    """Stops, classes, terminals, programs and baseline are in it; what needs an engine isn't."""
    cells = by_condition(unit_snapshot(run.units[0], ledger))
    assert set(cells["s0_eos"]) >= {"stop", "completion", "terminal", "numeric", "baseline", "program"}
    text = snapshot_bytes(unit_snapshot(run.units[0], ledger)).decode()
    assert not [word for word in ("outcome", "verdict", "execution_sha256", "fixed_budget_pass") if word in text]


def test_a_units_snapshot_needs_no_engine(books, run, ledger):
    """A run that executes nothing gives the same bytes, so cells can be replayed without an engine."""
    other = books.completion_run(run.units, gold=run.gold, grid="independent")
    units = tuple(replace(unit, grid="independent") for unit in run.units)
    again = completion_ledger(books.protocol, replace(other, units=units), {})
    for unit in run.units:
        assert snapshot_bytes(unit_snapshot(unit, ledger)) == snapshot_bytes(unit_snapshot(unit, again))


def test_verdicts_are_words_and_digests(run, verdicts, executions):
    """Outcome, the document's word, and the digests of program, task and tests."""
    cells = by_condition(verdicts)
    evidence = executions[f"{KEY}s1_x"].evidence
    assert cells["s1_x"]["verdict"] == {
        "state": "executed",
        "outcome": "out_of_memory",
        "published": "runtime_error",
        "ast_parses": True,
        "ran": True,
        "fixed_budget_pass": False,
        "strict_complete_pass": False,
        "candidate_sha256": evidence.candidate_sha256,
        "task_sha256": evidence.task_sha256,
        "tests_sha256": evidence.tests_sha256,
    }
    assert cells["s0_x"]["verdict"] == {"state": "not_executed", "reason": "extract_failed"}
    assert [one["condition"] for one in verdicts["cells"]] == [cell.condition for cell in run.units[0].cells]


@pytest.mark.parametrize("name", ["image_id", "python", "harness_sha256", "detail", "exit_code"])
def test_another_machines_image_gives_the_same_verdicts(books, run, verdicts, executions, name):
    """Image, Python, checker, a word of detail and an exit code aren't in it."""
    other = {"exit_code": 1}.get(name, "other")
    again = {key: signed(replace(one.evidence, **{name: other}), one.limits, "x") for key, one in executions.items()}
    book = completion_ledger(books.protocol, run, again)
    assert verdict_snapshot(run.units[0], book, again) == verdicts


def test_another_limit_gives_the_same_verdicts(books, run, verdicts, executions):
    """Limits are a gate's business."""
    again = {}
    for key, one in executions.items():
        limits = replace(one.limits, pids=1)
        again[key] = signed(replace(one.evidence, limits_sha256=digest(limits)), limits, "x")
    assert verdict_snapshot(run.units[0], completion_ledger(books.protocol, run, again), again) == verdicts


@pytest.mark.parametrize("outcome", ["assertion_failed", "timeout"])
def test_another_outcome_is_another_snapshot(books, run, verdicts, executions, outcome):
    """One verdict of eight."""
    again = executions | {f"{KEY}s0_eos": books.executions(run, {"*": outcome})[f"{KEY}s0_eos"]}
    book = completion_ledger(books.protocol, run, again)
    assert verdict_snapshot(run.units[0], book, again) != verdicts


def test_no_text_is_in_it(verdicts):
    """Neither a program nor a test."""
    text = snapshot_bytes(verdicts).decode("ascii")
    assert not [word for word in ("def ", "return", "assert ", "candidate(") if word in text]
    assert json.loads(text) == json.loads(json.dumps(verdicts))


def test_replicates_are_kept_apart(books):
    """Two units of one source: each has its own verdicts."""
    grown = books.with_grid("formal", per_domain=1, replicates=("r0", "r1"))
    units = tuple(grown.unit("code", 0, {"*": Said(FENCED)}, grid="formal", replicate=name) for name in ("r0", "r1"))
    run = grown.completion_run(units, gold={}, grid="formal")
    failed = grown.executions(run, {"*": "timeout"})
    executions = {key: failed[key] if "-r1-" in key else one for key, one in grown.executions(run, {}).items()}
    book = completion_ledger(grown.protocol, run, executions)
    found = [verdict_snapshot(unit, book, executions)["cells"][0]["verdict"]["outcome"] for unit in units]
    assert found == ["passed", "timeout"]


def test_names_of_frozen_files():
    """One file a unit, and one more for each unit whose programs are executed."""
    loaded = load_protocol("nano-completion")
    units = loaded.units("formal", loaded.domains)
    code = executed_units(loaded, units)
    assert {unit.domain for unit in code} == {"code"}
    names = frozen_names(loaded)
    assert len(names) == len(set(names)) == 16 + 4
    assert {verdicts_name(unit) for unit in code} <= set(names)


def test_a_behaviour_protocol_freezes_cells_alone():
    """Nothing of it is executed."""
    loaded = load_protocol("nano-behavior")
    assert frozen_names(loaded) == sorted(key.name for key in loaded.units("formal", loaded.domains))
