"""Fixtures of the controls of the executor: passed smoke runs of `mini-graph`, one for each contract it may name.

And a smoke run as a CUDA device would leave it: the run's records say that its steps were captured, its protocol that
the device is one, and a part made apart by the same program says that its own weren't. What was computed is the CPU's.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pregate_support.fixtures import _passed_once, copy_run
from pregate_support.mini import Result, copy_tree, run_gates
from pregate_support.mini_tasks import GRAPH, add_graph_tasks

from harness.checks.taped_graph import (
    PARTS,
    SIDES,
    GraphSides,
    Side,
    graph_comparison,
    graph_equivalence,
    graph_recorded,
)
from harness.checks.taped_run import taped_contract
from harness.evidence import Check, RunEvidence, guarded
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_generation
from harness.protocols.check_graph import comparisons
from harness.protocols.grids import gate_rows
from harness.protocols.load import LoadedProtocol
from harness.protocols.loops import part_protocol
from harness.records.protocol import GraphTaskProtocol
from harness.run.child import ChildRequest, replace_request, run_apart
from harness.run.child import read_child_request as read_request

from .damage import Case, name_of, read

__all__ = ["captured_sides", "generate_case", "graph_case", "graph_runs", "uncaptured_part"]
CHECKS: dict[str, Check] = {
    "graph_equivalence": graph_equivalence,
    "graph_recorded": graph_recorded,
    "taped_contract": taped_contract,
}
UNCAPTURED = "graph_uncaptured"


@dataclass(frozen=True)
class GraphCase(Case):
    """A smoke run of a protocol whose steps are executed."""

    def red(self, gate: str, *, closing: bool = False) -> dict[str, str]:
        """The gate's red rows in the smoke tier."""
        del closing
        sides = self.sides()
        return red_rows(self.loaded, gate, sides if gate.startswith("graph") else sides.run)

    def sides(self) -> GraphSides:
        """The run and its parts, from the files as they are."""
        protocol = self.loaded.protocol
        if not isinstance(protocol, GraphTaskProtocol):
            raise TypeError(f"{protocol.id} executes nothing")
        programs = [program for one in comparisons(protocol) for program in SIDES[one]]
        return GraphSides(self.main(), {program: self.side(program) for program in programs})

    def side(self, program: Any) -> Side:
        """A part of this run."""
        folder = self.run / PARTS[program]
        pids = tuple(read(folder / "complete.json")["pids"])
        return Side(replace(self.main(), loaded=part_protocol(self.loaded, program), folder=RunFolder(folder)), pids)


def red_rows(loaded: LoadedProtocol, gate: str, evidence: Any) -> dict[str, str]:
    """The gate's red rows by name, with their messages."""
    registered = next(one for one in loaded.protocol.gates if one.id == gate)
    units = loaded.units(registered.tiers["smoke"].grid, loaded.domains)
    rows = gate_rows(loaded.protocol, loaded.profile, registered, units)
    found = {row: guarded(CHECKS[gate], evidence, row) for row in rows}
    return {name_of(row): "; ".join(lines) for row, lines in found.items() if lines}


@pytest.fixture(scope="session")
def graph_runs(mini_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Result]:
    """`graph_runs(against)`: a passed smoke session, in a tree of its own. Read only."""

    def run(against: str) -> Result:
        def make(folder: Path) -> Any:
            tree = copy_tree(mini_tree, folder / "tree")
            add_graph_tasks(tree, against=against)
            return run_gates(tree, "-m", "smoke", "--run", f"reports/{GRAPH}/smoke-1", protocol=GRAPH)

        return _passed_once(tmp_path_factory, f"graph-{against}", make)

    return run


def _case(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GraphCase:
    fresh = copy_run(run, tmp_path / "graph")
    monkeypatch.setenv("HARNESS_ROOT", str(fresh.parents[2]))
    return GraphCase(fresh, GRAPH)


@pytest.fixture
def graph_case(graph_runs: Callable[[str], Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GraphCase:
    """A run that is held against the own loop, in a private tree, which is the tree in use."""
    return _case(graph_runs("own_loop").folder, tmp_path, monkeypatch)


@pytest.fixture
def generate_case(graph_runs: Callable[[str], Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GraphCase:
    """The same, held against `generate`."""
    return _case(graph_runs("generate").folder, tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def uncaptured_part(graph_runs: Callable[[str], Result], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of a run that a process of its own made, its steps uncaptured. Read only."""
    with pytest.MonkeyPatch.context() as patch:
        case = _case(graph_runs("own_loop").folder, tmp_path_factory.mktemp("uncaptured"), patch)
        patch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # as the run's own session had it: it is in the environment
        _make_uncaptured(case, RunFolder(case.run / UNCAPTURED))
    return case.run / UNCAPTURED


@pytest.fixture
def captured_sides(graph_case: GraphCase, uncaptured_part: Path) -> Callable[..., GraphSides]:
    """`captured_sides()`: the run as captured, and its part uncaptured."""
    shutil.copytree(uncaptured_part, graph_case.run / UNCAPTURED)

    def sides(*, run_captured: bool = True, part_captured: bool = False) -> GraphSides:
        run = _on_cuda(graph_case.main(), captured=run_captured)
        side = graph_case.side("uncaptured")
        second = _on_cuda(replace(side.evidence, loaded=run.loaded), captured=part_captured)
        return GraphSides(run, {"uncaptured": Side(second, side.pids)})

    return sides


def _make_uncaptured(case: GraphCase, part: RunFolder) -> None:
    """As a session makes it, from the request of the part that lies there."""
    other: ChildRequest = read_request(case.run / PARTS["drawn_loop"] / "request.json")
    request = replace_request(other.request, run_id=f"smoke-1/{part.path.name}", decoding="uncaptured")
    run_apart(request, part, forbidden=case.run)
    part.file("tasks.json").write_bytes((case.run / "tasks.json").read_bytes())
    close_generation(part, case.loaded)


def _on_cuda(evidence: RunEvidence, *, captured: bool) -> RunEvidence:
    """The evidence as a CUDA device's: protocol, contract as read back, sampler and what really ran."""
    plain: Any = msgspec.to_builtins(evidence.run)
    for unit in plain["units"]:
        unit["tape"]["sampler"]["device"] = "cuda"
        unit["tape"]["ran"] |= {"captured": captured, "replays": unit["checks"]["steps"] - 1 if captured else 0}
        for row in unit["tape"]["rows"]:
            row["sampler"]["device"] = "cuda"
    read_back = {"sampler_device": '"cuda"', "captured": "true" if captured else "false"}
    config = evidence.environment.generation_config | read_back
    made = replace(evidence, loaded=replace(evidence.loaded, protocol=_of_cuda(evidence.loaded.protocol)))
    made.__dict__["environment"] = msgspec.structs.replace(evidence.environment, generation_config=config)
    made.__dict__["run"] = msgspec.convert(plain, type(evidence.run))
    return made


def _of_cuda(protocol: Any) -> Any:
    decode = protocol.decode
    sampler = msgspec.structs.replace(decode.sampler, device="cuda")
    graph = msgspec.structs.replace(decode.graph, against="none")
    return msgspec.structs.replace(
        protocol,
        execution=msgspec.structs.replace(protocol.execution, device="cuda"),
        decode=msgspec.structs.replace(decode, sampler=sampler, graph=graph),
    )


def compared(sides: GraphSides) -> Any:
    """graph.json of the sides, as plain data."""
    return msgspec.to_builtins(graph_comparison(sides))
