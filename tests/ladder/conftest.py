"""A tree with `mini-completion`, its smoke run, and formal runs of it in which memory runs out where a test says."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pregate_support.ladders import LADDER, add_ladder, close_part, note_smoke
from pregate_support.memory import forgetful, plant
from pregate_support.mini import copy_tree

from harness.evidence import RunEvidence
from harness.journal.attempts import check_folder
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.run import descent as descent_module
from harness.run import engine as engine_module
from harness.run.child import ChildReport, replace_request, run_apart
from harness.run.descent import registered
from harness.run.ladder import Ground, generate_down_the_ladder
from harness.run.request import Options, Request, make_request
from harness.run.start import generate_run

DESCENT = "nano-resident:3"


@dataclass(frozen=True)
class Formal:
    """A formal run of the small protocol in a tree, standing on the smoke run beside it."""

    tree: Path
    name: str = "formal-1"

    @property
    def loaded(self) -> LoadedProtocol:
        """The protocol."""
        return load_protocol(LADDER, Places(self.tree))

    @property
    def folder(self) -> RunFolder:
        """The run folder."""
        return RunFolder(self.tree / "reports" / LADDER / self.name)

    @property
    def smoke(self) -> RunFolder:
        """The smoke run's folder."""
        return RunFolder(self.tree / "reports" / LADDER / "smoke-1")

    @property
    def evidence(self) -> RunEvidence:
        """What a gate reads."""
        return RunEvidence(self.loaded, self.folder)

    def request(self, tier: str = "formal", placement: str = "nano-resident") -> Request:
        """A request under a registered placement."""
        options = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)
        name = self.name if tier == "formal" else "smoke-1"
        request = make_request(self.loaded, tier, name, options, Places(self.tree))
        return replace_request(request, placement=registered(self.loaded, placement))

    def generate(self, placement: str = "nano-resident") -> None:
        """Generate the formal grid, going down the ladder where memory runs out; then close the run."""
        if not self.folder.file("smoke.json").exists():
            note_smoke(self.folder, self.smoke)
        ground = Ground(smoke=self.smoke, close=close_part)
        generate_down_the_ladder(self.loaded, self.request(placement=placement), self.folder, ground)
        close_part(self.folder)


@pytest.fixture(scope="session", autouse=True)
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """OOM_AT is obeyed, here and in children."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "load_model", engine_module.load_model)
        plant(engine_module)
        patch.setenv("PYTHONPATH", forgetful(tmp_path_factory.mktemp("memory"))["PYTHONPATH"])
        yield


@pytest.fixture(scope="session")
def smoked(mini_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the protocol and its finished smoke run. Read only."""
    tree = copy_tree(mini_tree, tmp_path_factory.mktemp("ladder") / "tree")
    shutil.rmtree(tree / "reports")
    add_ladder(tree)
    formal = Formal(tree)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ROOT", str(tree))
        generate_run(formal.loaded, formal.request("smoke"), formal.smoke)
        close_part(formal.smoke)
    return tree


@pytest.fixture(scope="session")
def descended(smoked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with a finished formal run that ran out of memory in its third unit and went one placement down."""
    tree = copy_tree(smoked, tmp_path_factory.mktemp("descended") / "tree")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ROOT", str(tree))
        patch.setenv("OOM_AT", DESCENT)
        Formal(tree).generate()
    return tree


@pytest.fixture
def fresh(smoked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Formal:
    """A formal run that hasn't begun, in a private tree that is in use."""
    return _in_use(smoked, tmp_path, monkeypatch)


@pytest.fixture
def stepped(descended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Formal:
    """The run that went down, in a private tree that is in use: to be damaged."""
    return _in_use(descended, tmp_path, monkeypatch)


@pytest.fixture
def checked(descended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the next placement is the one of `descended`: for what isn't about how a check is made."""
    made = check_folder(Formal(descended).folder, 1, "nano-disk").path

    def copied(request: Request, part: RunFolder, *, forbidden: Path) -> ChildReport:
        shutil.copytree(made, part.path)
        return run_apart(request, part, forbidden=forbidden)  # finds it complete

    monkeypatch.setattr(descent_module, "run_apart", copied)


@pytest.fixture
def out_of_memory_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`out_of_memory_at("nano-resident:3,nano-disk:load")`"""
    return lambda where: monkeypatch.setenv("OOM_AT", where)


def _in_use(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Formal:
    tree = copy_tree(source, folder / "tree")
    monkeypatch.setenv("HARNESS_ROOT", str(tree))
    return Formal(tree)
