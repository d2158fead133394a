"""A study whose outputs are programs: smoke executes none, formal gives each to a container, and its verdict counts."""

from pathlib import Path

import pytest

from harness.claims.view import judged_view
from harness.ledgers.study_statistics import success
from harness.places import Places, places
from harness.records.completion import Executed, NotExecuted

from ..support.fake_engine import engine_arguments  # noqa: TID252 - the tests are no package of that name
from ..support.mini import make_tree, run_gates  # noqa: TID252
from .conftest import freeze_study


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A frozen study of the embedded model over its code pool."""
    from typer.testing import CliRunner

    from harness.__main__ import app

    folder = tmp_path_factory.mktemp("programs") / "code-study"
    pool = places().embedded_inputs / "code.jsonl"
    words = f"code={pool},id=task_id,text=prompt,judge=program,content=Complete this Python function:\n\n{{text}}"
    flags = [
        "--yes",
        "--source",
        words,
        "--system",
        "Be brief.",
        "--formal",
        "2",
        "--tokens",
        "76",
        "--smoke-tokens",
        "8",
    ]
    done = CliRunner().invoke(app, ["init", str(folder), *flags])
    assert done.exit_code == 0, done.output
    freeze_study(folder)
    return folder


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree."""
    return make_tree(tmp_path_factory.mktemp("tree") / "tree")


def test_smoke_executes_nothing_and_scores_nothing(programs, tree):
    """It says so, and no success is counted."""
    session = run_gates(tree, "-m", "smoke", protocol=str(programs))
    assert session.code == 0, session.output[-3000:]
    assert "this tier executes no program" in session.output
    view = judged_view(session.folder, Places(tree))
    assert all(isinstance(row.code.verdict, NotExecuted) for row in view.ledger.cells)
    assert {type(group.cells.succeeded).__name__ for group in view.statistics.groups} == {"NotObserved"}


def test_formal_gives_each_program_to_a_container(programs, tree):
    """Every verdict is one of the registered contract's, and passing is the cell's success."""
    arguments, env = engine_arguments()
    named = ("--run", "reports/code-study/formal-1")
    session = run_gates(tree, "-m", "formal", *named, *arguments, protocol=str(programs), env=env)
    assert session.code == 0, session.output[-3000:]
    gates = {gate["id"]: (gate["passed"], gate["registered"]) for gate in session.audit["gates"]}
    assert gates["sandbox_verdicts"] == (4, 4)
    view = judged_view(session.folder, Places(tree))
    for row in view.ledger.cells:
        verdict = row.code.verdict
        assert success(row) is (isinstance(verdict, Executed) and verdict.fixed_budget_pass)
    whole = next(one.cells for one in view.statistics.groups if not one.domain and not one.condition)
    assert whole.succeeded.count == sum(bool(success(row)) for row in view.ledger.cells)
