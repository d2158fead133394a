"""Fixtures over small trees: one tree and one formal run a session, and copies for tests that damage them.

The completion run lies in a tree of its own, over the accepted behaviour run; its programs ran under the fake engine.
So does the depth run.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from harness.model.process import steering

from .fake_engine import engine_arguments
from .mini import (
    COMPLETION,
    DEPTH,
    MINI,
    Result,
    copy_tree,
    make_completion_tree,
    make_depth_tree,
    make_tree,
    run_gates,
)


@pytest.fixture(autouse=True)
def kernels_stay_steered() -> Iterator[None]:
    """A test leaves the variables that steer kernels as it met them: a run keeps them for whoever goes on with it."""
    before = steering()
    yield
    after = steering()
    assert after == before, f"variables that steer kernels: before {before}, after {after}"


@pytest.fixture(scope="session")
def mini_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree without runs. Shared and read only: a run in it would be another test's smoke record."""
    return make_tree(tmp_path_factory.mktemp("mini") / "tree")


@pytest.fixture(scope="session")
def run_mini() -> Callable[..., Result]:
    """`run_mini(tree, *arguments)`: a gate session over a tree as a subprocess (see `tests/support/mini.py`)."""
    return run_gates


@pytest.fixture(scope="session")
def formal_session(mini_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A passed formal session in a tree of its own, unfrozen. Read only."""

    def make(folder: Path) -> Result:
        tree = copy_tree(mini_tree, folder / "tree")
        return run_gates(tree, "-m", "formal", "--run", f"reports/{MINI}/formal-1")

    return _passed_once(tmp_path_factory, "formal", make)


@pytest.fixture(scope="session")
def formal_run(formal_session: Result) -> Path:
    """Its run folder: <tree>/reports/mini-behavior/formal-1. Read only."""
    return formal_session.folder


@pytest.fixture(scope="session")
def completion_session(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A passed formal session of `mini-completion` in a tree of its own, unfrozen. Read only."""

    def make(folder: Path) -> Result:
        tree = make_completion_tree(formal_run, folder / "tree")
        arguments, env = engine_arguments()
        named = ("--run", f"reports/{COMPLETION}/formal-1")
        return run_gates(tree, "-m", "formal", *named, *arguments, protocol=COMPLETION, env=env)

    return _passed_once(tmp_path_factory, "completion", make)


@pytest.fixture(scope="session")
def completion_run(completion_session: Result) -> Path:
    """Its run folder: <tree>/reports/mini-completion/formal-1. Read only."""
    return completion_session.folder


@pytest.fixture
def fresh_completion(completion_run: Path, tmp_path: Path) -> Path:
    """The completion run's folder in a copy of its tree, without the behaviour run's own folders."""
    return copy_run(completion_run, tmp_path / "completion", without=MINI)


@pytest.fixture(scope="session")
def depth_session(formal_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A passed formal session of `mini-depth` in a tree of its own, unfrozen. Read only."""

    def make(folder: Path) -> Result:
        tree = make_depth_tree(formal_run, folder / "tree")
        return run_gates(tree, "-m", "formal", "--run", f"reports/{DEPTH}/formal-1", protocol=DEPTH)

    return _passed_once(tmp_path_factory, "depth", make)


@pytest.fixture(scope="session")
def depth_run(depth_session: Result) -> Path:
    """Its run folder: <tree>/reports/mini-depth/formal-1. Read only."""
    return depth_session.folder


@pytest.fixture
def fresh_depth(depth_run: Path, tmp_path: Path) -> Path:
    """The depth run's folder in a copy of its tree, without the behaviour run's own folders."""
    return copy_run(depth_run, tmp_path / "depth", without=MINI)


@pytest.fixture
def fresh_run(formal_run: Path, tmp_path: Path) -> Path:
    """The run folder in a copy of its tree, for one test to damage. `tree_of(fresh_run)` is its tree."""
    return copy_run(formal_run, tmp_path / "tree")


def copy_run(run: Path, target: Path, *, without: str | None = None) -> Path:
    """The run's folder in a copy of its tree (see `copy_tree`)."""
    return copy_tree(tree_of(run), target, without=without) / run.relative_to(tree_of(run))


def tree_of(run: Path) -> Path:
    """The tree that a run folder lies in."""
    return run.parents[2]


def _passed_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Result]) -> Result:
    """A passed session that the workers of a test session share: the first that asks makes it, the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / f"shared-{name}"
    with FileLock(f"{folder}.lock"):
        folder.mkdir(exist_ok=True)
        noted = folder / "result.json"
        if noted.exists():
            code, output, run = json.loads(noted.read_text(encoding="utf-8"))
        else:
            result = make(folder)
            code, output, run = result.code, result.output, str(result.run)
            noted.write_text(json.dumps([code, output, run]), encoding="utf-8")
    if code != 0:
        pytest.fail(f"the shared formal session `{name}` failed: {output[-4000:]}")
    return Result(code, output, Path(run))
