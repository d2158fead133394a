"""Fixtures of the negative controls: a private copy of a finished formal run, judged with or without a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .damage import Case


@pytest.fixture
def case(fresh_run: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A run in a private tree, which is the tree in use."""
    monkeypatch.setenv("HARNESS_ROOT", str(fresh_run.parents[2]))
    return Case(fresh_run)


@pytest.fixture
def judge(case: Case, run_mini: Callable[..., Any]) -> Callable[[], Any]:
    """`judge()`: a formal session over the run as it lies there. Nothing of it is generated again."""
    return lambda: run_mini(case.tree, "-m", "formal", "--run", str(case.run))
