"""The parts of a smoke run that show what its executor's tokens are: made in fresh processes, then compared."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.checks.taped_graph import DRAWN, GRAPH, PARTS, SIDES, GraphSides, Side, graph_comparison
from harness.evidence import RunEvidence
from harness.journal.folder import RunFolder, write_once
from harness.ledgers.close import close_generation
from harness.protocols.check_graph import comparisons
from harness.protocols.loops import part_protocol
from harness.records.protocol import DrawingProgram, GraphTaskProtocol, LoopProgram
from harness.run.child import replace_request, run_apart
from harness.run.progress import Sink
from harness.run.request import Request


@dataclass(frozen=True, slots=True)
class Making:
    """What the parts are made with. `note`: writes what a drawn part's books are read against."""

    request: Request
    note: Callable[[RunFolder], None]
    show: Sink


def make_graph(first: RunEvidence, making: Making) -> GraphSides:
    """Every part that the protocol's comparisons need, and graph.json beside the run's records."""
    protocol = first.loaded.protocol
    if not isinstance(protocol, GraphTaskProtocol):
        raise RuntimeError(f"{protocol.id} executes no step over a fixed cache")
    programs = [program for one in comparisons(protocol) for program in SIDES[one]]
    sides = GraphSides(first, {program: _part(first, protocol, program, making) for program in programs})
    with first.folder.lock("part-graph"):
        write_once(first.folder.file(GRAPH), graph_comparison(sides), what="graph comparison")
    return sides


def _part(
    first: RunEvidence, protocol: GraphTaskProtocol, program: DrawingProgram | LoopProgram, making: Making
) -> Side:
    """Drawn under the tapes over the run's grid, or greedily over its first tape."""
    derived, name = part_protocol(first.loaded, program), PARTS[program]
    drawn = program in DRAWN
    part, grid = first.folder.part(name), first.spec.grid if drawn else protocol.same_process_replay.grid
    run_id = f"{first.spec.run_id}/{name}"
    request = replace_request(making.request, grid=grid, run_id=run_id, decoding=program)
    with first.folder.lock(f"part-{name}"):
        making.show(f"{protocol.id} {name}: a fresh process over grid {grid}")
        report = run_apart(request, part, forbidden=first.folder.path)
        making.show("")
        if drawn:
            making.note(part)
        close_generation(part, derived)
    return Side(replace(first, loaded=derived, folder=part, stopped=None, unjudged=None), report.pids)
