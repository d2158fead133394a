"""The parts of a smoke run that show what its executor's tokens are: made in fresh processes, then compared."""

from harness.checks.taped_graph import DRAWN, GRAPH, PARTS, GraphSides, Side, graph_comparison, programs_of
from harness.evidence import RunEvidence
from harness.journal.folder import write_once
from harness.plugin.parts import Note, Wanted, make_part, nothing_more
from harness.protocols.loops import graph_task
from harness.run.progress import Sink
from harness.run.request import Request


def make_graph(first: RunEvidence, request: Request, show: Sink, note: Note) -> GraphSides:
    """Every part that the protocol's comparisons need, and graph.json beside the run's records.

    Drawn parts are over the run's grid, greedy ones over its first tape. `note`: writes what a drawn part's books are
    read against.
    """
    protocol = graph_task(first.loaded)
    parts = {}
    for program in programs_of(protocol):
        drawn = program in DRAWN
        grid = first.spec.grid if drawn else protocol.same_process_replay.grid
        wanted = Wanted(program, PARTS[program], grid)
        parts[program] = Side(*make_part(first, request, wanted, show, note=note if drawn else nothing_more))
    sides = GraphSides(first, parts)
    with first.folder.lock("part-graph"):
        write_once(first.folder.file(GRAPH), graph_comparison(sides), what="graph comparison")
    return sides
