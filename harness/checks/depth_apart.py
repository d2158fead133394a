"""A trace made again in a fresh process (R05 depth 10), and a trace against the frozen one.

Headline digests and identity fields alike: a field that no conclusion rests on was the published audit's own defect.
"""

import json
from collections.abc import Callable

import msgspec

from harness.checks.frozen import SnapshotEvidence
from harness.checks.pairs import other_hash_seed, proven_apart
from harness.evidence import Differences, PairEvidence, RunEvidence, cell_name, differs
from harness.files import read_bytes
from harness.journal.folder import difference
from harness.protocols.grids import RowKey, digest_variant
from harness.records.depth import Gate, HiddenStage, TraceCell
from harness.snapshots.content import origins_of, snapshot_bytes, tensor_snapshot
from harness.snapshots.environments import in_terms_of
from harness.snapshots.store import frozen_environment, tensors_name

# In a unit's evidence, what says where in which run it belongs: the replay's grid is its own.
PLACE = ("grid",)
# In a cell's frozen digests, the one over all of its record: what any other difference changes too.
WHOLE = "record_sha256"


def replay_sources(pair: PairEvidence, row: RowKey) -> Differences:
    """R05 depth 10: the whole source object, every identity field and statistic, from a process with other hashes."""
    one, other = pair.first.trace(row), pair.second.trace(row)
    found = []
    for name in one.__struct_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if name in PLACE or left == right:
            continue
        shown = difference(msgspec.json.encode(right), msgspec.json.encode(left))
        found.append(differs(f"{cell_name(row)} {name}", *shown))
    return (*proven_apart(pair, row), *other_hash_seed(pair, row), *found)


def replay_hidden(pair: PairEvidence, row: RowKey) -> Differences:
    """R05 depth 10: the SHA-256 of one hidden stage of one cell in one scope."""
    return _same(pair, row, lambda cell: {one.stage: _tensor(one) for one in cell.hidden})


def replay_routes(pair: PairEvidence, row: RowKey) -> Differences:
    """R05 depth 10: the SHA-256 of one gate's ordered routes in one cell and scope."""
    return _same(pair, row, lambda cell: {one.gate: _routes(one) for one in cell.gates})


def replay_weights(pair: PairEvidence, row: RowKey) -> Differences:
    """R05 depth 10: the SHA-256 of one gate's route weights in one cell and scope."""
    return _same(pair, row, lambda cell: {one.gate: _weights(one) for one in cell.gates})


Named = dict[str, dict[str, str]]


def _same(pair: PairEvidence, row: RowKey, digests: Callable[[TraceCell], Named]) -> Differences:
    """The digest that the row names is in both runs, and the same."""
    sides = [_named(evidence, row, digests) for evidence in (pair.first, pair.second)]
    found = tuple(
        differs(f"{cell_name(row)} in the {which}", "a digest", "none")
        for which, side in zip(("run", "replay"), sides, strict=True)
        if side is None
    )
    if not found and sides[0] != sides[1]:
        found = (differs(cell_name(row), *sides),)
    return (*proven_apart(pair, row), *found)


def _named(evidence: RunEvidence, row: RowKey, digests: Callable[[TraceCell], Named]) -> str | None:
    made = digests(evidence.traced(row, row.item))
    named = {digest_variant(name, scope): value for name, one in made.items() for scope, value in one.items()}
    return named.get(row.variant)


def _tensor(stage: HiddenStage) -> dict[str, str]:
    return {"target": stage.target.sha256, "full": stage.full.sha256}


def _routes(gate: Gate) -> dict[str, str]:
    return {"target": gate.target.routes_sha256, "full": gate.full.routes_sha256}


def _weights(gate: Gate) -> dict[str, str]:
    return {"target": gate.target.weights_sha256, "full": gate.full.weights_sha256}


def frozen_tensors(evidence: SnapshotEvidence, row: RowKey) -> Differences:
    """R05 depth 10: every digest of the unit equals the frozen one, which another run made in this environment."""
    run, frozen = evidence.run, evidence.frozen
    if row.unit is None or tensors_name(row.unit) not in frozen.index.units:
        return (differs(cell_name(row), "frozen tensor digests", "none"),)
    own = set(origins_of([run.observation(row).process])) & set(frozen.index.origins)
    where = f"{cell_name(row)} tensors"
    found = [differs(where, "another run's", "the frozen run's own: nothing to compare")] if own else []
    made = snapshot_bytes(tensor_snapshot(run.trace(row)))
    stored = read_bytes(frozen.tensors(row.unit), what="frozen tensor digests")
    if stored == made:
        return tuple(found)
    found.append(_first_digest(row, stored, made))
    there = frozen_environment(run.loaded.results)
    if there is not None and there != (here := in_terms_of(there, run.environment)):
        words = difference(msgspec.json.encode(here), msgspec.json.encode(there))
        found.append(differs(f"{cell_name(row)} environment", *words))
    return tuple(found)


def _first_digest(row: RowKey, stored: bytes, made: bytes) -> str:
    """The first digest that differs, by the condition of its cell, its kind and its place; the whole cell's last."""
    one, other = json.loads(stored), json.loads(made)
    for left, right in zip(one.get("cells", []), other["cells"], strict=False):
        if left != right:
            where = f"{cell_name(row)} {right['condition']} tensors"
            pair = [{name: cell[name] for name in cell if name != WHOLE} for cell in (left, right)]
            sides = pair if pair[0] != pair[1] else [left, right]
            return differs(where, *difference(msgspec.json.encode(sides[1]), msgspec.json.encode(sides[0])))
    return differs(f"{cell_name(row)} tensors", *difference(made, stored))
