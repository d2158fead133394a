"""Frozen results as a side: snapshots/<protocol>, each file under the index's digest, wherever the folder lies.

They hold no placement and, but for traces, no environment: only that environment's digest.
"""

from pathlib import Path
from typing import Any

import msgspec

from harness.difference.side import Registered, Side, SideUnit, planned_cells, registered, require_planned, units_once
from harness.errors import SnapshotError
from harness.files import read_bytes
from harness.places import Places
from harness.protocols.grids import UnitKey
from harness.records.audit import SnapshotIndex
from harness.records.base import Frozen as FrozenPin
from harness.records.base import convert, decode_json
from harness.records.protocol import DepthProtocol
from harness.records.run import Environment
from harness.snapshots.store import (
    ENVIRONMENT,
    TENSORS,
    TODO,
    VERDICTS,
    Frozen,
    environment_at,
    frozen_names,
    read_frozen_at,
)


class _Unit(msgspec.Struct):
    """What every frozen unit must say; other fields are kept as they are. Cells stay plain."""

    protocol_digest: str
    domain: str
    index: int
    source_id: str
    replicate: str
    source_text_sha256: str
    cells: list[dict[str, Any]]


class _Generated(_Unit):
    """What a unit that was generated must say besides."""

    max_new_tokens: int


class _Output(msgspec.Struct):
    """What a frozen output must say."""

    condition: str
    prompt_sha256: str
    generated_ids: list[int]
    generated_sha256: str
    text_sha256: str
    eos: bool
    truncated: bool
    length: int


class _TraceUnit(_Unit):
    """What a unit that was traced must say besides."""

    content_token_ids_sha256: str
    target_tokens: int
    crossing_tokens: int
    crossing_cells: int


class _Trace(msgspec.Struct):
    """What a frozen trace's cell must say."""

    condition: str
    prompt_sha256: str
    target: dict[str, int]
    embedding_sha256: list[str]
    shapes: dict[str, list[int]]
    top_k: dict[str, int]


class _Verdict(msgspec.Struct):
    """What a frozen verdict must say."""

    condition: str
    verdict: dict[str, Any]


class _Tensors(msgspec.Struct):
    """What the frozen tensor digests of a cell must say."""

    condition: str
    hidden_sha256: dict[str, list[str]]
    routes_sha256: dict[str, list[str]]
    weights_sha256: dict[str, list[str]]
    record_sha256: str


class _Verdicts(msgspec.Struct):
    """Verdicts on a unit's programs."""

    source_id: str
    replicate: str
    cells: list[_Verdict]


class _Traced(msgspec.Struct):
    """Tensor digests of a unit."""

    source_id: str
    replicate: str
    cells: list[_Tensors]
    edges_sha256: dict[str, str]


def frozen_side(path: Path, tree: Places) -> Side:
    """Frozen results as a side; HarnessError naming the file that isn't what the index says, or can't be read."""
    frozen = read_frozen_at(path)
    index = frozen.index
    found = registered(index.protocol, index.protocol_digest, path, tree)
    if found.loaded is not None and frozen_names(found.loaded) != sorted(index.units):
        expected = f"{len(frozen_names(found.loaded))} files of {index.protocol}"
        raise SnapshotError(str(path), expected=expected, found=f"{len(index.units)}, or other names", todo=TODO)
    environment = environment_at(path)
    traced = isinstance(found.kind, DepthProtocol)
    units = units_once(path, [_unit(frozen, name, traced=traced) for name in _unit_names(index)])
    cells = frozenset((*identity, name) for identity, unit in units.items() for name in unit.cells)
    formal = found.kind.tier_grids["formal"]
    planned = cells if found.loaded is None else planned_cells(found.loaded, formal, found.loaded.domains)
    require_planned(path, units, planned)
    return Side(
        kind="frozen",
        path=path,
        name=index.protocol,
        protocol=index.protocol,
        digest=index.protocol_digest,
        registered=found,
        tier=index.tier,
        grid=formal,
        port=False,
        deviations=(),
        run_sha256=index.run_sha256,
        environment_sha256=index.environment_sha256,
        environment=environment,
        placement=None,
        checkpoint=_checkpoint(found, environment),
        state="frozen",
        units=units,
        planned=planned,
        judging={},
        origins=frozenset(index.origins),
        judge=None,
    )


def _unit_names(index: SnapshotIndex) -> list[str]:
    beside = (VERDICTS, TENSORS)
    return [name for name in index.units if name != ENVIRONMENT and not name.endswith(beside)]


def _unit(frozen: Frozen, name: str, *, traced: bool) -> SideUnit:
    path = frozen.folder / f"{name}.json"
    plain = _plain(path, _TraceUnit if traced else _Generated)
    key = UnitKey(plain["domain"], plain["index"], plain["source_id"], plain["replicate"])
    if (key.name, plain["protocol_digest"]) != (name, frozen.index.protocol_digest):
        expected = f"{name} of {frozen.index.protocol_digest}"
        raise SnapshotError(str(path), expected=expected, found=f"{key.name} of {plain['protocol_digest']}", todo=TODO)
    for cell in plain["cells"]:
        convert(cell, _Trace if traced else _Output, where=path, error=SnapshotError, todo=TODO)
    conditions = [cell["condition"] for cell in plain["cells"]]
    verdicts = _beside(frozen, key, VERDICTS, conditions)
    return SideUnit(
        key=key,
        plain=plain,
        verdicts={cell["condition"]: cell for cell in verdicts["cells"]} if verdicts else {},
        tensors=_beside(frozen, key, TENSORS, conditions),
        accounts=True,
    )


def _beside(frozen: Frozen, key: UnitKey, suffix: str, conditions: list[str]) -> dict[str, Any] | None:
    """What is frozen beside a unit, which must be of the same unit and cells; None where nothing is."""
    name = f"{key.name}{suffix}"
    if name not in frozen.index.units:
        return None
    path = frozen.folder / f"{name}.json"
    plain = _plain(path, _Verdicts if suffix == VERDICTS else _Traced)
    found = (plain["source_id"], plain["replicate"], [cell["condition"] for cell in plain["cells"]])
    expected = (key.source_id, key.replicate, conditions)
    if found != expected:
        raise SnapshotError(str(path), expected=str(expected), found=str(found), todo=TODO)
    return plain


def _plain(path: Path, kind: type) -> dict[str, Any]:
    data = read_bytes(path, what="snapshot")
    decode_json(data, kind, where=path, error=SnapshotError, todo=TODO)
    plain: dict[str, Any] = msgspec.json.decode(data)
    return plain


def _checkpoint(found: Registered, environment: Environment | None) -> dict[str, str] | None:
    """Files by digest: as recorded, else as the profile pins them, since no port is ever frozen."""
    if environment is not None:
        return environment.checkpoint
    if found.loaded is None:
        return None
    files = found.loaded.profile.files
    return {one.name: one.digest.sha256 for one in files if isinstance(one.digest, FrozenPin)}
