"""What differs between two sides besides their outputs, the most telling first.

Another prompt, another draw, other weights or another rule must be expected to give other tokens. Another environment
or placement changes the last bits of the arithmetic, and a token only where two were that close. What judges outputs
comes last: it changes no token. The order is fixed; nothing is weighed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness.canon import digest
from harness.compare import common_prefix
from harness.difference.leaves import ABSENT, differing, leaves
from harness.difference.side import Side, SideUnit
from harness.records.difference import Fact, FactGroup
from harness.records.manifest import Manifest
from harness.snapshots.environments import environment_facts

Common = Sequence[tuple[SideUnit, SideUnit]]
NOT_HELD = "not held by frozen results"
OF_SOURCES = ("gold", "tasks", "answers")
# Fields of a protocol that decide tokens, before its titles, gates and conclusions.
DECIDING = (
    "decode",
    "forward",
    "by",
    "sampler",
    "prompt",
    "conditions",
    "boundaries",
    "model",
    "execution",
    "software",
)


def facts(a: Side, b: Side, common: Common) -> tuple[Fact, ...]:
    """Everything that differs, in the order of its groups. `common`: the units that both sides have."""
    found = [*_prompts(common), *_draws(common)]
    for part in (_checkpoint, _protocol, _port, _environment, _placement):
        found += part(a, b)
    return (*found, *_judging(a, b, common))


def _fact(group: FactGroup, field: str, a: str, b: str, where: str = "") -> Fact:
    return Fact(group=group, field=field, a=a, b=b, where=where)


def _of(group: FactGroup, prefix: str, one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[Fact]:
    """A fact for each leaf that differs."""
    for name, left, right in differing(one, other):
        yield _fact(group, f"{prefix}.{name}" if prefix else name, left, right)


def _summed(group: FactGroup, found: Mapping[str, list[tuple[str, str, str]]], of: int, what: str) -> Iterator[Fact]:
    """One fact a field with its first place and how many there are. `found`: field -> (where, a, b) in order."""
    for field, places in found.items():
        where, left, right = places[0]
        yield _fact(group, field, left, right, f"{len(places)} of {of} {what}, first {where}")


def _prompts(common: Common) -> Iterator[Fact]:
    """Source texts by unit, then prompts and the padding beside them by cell."""
    texts: dict[str, list[tuple[str, str, str]]] = {}
    cells: dict[str, list[tuple[str, str, str]]] = {}
    of = 0
    for a, b in common:
        pair = a.plain["source_text_sha256"], b.plain["source_text_sha256"]
        if pair[0] != pair[1]:
            texts.setdefault("source_text_sha256", []).append((a.key.source_id, *pair))
        for name in (name for name in a.cells if name in b.cells):
            of += 1
            for field, left, right in _prompt(a, b, name):
                where = f"{a.key.source_id} {a.key.replicate} {name}"
                cells.setdefault(field, []).append((where, left, right))
    yield from _summed("prompts", texts, len(common), "units")
    yield from _summed("prompts", cells, of, "cells")


def _prompt(a: SideUnit, b: SideUnit, condition: str) -> Iterator[tuple[str, str, str]]:
    """The IDs from the first position that differs where both sides are runs, else digests; then the padding."""
    left, right = a.cells[condition]["prompt_sha256"], b.cells[condition]["prompt_sha256"]
    rows = a.rows.get(condition), b.rows.get(condition)
    if rows[0] is None or rows[1] is None:
        if left != right:
            yield "prompt_sha256", left, right
        return
    one, other = rows[0].prompt_ids, rows[1].prompt_ids
    if one != other:
        at = common_prefix(one, other)
        words = [f"position {at} of {len(ids)}: {list(ids[at : at + 4])}" for ids in (one, other)]
        yield "prompt_ids", words[0], words[1]
    if rows[0].left_padding != rows[1].left_padding:
        yield "left_padding", str(rows[0].left_padding), str(rows[1].left_padding)


def _draws(common: Common) -> Iterator[Fact]:
    """How tokens were chosen, by unit: seed, tape, generator, parameters as read back from the call."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for a, b in common:
        seeds = ({"run_seed": str(unit.plain["run_seed"])} if "run_seed" in unit.plain else {} for unit in (a, b))
        one, other = seeds
        if a.drawn and b.drawn:
            one, other = one | dict(a.drawn), other | dict(b.drawn)
        for name, left, right in differing(one, other):
            found.setdefault(name, []).append((f"{a.key.source_id} {a.key.replicate}", left, right))
    yield from _summed("draws", found, len(common), "units")


def _checkpoint(a: Side, b: Side) -> Iterator[Fact]:
    if a.checkpoint is not None and b.checkpoint is not None:
        yield from _of("checkpoint", "", a.checkpoint, b.checkpoint)


def _protocol(a: Side, b: Side) -> Iterator[Fact]:
    """The digest, then protocol, profile and manifest field by field where both are at hand."""
    one, other = a.registered, b.registered
    if a.protocol != b.protocol and (one.loaded is None or other.loaded is None):
        yield _fact("protocol", "id", a.protocol, b.protocol)
    if a.digest != b.digest:
        why = [f"{name}: {side.why}" for name, side in (("A", one), ("B", other)) if side.loaded is None]
        yield _fact("protocol", "digest", a.digest, b.digest, "; ".join(["no fields to show", *why]) if why else "")
    if one.loaded is not None and other.loaded is not None and one.loaded != other.loaded:
        yield from _of("protocol", "", _plain(one.loaded.protocol), _plain(other.loaded.protocol))
        yield from _of("protocol", "profile", _plain(one.loaded.profile), _plain(other.loaded.profile))
        yield from _manifest(one.loaded.manifest, other.loaded.manifest)


def _plain(record: Any) -> dict[str, str]:
    """Leaves of a record, those that decide tokens before the rest."""
    plain = msgspec.to_builtins(record)
    named = [*(name for name in DECIDING if name in plain), *(name for name in plain if name not in DECIDING)]
    return leaves({name: plain[name] for name in named})


def _manifest(one: Manifest, other: Manifest) -> Iterator[Fact]:
    """One fact for all sources: their texts and prompts are said cell by cell. Then the tokenizer."""
    yield from _of("protocol", "manifest", *({"tokenizer_sha256": side.tokenizer_sha256} for side in (one, other)))
    sides = [{source.source_id: digest(source) for source in side.sources} for side in (one, other)]
    found = list(differing(*sides))
    if found:
        source, left, right = found[0]
        of = len({*sides[0], *sides[1]})
        yield _fact("protocol", "manifest.sources", left, right, f"{len(found)} of {of} sources, first {source}")


def _port(a: Side, b: Side) -> Iterator[Fact]:
    if a.port != b.port:
        yield _fact("port", "port", str(a.port), str(b.port))
    one, other = ({item.field: item.actual for item in side.deviations} for side in (a, b))
    yield from _of("port", "deviation", one, other)


def _environment(a: Side, b: Side) -> Iterator[Fact]:
    """Field by field where both sides hold it; by its digest where frozen results are all that there is."""
    if a.environment is not None and b.environment is not None:
        yield from _of("environment", "", environment_facts(a.environment), environment_facts(b.environment))
    elif a.environment_sha256 != b.environment_sha256:
        yield _fact("environment", "digest", a.environment_sha256, b.environment_sha256, NOT_HELD)


def _placement(a: Side, b: Side) -> Iterator[Fact]:
    """Registered budgets, the ID, then what was read back: devices of modules, bytes by device, what is offloaded."""
    if a.placement is None or b.placement is None:
        return
    budgets = _budgets(a), _budgets(b)
    if ABSENT not in budgets and budgets[0] != budgets[1]:
        yield _fact("placement", "budgets", *budgets)
    yield from _of("placement", "", *(leaves(msgspec.to_builtins(side.placement)) for side in (a, b)))


def _budgets(side: Side) -> str:
    """GPU and CPU budgets of the placement as registered; of a port's own, what its request says; else absent."""
    placed = side.placement.id if side.placement is not None else ""
    known = side.registered.loaded.protocol.placements if side.registered.loaded is not None else ()
    named = (f"{one.device_map} {one.gpu_memory}/{one.cpu_memory}" for one in known if one.id == placed)
    said = (one.actual for one in side.deviations if one.field == "placement")
    return next(iter((*named, *said)), ABSENT)


def _judging(a: Side, b: Side, common: Common) -> Iterator[Fact]:
    """Gold numbers and code tasks of the common sources, baseline and sandbox: what two runs' accounts rest on."""
    if a.kind == b.kind == "run" and a.budget == b.budget:
        sources = {unit.key.source_id for unit, _ in common}
        files = [{name.partition(".")[0] for name in side.judging} for side in (a, b)]
        kept = files[0] & files[1]  # that a side executed nothing is said of its verdicts
        yield from _of("judging", "", *(_of_sources(side.judging, sources, kept) for side in (a, b)))


def _of_sources(judging: Mapping[str, str], sources: set[str], files: set[str]) -> dict[str, str]:
    """What is one for the run, and what is of these sources alone, from files that both sides have."""
    named = {name: name.partition(".")[::2] for name in judging}
    return {
        name: judging[name]
        for name, (file, of) in named.items()
        if file in files and (file not in OF_SOURCES or of in sources)
    }
