"""A protocol of tasks under tapes must agree with itself (R08): tapes, sampler, blocks of grids, contrasts, bands."""

import math

from harness.protocols.check_graph import check_graph
from harness.protocols.require import known, require
from harness.records.protocol import (
    GraphTaskProtocol,
    LoopTaskProtocol,
    TapedProtocol,
    TapedStudyProtocol,
    TaskCrnProtocol,
)
from harness.records.taped import GridBlock
from harness.tapes.tape import Tape


def check_taped(protocol: TaskCrnProtocol, where: str) -> None:
    """Tapes follow from the registered ID, blocks part their grids, rules and contrasts name what there is."""
    check_tapes(protocol, where)
    check_sampler(protocol, where)
    _check_official(protocol, where)
    names = set(protocol.grids)
    found = sorted(protocol.grid_blocks)
    require(set(found) == names, f"{where}: grid_blocks", expected=sorted(names), found=found)
    for name in protocol.grids:
        _check_blocks(protocol, name, f"{where}: grid_blocks.{name}")
    _check_formal(protocol, where)
    _check_smoke(protocol, where)
    _check_same_process(protocol, where)
    if isinstance(protocol, GraphTaskProtocol):
        check_graph(protocol, where)
    if isinstance(protocol, LoopTaskProtocol):
        _check_loop(protocol, where)
    _check_contrasts(protocol, where)
    _check_bootstrap(protocol, where)


def _check_loop(protocol: LoopTaskProtocol, where: str) -> None:
    """R08 4: what the own loop can do; the gate is there where agreement is required."""
    check_loop(protocol, where)
    required = [gate.id for gate in protocol.gates if gate.id == "loop_equivalence"]
    wanted = ["loop_equivalence"] if protocol.loop_equivalence == "required" else []
    require(required == wanted, f"{where}: gates under loop_equivalence", expected=wanted, found=required)


def check_loop(protocol: LoopTaskProtocol | TapedStudyProtocol, where: str) -> None:
    """R08 4: a cache that grows, the sampler on the CPU."""
    pairs = (
        ("decode.cache", "dynamic", protocol.decode.cache),
        ("decode.sampler.device", "cpu", protocol.decode.sampler.device),
    )
    for name, expected, found in pairs:
        require(expected == found, f"{where}: {name}", expected=expected, found=found)


def check_tapes(protocol: TapedProtocol, where: str) -> None:
    """R08 4.2: digest and display seed of each tape are those of the registered ID, and grids name these tapes."""
    tapes = protocol.decode.register.tapes
    labels = [tape.label for tape in tapes]
    wanted = [f"T{index}" for index in range(len(tapes))]
    require(labels == wanted and bool(labels), f"{where}: decode.register.tapes", expected=wanted, found=labels)
    for tape in tapes:
        own = Tape(protocol.registered_id, tape.label)
        for name in ("sha256", "display_seed"):
            expected, found = getattr(own, name), getattr(tape, name)
            require(expected == found, f"{where}: tape {tape.label}.{name}", expected=expected, found=found)
    for name, grid in protocol.grids.items():
        for replicate in grid.replicates:
            known(f"{where}: grids.{name}.replicates", replicate, labels)


def check_sampler(protocol: TapedProtocol, where: str) -> None:
    """R08 4.3: a temperature and top-p that are some, one ID kept at least, the rule by its name."""
    contract, sampler = protocol.decode, protocol.decode.sampler
    for name, value, most in (("temperature", sampler.temperature, math.inf), ("top_p", sampler.top_p, 1.0)):
        require(
            0 < value <= most and math.isfinite(value),
            f"{where}: decode.sampler.{name}",
            expected=f"above 0, at most {most}",
            found=value,
        )
    pairs: tuple[tuple[str, object, object], ...] = (
        ("decode.sampler.min_tokens_to_keep", 1, sampler.min_tokens_to_keep),
        ("decode.use_cache", True, contract.use_cache),
        ("sampler", sampler.rule, protocol.sampler),
    )
    for name, expected, found in pairs:
        require(expected == found, f"{where}: {name}", expected=expected, found=found)


def _check_official(protocol: TaskCrnProtocol, where: str) -> None:
    """R08 4.1: the checkpoint's official temperature and top-p."""
    contract, sampler = protocol.decode, protocol.decode.sampler
    pairs = (
        ("temperature", contract.official_temperature, sampler.temperature),
        ("top_p", contract.official_top_p, sampler.top_p),
    )
    for name, expected, found in pairs:
        require(expected == found, f"{where}: decode.sampler.{name}", expected=expected, found=found)


def _check_blocks(protocol: TaskCrnProtocol, name: str, where: str) -> None:
    """Each block lies within ranks x replicates of its grid, no place is in two, and no replicate of it in none."""
    grid, blocks = protocol.grids[name], protocol.grid_blocks[name]
    require(bool(blocks), where, expected="one block or more", found="none")
    for block in blocks:
        ranks = [index for index in block.indices if not 0 <= index < grid.per_domain]
        require(not ranks, where, expected=f"ranks below {grid.per_domain}", found=ranks)
        for replicate in block.replicates:
            known(where, replicate, grid.replicates)
        for what, listed in (("ranks", block.indices), ("replicates", block.replicates)):
            once = bool(listed) and len(set(listed)) == len(listed)
            require(once, where, expected=f"{what}, each once", found=listed)
        require(list(block.indices) == sorted(block.indices), where, expected="ascending ranks", found=block.indices)
    places = [place for block in blocks for place in _places(block)]
    twice = sorted({place for place in places if places.count(place) > 1})
    require(not twice, where, expected="no place in two blocks", found=twice)
    unused = [name for name in grid.replicates if name not in {replicate for _, replicate in places}]
    require(not unused, where, expected="every replicate of the grid", found=f"none under {unused}")


def _check_formal(protocol: TaskCrnProtocol, where: str) -> None:
    """R08 1 and 5: one primary block, all ranks under one tape; diagnostics under others; and no role elsewhere."""
    formal = protocol.tier_grids["formal"]
    blocks = protocol.grid_blocks[formal]
    primary = [block for block in blocks if block.role == "primary"]
    whole = [[*range(protocol.grids[formal].per_domain)]]
    found = [[*block.indices] for block in primary]
    require(found == whole, f"{where}: primary block of {formal}", expected=whole, found=found)
    tapes = [len(block.replicates) for block in primary]
    require(tapes == [1], f"{where}: primary block of {formal}", expected="one tape", found=tapes)
    for name, listed in protocol.grid_blocks.items():
        roles = sorted({block.role for block in listed})
        allowed = {"primary", "diagnostic"} if name == formal else {"check"}
        require(set(roles) <= allowed, f"{where}: grid_blocks.{name}", expected=sorted(allowed), found=roles)


def _check_smoke(protocol: TaskCrnProtocol, where: str) -> None:
    """Smoke's cells are formal ones cut early: `smoke_passed` holds each against the formal run's."""
    grids = [protocol.tier_grids[tier] for tier in ("smoke", "formal")]
    smoke, formal = ({place for block in protocol.grid_blocks[one] for place in _places(block)} for one in grids)
    beyond = sorted(smoke - formal)
    require(not beyond, f"{where}: grid_blocks.{grids[0]}", expected=f"places of {grids[1]}", found=beyond)


def _check_same_process(protocol: TaskCrnProtocol, where: str) -> None:
    """R08 5.1: what is drawn again is the smoke grid's own, under one of its tapes and its budget."""
    rule, smoke = protocol.same_process_replay, protocol.tier_grids["smoke"]
    known(f"{where}: same_process_replay.grid", rule.grid, protocol.grids)
    known(f"{where}: same_process_replay.replicate", rule.replicate, protocol.grids[smoke].replicates)
    wanted = {place for block in protocol.grid_blocks[smoke] for place in _places(block) if place[1] == rule.replicate}
    found = {place for block in protocol.grid_blocks[rule.grid] for place in _places(block)}
    same = found == wanted and protocol.grids[rule.grid].max_new_tokens == protocol.grids[smoke].max_new_tokens
    expected = f"{smoke}'s places and budget under {rule.replicate}"
    require(same, f"{where}: same_process_replay.grid", expected=expected, found=f"{rule.grid} {sorted(found)}")


def _check_contrasts(protocol: TaskCrnProtocol, where: str) -> None:
    """R08 7.1: each contrast has two conditions; a secondary one two sides, each condition once, and a divisor."""
    conditions = {condition.id for condition in protocol.conditions}
    ids = [*(one.id for one in protocol.contrasts), *(one.id for one in protocol.secondary)]
    require(len(set(ids)) == len(ids), f"{where}: contrasts", expected="unique names", found=ids)
    for contrast in protocol.contrasts:
        at = f"{where}: contrasts.{contrast.id}"
        for name in (contrast.left, contrast.right):
            known(at, name, conditions)
        require(contrast.left != contrast.right, at, expected="two conditions", found=f"{contrast.left} twice")
    for secondary in protocol.secondary:
        at, sides = f"{where}: secondary.{secondary.id}", [*secondary.plus, *secondary.minus]
        for name in sides:
            known(at, name, conditions)
        whole = secondary.plus and secondary.minus and len(set(sides)) == len(sides)
        require(bool(whole), at, expected="two sides, each name once", found=sides)
        require(secondary.divisor > 0, at, expected="a divisor above 0", found=secondary.divisor)


def _check_bootstrap(protocol: TaskCrnProtocol, where: str) -> None:
    """R08 7.2: resamples, and percentiles in ascending order within 0 to 100."""
    rule = protocol.bootstrap
    ascending = sorted({one for one in rule.percentiles if 0 <= one <= 100})
    at = f"{where}: bootstrap"
    require(ascending == [*rule.percentiles], f"{at}.percentiles", expected="ascending", found=rule.percentiles)
    require(bool(ascending), f"{at}.percentiles", expected="one or more", found="none")
    require(rule.resamples > 0, f"{at}.resamples", expected="above 0", found=rule.resamples)
    require(0 <= rule.seed < 2**32, f"{at}.seed", expected="32 bits", found=rule.seed)


def _places(block: GridBlock) -> list[tuple[int, str]]:
    return [(index, replicate) for index in block.indices for replicate in block.replicates]
