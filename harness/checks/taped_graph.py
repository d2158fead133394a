"""The executor over a fixed cache against what its contract is held to, cell by cell over the smoke grid.

On a CUDA device, always: the run's captured cells against the same step uncaptured, by a process made apart. And
the contract that the protocol names: the own loop under the same tapes and sampler, or `generate`, greedily, with the
argmax in the sampler's place. On the CPU nothing is captured: the run is the uncaptured step, it is never compared with
itself, and graph.json says that nothing was.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.checks.generation import NEUTRAL, registered_config, registered_graph, registered_taped
from harness.checks.program_parts import holds_alone, made_apart, prompt_of_the_run, same_tokens
from harness.checks.taped_run import taped_contract
from harness.compare import common_prefix
from harness.evidence import Differences, RunEvidence, cell_name, differs
from harness.journal.folder import read_record
from harness.protocols.check_graph import comparisons
from harness.protocols.grids import RowKey
from harness.protocols.loops import graph_task
from harness.records.graph import Compared, Comparing, GraphCell, GraphComparison, NotCompared
from harness.records.protocol import (
    DrawingProgram,
    GraphCheckProtocol,
    GraphTaskProtocol,
    LoopCheckProtocol,
    LoopProgram,
    TaskCrnProtocol,
)
from harness.records.run import UnitEvidence

GRAPH = "graph.json"
PARTS: dict[DrawingProgram | LoopProgram, str] = {
    "uncaptured": "graph_uncaptured",
    "drawn_loop": "graph_loop",
    "graph": "graph_argmax",
    "generate": "graph_generate",
}
DRAWN: tuple[DrawingProgram, ...] = ("uncaptured", "drawn_loop")  # over the run's grid; the others over its first tape
# The parts that a comparison needs; where it is one, the run itself is the first side.
SIDES: dict[Comparing, tuple[DrawingProgram | LoopProgram, ...]] = {
    "uncaptured": ("uncaptured",),
    "own_loop": ("drawn_loop",),
    "generate": ("graph", "generate"),
}
NOTHING_CAPTURED = "the execution device is the CPU: nothing was captured, and nothing is said of a captured step"
NOT_NAMED = "the protocol names no other contract"


def programs_of(protocol: GraphTaskProtocol) -> tuple[DrawingProgram | LoopProgram, ...]:
    """The programs whose parts the comparisons of the protocol need, in their order."""
    return tuple(program for one in comparisons(protocol) for program in SIDES[one])


@dataclass(frozen=True)
class Side:
    """A part of the smoke run, with the children that the parent started for it."""

    evidence: RunEvidence
    pids: tuple[int, ...]


@dataclass(frozen=True)
class GraphSides:
    """A smoke run and the parts that were made of its cells, by program."""

    run: RunEvidence
    parts: dict[DrawingProgram | LoopProgram, Side]


def graph_equivalence(evidence: GraphSides, row: RowKey) -> Differences:
    """Ours: in each comparison that the protocol owes, both sides hold by themselves and give the same tokens."""
    owed = comparisons(_protocol(evidence))
    if not owed:
        return (differs(f"{cell_name(row)} comparisons", "one or more", "none"),)
    return (*_captured_as_owed(evidence, row), *(line for one in owed for line in _compared(evidence, one, row)))


def graph_recorded(evidence: GraphSides, row: RowKey) -> Differences:
    """Ours: graph.json says of each comparison what its sides give, or why there is none."""
    stored = read_record(evidence.run.folder.file(GRAPH), GraphComparison, what="graph comparison")
    again = graph_comparison(evidence)
    found = [line for one in comparisons(_protocol(evidence)) for line in _made_apart(evidence, one, row)]
    return (*found, *(() if stored == again else (differs(f"{row.item} graph.json", again, stored),)))


def graph_comparison(evidence: GraphSides) -> GraphComparison:
    """Each comparison over the cells that its parts have, in their grid's order."""
    protocol = _protocol(evidence)
    named, owed = protocol.decode.graph.against, comparisons(protocol)
    return GraphComparison(
        schema=1,
        device=protocol.execution.device,
        captured=_comparison(evidence, "uncaptured") if "uncaptured" in owed else NotCompared(reason=NOTHING_CAPTURED),
        named=named,
        against=NotCompared(reason=NOT_NAMED) if named == "none" else _comparison(evidence, named),
    )


def _comparison(evidence: GraphSides, comparing: Comparing) -> Compared:
    first, second = _sides(evidence, comparing)
    cells = []
    for key in second.keys:
        for condition in second.loaded.protocol.conditions:
            row = RowKey(key, condition.id)
            one, other = first.cell(row).generated_ids, second.cell(row).generated_ids
            cells.append(
                GraphCell(
                    source_id=key.source_id,
                    replicate=key.replicate,
                    condition=condition.id,
                    common_prefix=common_prefix(one, other),
                    ids_exact=one == other,
                )
            )
    return Compared(
        first_run_sha256=first.run_sha256,
        second_run_sha256=second.run_sha256,
        exact=sum(cell.ids_exact for cell in cells),
        cells=tuple(cells),
    )


def _captured_as_owed(evidence: GraphSides, row: RowKey) -> Iterator[str]:
    """The run's own contract as read back: captured exactly where the registered device is a CUDA one; its unit too."""
    protocol = _protocol(evidence)
    yield from _contract(evidence.run, captured=protocol.execution.device == "cuda", row=row)
    yield from taped_contract(evidence.run, RowKey(row.unit, ""))


def _compared(evidence: GraphSides, comparing: Comparing, row: RowKey) -> Differences:
    first, second = _sides(evidence, comparing)
    at = _row_of(evidence, comparing, row)
    one, other = first.cell(at), second.cell(at)
    found = [*_made_apart(evidence, comparing, row), *_executed(first, comparing, row)]
    for side in (first, second):
        if side is not evidence.run:
            found += [*holds_alone(side, at), *prompt_of_the_run(evidence.run, side, row, at)]
    return (*found, *same_tokens(one, other, f"{comparing}: {cell_name(at)}"))


def _executed(first: RunEvidence, comparing: Comparing, row: RowKey) -> Differences:
    """Where every row ended at the prompt's own forward no step was executed, and equal tokens say nothing of one."""
    steps = sum(unit.checks.steps - 1 for unit in first.run.units if isinstance(unit, UnitEvidence))
    return () if steps else (differs(f"{comparing}: {cell_name(row)} steps executed", "one or more", steps),)


def _sides(evidence: GraphSides, comparing: Comparing) -> tuple[RunEvidence, RunEvidence]:
    parts = [evidence.parts[program].evidence for program in SIDES[comparing]]
    return (evidence.run, parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _row_of(evidence: GraphSides, comparing: Comparing, row: RowKey) -> RowKey:
    """The row in the comparison's own grid: greedy cells are the same under every tape, and decoded under one."""
    if comparing != "generate" or row.unit is None:
        return row
    return RowKey(replace(row.unit, replicate=_protocol(evidence).same_process_replay.replicate), row.item)


def _made_apart(evidence: GraphSides, comparing: Comparing, row: RowKey) -> list[str]:
    """Each part by a process of its own that the session started, under the run's protocol, placement, environment."""
    run, protocol, programs = evidence.run, _protocol(evidence), SIDES[comparing]
    parts = [evidence.parts[program] for program in programs]
    sides = [part.evidence for part in parts]
    grid = protocol.same_process_replay.grid if comparing == "generate" else run.spec.grid
    grids = ([grid] * len(sides), [side.run.grid for side in sides])
    pairs = made_apart(run, sides, [part.pids for part in parts], grids=grids)
    found = [differs(f"{comparing}: {cell_name(row)} {name}", one, other) for name, one, other in pairs if one != other]
    captured = protocol.execution.device == "cuda"
    for program, side in zip(programs, sides, strict=True):
        found += _contract(side, captured=captured and program == "graph", row=row)
    return found


def _contract(side: RunEvidence, *, captured: bool, row: RowKey) -> Iterator[str]:
    """What the side decoded by, as read back, is what its program owes and nothing besides; captured or not."""
    effective, wanted = side.environment.generation_config, _wanted(side, captured=captured)
    where = f"{side.spec.run_id.rpartition('/')[2]}: {cell_name(row)}"
    for name, value in wanted.items():
        if effective.get(name) != json.dumps(value):
            yield differs(f"{where} {name}", json.dumps(value), effective.get(name, "not read back"))
    for name in sorted({*effective} - {*wanted}):
        if effective[name] not in NEUTRAL:
            yield differs(f"{where} {name}", "nothing set", effective[name])


def _wanted(side: RunEvidence, *, captured: bool) -> dict[str, object]:
    protocol, ids = side.loaded.protocol, side.loaded.profile.special_ids
    if isinstance(protocol, GraphTaskProtocol):
        graph = registered_graph(protocol.decode.graph, side.environment, captured=captured)
        return registered_taped(protocol.decode, ids) | graph
    if isinstance(protocol, GraphCheckProtocol):
        graph = registered_graph(protocol.graph, side.environment, captured=captured)
        return {"strategy": "argmax", "eos_token_id": ids.eos, "pad_token_id": ids.pad} | graph
    if isinstance(protocol, LoopCheckProtocol):
        return registered_config(protocol.decode, ids)
    if isinstance(protocol, TaskCrnProtocol):
        return registered_taped(protocol.decode, ids)
    raise RuntimeError(f"{protocol.id} is held against no executor")


def _protocol(evidence: GraphSides) -> GraphTaskProtocol:
    return graph_task(evidence.run.loaded)
