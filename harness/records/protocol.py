"""The protocol as a record: everything that can change a token or a count, and what may be concluded from it.

Read from fixtures/protocols/<id>/protocol.toml by `harness.protocol`. No field has a default.
"""

from typing import Literal

from harness.records.base import Record
from harness.records.decoding import DecodeContract, ForwardContract
from harness.records.evaluation import CodeRule, NumericRule
from harness.records.graph import GraphContract, GraphExecution
from harness.records.prompt import Boundary, Condition, Edge, NamedCondition, PromptContract, PromptRules
from harness.records.reaches import Reach, Rows
from harness.records.sampling import CarriedDirection, Contrast, SameProcessRule, SampledContract, SamplingEvaluators
from harness.records.sandbox import SandboxContract
from harness.records.sources import Domain, InputFile, PublishedReference, Selection
from harness.records.study import StudyCondition, StudyEvaluators
from harness.records.taped import (
    BootstrapRule,
    GridBlock,
    SecondaryContrast,
    TapedContract,
    TaskContrast,
    TaskEvaluators,
)

Tier = Literal["smoke", "formal", "replay"]
LoopProgram = Literal["generate", "own_loop", "graph"]
DrawingProgram = Literal["uncaptured", "drawn_loop"]


class ModelPin(Record):
    """The model profile, by folder name under fixtures/models and by the digest of its canonical content."""

    profile: str
    profile_sha256: str


class Execution(Record):
    """How the forward pass is computed. `threads` is set in every process, so worker count can't change a run.

    `experts`: `none` for a dense model, which has none to compute.
    """

    device: Literal["cpu", "cuda"]
    dtype: Literal["float32", "bfloat16"]
    attention: Literal["eager"]
    experts: Literal["eager", "grouped_mm", "remote_code", "none"]
    threads: int
    deterministic_algorithms: bool
    float32_matmul_precision: Literal["highest"]


class Software(Record):
    """`exact`: the packages' versions are pins. `recorded`: they are recorded in the environment and must match a
    smoke record, but no version is registered.
    """

    policy: Literal["exact", "recorded"]
    packages: dict[str, str]


class Placement(Record):
    """Where modules live. Budgets bound resident parameters, not activations or KV. Empty lists: nothing there.

    `auto`: accelerate's device_map=auto under the two budgets; resident and offloaded modules are what it must give.
    `explicit`: the two lists are the map. `single`: the whole model on the execution device.
    `allocator` is PYTORCH_CUDA_ALLOC_CONF, set before torch is loaded; empty: unset.
    """

    id: str
    device_map: Literal["single", "auto", "explicit"]
    gpu_memory: str
    cpu_memory: str
    offload_device: Literal["none", "cpu", "disk"]
    resident: tuple[str, ...]
    offloaded: tuple[str, ...]
    allocator: str


class Grid(Record):
    """`per_domain` sources in rank order x all conditions x `replicates`, each cut at `max_new_tokens`."""

    per_domain: int
    replicates: tuple[str, ...]
    max_new_tokens: int


class ApartRule(Record):
    """Two runs that are made apart on `grid`, under placements `left` and `right`."""

    grid: str
    left: str
    right: str


class PairRule(ApartRule):
    """Two runs that must agree cell by cell over `fields`."""

    fields: tuple[str, ...]


class Variant(Record):
    """A way of running that may not change a token: threads in a process, processes on one run folder."""

    id: str
    threads: int
    workers: int


class Determinism(Record):
    """Row determinism: `grid` under each variant equals the run, over `fields`."""

    grid: str
    fields: tuple[str, ...]
    variants: tuple[Variant, ...]


class GateGrid(Record):
    """Which grid a gate judges in one tier, and its denominator."""

    grid: str
    count: int


class Gate(Record):
    """A gate that applies to this protocol: the clause, what it judges and its denominator in each tier."""

    id: str
    clause: str
    reach: Reach
    rows: Rows
    tiers: dict[Tier, GateGrid]


class BehaviorEvaluators(Record):
    """Versions of the pure evaluators of a behaviour ledger."""

    number: Literal["number-r04"]
    syntax: Literal["ast-r04"]
    similarity: Literal["levenshtein-max"]


class CompletionEvaluators(Record):
    """Versions of the evaluators of a completion ledger."""

    numeric: NumericRule
    code: CodeRule
    terminal: Literal["terminal-r05", "terminal-v1"]
    similarity: Literal["levenshtein-max"]


class FrozenBaseline(Record, tag_field="state", tag="frozen"):
    """An accepted run of another protocol, by the digests of that protocol, of the run and of its snapshot index."""

    protocol: str
    protocol_digest: str
    run_sha256: str
    index_sha256: str


class OwedBaseline(Record, tag_field="state", tag="unfrozen"):
    """A baseline that isn't there yet: the protocol that it is owed by, and why."""

    protocol: str
    reason: str


class Conclusion(Record):
    """A conclusion that the protocol permits or prohibits."""

    id: str
    text: str


class Protocol(Record):
    """What every family registers."""

    schema: Literal[1]
    id: str
    registered_id: str
    title: str
    document: str
    result_name: str
    ours: tuple[str, ...]
    published: tuple[PublishedReference, ...]
    model: ModelPin
    execution: Execution
    software: Software
    prompt: PromptRules
    boundaries: tuple[Boundary, ...]
    conditions: tuple[NamedCondition, ...]
    edges: tuple[Edge, ...]
    inputs: tuple[InputFile, ...]
    selection: Selection
    domains: tuple[Domain, ...]
    placements: tuple[Placement, ...]
    placement: str
    grids: dict[str, Grid]
    tier_grids: dict[Tier, str]
    resume: bool
    execution_cache: bool
    independent_replay: ApartRule
    gates: tuple[Gate, ...]
    permitted: tuple[Conclusion, ...]
    prohibited: tuple[Conclusion, ...]


class GenerationProtocol(Protocol):
    """What every family registers that generates tokens."""

    sampler: str
    placement_equivalence: PairRule
    independent_replay: PairRule


class BehaviorProtocol(GenerationProtocol, tag_field="kind", tag="behavior"):
    """Round 04: greedy behaviour of eight boundary conditions, compared over ten edges."""

    prompt: PromptContract
    conditions: tuple[Condition, ...]
    decode: DecodeContract
    evaluators: BehaviorEvaluators
    row_determinism: Determinism


class JudgedProtocol(GenerationProtocol):
    """A family whose outputs are judged against gold: its programs are executed in the sandbox."""

    sandbox: SandboxContract


class LadderProtocol(JudgedProtocol):
    """A judged family whose prompts are held against a baseline's, and that may descend to a smaller placement.

    `placement_ladder`: placements from the largest resident share to the smallest; after an out-of-memory the next one
    is tried, if it passes the placement gate on the smoke grid (R05 3, R07 10).
    """

    baseline: FrozenBaseline | OwedBaseline
    placement_ladder: tuple[str, ...]


class CompletionProtocol(LadderProtocol, tag_field="kind", tag="completion"):
    """Round 05: the same cells under one larger budget; stopping, task terminal, evaluable and correct kept apart."""

    prompt: PromptContract
    conditions: tuple[Condition, ...]
    decode: DecodeContract
    evaluators: CompletionEvaluators


class SamplingProtocol(LadderProtocol, tag_field="kind", tag="sampling"):
    """Rounds 06 and 07: seeded sampling of a few sources, several seeds each; rows of a batch are batch-seed aligned.

    `carried_over`: directions that an earlier round showed, registered before this one was seen (R07 9.5).
    """

    prompt: PromptContract
    conditions: tuple[Condition, ...]
    decode: SampledContract
    evaluators: SamplingEvaluators
    same_process_replay: SameProcessRule
    contrasts: tuple[Contrast, ...]
    carried_over: tuple[CarriedDirection, ...]


class TaskCrnProtocol(JudgedProtocol):
    """Round 08: tasks under tapes. All conditions of a unit read the same uniform number in the same step.

    Replicates are tapes. `grid_blocks` says which ranks run under which tapes, for each grid: their blocks are disjoint
    parts of ranks x replicates, and statistics never pool two roles. What executes the steps, the two kinds say.
    """

    prompt: PromptContract
    conditions: tuple[Condition, ...]
    decode: TapedContract
    grid_blocks: dict[str, tuple[GridBlock, ...]]
    evaluators: TaskEvaluators
    same_process_replay: SameProcessRule
    contrasts: tuple[TaskContrast, ...]
    secondary: tuple[SecondaryContrast, ...]
    bootstrap: BootstrapRule


class LoopTaskProtocol(TaskCrnProtocol, tag_field="kind", tag="task_crn"):
    """Executed by the own loop over a cache that grows, as Round 08 has it.

    `loop_equivalence`: whether the loop's argmax tokens must equal `generate`'s greedy ones on the smoke grid's first
    tape, or are only recorded beside them.
    """

    loop_equivalence: Literal["required", "recorded"]


class GraphTaskProtocol(TaskCrnProtocol, tag_field="kind", tag="task_crn_graph"):
    """Executed over a fixed cache, the step captured in a CUDA graph where the execution device is one."""

    decode: GraphContract


class DepthProtocol(Protocol, tag_field="kind", tag="depth"):
    """Round 05, full depth: one prompt-only forward over a source's cells, hashed at every stage and gate.

    `baseline`: the greedy run of the same cells that the trace is joined to, and never explains.
    """

    prompt: PromptContract
    conditions: tuple[Condition, ...]
    forward: ForwardContract
    baseline: FrozenBaseline | OwedBaseline


class StudyProtocol(JudgedProtocol):
    """An author's own design: any messages, edits at proven places, a judge for each domain.

    `boundaries` are the tokens that edits name; one of them is `eos`. How tokens are chosen, the two kinds say.
    """

    conditions: tuple[StudyCondition, ...]
    evaluators: StudyEvaluators


class GreedyStudyProtocol(StudyProtocol, tag_field="kind", tag="study"):
    """A study that is decoded greedily: one replicate, which is called so."""

    decode: DecodeContract


class TapedStudyProtocol(StudyProtocol, tag_field="kind", tag="study_crn"):
    """A study whose tokens are drawn under tapes (R08 2 and 4), by the own loop: replicates of its grids are tapes.

    Temperature and top-p are the author's, whatever the model's publisher recommends. `loop_equivalence` as in a task
    protocol: whether the loop's argmax tokens must be `generate`'s, or are recorded beside them.
    """

    decode: TapedContract
    same_process_replay: SameProcessRule
    loop_equivalence: Literal["required", "recorded"]


class LoopCheckProtocol(GenerationProtocol):
    """What a part of a smoke run under tapes is made under: its cells, decoded greedily by one of the programs.

    Derived from the protocol (`harness.protocols.loops`) and never registered: no protocol.toml holds one.
    """

    by: LoopProgram
    decode: DecodeContract


class TaskLoopCheckProtocol(LoopCheckProtocol, tag_field="kind", tag="loop_check"):
    """The same of a task protocol."""

    prompt: PromptContract
    conditions: tuple[Condition, ...]
    grid_blocks: dict[str, tuple[GridBlock, ...]]


class StudyLoopCheckProtocol(LoopCheckProtocol, tag_field="kind", tag="study_loop_check"):
    """The same of a study: its prompts, and its judges, which say where gold numbers are."""

    conditions: tuple[StudyCondition, ...]
    evaluators: StudyEvaluators


class GraphCheckProtocol(TaskLoopCheckProtocol, tag_field="kind", tag="graph_check"):
    """The same by the executor as `graph` registers it, with argmax in the sampler's place."""

    graph: GraphExecution


# The families whose conditions differ at the historical boundary, by system text and one token.
BoundaryProtocol = (
    BehaviorProtocol | CompletionProtocol | SamplingProtocol | TaskCrnProtocol | DepthProtocol | TaskLoopCheckProtocol
)
# The families whose conditions are messages with placed edits.
StudyDesign = StudyProtocol | StudyLoopCheckProtocol
RegisteredStudy = GreedyStudyProtocol | TapedStudyProtocol
# The families whose tokens are drawn under tapes, a tape a replicate.
TapedProtocol = TaskCrnProtocol | TapedStudyProtocol
RegisteredProtocol = (
    BehaviorProtocol
    | CompletionProtocol
    | SamplingProtocol
    | LoopTaskProtocol
    | GraphTaskProtocol
    | DepthProtocol
    | GreedyStudyProtocol
    | TapedStudyProtocol
)
AnyProtocol = RegisteredProtocol | TaskLoopCheckProtocol | StudyLoopCheckProtocol | GraphCheckProtocol
BlockedProtocol = TaskCrnProtocol | TaskLoopCheckProtocol
AnyJudged = CompletionProtocol | SamplingProtocol | TaskCrnProtocol | StudyProtocol
BaselinedProtocol = CompletionProtocol | SamplingProtocol | DepthProtocol
