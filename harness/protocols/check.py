"""A protocol must agree with itself: every name it uses exists and every denominator is its grid's.

Pure functions over records; `harness.protocols.load` calls them before anything else sees a protocol.
"""

from collections.abc import Iterable

from harness.errors import ProtocolError
from harness.protocols.grids import denominators, gate_rows, unit_keys
from harness.records.manifest import Manifest
from harness.records.profile import Profile
from harness.records.protocol import AnyProtocol, Protocol
from harness.selection import selection_rank

TODO = "Correct the file, or take the frozen one back from version control."


def require(
    condition: bool,  # noqa: FBT001 - it reads as a sentence
    where: str,
    *,
    expected: object,
    found: object,
) -> None:
    """Raise ProtocolError unless `condition` holds."""
    if not condition:
        raise ProtocolError(where, expected=str(expected), found=str(found), todo=TODO)


def check_protocol(protocol: AnyProtocol) -> None:
    """Names resolve, IDs are unique, edits follow from the boundary, pairs are really two placements."""
    where = f"protocol {protocol.id}"
    boundaries = {boundary.name for boundary in protocol.boundaries}
    conditions = {condition.id for condition in protocol.conditions}
    for label, names in _listed_names(protocol).items():
        require(len(set(names)) == len(names), f"{where}: {label}", expected="unique names", found=names)
    for condition in protocol.conditions:
        _known(f"{where}: conditions.{condition.id}.boundary", condition.boundary, boundaries)
        edits = 0 if condition.boundary == "eos" else 1
        require(
            condition.edits == edits, f"{where}: conditions.{condition.id}.edits", expected=edits, found=condition.edits
        )
    for edge in protocol.edges:
        for side in (edge.left, edge.right):
            _known(f"{where}: edges.{edge.id}", side, conditions)
    for domain in protocol.domains:
        _known(f"{where}: domains.{domain.name}.input", domain.input, {file.name for file in protocol.inputs})
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
    _check_runs(protocol, where)
    rows = protocol.decode.rows_per_batch
    require(rows == len(conditions), f"{where}: decode.rows_per_batch", expected=len(conditions), found=rows)


def _listed_names(protocol: Protocol) -> dict[str, list[str]]:
    return {
        "boundaries": [boundary.name for boundary in protocol.boundaries],
        "conditions": [condition.id for condition in protocol.conditions],
        "edges": [edge.id for edge in protocol.edges],
        "inputs": [file.name for file in protocol.inputs],
        "domains": [domain.name for domain in protocol.domains],
        "placements": [placement.id for placement in protocol.placements],
        "gates": [gate.id for gate in protocol.gates],
        "conclusions": [conclusion.id for conclusion in (*protocol.permitted, *protocol.prohibited)],
    }


def _check_runs(protocol: AnyProtocol, where: str) -> None:
    grids = set(protocol.grids)
    placements = {placement.id for placement in protocol.placements}
    _known(f"{where}: placement", protocol.placement, placements)
    for tier, grid in protocol.tier_grids.items():
        _known(f"{where}: tier_grids.{tier}", grid, grids)
    pair = protocol.placement_equivalence
    for rule in (pair, protocol.independent_replay):
        _known(f"{where}: pair rule grid", rule.grid, grids)
        for side in (rule.left, rule.right):
            _known(f"{where}: pair rule placement", side, placements)
    require(
        pair.left != pair.right,
        f"{where}: placement_equivalence",
        expected="two placements",
        found=f"{pair.left} twice",
    )
    replay = protocol.independent_replay
    same = replay.left == replay.right == protocol.placement
    require(same, f"{where}: independent_replay", expected=protocol.placement, found=f"{replay.left}, {replay.right}")
    _known(f"{where}: row_determinism.grid", protocol.row_determinism.grid, grids)
    budget = protocol.grids[protocol.tier_grids["formal"]].max_new_tokens
    for name in (pair.grid, replay.grid, protocol.row_determinism.grid):
        found = protocol.grids[name].max_new_tokens
        require(
            found == budget,
            f"{where}: grids.{name}.max_new_tokens",
            expected=f"{budget}, the formal grid's",
            found=found,
        )


def check_manifest(protocol: Protocol, manifest: Manifest) -> None:
    """The manifest lists, per domain, consecutive indices in rank order, all conditions and the grids' counts."""
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
    expected = {name: denominators(protocol, name, len(protocol.domains)) for name in protocol.grids}
    require(manifest.denominators == expected, f"{where}: denominators", expected=expected, found=manifest.denominators)


def check_gates(protocol: AnyProtocol, manifest: Manifest, profile: Profile) -> None:
    """Every gate's denominator is the number of rows that its grid gives."""
    sources = {(source.domain, source.index): source.source_id for source in manifest.sources}
    names = tuple(domain.name for domain in protocol.domains)
    for gate in protocol.gates:
        for tier, at in gate.tiers.items():
            where = f"protocol {protocol.id}: gates.{gate.id}.tiers.{tier}"
            _known(f"{where}.grid", at.grid, set(protocol.grids))
            _known(f"{where}", tier, protocol.tier_grids)
            apart = gate.reach in ("placement", "replay", "determinism")
            own = protocol.tier_grids[tier]
            require(apart or at.grid == own, f"{where}.grid", expected=f"{own}, the tier's own", found=at.grid)
            rows = gate_rows(protocol, profile, gate, unit_keys(protocol, sources, at.grid, names))
            require(len(rows) == at.count, f"{where}.count", expected=len(rows), found=at.count)


def _known(where: str, name: str, names: Iterable[str]) -> None:
    require(name in set(names), where, expected=f"one of {sorted(names)}", found=name)
