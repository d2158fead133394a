"""The two parts of a smoke run that show how its loop decodes (R08 4): made in fresh processes, then compared."""

from dataclasses import replace

from harness.checks.taped_loop import LOOP, PARTS, LoopEvidence, loop_comparison
from harness.evidence import RunEvidence
from harness.journal.folder import write_once
from harness.ledgers.close import close_generation
from harness.protocols.loops import loop_check
from harness.records.protocol import LoopProgram, TaskCrnProtocol
from harness.run.child import replace_request, run_apart
from harness.run.progress import Sink
from harness.run.request import Request


def make_loop(first: RunEvidence, request: Request, show: Sink) -> LoopEvidence:
    """Both parts over the first tape's smoke cells, each by its program, and loop.json beside the run's records."""
    generate, pids = _part(first, request, "generate", show)
    own, others = _part(first, request, "own_loop", show)
    with first.folder.lock("part-loop"):
        write_once(first.folder.file(LOOP), loop_comparison(generate, own), what="loop comparison")
    return LoopEvidence(first, generate, own, (pids, others))


def _part(
    first: RunEvidence, request: Request, program: LoopProgram, show: Sink
) -> tuple[RunEvidence, tuple[int, ...]]:
    protocol, name = first.loaded.protocol, PARTS[program]
    if not isinstance(protocol, TaskCrnProtocol):
        raise RuntimeError(f"{protocol.id} decodes in no loop of its own")
    derived, part, grid = loop_check(first.loaded, program), first.folder.part(name), protocol.same_process_replay.grid
    own = replace_request(request, grid=grid, run_id=f"{first.spec.run_id}/{name}", decoding=program)
    with first.folder.lock(f"part-{name}"):
        show(f"{protocol.id} {name}: a fresh process over grid {grid}")
        report = run_apart(own, part, forbidden=first.folder.path)
        show("")
        close_generation(part, derived)
    return replace(first, loaded=derived, folder=part, stopped=None, unjudged=None), report.pids
