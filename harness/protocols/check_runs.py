"""Which runs a protocol has made, and made apart: grids, placements, threads and budgets that agree with each other."""

from typing import get_args

from harness.protocols.require import known, require
from harness.records.protocol import (
    BehaviorProtocol,
    GenerationProtocol,
    GraphTaskProtocol,
    PairRule,
    RegisteredProtocol,
    SamplingProtocol,
    StudyProtocol,
    TapedStudyProtocol,
    TaskCrnProtocol,
    Tier,
)

THREADS = 1024  # in one process; none, or less, is a number that no library takes


def check_grid_names(protocol: RegisteredProtocol, where: str) -> None:
    """Every tier has a grid, and pairs of runs name one: what is checked after this may look them up."""
    for tier in get_args(Tier):
        known(f"{where}: tier_grids.{tier}", protocol.tier_grids.get(tier, "none"), protocol.grids)
    for rule in (*_placed_apart(protocol), protocol.independent_replay):
        known(f"{where}: pair rule grid", rule.grid, protocol.grids)


def check_runs(protocol: RegisteredProtocol, where: str) -> None:
    """The placement is one of the registered, replay repeats it, equivalence takes two; threads are some."""
    placements = {placement.id for placement in protocol.placements}
    known(f"{where}: placement", protocol.placement, placements)
    threads = {"execution": protocol.execution.threads}
    if isinstance(protocol, BehaviorProtocol):
        threads |= {f"row_determinism.{one.id}": one.threads for one in protocol.row_determinism.variants}
    for name, number in threads.items():
        require(0 < number <= THREADS, f"{where}: {name}.threads", expected=f"from 1 to {THREADS}", found=number)
    replay, pairs = protocol.independent_replay, _placed_apart(protocol)
    for rule in (*pairs, replay):
        for side in (rule.left, rule.right):
            known(f"{where}: pair rule placement", side, placements)
    held = not isinstance(protocol, GraphTaskProtocol) or any(gate.reach == "placement" for gate in protocol.gates)
    for pair in pairs:
        require(
            pair.left != pair.right or not held,
            f"{where}: placement_equivalence",
            expected="two placements",
            found=f"{pair.left} twice",
        )
    same = replay.left == replay.right == protocol.placement
    require(same, f"{where}: independent_replay", expected=protocol.placement, found=f"{replay.left}, {replay.right}")


def check_budgets(protocol: RegisteredProtocol, where: str) -> None:
    """What is compared whole has the formal budget; placements of what is drawn, and of studies, smoke's (R07 10)."""
    replay = protocol.independent_replay
    at_smoke = isinstance(protocol, SamplingProtocol | TaskCrnProtocol | StudyProtocol)
    apart = [replay.grid] if at_smoke else [rule.grid for rule in (*_placed_apart(protocol), replay)]
    if isinstance(protocol, BehaviorProtocol):
        known(f"{where}: row_determinism.grid", protocol.row_determinism.grid, protocol.grids)
        apart.append(protocol.row_determinism.grid)
    budget = protocol.grids[protocol.tier_grids["formal"]].max_new_tokens
    for name in apart:
        found = protocol.grids[name].max_new_tokens
        require(
            found == budget,
            f"{where}: grids.{name}.max_new_tokens",
            expected=f"{budget}, the formal grid's",
            found=found,
        )


def check_same_process(protocol: SamplingProtocol | TapedStudyProtocol, where: str) -> None:
    """R07 7.1 and R08 5.1: what is drawn again is the smoke grid's own, under one of its replicates and its budget."""
    rule, smoke = protocol.same_process_replay, protocol.grids[protocol.tier_grids["smoke"]]
    known(f"{where}: same_process_replay.grid", rule.grid, protocol.grids)
    known(f"{where}: same_process_replay.replicate", rule.replicate, smoke.replicates)
    again = protocol.grids[rule.grid]
    found = (again.per_domain, again.replicates, again.max_new_tokens)
    wanted = (smoke.per_domain, (rule.replicate,), smoke.max_new_tokens)
    require(found == wanted, f"{where}: same_process_replay.grid", expected=wanted, found=found)


def _placed_apart(protocol: RegisteredProtocol) -> tuple[PairRule, ...]:
    """The rule of the second placement, where the kind has one."""
    return (protocol.placement_equivalence,) if isinstance(protocol, GenerationProtocol) else ()
