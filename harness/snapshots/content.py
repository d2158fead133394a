"""What a unit's snapshot holds: identity, token IDs, escaped text, digests, stop state, observations.

No time, path, host, worker or tensor digest; canonical content, indented, one line a field.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from harness.canon import digest, sha256_hex
from harness.ledgers.book import AnyLedger
from harness.ledgers.executions import execution_of
from harness.protocols.stages import EMBEDDING
from harness.records.completion import AccountedRow, CodeAccount, CompletionRow, Executed
from harness.records.depth import HiddenStage, TraceEvidence
from harness.records.depth_ledger import DepthCellRow
from harness.records.kinds import AnyUnit
from harness.records.ledger import CellRow
from harness.records.run import ProcessIdentity, UnitEvidence
from harness.records.sampling import SampledEvidence
from harness.records.sandbox import Execution
from harness.records.study_ledger import StudyRow
from harness.records.taped_study import TapedStudyRow
from harness.records.task_ledger import TapeFacts, TaskCode, TaskExecution, TaskRow

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
ACCOUNTS = ("stop", "completion", "terminal", "numeric")
OF_VERDICT = ("completion", "terminal")
TAPE_FIELDS = ("tape", "tape_sha256", "consumed", "consumed_sha256")
VERDICT_FIELDS = ("candidate_sha256", "task_sha256", "tests_sha256")


def unit_snapshot(unit: AnyUnit, ledger: AnyLedger) -> dict[str, Any]:
    """The snapshot of a unit as plain data: of its outputs, or of what a trace finds in every environment."""
    return trace_snapshot(unit) if isinstance(unit, TraceEvidence) else output_snapshot(unit, ledger)


def output_snapshot(unit: UnitEvidence, ledger: AnyLedger) -> dict[str, Any]:
    """The snapshot of outputs, the ledger's rows joined by source, replicate and condition.

    Verdicts on programs aren't in it: `verdict_snapshot` has them, so that cells can be replayed without an engine.
    """
    found = [row for row in ledger.cells if not isinstance(row, DepthCellRow)]
    rows = {row.condition: row for row in found if (row.source_id, row.replicate) == (unit.source_id, unit.replicate)}
    bare = bare_snapshot(unit)
    return bare | {"cells": [cell | _accounts(rows[cell["condition"]]) for cell in bare["cells"]]}


def bare_snapshot(unit: UnitEvidence) -> dict[str, Any]:
    """The same without what a ledger adds to each cell."""
    return _identity(unit) | {
        "source_text_sha256": unit.source_text_sha256,
        "max_new_tokens": unit.max_new_tokens,
        "cells": [{name: msgspec.to_builtins(getattr(cell, name)) for name in CELL_FIELDS} for cell in unit.cells],
        **({"run_seed": unit.sampling.seeds.run} if isinstance(unit, SampledEvidence) else {}),
    }


def trace_snapshot(unit: TraceEvidence) -> dict[str, Any]:
    """What a trace gives wherever it is made: tokens, names and shapes, and the embedding, which is a lookup.

    Every later tensor depends on the machine's arithmetic: `tensor_snapshot` has those.
    """
    return _identity(unit) | {
        "source_text_sha256": unit.source_text_sha256,
        "content_token_ids_sha256": unit.content_token_ids_sha256,
        "target_tokens": unit.target_tokens,
        "crossing_tokens": unit.crossing_tokens,
        "crossing_cells": unit.crossing_cells,
        "cells": [
            {
                "condition": cell.condition,
                "prompt_sha256": cell.prompt_sha256,
                "target": msgspec.to_builtins(cell.target),
                "embedding_sha256": _scopes(one for one in cell.hidden if one.stage == EMBEDDING).get(EMBEDDING),
                "shapes": {one.stage: list(one.full.shape) for one in cell.hidden},
                "top_k": {one.gate: one.full.top_k for one in cell.gates},
            }
            for cell in unit.cells
        ],
    }


def tensor_snapshot(unit: TraceEvidence) -> dict[str, Any]:
    """Digests of a trace's tensors, [target, full] by stage and gate, and of its statistics.

    They belong to one environment and placement: the frozen environment lies beside them.
    """
    return _identity(unit) | {
        "placement_sha256": unit.placement_sha256,
        "cells": [
            {
                "condition": cell.condition,
                "hidden_sha256": _scopes(cell.hidden),
                "routes_sha256": {one.gate: [one.target.routes_sha256, one.full.routes_sha256] for one in cell.gates},
                "weights_sha256": {
                    one.gate: [one.target.weights_sha256, one.full.weights_sha256] for one in cell.gates
                },
                "record_sha256": digest(cell),
            }
            for cell in unit.cells
        ],
        "edges_sha256": {edge.edge: digest(edge) for edge in unit.edges},
    }


def _scopes(stages: Iterable[HiddenStage]) -> dict[str, list[str]]:
    return {one.stage: [one.target.sha256, one.full.sha256] for one in stages}


def verdict_snapshot(unit: UnitEvidence, ledger: AnyLedger, executions: Mapping[str, Execution]) -> dict[str, Any]:
    """The verdicts on a unit's programs as plain data: outcome, digests of program, task and tests.

    Image, checker and limits aren't in it: another machine's image must give the same verdicts.
    """
    identity = (unit.source_id, unit.replicate)
    found = [row for row in ledger.cells if isinstance(row, AccountedRow | TaskRow)]
    rows = {row.condition: row for row in found if (row.source_id, row.replicate) == identity}
    made = [
        (row, execution_of(unit, row.condition, executions, said=_executed_by(row)))
        for row in (rows[cell.condition] for cell in unit.cells)
    ]
    return _identity(unit) | {"cells": [_verdict(row, execution) for row, execution in made]}


def _identity(unit: AnyUnit) -> dict[str, Any]:
    return {
        "schema": 1,
        "protocol_digest": unit.protocol_digest,
        "domain": unit.domain,
        "index": unit.index,
        "source_id": unit.source_id,
        "replicate": unit.replicate,
    }


def _accounts(row: CellRow | AccountedRow | TaskRow) -> dict[str, Any]:
    if isinstance(row, CellRow):
        return {"number": msgspec.to_builtins(row.number), "syntax": msgspec.to_builtins(row.syntax)}
    if isinstance(row, TaskRow):
        return _task(row)
    left_out = OF_VERDICT if _follows_verdict(row) else ()
    named = [
        name for name in (*ACCOUNTS, *(("baseline",) if isinstance(row, CompletionRow) else ())) if name not in left_out
    ]
    accounts: dict[str, Any] = {name: msgspec.to_builtins(getattr(row, name)) for name in named}
    accounts |= {"answer": msgspec.to_builtins(row.answer)} if isinstance(row, StudyRow) else {}
    accounts |= _consumed(row.tape) if isinstance(row, TapedStudyRow) else {}
    program = row.code.program if isinstance(row.code, CodeAccount) else row.code
    return accounts | {"program": msgspec.to_builtins(program)}


def _task(row: TaskRow) -> dict[str, Any]:
    """A task's accounts but for its verdict, and what it consumed; distances from CDF edges are the machine's own."""
    program = row.code.program if isinstance(row.code, TaskCode) else row.code
    return {
        "stop": row.stop,
        "numeric": msgspec.to_builtins(row.numeric),
        "program": msgspec.to_builtins(program),
        **_consumed(row.tape),
    }


def _consumed(tape: TapeFacts) -> dict[str, Any]:
    return {"consumed": {name: getattr(tape, name) for name in TAPE_FIELDS}}


def _follows_verdict(row: AccountedRow) -> bool:
    """Whether a program's terminal, and so its class, depend on its tests: under terminal-r07, not under terminal-r05.

    A tier that executes nothing must still give the frozen cells, so such accounts stand with the verdicts.
    """
    return isinstance(row.code, CodeAccount) and not isinstance(row, CompletionRow | StudyRow)


def _executed_by(row: AccountedRow | TaskRow) -> str:
    """The execution that gave the row's verdict, by its digest; empty where none did."""
    if isinstance(row, TaskRow):
        execution = row.code.execution if isinstance(row.code, TaskCode) else row.code
        return execution.execution_sha256 if isinstance(execution, TaskExecution) else ""
    verdict = row.code.verdict if isinstance(row.code, CodeAccount) else row.code
    return verdict.execution_sha256 if isinstance(verdict, Executed) else ""


def _verdict(row: AccountedRow | TaskRow, execution: Execution | None) -> dict[str, Any]:
    verdict = row.code.verdict if isinstance(row.code, CodeAccount | TaskCode) else row.code
    plain = msgspec.to_builtins(verdict)
    plain.pop("execution_sha256", None)
    if execution is not None:
        plain |= {name: getattr(execution.evidence, name) for name in VERDICT_FIELDS}
    if isinstance(row, TaskRow):
        return {"condition": row.condition, "verdict": plain}
    accounts = {name: msgspec.to_builtins(getattr(row, name)) for name in OF_VERDICT if _follows_verdict(row)}
    return {"condition": row.condition, "verdict": plain} | accounts


def snapshot_bytes(content: dict[str, Any]) -> bytes:
    """ASCII JSON, sorted keys, one line a field; a list of numbers stays on its line."""
    return (_lines(content, 0) + "\n").encode("ascii")


def snapshot_sha256(content: dict[str, Any]) -> str:
    """SHA-256 of the snapshot's bytes."""
    return sha256_hex(snapshot_bytes(content))


def origins_of(processes: Iterable[ProcessIdentity]) -> tuple[str, ...]:
    """A SHA-256 for each model load that made a run, sorted: units share one only if they are of one run."""
    return tuple(sorted({sha256_hex(process.model_load_id.encode()) for process in processes}))


def containers_of(executions: Iterable[Execution]) -> tuple[str, ...]:
    """A SHA-256 for each container that gave a verdict, sorted: only copied executions share one."""
    return tuple(sorted({sha256_hex(one.observation.container.encode()) for one in executions}))


def _lines(value: Any, depth: int) -> str:
    pad, inner = " " * depth, " " * (depth + 1)
    if isinstance(value, dict) and value:
        rows = [f"{inner}{json.dumps(name)}: {_lines(value[name], depth + 1)}" for name in sorted(value)]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        rows = [f"{inner}{_lines(one, depth + 1)}" for one in value]
        return "[\n" + ",\n".join(rows) + f"\n{pad}]"
    return json.dumps(value, sort_keys=True)
