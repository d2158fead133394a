"""What a protocol registers about sampling, and what a sampled batch leaves beyond every unit's evidence.

The conditions of a batch share its seed and its calls, and each row consumes its own part of one stream: the name for
that is `batch-seed aligned` (R07 4). No draw is shared between two rows.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.evaluation import CodeRule, NumericRule
from harness.records.run import AssembledRun, Baseline, CodeTask, UnitEvidence, UnitObservation

SeedRule = Literal["run-seed-r07"]
TorchGenerator = Literal["torch_cpu", "torch_cuda"]


class BaseSeed(Record):
    """A replicate's base seed, an unsigned integer of 32 bits, and the index that it is derived from."""

    replicate: str
    index: int
    seed: int


class SeedContract(Record):
    """Base seeds in the order of the replicates. `origin`: the document publishes them, or they are ours."""

    rule: SeedRule
    origin: Literal["published", "ours"]
    base_seeds: tuple[BaseSeed, ...]


class SampledContract(Record):
    """The effective generation config of a sampled protocol, passed explicitly and read back from each call.

    `pairing` is what the rows of a batch may be called. One call draws for all `rows_per_batch` rows; a batch is never
    split and its rows are never reordered (R07 10).
    """

    strategy: Literal["sample"]
    pairing: Literal["batch-seed aligned"]
    do_sample: bool
    num_beams: int
    use_cache: bool
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    cache: Literal["dynamic"]
    rows_per_batch: int
    seeds: SeedContract
    official_temperature: float
    official_top_p: float


class SamplingEvaluators(Record):
    """Versions of the evaluators of a sampled ledger."""

    numeric: NumericRule
    code: CodeRule
    terminal: Literal["terminal-r07"]
    similarity: Literal["levenshtein-max"]


class SameProcessRule(Record):
    """One replicate of the smoke grid, drawn again by the process that drew it, over `fields` (R07 7.1)."""

    grid: str
    replicate: str
    fields: tuple[str, ...]


class Contrast(Record):
    """(sum of the cell means of `plus` - sum of those of `minus`) / `divisor`, within one source (R07 9.3)."""

    id: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    divisor: int


class CarriedDirection(Record):
    """A direction observed earlier: the sign of a contrast of one measure, to be reported by source (R07 9.5)."""

    id: str
    contrast: str
    measure: Literal["natural_eos_rate", "generated_length"]
    direction: Literal["positive", "negative"]


class BatchSeeds(Record):
    """The seeds of one batch. `run` follows from the registered ID, `base` and the source, as 16 hex digits."""

    rule: SeedRule
    base: int
    run: str


class Processor(Record):
    """What changed the scores before a draw: its class, and its plain attributes by name, as Python writes them."""

    name: str
    values: dict[str, str]


class SampledBatch(Record):
    """How one batch was drawn, read back from the call itself.

    `generator`: the generator that the draws came from. Each of `draws` calls drew for float [rows, columns];
    exactly so many lead from the state before the batch to the state after it. `parameters`: the call's generation
    config as JSON text. `processors`: what changed the scores before a draw, in order. Of the row steps that were
    checked, `drawable` emitted an ID that had a probability above 0 after the warpers, and `several` had more than one
    such ID.
    """

    seeds: BatchSeeds
    generator: TorchGenerator
    rows: int
    columns: int
    draws: int
    parameters: dict[str, str]
    processors: tuple[Processor, ...]
    drawable: int
    several: int


class SampledEvidence(UnitEvidence):
    """A unit whose tokens were drawn. `checks.argmax` counts row steps that drew the argmax: nothing requires it."""

    sampling: SampledBatch


class SampledJournal(Record):
    """journal/<unit>.json of a sampled unit: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: SampledEvidence
    evidence_sha256: str
    observation: UnitObservation


class SampledRun(AssembledRun):
    """run.json of a sampling protocol: gold numbers, the baseline's cells and the code tasks are part of it."""

    gold: dict[str, str]
    baseline: Baseline
    tasks: dict[str, CodeTask]
    units: tuple[SampledEvidence, ...]
