"""Small runs that were really made in one tree, copies that say something else, and trials made in this process."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pregate_support.mini import MINI, make_tree
from pregate_support.mini_tasks import GRAPH, TASKS, add_graph_tasks, add_tasks
from pregate_support.parted import HEAD, SPARE, hidden_of, make_run, scaled, tied

from harness.canon import digest
from harness.difference.make import comparison, read_sides
from harness.errors import ComparisonError
from harness.explain.make import explanation
from harness.explain.place import cell_of, divergence
from harness.model.load import LoadedModel
from harness.model.process import apply_settings
from harness.places import places
from harness.records.difference import SideComparison
from harness.records.explanation import Explanation, NoRerun
from harness.rerun.child import load_as_asked, report_of
from harness.rerun.conditions import Checkpoints, Step, conditions_of
from harness.rerun.make import rerun_of
from harness.rerun.processes import Make
from harness.rerun.trial import Trial, TrialReport, execution_of
from harness.rerun.trials import Trials

from ..difference.conftest import FrozenCopy, remake, say  # noqa: TID252 - the tests are no package of that name

RESIDENT = "nano-resident"


@pytest.fixture(scope="session")
def made_tree(tmp_path_factory) -> Path:
    """A small tree with a behaviour and two task protocols. Runs are added to it."""
    tree = make_tree(tmp_path_factory.mktemp("explain") / "tree")
    add_tasks(tree)
    add_graph_tasks(tree)
    return tree


@pytest.fixture(autouse=True)
def _in_tree(request, monkeypatch):
    """The tree in use, where a test takes a run of it; and this process as it was."""
    if {"run", "tasks", "graph_tasks", "parted_pair"} & {*request.fixturenames}:
        monkeypatch.setenv("HARNESS_ROOT", str(request.getfixturevalue("made_tree")))
    kept = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision())
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    torch.set_num_threads(kept[0])
    torch.use_deterministic_algorithms(kept[1])
    torch.set_float32_matmul_precision(kept[2])
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


def _made_in(tree: Path, protocol: str, run_id: str, **how: Any) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ROOT", str(tree))
        return make_run(tree, protocol, run_id, **how)


@pytest.fixture(scope="session")
def run(made_tree) -> Path:
    """A smoke run of the behaviour protocol: two sources, eight conditions, eight tokens. Read only."""
    return _made_in(made_tree, MINI, "smoke-1")


@pytest.fixture(scope="session")
def broad(tmp_path_factory) -> Path:
    """The nano checkpoint with an output layer of a tenth: draws have edges near u."""
    usual = places().models / "nano" / "checkpoint"
    return scaled(usual, tmp_path_factory.mktemp("broad") / "checkpoint", name=HEAD, factor=0.1)


@pytest.fixture(scope="session")
def tasks(made_tree, broad) -> Path:
    """A smoke run of the task protocol on weights whose distributions are broad. Read only; `broad` has the weights."""
    return _made_in(made_tree, TASKS, "smoke-1", checkpoint=broad)


@pytest.fixture(scope="session")
def graph_tasks(made_tree, broad) -> Path:
    """The same by the executor over a fixed cache. Read only."""
    return _made_in(made_tree, GRAPH, "smoke-1", checkpoint=broad)


@pytest.fixture
def copied() -> Callable[..., Path]:
    """`copied(run, unit=..., environment=...)`: a copy in the same tree that says something else; see `remake`."""
    made: list[Path] = []

    def copy(run: Path, *, at: int = 0, unit: Callable[[dict[str, Any]], None] | None = None, **files: Any) -> Path:
        target = run.with_name(f"{run.name}-other-{len(made)}")
        made.append(Path(shutil.copytree(run, target)))
        for path in sorted((target / "journal").glob("*.json"))[at : at + 1] if at else ():
            journal = json.loads(path.read_bytes())
            (unit or (lambda _: None))(journal["evidence"])
            path.write_text(json.dumps(journal))
        return remake(target, unit=None if at else unit, closed=False, **files)

    yield copy
    for one in made:
        shutil.rmtree(one, ignore_errors=True)


@pytest.fixture(scope="session")
def token():
    """`token(step, id, cell=0)`: a change of a unit's cell to another token in a step, and nothing after it."""

    def change(step: int, number: int = 300, cell: int = 0):
        def made(unit: dict[str, Any]) -> None:
            row = unit["cells"][cell]
            say(row, [*row["generated_ids"][:step], number, *row["generated_ids"][step + 1 :]])

        return made

    return change


@pytest.fixture
def frozen(tmp_path) -> Callable[[str], FrozenCopy]:
    """`frozen("nano-behavior")`: a copy of its frozen results."""
    return lambda protocol: FrozenCopy(protocol, tmp_path / "frozen")


@pytest.fixture(scope="session")
def in_this_process() -> Iterator[Make]:
    """Trials made here, each load once a session. Variables of an environment aren't set; all else of a load is."""
    models: dict[str, tuple[LoadedModel, dict[str, str]]] = {}

    def make(trial: Trial) -> TrialReport:
        if (name := digest(trial.load)) not in models:
            models[name] = load_as_asked(trial.load)
        apply_settings(execution_of(trial.load))
        return report_of(*models[name], trial)

    yield make
    for model, _ in models.values():
        model.close()


@pytest.fixture(scope="session")
def sparing(in_this_process) -> Make:
    """The same but for loads that most tests have no use for, which are refused: another dtype, kernel or placement."""

    def make(trial: Trial) -> TrialReport:
        load = trial.load
        spared = (load.dtype == "bfloat16", load.attention == "sdpa", load.variables, load.placement.id != RESIDENT)
        if any(spared):
            raise ComparisonError("these conditions", expected="a process", found="none", todo="Try elsewhere.")
        return in_this_process(trial)

    return make


@dataclass(frozen=True)
class Explaining:
    """Two folders explained, by trials of one making."""

    make: Make

    def __call__(
        self, a: Path, b: Path, *, cell=None, again: bool = False, folders: tuple[Path, ...] = ()
    ) -> Explanation:
        """The record."""
        sides = read_sides(a, b)
        compared: SideComparison = comparison(*sides)
        found = divergence(sides, compared, cell)
        made = NoRerun(reason="not asked for")
        if again:
            made = rerun_of(sides, compared, found, Checkpoints(folders), Trials(self.make, lambda _: None))
        return explanation(compared, found, made)


@pytest.fixture
def explained(sparing) -> Explaining:
    """`explained(a, b, cell=..., again=True)`: the record."""
    return Explaining(sparing)


@pytest.fixture
def explained_by():
    """`explained_by(make)(a, b, again=True)`: the same by trials of a test's own making."""
    return Explaining


@pytest.fixture(scope="session")
def forward_of():
    """`forward_of(run, other, name, step, candidates, cell=0)`: a side's conditions of a compared cell's step."""

    def conditions(run: Path, other: Path, name: str, step: int, candidates, cell: int = 0, folders=()):
        sides = read_sides(run, other)
        compared = comparison(*sides)
        asked = Step(cell_of(sides, compared, compared.cells[cell]), step, candidates)
        return conditions_of(name, asked, Checkpoints(tuple(folders)))

    return conditions


@dataclass(frozen=True)
class Pair:
    """Two runs that part in the first cell's first token, the weights that they share, and the token that B has."""

    a: Path
    b: Path
    checkpoint: Path
    token: int


@pytest.fixture(scope="session")
def parted_pair(made_tree, run, tmp_path_factory, forward_of) -> Pair:
    """Grouped experts beside eager ones under weights in which the last bits decide the first cell's first token."""
    eager = _made_in(made_tree, MINI, "smoke-eager", experts="eager")
    first = json.loads(sorted((run / "journal").glob("*.json"))[0].read_bytes())
    usual = first["evidence"]["cells"][0]["generated_ids"][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ROOT", str(made_tree))
        sides = [forward_of(run, eager, name, 0, (usual, SPARE)) for name in ("a", "b")]
        one, other = (hidden_of(side.load, [side.forward])[0] for side in sides)
    folder = tmp_path_factory.mktemp("tied") / "checkpoint"
    checkpoint = tied(Path(sides[0].load.checkpoint), folder, token=usual, one=one, other=other)
    runs = [
        _made_in(made_tree, MINI, f"smoke-tied-{name}", checkpoint=checkpoint, experts=name)
        for name in ("grouped_mm", "eager")
    ]
    shutil.rmtree(eager)
    return Pair(runs[0], runs[1], checkpoint, usual)
