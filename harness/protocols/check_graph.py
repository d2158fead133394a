"""A protocol whose steps are executed over a fixed cache names a step that can be, and has the gate that holds it."""

from harness.protocols.require import require
from harness.records.graph import TRITON, Comparing
from harness.records.protocol import Gate, GraphTaskProtocol, Tier
from harness.records.reaches import Reach, Rows

RECORDED, EQUIVALENCE, RAN = "graph_recorded", "graph_equivalence", "taped_contract"
CAPTURED = "captured"  # the conclusion that a protocol on the CPU prohibits


def comparisons(protocol: GraphTaskProtocol) -> tuple[Comparing, ...]:
    """What the gate compares: captured with uncaptured on a CUDA device, always; and the contract that is named.

    On the CPU nothing is captured, so the first has no two sides there and isn't made.
    """
    named = protocol.decode.graph.against
    captured: tuple[Comparing, ...] = ("uncaptured",) if protocol.execution.device == "cuda" else ()
    return captured if named == "none" else (*captured, named)


def check_graph(protocol: GraphTaskProtocol, where: str) -> None:
    """A step that can be on the registered device, whole on it; a sampler there; gates over steps that are executed."""
    _check_step(protocol, where)
    _check_placement(protocol, where)
    at = f"{where}: decode.graph.against"
    require(bool(comparisons(protocol)), at, expected="a contract: on the CPU nothing is captured", found="none")
    if protocol.execution.device == "cpu":
        listed = sorted(one.id for one in protocol.prohibited)
        at = f"{where}: prohibited"
        require(CAPTURED in listed, at, expected=f"{CAPTURED}: a run on the CPU shows nothing of it", found=listed)
    _check_gates(protocol, where)
    smoke = protocol.tier_grids["smoke"]
    budget = protocol.grids[smoke].max_new_tokens
    at = f"{where}: grids.{smoke}.max_new_tokens"
    require(budget >= 2, at, expected="2 or more: the first token is the prompt's own forward's", found=budget)


def _check_gates(protocol: GraphTaskProtocol, where: str) -> None:
    """Each gate that holds the executor judges its own rows over its whole grids: one over other rows judges fewer."""
    own: dict[Tier, str] = dict(protocol.tier_grids)
    smoke: dict[Tier, str] = {"smoke": own["smoke"]}
    owed: tuple[tuple[str, tuple[Reach, Rows, dict[Tier, str]]], ...] = (
        (RECORDED, ("graph", "whole", smoke)),
        (EQUIVALENCE, ("graph", "cells", smoke)),
        (RAN, ("run", "units", own)),
    )
    for name, wanted in owed:
        found = [(gate.reach, gate.rows, _grids(gate)) for gate in protocol.gates if gate.id == name]
        require(found == [wanted], f"{where}: gates.{name}", expected=[wanted], found=found)
    stands = [gate for gate in protocol.gates if gate.reach == "smoke_record" and "formal" in gate.tiers]
    before = [(gate.id, gate.rows) for gate in stands]
    expected = [("smoke_passed", "whole")]
    require(before == expected, f"{where}: gates before formal", expected=expected, found=before)


def _grids(gate: Gate) -> dict[Tier, str]:
    return {tier: one.grid for tier, one in gate.tiers.items()}


def _check_step(protocol: GraphTaskProtocol, where: str) -> None:
    """Kernels are of the lean step, Triton's on a CUDA device; the sampler is inside the step."""
    graph, device = protocol.decode.graph, protocol.execution.device
    name = f"{where}: decode.graph"
    require(graph.look >= 1, f"{name}.look", expected="1 or more steps", found=graph.look)
    kernels = {*graph.kernels}
    can = graph.step == "lean" and (device == "cuda" or not kernels & TRITON)
    wanted = "none but of the lean step, and Triton's none but on cuda"
    require(can or not kernels, f"{name}.kernels", expected=wanted, found=graph.kernels)
    once = list(graph.kernels) == sorted(kernels) and not {"experts", "all_experts"} <= kernels
    require(once, f"{name}.kernels", expected="each once, in order, and experts by one of them", found=graph.kernels)
    found = protocol.decode.sampler.device
    require(found == device, f"{where}: decode.sampler.device", expected=f"{device}, the step's", found=found)


def _check_placement(protocol: GraphTaskProtocol, where: str) -> None:
    """The lean step and a captured one need the whole model on the device; what can't be placed twice has no pair."""
    placed = {one.id: one for one in protocol.placements}
    pair = protocol.placement_equivalence
    held = any(gate.reach == "placement" for gate in protocol.gates)
    used = {protocol.placement, *((pair.left, pair.right) if held else ())}
    if protocol.execution.device == "cuda" or protocol.decode.graph.step == "lean":
        away = sorted(one for one in used if placed[one].device_map != "single")
        require(not away, f"{where}: placements", expected="the whole model on the device", found=away)
