"""Tasks under tapes by the executor over a fixed cache: what a protocol registers of it, and what a unit leaves.

An execution contract of its own: over a whole width of columns scores round otherwise than over a cache that grows.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.taped import TapedBatch, TapedContract, TapedEvidence, TapedJournal, TapedRun

Kernel = Literal["experts", "attention", "norms", "all_experts"]
TRITON = frozenset({"experts", "attention", "norms"})
Named = Literal["none", "generate", "own_loop"]
Comparing = Literal["uncaptured", "generate", "own_loop"]


class GraphExecution(Record):
    """`[decode.graph]`: how steps are executed, and the contract whose tokens theirs must be on the smoke grid.

    `step`: the model's own modules, or the lean step, of which Triton computes `kernels`; `all_experts` is torch's, in
    two products, on any device. `look`: steps after which the host looks whether all rows have ended. `ended_rows`: a
    row that ended stays in its batch until all did.
    """

    executor: Literal["graph"]
    step: Literal["modules", "lean"]
    kernels: tuple[Kernel, ...]
    look: int
    ended_rows: Literal["kept"]
    against: Named


class GraphContract(TapedContract):
    """A decoding contract under a tape whose steps are executed over a cache that has all its columns from the start.

    The sampler is inside the step, so that its device is the execution device.
    """

    cache: Literal["fixed"]
    graph: GraphExecution


class GraphRan(Record):
    """How a unit's steps really ran. `step`: the functions and kernels it was made of, as the step names itself.

    `captured`: steps after the prompt's were replayed from a captured graph, `replays` of them, some of which may lie
    beyond the rows' ends.
    """

    step: str
    captured: bool
    replays: int
    look: int


class GraphBatch(TapedBatch):
    """How one unit was drawn, and how its steps ran."""

    ran: GraphRan


class GraphEvidence(TapedEvidence):
    """A unit whose tokens were drawn under a tape inside the executed step."""

    tape: GraphBatch


class GraphJournal(TapedJournal):
    """journal/<unit>.json of such a unit."""

    evidence: GraphEvidence


class GraphRun(TapedRun):
    """run.json of such a protocol: that of a task protocol over its units."""

    units: tuple[GraphEvidence, ...]


class GraphCell(Record):
    """One cell by two programs: tokens that they have in common from the start, and whether all are the same."""

    source_id: str
    replicate: str
    condition: str
    common_prefix: int
    ids_exact: bool


class Compared(Record, tag_field="state", tag="compared"):
    """Two sides by the SHA-256 of their run.json, cell by cell; `exact` of `cells`."""

    first_run_sha256: str
    second_run_sha256: str
    exact: int
    cells: tuple[GraphCell, ...]


class NotCompared(Record, tag_field="state", tag="not_compared"):
    """No two sides, and why: nothing was captured, or no contract is named. Nothing is held by it."""

    reason: str


class GraphComparison(Record):
    """graph.json of a smoke run. `captured`: the run's captured cells and the same step's uncaptured.

    `against`: the executor's cells and those of the contract that the protocol names.
    """

    schema: Literal[1]
    device: Literal["cpu", "cuda"]
    captured: Compared | NotCompared
    named: Named
    against: Compared | NotCompared
