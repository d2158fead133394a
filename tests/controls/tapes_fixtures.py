"""Fixtures of the controls under tapes: a passed formal run of `mini-tasks`, copies of it, and sessions over them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.fake_engine import engine_arguments
from pregate_support.fixtures import _passed_once, copy_run
from pregate_support.mini import Result, copy_tree, run_gates
from pregate_support.mini_tasks import TASKS, add_tasks

from .damage_tapes import TapedCase

__all__ = ["fresh_tasks", "judge_tasks", "tasks_case", "tasks_run", "tasks_session"]


@pytest.fixture(scope="session")
def tasks_session(mini_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A passed formal session of `mini-tasks` in a tree of its own, unfrozen. Read only."""

    def make(folder: Path) -> Result:
        tree = copy_tree(mini_tree, folder / "tree")
        add_tasks(tree)
        arguments, env = engine_arguments()
        named = ("--run", f"reports/{TASKS}/formal-1")
        return run_gates(tree, "-m", "formal", *named, *arguments, protocol=TASKS, env=env)

    return _passed_once(tmp_path_factory, "tasks", make)


@pytest.fixture(scope="session")
def tasks_run(tasks_session: Result) -> Path:
    """Its run folder: <tree>/reports/mini-tasks/formal-1. Read only."""
    return tasks_session.folder


@pytest.fixture
def fresh_tasks(tasks_run: Path, tmp_path: Path) -> Path:
    """The task run's folder in a copy of its tree."""
    return copy_run(tasks_run, tmp_path / "tasks")


@pytest.fixture
def tasks_case(fresh_tasks: Path, monkeypatch: pytest.MonkeyPatch) -> TapedCase:
    """A task run in a private tree, which is the tree in use."""
    monkeypatch.setenv("HARNESS_ROOT", str(fresh_tasks.parents[2]))
    return TapedCase(fresh_tasks, TASKS)


@pytest.fixture
def judge_tasks(tasks_case: TapedCase) -> Callable[..., Any]:
    """`judge_tasks(kind)`: a formal session over the task run as it lies there, under a fake engine."""

    def judge(kind: str = "", log: Path | None = None) -> Any:
        arguments, env = engine_arguments(kind, log)
        named = ("--run", str(tasks_case.run))
        return run_gates(tasks_case.tree, "-m", "formal", *named, *arguments, protocol=TASKS, env=env)

    return judge
