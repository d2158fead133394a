"""Fixtures of the sampling controls: a passed formal run of `mini-sampling`, copies of it, and sessions over them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.fake_engine import engine_arguments
from pregate_support.fixtures import _passed_once, copy_run
from pregate_support.mini import MINI, Result, run_gates
from pregate_support.mini_sampling import SAMPLING, make_sampling_tree

from .damage_sampling import SampledCase

__all__ = ["fresh_sampling", "judge_sampling", "sampling_case", "sampling_run", "sampling_session"]


@pytest.fixture(scope="session")
def sampling_session(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A passed formal session of `mini-sampling` in a tree of its own, unfrozen. Read only."""

    def make(folder: Path) -> Result:
        tree = make_sampling_tree(formal_run, folder / "tree")
        arguments, env = engine_arguments()
        named = ("--run", f"reports/{SAMPLING}/formal-1")
        return run_gates(tree, "-m", "formal", *named, *arguments, protocol=SAMPLING, env=env)

    return _passed_once(tmp_path_factory, "sampling", make)


@pytest.fixture(scope="session")
def sampling_run(sampling_session: Result) -> Path:
    """Its run folder: <tree>/reports/mini-sampling/formal-1. Read only."""
    return sampling_session.folder


@pytest.fixture
def fresh_sampling(sampling_run: Path, tmp_path: Path) -> Path:
    """The sampling run's folder in a copy of its tree, without the behaviour run's own folders."""
    return copy_run(sampling_run, tmp_path / "sampling", without=MINI)


@pytest.fixture
def sampling_case(fresh_sampling: Path, monkeypatch: pytest.MonkeyPatch) -> SampledCase:
    """A sampling run in a private tree, which is the tree in use."""
    monkeypatch.setenv("HARNESS_ROOT", str(fresh_sampling.parents[2]))
    return SampledCase(fresh_sampling, SAMPLING)


@pytest.fixture
def judge_sampling(sampling_case: SampledCase) -> Callable[..., Any]:
    """`judge_sampling(kind)`: a formal session over the sampling run as it lies there, under a fake engine."""

    def judge(kind: str = "", log: Path | None = None) -> Any:
        arguments, env = engine_arguments(kind, log)
        named = ("--run", str(sampling_case.run))
        return run_gates(sampling_case.tree, "-m", "formal", *named, *arguments, protocol=SAMPLING, env=env)

    return judge
