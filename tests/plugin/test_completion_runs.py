"""Completion sessions end to end: made, lost, judged further, accepted, replayed, refused.

One chain of sessions over one tree: the accepted run, and a second one whose engine is lost and comes back.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
from pregate_support.fake_engine import engine_arguments
from pregate_support.faults import faulty
from pregate_support.fixtures import tree_of
from pregate_support.many import Case, Outcome, run_many
from pregate_support.mini import (
    COMPLETION,
    MINI,
    TEST_MARK,
    Result,
    accepted_baseline,
    add_completion,
    copy_tree,
    run_gates,
)

from harness.journal.attempts_file import NAME
from harness.places import Places
from harness.snapshots.store import accept

SECOND = f"reports/{COMPLETION}/formal-2"
LOST_AT = 3
NEED_VERDICTS = {
    "sandbox_verdicts",
    "assembled_run",
    "completion_state",
    "observations",
    "paired_comparison",
    "frozen_snapshots",
    "frozen_verdicts",
}


def reasons(result: Result) -> list[str]:
    """The lines in which pytest refuses."""
    return [line for line in result.output.splitlines() if line.startswith("ERROR: ")]


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}


def red(result: Result) -> dict[str, list[str]]:
    """The gates whose rows didn't all pass, with those rows."""
    return {one["id"]: one["failed"] for one in result.audit["gates"] if one["failed"]}


def marked(folder: Path) -> list[str]:
    """The files under a folder that hold text of a test."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and TEST_MARK.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def tree(completion_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the completion run's tree in which that run was accepted."""
    target = copy_tree(tree_of(completion_run), tmp_path_factory.mktemp("accepted") / "tree")
    accept(target / completion_run.relative_to(tree_of(completion_run)), Places(target))
    return target


def session(tree: Path, kind: str, *extra: str, tier: str = "formal", log: Path | None = None) -> Result:
    """A session over the tree under a fake engine of a kind."""
    arguments, env = engine_arguments(kind, log)
    return run_gates(tree, "-m", tier, *extra, *arguments, protocol=COMPLETION, env=env)


@pytest.fixture(scope="module")
def lost(tree: Path) -> tuple[Result, dict[str, object], dict[str, bytes]]:
    """A second formal run whose engine is lost at the third program: the session, its audit, what it executed."""
    result = session(tree, f"lost:{LOST_AT}", "--run", SECOND)
    return result, result.audit, contents(tree / SECOND / "sandbox")


@pytest.fixture(scope="module")
def further(
    tree: Path, lost: tuple[Result, dict[str, object], dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Result, list[str]]:
    """The same run, judged further with an engine: the session, and the programs that it executed."""
    assert lost[0].code == 1, lost[0].output
    log = tmp_path_factory.mktemp("log") / "executed"
    result = session(tree, "", "--run", SECOND, log=log)
    if result.code != 0:
        pytest.fail(f"the run wasn't judged further: {result.output[-4000:]}")
    return result, log.read_text().splitlines()


def test_a_formal_session_passes_unfrozen(completion_session: Result) -> None:
    """Every registered row passes; without accepted results there is no snapshot gate, and the session says so."""
    audit = completion_session.audit
    assert (completion_session.code, audit["passed"], audit["frozen"]) == (0, True, False)
    rows = {one["id"]: (one["passed"], one["registered"]) for one in audit["gates"]}
    assert all(passed == registered for passed, registered in rows.values())
    assert rows["sandbox_verdicts"] == (8, 8)
    assert not {"frozen_snapshots", "frozen_verdicts"} & {*rows}
    assert "unfrozen: no snapshot gate" in completion_session.output


def test_some_cells_end_and_some_are_cut(completion_run: Path) -> None:
    """What the tests of this protocol rest on: nano ends some answers within the budget and not others."""
    cells = json.loads((completion_run / "ledger.json").read_bytes())["cells"]
    assert {cell["stop"] for cell in cells} == {"natural_eos", "budget_truncated"}
    assert {cell["code"]["verdict"]["outcome"] for cell in cells if cell["domain"] == "code"} == {"passed"}


def test_a_smoke_says_once_that_programs_are_not_run(completion_session: Result, completion_run: Path) -> None:
    """Smoke needs no engine, executes nothing and says so in one line; a formal session doesn't say it."""
    noted = json.loads((completion_run / "smoke.json").read_bytes())
    smoke = completion_run.parent / noted["run_id"]
    said = (smoke / "session.log").read_text()
    assert said.count(f"{COMPLETION}: this tier executes no program") == 1
    assert not (smoke / "sandbox").exists()
    assert "executes no program" not in completion_session.output


def test_a_lost_engine_is_no_verdict(lost: tuple[Result, dict[str, object], dict[str, bytes]], tree: Path) -> None:
    """What needs verdicts is red as infrastructure, everything else stays green, and what was finished is kept."""
    result, _, executed = lost
    assert result.code == 1
    failed = {one["id"]: one["failed"] for one in lost[1]["gates"] if one["failed"]}
    assert set(failed) == NEED_VERDICTS
    assert len(executed) == LOST_AT - 1
    assert len(failed["sandbox_verdicts"]) == 8 - len(executed)
    assert "found infrastructure: " in " ".join(result.output.split())
    (kept,) = contents(tree / SECOND / "sandbox/failed").values()
    assert json.loads(kept)["evidence"]["outcome"] == "infrastructure"


def test_a_run_is_judged_further_once_there_is_an_engine(
    further: tuple[Result, list[str]],
    lost: tuple[Result, dict[str, object], dict[str, bytes]],
    tree: Path,
    completion_run: Path,
) -> None:
    """Only the missing programs are executed; the records are those of a run whose engine was never lost."""
    _, executed = further
    before, after = lost[2], contents(tree / SECOND / "sandbox")
    assert sorted(executed) == sorted(name.removesuffix(".json") for name in {*after} - {*before})
    assert {name: after[name] for name in before} == before
    for name in ("run.json", "ledger.json", "statistics.json"):
        assert (tree / SECOND / name).read_bytes() == (completion_run / name).read_bytes()


def test_a_second_formal_run_equals_the_accepted_one(further: tuple[Result, list[str]]) -> None:
    """Cells and verdicts, each by its own gate, against a run that was made apart."""
    audit = further[0].audit
    assert (audit["passed"], audit["frozen"]) == (True, True)
    rows = {one["id"]: one["passed"] for one in audit["gates"]}
    assert (rows["frozen_snapshots"], rows["frozen_verdicts"]) == (2, 1)


def test_a_judged_run_needs_no_engine(further: tuple[Result, list[str]], tree: Path) -> None:
    """Judged once more where there is none: all verdicts are there."""
    assert further[0].audit["passed"]
    result = session(tree, "none", "--run", SECOND)
    assert result.code == 0, result.output[-3000:]


def test_a_replay_needs_no_engine(tree: Path) -> None:
    """It regenerates cells and executes nothing; the frozen cells hold, verdicts aren't asked for."""
    result = session(tree, "none", tier="replay")
    assert result.code == 0, result.output[-3000:]
    rows = {one["id"]: one["passed"] for one in result.audit["gates"]}
    assert rows["frozen_snapshots"] == 2
    assert not {"frozen_verdicts", "sandbox_verdicts"} & {*rows}
    assert f"{COMPLETION}: this tier executes no program" in result.output


def test_no_test_text_leaves_the_input(
    further: tuple[Result, list[str]],
    lost: tuple[Result, dict[str, object], dict[str, bytes]],
    completion_session: Result,
    tree: Path,
) -> None:
    """Neither a run folder nor a snapshot, a JUnit file or an output holds what is in every test of the pool."""
    assert marked(tree / "fixtures/nano/pools") == [str(tree / "fixtures/nano/pools/code-sealed.jsonl")]
    assert marked(tree / "reports") + marked(tree / "snapshots") == []
    assert not [one for one in (further[0], lost[0], completion_session) if TEST_MARK in one.output]


def test_a_killed_formal_run_is_not_resumed(completion_run: Path, tmp_path: Path) -> None:
    """R05: the whole grid is run again. The journals stay, nothing is assembled, and the reason is one line."""
    tree = copy_tree(tree_of(completion_run), tmp_path / "tree", without=MINI)
    engine, env = engine_arguments()
    fault, planted = faulty(tmp_path / "faults", "kill")
    path = os.pathsep.join((env["PYTHONPATH"], planted["PYTHONPATH"]))
    killed = run_gates(
        tree,
        *("-m", "formal", "--run", SECOND, *engine, *fault),
        protocol=COMPLETION,
        env=env | planted | {"PYTHONPATH": path},
    )
    assert killed.code == -9, killed.output[-3000:]
    before = contents(tree / SECOND / "journal")
    result = session(tree, "", "--run", SECOND)
    assert (result.code, len(reasons(result))) == (4, 1), result.output
    assert "expected all 2 units or none, found 1 units of a run that ended" in reasons(result)[0]
    assert contents(tree / SECOND / "journal") == before
    assert not [name for name in ("run.json", "ledger.json", "audit.json") if (tree / SECOND / name).exists()]


@pytest.mark.docker
def test_a_real_engine_gives_the_fakes_verdicts(fresh_completion: Path) -> None:
    """The generated run, executed in real containers: every gate passes and every program has the same verdict."""
    faked = contents(fresh_completion / "sandbox")
    shutil.rmtree(fresh_completion / "sandbox")
    for name in ("sandbox.json", "ledger.json", "statistics.json", "audit.json", "audit.json.sha256", "junit.xml"):
        (fresh_completion / name).unlink()
    tree, image = tree_of(fresh_completion), os.environ["HARNESS_SANDBOX_IMAGE"]
    named = ("--run", str(fresh_completion), "--sandbox-image", image)
    result = run_gates(tree, "-m", "formal", *named, protocol=COMPLETION)
    assert result.code == 0, result.output[-3000:]
    executed = contents(fresh_completion / "sandbox")
    assert verdicts(executed) == verdicts(faked)
    assert marked(fresh_completion) == []
    assert TEST_MARK not in result.output


def verdicts(executions: dict[str, bytes]) -> dict[str, list[object]]:
    """What a verdict is of and what it is, by the execution's name; image, Python and times may be others."""
    fields = ("candidate_sha256", "task_sha256", "tests_sha256", "outcome", "exit_code", "nonce_returned")
    plain = {name: json.loads(data)["evidence"] for name, data in executions.items()}
    return {name: [evidence[field] for field in fields] for name, evidence in plain.items()}


def formal(protocol: str = COMPLETION, *extra: str, **env: str) -> Case:
    """A formal session where no engine answers."""
    return Case(
        ("gates", "-m", "formal", "--protocol", protocol, *extra), {"DOCKER_HOST": "unix:///nowhere.sock", **env}
    )


OWED = "no run of it was accepted, and this is why"
REFUSALS = {
    "no engine": (formal(COMPLETION, "--sandbox-image", "any"), "container engine"),
    "no engine, image by the environment": (formal(HARNESS_SANDBOX_IMAGE="any"), "container engine"),
    "a baseline without --port": (
        formal(COMPLETION, "--baseline", f"reports/{MINI}/formal-1"),
        f"--baseline reports/{MINI}/formal-1 without --port",
    ),
    "--port without a baseline": (formal(COMPLETION, "--port"), "found no --baseline under --port"),
    "a baseline that isn't a port": (
        formal(COMPLETION, "--port", "--baseline", f"reports/{MINI}/formal-1"),
        "port: expected True, found False. Name a passed formal port of mini-behavior",
    ),
    "a baseline that isn't there": (
        formal(COMPLETION, "--port", "--baseline", "reports/nowhere"),
        "nowhere/audit.json: expected a readable audit record",
    ),
    "a baseline of this protocol": (
        formal(COMPLETION, "--port", "--baseline", f"reports/{COMPLETION}/formal-1"),
        f"protocol: expected {MINI}, found {COMPLETION}",
    ),
    "an owed baseline": (formal("mini-owed"), OWED),
    "another accepted run": (formal("mini-elsewhere"), "baseline of mini-elsewhere: run_sha256: expected 0000"),
    "another index": (formal("mini-index"), "baseline of mini-index: index_sha256: expected 0000"),
    "another image": (
        formal("mini-registered", "--sandbox-image", "any"),
        "mini-registered: sandbox image: expected python:3.11-alpine@sha256:",
    ),
    "another image by the environment": (
        formal("mini-registered", HARNESS_SANDBOX_IMAGE="any"),
        "mini-registered: sandbox image: expected python:3.11-alpine@sha256:",
    ),
}


@pytest.fixture(scope="module")
def refused(completion_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Outcome], list[Path]]:
    """All refusals, run once, and the files that they left under reports/."""
    tree = copy_tree(tree_of(completion_run), tmp_path_factory.mktemp("refused") / "tree")
    frozen = accepted_baseline(tree)
    add_completion(tree, "mini-owed", baseline={"state": "unfrozen", "protocol": MINI, "reason": OWED})
    add_completion(tree, "mini-elsewhere", baseline=frozen | {"run_sha256": "0" * 64})
    add_completion(tree, "mini-index", baseline=frozen | {"index_sha256": "0" * 64})
    add_completion(tree, "mini-registered", family="deepseek")
    before = {*(tree / "reports").rglob("*")}
    outcomes = run_many(tree, {name: case for name, (case, _) in REFUSALS.items()}, tmp_path_factory.mktemp("outputs"))
    return outcomes, sorted({*(tree / "reports").rglob("*")} - before)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_completion_session_says_why_it_is_refused(refused: tuple[dict[str, Outcome], list[Path]], name: str) -> None:
    """Before anything is generated: exit code 4, and one line that names what was found."""
    outcome = refused[0][name]
    assert (outcome.code, len(outcome.errors)) == (4, 1), outcome.output
    assert REFUSALS[name][1] in outcome.errors[0]


def test_a_refused_session_leaves_nothing(refused: tuple[dict[str, Outcome], list[Path]]) -> None:
    """No run folder, no journal, no JUnit file: that it was refused stands in the protocol's attempts file alone."""
    files = [path for path in refused[1] if path.is_file()]
    assert {path.name for path in files} <= {NAME, f".{NAME}.lock"}
    assert {path for path in refused[1] if path.is_dir()} <= {path.parent for path in files}
