"""A protocol must agree with itself: every name it uses exists and every denominator is its grid's.

Pure functions over records; `harness.protocols.load` calls them before anything else sees a protocol.
"""

from collections.abc import Sequence

from harness.protocols.check_runs import check_budgets, check_grid_names, check_runs, check_same_process
from harness.protocols.check_study import check_study, check_texts
from harness.protocols.check_taped import check_taped
from harness.protocols.grids import UnitKey, denominators, gate_rows, unit_keys
from harness.protocols.require import known, require
from harness.protocols.seeds import check_seeds
from harness.protocols.study_gates import check_study_gates
from harness.records.manifest import Manifest
from harness.records.profile import Profile
from harness.records.protocol import (
    AnyProtocol,
    BoundaryProtocol,
    CompletionProtocol,
    DepthProtocol,
    JudgedProtocol,
    LadderProtocol,
    Protocol,
    RegisteredProtocol,
    SamplingProtocol,
    StudyProtocol,
    TaskCrnProtocol,
)
from harness.selection import selection_rank

LONGEST = 200  # a file system's 255, less what a write in progress adds


def check_protocol(protocol: RegisteredProtocol) -> None:
    """Names resolve, IDs are unique, edits follow from the boundary, pairs are really two placements."""
    where = f"protocol {protocol.id}"
    conditions = {condition.id for condition in protocol.conditions}
    for label, names in _listed_names(protocol).items():
        require(len(set(names)) == len(names), f"{where}: {label}", expected="unique names", found=names)
    check_grid_names(protocol, where)
    if isinstance(protocol, StudyProtocol):
        check_study(protocol, where)
    else:
        _check_conditions(protocol, where)
    for edge in protocol.edges:
        for side in (edge.left, edge.right):
            known(f"{where}: edges.{edge.id}", side, conditions)
    for domain in protocol.domains:
        known(f"{where}: domains.{domain.name}.input", domain.input, {file.name for file in protocol.inputs})
        require(
            domain.text_field not in domain.gold,
            f"{where}: domains.{domain.name}.gold",
            expected=f"no {domain.text_field}",
            found=domain.gold,
        )
        require(
            "{text}" in domain.content,
            f"{where}: domains.{domain.name}.content",
            expected="{text}",
            found=domain.content,
        )
    check_runs(protocol, where)
    _check_family(protocol, where)
    check_budgets(protocol, where)
    name, contract = (
        ("forward", protocol.forward) if isinstance(protocol, DepthProtocol) else ("decode", protocol.decode)
    )
    rows = contract.rows_per_batch
    require(rows == len(conditions), f"{where}: {name}.rows_per_batch", expected=len(conditions), found=rows)


def _check_conditions(protocol: BoundaryProtocol, where: str) -> None:
    """Conditions at the historical boundary: a known token, one edit unless it is the official one."""
    boundaries = {boundary.name for boundary in protocol.boundaries}
    for condition in protocol.conditions:
        known(f"{where}: conditions.{condition.id}.boundary", condition.boundary, boundaries)
        edits = 0 if condition.boundary == "eos" else 1
        require(
            condition.edits == edits, f"{where}: conditions.{condition.id}.edits", expected=edits, found=condition.edits
        )


def _listed_names(protocol: Protocol) -> dict[str, list[str]]:
    return {
        "boundaries": [boundary.name for boundary in protocol.boundaries],
        "conditions": [condition.id for condition in protocol.conditions],
        "edges": [edge.id for edge in protocol.edges],
        "inputs": [file.name for file in protocol.inputs],
        "domains": [domain.name for domain in protocol.domains],
        "placements": [placement.id for placement in protocol.placements],
        "gates": [gate.id for gate in protocol.gates],
        "contrasts": [one.id for one in getattr(protocol, "contrasts", ())],
        "carried_over": [one.id for one in getattr(protocol, "carried_over", ())],
        "conclusions": [conclusion.id for conclusion in (*protocol.permitted, *protocol.prohibited)],
    }


def _check_family(protocol: RegisteredProtocol, where: str) -> None:
    """What only protocols of one kind register."""
    if isinstance(protocol, JudgedProtocol):
        _check_judged(protocol, where)
    if isinstance(protocol, DepthProtocol):
        _check_depth(protocol, where)
    elif isinstance(protocol, CompletionProtocol):
        budgets = {name: grid.max_new_tokens for name, grid in protocol.grids.items()}
        require(len(set(budgets.values())) == 1, f"{where}: grids", expected="one budget for all", found=budgets)
    elif isinstance(protocol, SamplingProtocol):
        _check_sampling(protocol, where)
    elif isinstance(protocol, TaskCrnProtocol):
        check_taped(protocol, where)


def _check_ladder(protocol: LadderProtocol, where: str) -> None:
    """A ladder of placements that begins where a run does."""
    ladder, placements = protocol.placement_ladder, {placement.id for placement in protocol.placements}
    for name in ladder:
        known(f"{where}: placement_ladder", name, placements)
    require(
        protocol.placement in ladder and len(set(ladder)) == len(ladder),
        f"{where}: placement_ladder",
        expected=f"each placement once, {protocol.placement} among them",
        found=ladder,
    )


def _check_judged(protocol: JudgedProtocol, where: str) -> None:
    """Placements compared on the smoke grid; a sandbox that is one."""
    if isinstance(protocol, LadderProtocol):
        _check_ladder(protocol, where)
    contract = protocol.sandbox
    smoke = protocol.tier_grids["smoke"]
    require(
        protocol.placement_equivalence.grid == smoke,
        f"{where}: placement_equivalence.grid",
        expected=f"{smoke}, the smoke grid",
        found=protocol.placement_equivalence.grid,
    )
    limits = {"memory_bytes": contract.memory_bytes, "pids": contract.pids, "nano_cpus": contract.nano_cpus}
    limits |= {"wall_timeout_ms": contract.wall_timeout_ms, "tmpfs_bytes": contract.tmpfs_bytes}
    swap = contract.memory_swap_bytes  # with the memory: 0 and -1 would mean an engine's own, or no limit
    require(
        swap >= contract.memory_bytes,
        f"{where}: sandbox.memory_swap_bytes",
        expected=f"{contract.memory_bytes} or more, memory included",
        found=swap,
    )
    for name, limit in limits.items():
        require(limit > 0, f"{where}: sandbox.{name}", expected="a limit above 0", found=limit)


def _check_sampling(protocol: SamplingProtocol, where: str) -> None:
    """Seeds follow from the registered ID, replicates have one, rules and contrasts name what there is."""
    check_seeds(protocol.decode.seeds, protocol.registered_id)
    seeded = {seed.replicate for seed in protocol.decode.seeds.base_seeds}
    for name, grid in protocol.grids.items():
        for replicate in grid.replicates:
            known(f"{where}: grids.{name}.replicates", replicate, seeded)
    check_same_process(protocol, where)
    conditions = {condition.id for condition in protocol.conditions}
    for contrast in protocol.contrasts:
        for name in (*contrast.plus, *contrast.minus):
            known(f"{where}: contrasts.{contrast.id}", name, conditions)
        sides = [*contrast.plus, *contrast.minus]
        whole = contrast.plus and contrast.minus and len(set(sides)) == len(sides)
        require(bool(whole), f"{where}: contrasts.{contrast.id}", expected="two sides, each name once", found=sides)
        divisor = contrast.divisor
        require(divisor > 0, f"{where}: contrasts.{contrast.id}", expected="a divisor above 0", found=divisor)
    for carried in protocol.carried_over:
        known(f"{where}: carried_over.{carried.id}", carried.contrast, {one.id for one in protocol.contrasts})


def _check_depth(protocol: DepthProtocol, where: str) -> None:
    """Nothing is generated and no cache is kept; both scopes are recorded, each once (R05 depth 7)."""
    budgets = {name: grid.max_new_tokens for name, grid in protocol.grids.items()}
    require(set(budgets.values()) == {0}, f"{where}: grids", expected="max_new_tokens 0 for all", found=budgets)
    require(not protocol.forward.use_cache, f"{where}: forward.use_cache", expected=False, found=True)
    scopes = protocol.forward.scopes
    require(scopes == ("target", "full"), f"{where}: forward.scopes", expected=("target", "full"), found=scopes)
    several = {name: grid.replicates for name, grid in protocol.grids.items() if len(grid.replicates) != 1}
    require(not several, f"{where}: grids", expected="one replicate", found=several)


def check_manifest(protocol: Protocol, manifest: Manifest) -> None:
    """The manifest lists, per domain, consecutive indices in rank order, all conditions and the grids' counts.

    Of a study also: no two sources of a domain with one text. ProtocolError names the place, expected and found.
    """
    where = f"manifest of {protocol.id}"
    require(manifest.protocol == protocol.id, f"{where}: protocol", expected=protocol.id, found=manifest.protocol)
    conditions = [condition.id for condition in protocol.conditions]
    names = [domain.name for domain in protocol.domains]
    order = list(dict.fromkeys(source.domain for source in manifest.sources))
    require(order == names, f"{where}: domains", expected=names, found=order)
    needed = max(grid.per_domain for grid in protocol.grids.values())
    for domain in protocol.domains:
        listed = [source for source in manifest.sources if source.domain == domain.name]
        require(
            [source.index for source in listed] == list(range(len(listed))),
            f"{where}: {domain.name} indices",
            expected=f"0..{len(listed) - 1}",
            found=[source.index for source in listed],
        )
        require(
            len(listed) >= needed, f"{where}: {domain.name} sources", expected=f"{needed} or more", found=len(listed)
        )
        ranks = [selection_rank(protocol.selection.salt, domain.name, source.source_id) for source in listed]
        require(
            [source.selection_rank for source in listed] == ranks,
            f"{where}: {domain.name} ranks",
            expected=ranks,
            found="others",
        )
        require(
            sorted(ranks) == ranks, f"{where}: {domain.name} order", expected="ascending ranks", found="another order"
        )
        for source in listed:
            prompts = getattr(source, "prompts", None)
            if prompts is not None:
                require(
                    sorted(prompts) == sorted(conditions),
                    f"{where}: {source.source_id} prompts",
                    expected=conditions,
                    found=sorted(prompts),
                )
    ids = [source.source_id for source in manifest.sources]
    require(
        len(set(ids)) == len(ids),
        f"{where}: source IDs",
        expected="each once",
        found=[one for one in ids if ids.count(one) > 1],
    )
    if isinstance(protocol, StudyProtocol):
        check_texts(manifest, where)
    expected = {name: denominators(protocol, name, len(protocol.domains)) for name in protocol.grids}
    require(manifest.denominators == expected, f"{where}: denominators", expected=expected, found=manifest.denominators)


def _check_files(protocol: AnyProtocol, keys: Sequence[UnitKey], where: str) -> None:
    """Each unit and each cell has a file name of its own, also where case doesn't count, that a file can have."""
    first: dict[str, UnitKey] = {}
    for key in keys:
        for name in (key.name, *(f"{key.name}-{condition.id}" for condition in protocol.conditions)):
            other = first.setdefault(name.lower(), key)
            both = f"{name} of {other.domain} {other.source_id} and of {key.domain} {key.source_id}"
            require(other is key, where, expected="each name once: rename a domain", found=both)
            require(len(name) <= LONGEST, where, expected=f"names of {LONGEST} characters at most", found=name)


def check_gates(protocol: AnyProtocol, manifest: Manifest, profile: Profile) -> None:
    """Every gate's denominator is the number of rows that its grid gives; a study has all of its gates."""
    if isinstance(protocol, StudyProtocol):
        check_study_gates(protocol, f"protocol {protocol.id}")
    sources = {(source.domain, source.index): source.source_id for source in manifest.sources}
    names = tuple(domain.name for domain in protocol.domains)
    units = {grid: unit_keys(protocol, sources, grid, names) for grid in protocol.grids}
    for grid, keys in units.items():
        _check_files(protocol, keys, f"protocol {protocol.id}: files of grid {grid}")
    for gate in protocol.gates:
        for tier, at in gate.tiers.items():
            where = f"protocol {protocol.id}: gates.{gate.id}.tiers.{tier}"
            known(f"{where}.grid", at.grid, set(protocol.grids))
            known(f"{where}", tier, protocol.tier_grids)
            # Registered prompts are judged without a run, so in any tier over the whole grid (R08 5.1).
            apart = gate.reach in ("same_process", "loop", "graph", "placement", "replay", "determinism")
            apart = apart or gate.rows == "prompts"
            own = protocol.tier_grids[tier]
            require(apart or at.grid == own, f"{where}.grid", expected=f"{own}, the tier's own", found=at.grid)
            rows = gate_rows(protocol, profile, gate, units[at.grid])
            require(len(rows) == at.count, f"{where}.count", expected=len(rows), found=at.count)
