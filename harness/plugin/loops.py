"""The two parts of a smoke run that show how its loop decodes (R08 4): made in fresh processes, then compared."""

from harness.checks.taped_loop import LOOP, PARTS, LoopEvidence, loop_comparison
from harness.evidence import RunEvidence
from harness.journal.folder import write_once
from harness.plugin.parts import Wanted, make_part
from harness.records.protocol import TapedProtocol
from harness.run.progress import Sink
from harness.run.request import Request


def make_loop(first: RunEvidence, request: Request, show: Sink) -> LoopEvidence:
    """Both parts over the first tape's smoke cells, each by its program, and loop.json beside the run's records."""
    protocol = first.loaded.protocol
    if not isinstance(protocol, TapedProtocol):
        raise RuntimeError(f"{protocol.id} decodes in no loop of its own")
    grid = protocol.same_process_replay.grid
    generate, pids = make_part(first, request, Wanted("generate", PARTS["generate"], grid), show)
    own, others = make_part(first, request, Wanted("own_loop", PARTS["own_loop"], grid), show)
    with first.folder.lock("part-loop"):
        write_once(first.folder.file(LOOP), loop_comparison(generate, own), what="loop comparison")
    return LoopEvidence(first, generate, own, (pids, others))
