"""What a protocol registers about sampling under tapes (R08), and what a unit drawn under one leaves.

A replicate of such a protocol is a tape. The conditions of a unit read the same u_t in the same step, each for its own
distribution: shared is the place on the probability scale, not the token.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.evaluation import CodeRule, NumericRule
from harness.records.run import AssembledRun, CodeTask, UnitEvidence, UnitObservation
from harness.records.tapes import RowTape, SamplerContract


class RegisteredTape(Record):
    """A tape by its label, which is a replicate of the grids; its digest and display seed follow from registered ID."""

    label: str
    display_seed: int
    sha256: str


class TapeRegister(Record):
    """The tapes in order. `origin`: the document publishes them, or they are ours."""

    rule: Literal["tape-r08"]
    origin: Literal["published", "ours"]
    tapes: tuple[RegisteredTape, ...]


class TapedContract(Record):
    """How tokens are drawn (R08 2 and 4): the project's own loop over fixed rows, and the registered sampler.

    `finished_rows`: after its EOS a row is fed PAD with mask 0 while the others go on. `generator_seed`: every
    generator is set to it before each unit, and nothing may draw from any of them.
    """

    strategy: Literal["tape"]
    pairing: Literal["shared uniform numbers"]
    finished_rows: Literal["pad_masked"]
    use_cache: bool
    cache: Literal["dynamic", "fixed"]
    rows_per_batch: int
    sampler: SamplerContract
    register: TapeRegister
    generator_seed: int
    official_temperature: float
    official_top_p: float


class GridBlock(Record):
    """Part of a grid: these ranks in each domain under these replicates. Statistics never pool two roles."""

    role: Literal["primary", "diagnostic", "check"]
    indices: tuple[int, ...]
    replicates: tuple[str, ...]


class TaskEvaluators(Record):
    """Versions of the evaluators of a task ledger. There is no terminal rule in R08."""

    numeric: NumericRule
    code: CodeRule
    strict: Literal["strict-r08"]
    similarity: Literal["levenshtein-max"]


class TaskContrast(Record):
    """Right minus left within one task under one tape (R08 7.1)."""

    id: str
    left: str
    right: str


class SecondaryContrast(Record):
    """(sum over `plus` - sum over `minus`) / `divisor` within a task: descriptive, never in place of a primary one."""

    id: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    divisor: int


class BootstrapRule(Record):
    """Resampling of a domain's tasks (R08 7.2). `name` stands wherever a band is shown.

    `generator`: numpy's RandomState(seed).randint(0, n, size=(resamples, n)), made afresh for each domain; one matrix
    for all conditions and outcomes. `percentiles` by numpy's linear method.
    """

    name: str
    generator: Literal["numpy-randomstate-randint"]
    seed: int
    resamples: int
    percentiles: tuple[float, ...]
    method: Literal["linear"]


class TapedBatch(Record):
    """How one unit was drawn. `columns` of the logits; `rows`: each row's account, in row order.

    `cache`: class of the cache that the model gave back, `cached`: positions that it held after the last forward.
    """

    label: str
    sha256: str
    sampler: SamplerContract
    columns: int
    cache: str
    cached: int
    rows: tuple[RowTape, ...]


class TapedEvidence(UnitEvidence):
    """A unit whose tokens were drawn under a tape. `checks.argmax` counts row steps that drew the argmax."""

    tape: TapedBatch


class TapedJournal(Record):
    """journal/<unit>.json of a unit under a tape: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: TapedEvidence
    evidence_sha256: str
    observation: UnitObservation


class RunBlock(GridBlock):
    """A block of the run's grid with what it gave. No two blocks share a cell, and no count is over both."""

    units: int
    cells: int


class LoopCell(Record):
    """One cell of both programs: tokens that they have in common from the start, and whether all are the same."""

    source_id: str
    condition: str
    common_prefix: int
    ids_exact: bool


class LoopComparison(Record):
    """loop.json of a smoke run: transformers' `generate` and the own loop with argmax, greedy over the same cells.

    Both sides by the SHA-256 of their run.json. `exact` of `cells`.
    """

    schema: Literal[1]
    generate_run_sha256: str
    own_run_sha256: str
    exact: int
    cells: tuple[LoopCell, ...]


class TapedRun(AssembledRun):
    """run.json of a task protocol: its blocks, gold numbers and code tasks are part of it; it has no baseline."""

    blocks: tuple[RunBlock, ...]
    gold: dict[str, str]
    tasks: dict[str, CodeTask]
    units: tuple[TapedEvidence, ...]
