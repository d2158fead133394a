"""Fixtures of the negative controls: a private copy of a finished formal run, judged with or without a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.fake_engine import engine_arguments
from pregate_support.mini import COMPLETION, DEPTH

from .damage import Case
from .graph_fixtures import (  # noqa: F401 - fixtures of this folder
    captured_sides,
    generate_case,
    graph_case,
    graph_runs,
    uncaptured_part,
)
from .sampling_fixtures import (  # noqa: F401 - fixtures of this folder
    fresh_sampling,
    judge_sampling,
    sampling_case,
    sampling_run,
    sampling_session,
)
from .tapes_fixtures import (  # noqa: F401 - fixtures of this folder
    fresh_tasks,
    judge_tasks,
    tasks_case,
    tasks_run,
    tasks_session,
)


@pytest.fixture
def case(fresh_run: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A run in a private tree, which is the tree in use."""
    monkeypatch.setenv("HARNESS_ROOT", str(fresh_run.parents[2]))
    return Case(fresh_run)


@pytest.fixture
def judge(case: Case, run_mini: Callable[..., Any]) -> Callable[[], Any]:
    """`judge()`: a formal session over the run as it lies there. Nothing of it is generated again."""
    return lambda: run_mini(case.tree, "-m", "formal", "--run", str(case.run))


@pytest.fixture
def completion_case(fresh_completion: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A completion run in a private tree, which is the tree in use."""
    monkeypatch.setenv("HARNESS_ROOT", str(fresh_completion.parents[2]))
    return Case(fresh_completion, COMPLETION)


@pytest.fixture
def judge_completion(completion_case: Case, run_mini: Callable[..., Any]) -> Callable[..., Any]:
    """`judge_completion(kind)`: a formal session over the completion run as it lies there, under a fake engine."""

    def judge(kind: str = "", log: Path | None = None) -> Any:
        arguments, env = engine_arguments(kind, log)
        named = ("--run", str(completion_case.run))
        return run_mini(completion_case.tree, "-m", "formal", *named, *arguments, protocol=COMPLETION, env=env)

    return judge


@pytest.fixture
def depth_case(fresh_depth: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A depth run in a private tree, which is the tree in use."""
    monkeypatch.setenv("HARNESS_ROOT", str(fresh_depth.parents[2]))
    return Case(fresh_depth, DEPTH)


@pytest.fixture
def judge_depth(depth_case: Case, run_mini: Callable[..., Any]) -> Callable[[], Any]:
    """`judge_depth()`: a formal session over the depth run as it lies there."""
    return lambda: run_mini(depth_case.tree, "-m", "formal", "--run", str(depth_case.run), protocol=DEPTH)
