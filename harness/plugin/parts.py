"""A part of a smoke run that another program makes of its cells: by a fresh process, under a derived protocol."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.evidence import RunEvidence
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_generation
from harness.protocols.loops import part_protocol
from harness.records.protocol import DrawingProgram, LoopProgram
from harness.run.child import replace_request, run_apart
from harness.run.progress import Sink
from harness.run.request import Request

Note = Callable[[RunFolder], None]


def nothing_more(part: RunFolder) -> None:
    """A part's books are read against nothing but its journals."""
    del part


@dataclass(frozen=True, slots=True)
class Wanted:
    """What makes the part, its folder's name, and over which grid of the run's protocol."""

    program: LoopProgram | DrawingProgram
    name: str
    grid: str


def make_part(
    first: RunEvidence, request: Request, wanted: Wanted, show: Sink, *, note: Note = nothing_more
) -> tuple[RunEvidence, tuple[int, ...]]:
    """The part, and the children that made it. `note`: writes what its books are read against, before they close."""
    derived, name = part_protocol(first.loaded, wanted.program), wanted.name
    part, run_id = first.folder.part(name), f"{first.spec.run_id}/{name}"
    own = replace_request(request, grid=wanted.grid, run_id=run_id, decoding=wanted.program)
    with first.folder.lock(f"part-{name}"):
        show(f"{first.loaded.protocol.id} {name}: a fresh process over grid {wanted.grid}")
        report = run_apart(own, part, forbidden=first.folder.path)
        show("")
        note(part)
        close_generation(part, derived)
    return replace(first, loaded=derived, folder=part, stopped=None, unjudged=None), report.pids
