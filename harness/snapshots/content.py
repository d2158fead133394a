"""What a unit's snapshot holds: identity, token IDs, escaped text, digests, stop state, observations.

No time, path, host, worker or tensor digest; canonical content, indented, one line a field.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from harness.canon import sha256_hex
from harness.records.ledger import CellRow, Ledger
from harness.records.run import CellRecord, ProcessIdentity, UnitEvidence

CELL_FIELDS = (
    "condition",
    "prompt_sha256",
    "generated_ids",
    "generated_sha256",
    "text_escaped",
    "text_sha256",
    "eos",
    "truncated",
    "length",
)


def unit_snapshot(unit: UnitEvidence, ledger: Ledger) -> dict[str, Any]:
    """The snapshot of a unit as plain data, its ledger rows joined by source, replicate and condition."""
    rows = {
        row.condition: row for row in ledger.cells if (row.source_id, row.replicate) == (unit.source_id, unit.replicate)
    }
    return {
        "schema": 1,
        "protocol_digest": unit.protocol_digest,
        "domain": unit.domain,
        "index": unit.index,
        "source_id": unit.source_id,
        "source_text_sha256": unit.source_text_sha256,
        "replicate": unit.replicate,
        "max_new_tokens": unit.max_new_tokens,
        "cells": [_cell(cell, rows[cell.condition]) for cell in unit.cells],
    }


def _cell(cell: CellRecord, row: CellRow) -> dict[str, Any]:
    plain: dict[str, Any] = {name: msgspec.to_builtins(getattr(cell, name)) for name in CELL_FIELDS}
    return plain | {"number": msgspec.to_builtins(row.number), "syntax": msgspec.to_builtins(row.syntax)}


def snapshot_bytes(content: dict[str, Any]) -> bytes:
    """ASCII JSON, sorted keys, one line a field; a list of numbers stays on its line."""
    return (_lines(content, 0) + "\n").encode("ascii")


def snapshot_sha256(content: dict[str, Any]) -> str:
    """SHA-256 of the snapshot's bytes."""
    return sha256_hex(snapshot_bytes(content))


def origins_of(processes: Iterable[ProcessIdentity]) -> tuple[str, ...]:
    """A SHA-256 for each model load that made a run, sorted: units share one only if they are of one run."""
    return tuple(sorted({sha256_hex(process.model_load_id.encode()) for process in processes}))


def _lines(value: Any, depth: int) -> str:
    pad, inner = " " * depth, " " * (depth + 1)
    if isinstance(value, dict) and value:
        rows = [f"{inner}{json.dumps(name)}: {_lines(value[name], depth + 1)}" for name in sorted(value)]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        rows = [f"{inner}{_lines(one, depth + 1)}" for one in value]
        return "[\n" + ",\n".join(rows) + f"\n{pad}]"
    return json.dumps(value, sort_keys=True)
