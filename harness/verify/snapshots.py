"""The run's cells against the frozen results of its protocol: each unit's snapshot is made again and compared."""

from collections.abc import Iterator

import msgspec

from harness.canon import digest, sha256_hex
from harness.errors import HarnessError
from harness.files import read_bytes
from harness.journal.folder import difference
from harness.ledgers.executions import read_executions
from harness.protocols.folders import protocol_ids
from harness.protocols.grids import RowKey, UnitKey, executed_grid
from harness.protocols.load import read_registration
from harness.records.protocol import BaselinedProtocol, DepthProtocol, FrozenBaseline
from harness.snapshots.content import (
    containers_of,
    origins_of,
    snapshot_bytes,
    tensor_snapshot,
    unit_snapshot,
    verdict_snapshot,
)
from harness.snapshots.store import (
    Frozen,
    executed_units,
    frozen_environment,
    is_frozen,
    judgement_digests,
    read_frozen,
    tensors_name,
    verdicts_name,
)
from harness.verify.ground import AGAIN, FROZEN_FILE, Ground, Lines, compared, fails, holds, nothing

STEP = "snapshots"


def snapshots_hold(ground: Ground) -> Lines:
    """What is frozen is unaltered, and this run's units are it, where the two can be compared at all."""
    protocol, name = ground.loaded.protocol, ground.loaded.results
    if not is_frozen(name, ground.tree):
        yield nothing(STEP, f"snapshots/{name}", "none", "unfrozen: no run of this protocol was accepted")
        return
    frozen = read_frozen(name, ground.tree)
    if (reason := not_comparable(ground)) is not None:
        yield nothing(STEP, f"snapshots/{name}", "none", reason)
        return
    found = [*_index(ground, frozen), *_units(ground, frozen)]
    executes = executed_grid(protocol, ground.evidence.spec.grid)
    found += _verdicts(ground, frozen) if executes else []
    if isinstance(protocol, DepthProtocol):
        found += _tensors(ground, frozen)
    failed = [one for one in found if one.state == "fails"]
    own = "the accepted run" if _is_accepted(ground, frozen) else "another run"
    count = f"{len(ground.evidence.keys)} units"
    yield from found
    if not failed:
        yield holds(STEP, f"snapshots/{name}", count, f"{count}; this is {own}")


def not_comparable(ground: Ground) -> str | None:
    """Why the run has no results in common with the frozen ones: another budget, other weights."""
    protocol, own = ground.loaded.protocol, ground.evidence.spec.grid
    formal = protocol.grids[protocol.tier_grids["formal"]]
    if protocol.grids[own].max_new_tokens != formal.max_new_tokens:
        return f"grid {own} has another budget than the frozen one"
    if not set(protocol.grids[own].replicates) <= set(formal.replicates):
        return f"grid {own} has other replicates than the frozen one"
    weights = [one.field for one in ground.evidence.spec.deviations if one.field.startswith("checkpoint.")]
    return f"a port on other weights ({', '.join(weights)})" if weights else None


def _is_accepted(ground: Ground, frozen: Frozen) -> bool:
    """The index names one of this run's judgements, or shares a model load or a container with it."""
    own = set(_origins(ground)) & set(frozen.index.origins)
    return bool(own) or frozen.index.audit_sha256 in judgement_digests(ground.folder)


def _origins(ground: Ground) -> tuple[str, ...]:
    executions = read_executions(ground.folder)
    return (*origins_of(ground.evidence.processes), *containers_of(executions.values()))


def _index(ground: Ground, frozen: Frozen) -> Lines:
    """The index in canonical bytes and under its pins; of the accepted run, the one that follows from it."""
    path, index = frozen.folder / "index.json", frozen.index
    stored = sha256_hex(read_bytes(path, what="snapshot index"))
    where = f"snapshots/{ground.loaded.results}/formal/index.json"
    pairs: list[tuple[object, object, object]] = [(f"{where}: canonical bytes", digest(index), stored)]
    pairs += [(f"{where}: pin of {name}", sha256, stored) for name, sha256 in _pins(ground)]
    if _is_accepted(ground, frozen):
        named = index.audit_sha256 in judgement_digests(ground.folder)
        pairs += [
            (f"{where}: run_sha256", ground.audit.run_sha256, index.run_sha256),
            (f"{where}: environment_sha256", ground.audit.environment_sha256, index.environment_sha256),
            (f"{where}: origins", _origins(ground), index.origins),
            (f"{where}: audit_sha256 of a judgement of this run", True, named),
        ]
    yield from compared(STEP, pairs, FROZEN_FILE)


def _pins(ground: Ground) -> Iterator[tuple[str, str]]:
    """The protocols of the tree whose baseline these results are, with the digest that they pin."""
    for name in protocol_ids(ground.tree):
        protocol = read_registration(name, ground.tree)
        pinned = protocol.baseline if isinstance(protocol, BaselinedProtocol) else None
        own = (ground.loaded.protocol.id, ground.loaded.digest)
        if isinstance(pinned, FrozenBaseline) and (pinned.protocol, pinned.protocol_digest) == own:
            yield name, pinned.index_sha256


def _units(ground: Ground, frozen: Frozen) -> Lines:
    evidence = ground.evidence
    for key in evidence.keys:
        made = snapshot_bytes(unit_snapshot(evidence.batch(RowKey(key, "")), evidence.ledger))
        yield from _same(ground, key, made, frozen, key.name)


def _verdicts(ground: Ground, frozen: Frozen) -> Lines:
    evidence, executions = ground.evidence, read_executions(ground.folder)
    for key in executed_units(ground.loaded, evidence.keys):
        made = snapshot_bytes(verdict_snapshot(evidence.unit(RowKey(key, "")), evidence.ledger, executions))
        yield from _same(ground, key, made, frozen, verdicts_name(key))


def _tensors(ground: Ground, frozen: Frozen) -> Lines:
    """Tensor digests belong to one environment; in another there is nothing to compare."""
    there = frozen_environment(ground.loaded.results, ground.tree)
    if there != ground.evidence.environment:
        words = difference(msgspec.json.encode(ground.evidence.environment), msgspec.json.encode(there))
        yield nothing(STEP, "frozen tensors", words[0], f"{words[1]}: another environment")
        return
    for key in ground.evidence.keys:
        made = snapshot_bytes(tensor_snapshot(ground.evidence.trace(RowKey(key, ""))))
        yield from _same(ground, key, made, frozen, tensors_name(key))


def _same(ground: Ground, key: UnitKey, made: bytes, frozen: Frozen, name: str) -> Lines:
    path = frozen.folder / f"{name}.json"
    try:
        stored = read_bytes(path, what="snapshot")
    except HarnessError as error:
        yield fails(STEP, path.name, error.expected, error.found, error.todo)
        return
    if stored != made:
        expected, found = difference(made, stored)
        where = f"journal/{key.name}.json and snapshots/{ground.loaded.results}/formal/{name}.json"
        yield fails(STEP, where, expected, found, AGAIN)
