"""Protocols whose steps are executed over a fixed cache: what they register, and that one at odds with itself fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.errors import PlacementError, ProtocolError
from harness.protocols.check import check_protocol
from harness.protocols.check_graph import comparisons
from harness.protocols.grids import denominators
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.protocols.loops import drawn_loop, loop_check, part_protocol
from harness.records.kinds import journal_type, run_type
from harness.records.protocol import GateGrid, GraphCheckProtocol, GraphTaskProtocol, LoopTaskProtocol
from harness.run.request import Options, make_request

replace = msgspec.structs.replace
NANO, DEEPSEEK = "nano-task-crn-graph", "deepseek-task-crn-graph"


def protocol(name: str) -> Any:
    """A registered protocol."""
    return load_protocol(name).protocol


def test_a_small_formal_grid_with_its_own_counts() -> None:
    """An eighth of the ranks of nano-task-crn: two blocks, 32 and 24 cells, never 56."""
    counts = {name: denominators(protocol(NANO), name, 2) for name in protocol(NANO).grids}
    assert {name: (one.sources, one.units, one.cells) for name, one in counts.items()} == {
        "smoke": (4, 6, 24),
        "smoke_again": (4, 4, 16),
        "formal": (8, 14, 56),
        "replay": (4, 4, 16),
    }
    sizes = [2 * 4 * len(one.indices) * len(one.replicates) for one in protocol(NANO).grid_blocks["formal"]]
    assert sizes == [32, 24]


def test_the_full_shape_has_the_blocks_of_round_8() -> None:
    """The same tasks, conditions, prompts and blocks as deepseek-task-crn, under tapes of its own ID."""
    one, other = load_protocol(DEEPSEEK), load_protocol("deepseek-task-crn")
    for name in ("grids", "grid_blocks", "conditions", "inputs", "selection", "domains", "prompt", "contrasts"):
        assert getattr(one.protocol, name) == getattr(other.protocol, name)
    assert one.manifest.sources == other.manifest.sources
    tapes = [{tape.sha256 for tape in p.protocol.decode.register.tapes} for p in (one, other)]
    assert not tapes[0] & tapes[1]


@pytest.mark.parametrize(("name", "owed"), [(NANO, ("own_loop",)), (DEEPSEEK, ("uncaptured",))])
def test_what_is_compared_follows_from_device_and_contract(name: str, owed: tuple[str, ...]) -> None:
    """On the CPU nothing is captured, so that comparison isn't owed there; on CUDA it always is."""
    assert comparisons(protocol(name)) == owed
    graph = replace(protocol(name).decode.graph, against="generate")
    named = replace(protocol(name), decode=replace(protocol(name).decode, graph=graph))
    assert comparisons(named) == (*(one for one in owed if one == "uncaptured"), "generate")


def graph(p: Any, **changes: Any) -> dict[str, Any]:
    """`[decode.graph]` with changed fields."""
    return {"decode": replace(p.decode, graph=replace(p.decode.graph, **changes))}


def sampler(p: Any, device: str) -> dict[str, Any]:
    """The sampler elsewhere."""
    return {"decode": replace(p.decode, sampler=replace(p.decode.sampler, device=device))}


def without(p: Any, name: str) -> dict[str, Any]:
    """The gates without one."""
    return {"gates": tuple(one for one in p.gates if one.id != name)}


def gate(p: Any, name: str, **changes: Any) -> dict[str, Any]:
    """One gate with changed fields."""
    return {"gates": tuple(replace(one, **changes) if one.id == name else one for one in p.gates)}


def on_the_first_tape(p: Any) -> dict[str, Any]:
    """The gate over half of the smoke grid."""
    at = next(one for one in p.gates if one.id == "graph_equivalence").tiers["smoke"]
    return gate(p, "graph_equivalence", tiers={"smoke": replace(at, grid="smoke_again")})


def first_token_only(p: Any) -> dict[str, Any]:
    """Smoke, and what is made at its budget, end at the prompt's own forward."""
    cut = {name: replace(p.grids[name], max_new_tokens=1) for name in ("smoke", "smoke_again")}
    return {"grids": p.grids | cut}


def offloaded(p: Any) -> dict[str, Any]:
    """The registered placement leaves a module elsewhere."""
    return {"placements": tuple(replace(one, device_map="auto") for one in p.placements)}


FAULTS: dict[str, tuple[str, Callable[[Any], dict[str, Any]], str]] = {
    "no gate": (NANO, lambda p: without(p, "graph_equivalence"), "gates.graph_equivalence: expected"),
    "no record of it": (NANO, lambda p: without(p, "graph_recorded"), "gates.graph_recorded: expected"),
    "a gate over less than the smoke grid": (NANO, on_the_first_tape, "gates.graph_equivalence: expected"),
    "a gate of another reach": (
        NANO,
        lambda p: gate(p, "graph_equivalence", reach="loop"),
        "gates.graph_equivalence: expected",
    ),
    "a gate over the programs' cells alone": (
        NANO,
        lambda p: gate(p, "graph_equivalence", rows="executed_cells"),
        "gates.graph_equivalence: expected",
    ),
    "a gate over no row": (
        NANO,
        lambda p: gate(p, "graph_equivalence", rows="edges"),
        "gates.graph_equivalence: expected",
    ),
    "a record that no row judges": (
        NANO,
        lambda p: gate(p, "graph_recorded", rows="edges"),
        "gates.graph_recorded: expected",
    ),
    "a smoke record that no row judges": (
        NANO,
        lambda p: gate(p, "smoke_passed", rows="edges"),
        "gates before formal: expected",
    ),
    "no word of how units ran": (NANO, lambda p: without(p, "taped_contract"), "gates.taped_contract: expected"),
    "no word of how formal units ran": (
        DEEPSEEK,
        lambda p: gate(p, "taped_contract", tiers={"smoke": GateGrid(grid="smoke", count=16)}),
        "gates.taped_contract: expected",
    ),
    "a CPU protocol that leaves the conclusion open": (
        NANO,
        lambda p: {"prohibited": tuple(one for one in p.prohibited if one.id != "captured")},
        "prohibited: expected captured",
    ),
    "no step to be executed": (NANO, first_token_only, "grids.smoke.max_new_tokens: expected 2 or more"),
    "a formal run without a smoke record": (
        NANO,
        lambda p: without(p, "smoke_passed"),
        "gates before formal: expected",
    ),
    "no gate on CUDA": (DEEPSEEK, lambda p: without(p, "graph_equivalence"), "gates.graph_equivalence: expected"),
    "nothing to compare with": (NANO, lambda p: graph(p, against="none"), "decode.graph.against: expected a contract"),
    "no look": (NANO, lambda p: graph(p, look=0), "decode.graph.look: expected 1 or more"),
    "kernels on the CPU": (NANO, lambda p: graph(p, step="lean", kernels=("experts",)), "decode.graph.kernels"),
    "experts computed twice": (
        DEEPSEEK,
        lambda p: graph(p, kernels=("all_experts", "experts")),
        "and experts by one of them",
    ),
    "all experts of the modules": (NANO, lambda p: graph(p, kernels=("all_experts",)), "decode.graph.kernels"),
    "kernels of the modules": (DEEPSEEK, lambda p: graph(p, step="modules"), "kernels: expected none but of the lean"),
    "a kernel twice": (DEEPSEEK, lambda p: graph(p, kernels=("norms", "norms")), "kernels: expected each once"),
    "kernels in another order": (DEEPSEEK, lambda p: graph(p, kernels=("norms", "experts")), "each once, in order"),
    "a sampler elsewhere": (NANO, lambda p: sampler(p, "cuda"), "decode.sampler.device: expected cpu"),
    "a sampler outside the step": (DEEPSEEK, lambda p: sampler(p, "cpu"), "decode.sampler.device: expected cuda"),
    "an offloaded module": (DEEPSEEK, offloaded, "placements: expected the whole model on the device"),
    "a lean step over two placements": (
        NANO,
        lambda p: graph(p, step="lean"),
        "placements: expected the whole model on the device",
    ),
    "one placement twice under a gate": (
        NANO,
        lambda p: {"placement_equivalence": replace(p.placement_equivalence, right="nano-resident")},
        "placement_equivalence: expected two placements",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_protocol_at_odds_with_itself_is_refused(fault: str) -> None:
    """The field by name, with what was expected."""
    name, change, words = FAULTS[fault]
    own = protocol(name)
    check_protocol(own)
    with pytest.raises(ProtocolError, match=words):
        check_protocol(replace(own, **change(own)))


def test_the_own_loop_takes_neither_its_cache_nor_its_sampler() -> None:
    """A protocol of the other kind can't register what only an executed step has."""
    loop = protocol("nano-task-crn")
    for decode in (replace(loop.decode, cache="fixed"), sampler(loop, "cuda")["decode"]):
        with pytest.raises(ProtocolError, match=r"expected (dynamic|cpu)"):
            check_protocol(replace(loop, decode=decode))


@pytest.fixture
def loaded() -> LoadedProtocol:
    """The embedded one."""
    return load_protocol(NANO)


def test_parts_keep_the_digest_and_have_records_of_their_program(loaded: LoadedProtocol) -> None:
    """The same pins whatever made the part; a drawn one has a task run's records, a greedy one a behaviour run's."""
    parts = {name: part_protocol(loaded, name) for name in ("uncaptured", "drawn_loop", "graph", "generate")}
    assert {one.digest for one in parts.values()} == {loaded.digest}
    assert {name: run_type(one.protocol).__name__ for name, one in parts.items()} == {
        "uncaptured": "GraphRun",
        "drawn_loop": "TapedRun",
        "graph": "Run",
        "generate": "Run",
    }
    assert journal_type(parts["uncaptured"].protocol).__name__ == "GraphJournal"
    assert isinstance(parts["drawn_loop"].protocol, LoopTaskProtocol)
    assert parts["drawn_loop"].protocol.decode.cache == "dynamic"
    own = loaded.protocol
    assert isinstance(parts["graph"].protocol, GraphCheckProtocol)
    assert isinstance(own, GraphTaskProtocol)
    assert parts["graph"].protocol.graph == own.decode.graph


def test_a_loops_protocol_has_no_executed_part() -> None:
    """Misuse: nothing of it is executed over a fixed cache."""
    loop = load_protocol("nano-task-crn")
    for make in (drawn_loop, lambda one: loop_check(one, "graph"), lambda one: part_protocol(one, "uncaptured")):
        with pytest.raises(RuntimeError, match="executes no step over a fixed cache"):
            make(loop)


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        (NANO, {"gpu_memory": "20GiB", "cpu_memory": "none"}, "cuda, single 20GiB/none"),
        (DEEPSEEK, {"gpu_memory": "29GiB", "cpu_memory": "80GiB"}, "cuda, auto 29GiB/80GiB"),
    ],
)
def test_a_port_keeps_the_sampler_in_the_step(name: str, options: dict[str, str], found: str, tmp_path: Path) -> None:
    """Draws on another device, or modules elsewhere, would be another contract: refused under --port too."""
    options = {"checkpoint": tmp_path, "inputs": (), "port": True} | options
    with pytest.raises(PlacementError, match=found):
        make_request(load_protocol(name), "smoke", "x", Options(**options))
