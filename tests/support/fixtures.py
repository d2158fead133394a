"""Fixtures over small trees: one tree and one formal run a session, and copies for tests that damage them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .mini import Result, copy_tree, make_tree, run_gates


@pytest.fixture(scope="session")
def mini_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree without runs. Shared: sessions may add run folders to it, nothing else."""
    return make_tree(tmp_path_factory.mktemp("mini") / "tree")


@pytest.fixture(scope="session")
def run_mini() -> Callable[..., Result]:
    """`run_mini(tree, *arguments)`: a gate session over a tree as a subprocess (see `tests/support/mini.py`)."""
    return run_gates


@pytest.fixture(scope="session")
def formal_session(mini_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A passed formal session in a tree of its own, unfrozen. Read only."""
    tree = copy_tree(mini_tree, tmp_path_factory.mktemp("formal") / "tree")
    result = run_gates(tree, "-m", "formal", "--run", "reports/mini-behavior/formal-1")
    if result.code != 0:
        pytest.fail(f"the mini protocol's formal session failed: {result.output[-4000:]}")
    return result


@pytest.fixture(scope="session")
def formal_run(formal_session: Result) -> Path:
    """Its run folder: <tree>/reports/mini-behavior/formal-1. Read only."""
    if formal_session.run is None:
        raise RuntimeError("a finished session has a run folder")
    return formal_session.run


@pytest.fixture
def fresh_run(formal_run: Path, tmp_path: Path) -> Path:
    """The run folder in a copy of its tree, for one test to damage. `tree_of(fresh_run)` is its tree."""
    tree = copy_tree(tree_of(formal_run), tmp_path / "tree")
    return tree / formal_run.relative_to(tree_of(formal_run))


def tree_of(run: Path) -> Path:
    """The tree that a run folder lies in."""
    return run.parents[2]
