"""What a run leaves: units and their cells, the environment and placement they were made in, failures.

Evidence never holds a time, a path, a host or a worker count; those are observations and stand apart.
"""

from typing import Literal

from harness.records.base import Record


class Edit(Record):
    """One prompt ID replaced: 0-based position in the unpadded prompt."""

    position: int
    official: int
    replaced: int


class PromptRow(Record):
    """One row of a batch as it was given to the model: unpadded IDs and their hash, padding in tokens, edits."""

    condition: str
    prompt_ids: tuple[int, ...]
    prompt_sha256: str
    left_padding: int
    edits: tuple[Edit, ...]


class CellRecord(PromptRow):
    """A row and what was generated from it. `generated_ids` runs up to and including the first EOS."""

    generated_ids: tuple[int, ...]
    generated_sha256: str
    text_escaped: str
    text_sha256: str
    eos: bool
    truncated: bool
    length: int


class StepChecks(Record):
    """Checked in every step of every row not yet finished: logits finite, emitted ID = argmax."""

    steps: int
    rows_checked: int
    finite: int
    argmax: int


class NoDevice(Record, tag_field="state", tag="no_device"):
    """There is no such device here. Compares equal to itself and keeps its place in every denominator."""


class StateHash(Record, tag_field="state", tag="hashed"):
    """SHA-256 of a generator's state bytes."""

    sha256: str


class RngStates(Record):
    """Python `random`, NumPy's global generator, torch CPU and torch CUDA (all devices)."""

    python: StateHash
    numpy: StateHash
    torch_cpu: StateHash
    torch_cuda: StateHash | NoDevice


class BatchEvidence(Record):
    """One batch, whatever was done with it: a source x a replicate, where it was made, the generators around it."""

    protocol_digest: str
    environment_sha256: str
    placement_sha256: str
    grid: str
    domain: str
    index: int
    source_id: str
    source_text_sha256: str
    replicate: str
    rng_before: RngStates
    rng_after: RngStates


class UnitEvidence(BatchEvidence):
    """A batch that was generated from, its rows in the protocol's order of conditions."""

    max_new_tokens: int
    cells: tuple[CellRecord, ...]
    checks: StepChecks


class ProcessIdentity(Record):
    """The process that made a unit: PID, its start (Unix us) and the load of its model (Unix us, random token).

    `str_hash`: Python's hash of one fixed text, 64 bits in hex. It tells two hash seeds apart, also random ones.
    """

    pid: int
    started_us: int
    model_loaded_us: int
    model_load_id: str
    str_hash: str


class UnitObservation(Record):
    """How a unit was made; never evidence. Durations in ns, moments in Unix us (RFC 8785 integers end at 2**53)."""

    process: ProcessIdentity
    wall_ns: int
    tokens: int
    finished_us: int


class Journal(Record):
    """journal/<unit>.json: evidence with its digest, and apart from it the observation."""

    schema: Literal[1]
    evidence: UnitEvidence
    evidence_sha256: str
    observation: UnitObservation


class Failure(Record):
    """failures/<unit>.json: a unit that didn't return. `kind` is one of the infrastructure's words, not a verdict."""

    schema: Literal[1]
    protocol_digest: str
    source_id: str
    replicate: str
    kind: Literal["out_of_memory", "non_finite", "not_argmax", "not_drawable", "foreign_draw", "exception", "storage"]
    message: str
    process: ProcessIdentity


class Deviation(Record):
    """One way in which a port isn't the registered run."""

    field: str
    registered: str
    actual: str


class RunSpec(Record):
    """spec.json: what was asked for, fixed before the first unit. A resumed run must match it."""

    schema: Literal[1]
    run_id: str
    protocol: str
    registered_id: str
    protocol_digest: str
    tier: str
    grid: str
    placement: str
    domains: tuple[str, ...]
    port: bool
    deviations: tuple[Deviation, ...]
    threads: int


class Environment(Record):
    """environment.json: what must match between runs that are compared. Read back after it was set."""

    packages: dict[str, str]
    python: str
    machine: str
    cpu: str
    cpu_capability: str
    gpus: tuple[str, ...]
    cuda: str
    dtype: str
    attention: str
    experts: str
    threads: int
    interop_threads: int
    deterministic_algorithms: bool
    float32_matmul_precision: str
    kernels: dict[str, str]
    generation_config: dict[str, str]
    checkpoint: dict[str, str]


class PlacementFacts(Record):
    """Where the parameters really are: `device_map` as dispatched, parameter bytes by device, modules offloaded."""

    id: str
    dispatched: bool
    device_map: dict[str, str]
    parameter_bytes: dict[str, int]
    offloaded: tuple[str, ...]
    offloaded_moe_layers: tuple[int, ...]


class AssembledRun(Record):
    """run.json: the assembled evidence. Its SHA-256 is the run's name in every later record."""

    schema: Literal[1]
    protocol: str
    registered_id: str
    protocol_digest: str
    result_name: str
    grid: str
    port: bool
    deviations: tuple[Deviation, ...]
    domains: tuple[str, ...]
    environment_sha256: str
    placement: PlacementFacts


class Run(AssembledRun):
    """run.json of a protocol that generates: the final numbers of its sources, and its units in the grid's order."""

    gold: dict[str, str]
    units: tuple[UnitEvidence, ...]


class BaselineCell(Record):
    """A cell of the baseline run by its identity: what this run's prompts and first tokens are held against."""

    source_id: str
    replicate: str
    condition: str
    prompt_sha256: str
    generated_ids: tuple[int, ...]
    eos: bool
    truncated: bool
    length: int


class Baseline(Record):
    """baseline.json: the earlier run that this one continues no output of, but whose cells it must begin with.

    `cells` of this run's units, in their order; `max_new_tokens` is the budget that they were cut at.
    """

    schema: Literal[1]
    protocol: str
    protocol_digest: str
    run_sha256: str
    environment_sha256: str
    port: bool
    max_new_tokens: int
    cells: tuple[BaselineCell, ...]


class CodeTask(Record):
    """What a program of a source is taken for: the prompt as the input holds it, its entry point, its tests' digest."""

    prompt: str
    entry_point: str
    tests_sha256: str


class CompletionRun(Run):
    """run.json of a completion protocol: the baseline's cells and the code tasks, by source ID, are part of it."""

    baseline: Baseline
    tasks: dict[str, CodeTask]
