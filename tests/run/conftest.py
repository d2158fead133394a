"""Requests over the project's protocols, a copied tree to damage, and an engine that replays a finished run's units."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.journal.assemble import read_environment, read_placement
from harness.journal.folder import RunFolder, read_journal
from harness.places import Places, places
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.run import Journal, ProcessIdentity
from harness.run import produce as produce_module
from harness.run.request import Options, Request, make_request

PROCESS = ProcessIdentity(pid=1, started_us=1, model_loaded_us=2, model_load_id="stand-in", str_hash="0" * 16)
DEFAULTS = {"checkpoint": None, "inputs": (), "gpu_memory": None, "cpu_memory": None, "port": False}


@pytest.fixture(scope="session")
def options() -> Callable[..., Options]:
    """`options(port=True, ...)`: the command line's words, nothing given unless named."""
    return lambda **given: Options(**(DEFAULTS | given))


@pytest.fixture(scope="session")
def nano() -> LoadedProtocol:
    """The nano protocol of this tree."""
    return load_protocol("nano-behavior")


@pytest.fixture(scope="session")
def deepseek() -> LoadedProtocol:
    """The registered protocol, whose Chinese sources are owed."""
    return load_protocol("deepseek-behavior")


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Places:
    """A copy of the project's protocols, profiles and pools, in use; the checkpoint is linked."""
    project, root = places(), tmp_path / "tree"
    shutil.copytree(project.protocols, root / "fixtures" / "protocols")
    shutil.copytree(project.embedded_inputs, root / "fixtures" / "nano" / "pools")
    shutil.copytree(project.models, root / "fixtures" / "models", ignore=shutil.ignore_patterns("checkpoint"))
    (root / "fixtures" / "models" / "nano" / "checkpoint").symlink_to(project.models / "nano" / "checkpoint")
    monkeypatch.setenv("HARNESS_ROOT", str(root))
    return Places(root)


@dataclass
class StandIn:
    """An engine without a model: it gives the units of a finished run, or raises what was planned for a unit."""

    loaded: LoadedProtocol
    request: Request
    source: RunFolder
    planned: dict[str, BaseException] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    closed: int = 0
    opened: int = 0

    def __post_init__(self) -> None:
        """What was read back is what the finished run has."""
        self.environment = read_environment(self.source)
        self.placement = read_placement(self.source)
        self.deviations = ()
        self.sampler = None
        self.model = type("Model", (), {"process": PROCESS, "load_ns": 1})()

    def open(self, *_) -> "StandIn":
        """In place of `open_engine`."""
        self.opened += 1
        return self

    def close(self) -> None:
        """Count the closing."""
        self.closed += 1

    def memory(self) -> dict[str, int]:
        """No memory was used."""
        return {"rss": 0}

    def make_unit(self, key, batch, tokenizer, progress):
        """The finished run's unit of that key."""
        if batch.prompts.source_id != key.source_id:
            raise RuntimeError(f"{key.source_id} got the prompts of {batch.prompts.source_id}")
        self.made.append(key.name)
        if key.name in self.planned:
            raise self.planned[key.name]
        journal = read_journal(self.source.journal(key), Journal)
        return journal.evidence, journal.observation


@pytest.fixture
def engine(formal_run, monkeypatch, options) -> StandIn:
    """The stand-in over the mini protocol's formal run, opened wherever `produce` opens an engine."""
    tree = Places(formal_run.parents[2])
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    loaded = load_protocol(formal_run.parent.name, tree)
    request = make_request(loaded, "formal", formal_run.name, options(), tree)
    stand_in = StandIn(loaded, request, RunFolder(formal_run))
    monkeypatch.setattr(produce_module, "open_engine", stand_in.open)
    return stand_in


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """An empty run folder."""
    return RunFolder(tmp_path / "run")


@pytest.fixture
def embedded_checkpoint() -> Path:
    """The nano checkpoint. Read only."""
    return places().models / "nano" / "checkpoint"
