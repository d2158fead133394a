"""Valid evidence by hand: builders of cells, units and runs over the nano protocols' own conditions and edges.

Token IDs are 1000 + code point and EOS is the protocol's, so a text and its IDs are readable in a test and token
distances are character distances. Everything in a built run agrees with itself as the gates ask.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import msgspec

from harness.canon import digest, escaped, ids_sha256, sha256_hex, text_sha256
from harness.gold import recorded_tasks
from harness.ledgers.executions import code_cells
from harness.records.depth import (
    DepthRun,
    EdgeTrace,
    HookCheck,
    TargetTokens,
    TraceBaseline,
    TraceCell,
    TraceEvidence,
)
from harness.records.evaluation import CodeFound
from harness.records.profile import Shape
from harness.records.prompt import Condition
from harness.records.protocol import AnyProtocol, Grid
from harness.records.run import (
    Baseline,
    BaselineCell,
    CellRecord,
    CompletionRun,
    Edit,
    NoDevice,
    PlacementFacts,
    RngStates,
    Run,
    StateHash,
    StepChecks,
    UnitEvidence,
)
from harness.records.sandbox import (
    Execution,
    ExecutionEvidence,
    ExecutionObservation,
    LimitsInForce,
    Outcome,
    SandboxFacts,
    Task,
)
from harness.sandbox.bundle import harness_sha256
from harness.sandbox.contract import wanted
from harness.sandbox.payload import candidate_sha256, task_sha256, tests_sha256

from .lines import Line, gate_edges, gates, hidden_stages, line_of, stage_edges

PROTOCOLS = Path(__file__).parents[2] / "fixtures" / "protocols"
FIRST_ID = 1000
SYSTEM_TOKENS = (900, 901, 902)
BOUNDARY_POSITION = 5


@dataclass(frozen=True)
class Said:
    """What a cell's model said: its text without EOS, and whether EOS followed (else it was cut off)."""

    text: str
    eos: bool = True


@dataclass(frozen=True)
class Builder:
    """Makes records of one protocol. `sources` maps (domain, index) to a source ID where the default won't do."""

    protocol: AnyProtocol
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def with_grid(self, grid: str, *, per_domain: int, replicates: tuple[str, ...] = ("greedy",)) -> Self:
        """The same protocol with another grid under that name."""
        budget = self.protocol.grids[grid].max_new_tokens
        changed = Grid(per_domain=per_domain, replicates=replicates, max_new_tokens=budget)
        grids = {**self.protocol.grids, grid: changed}
        return replace(self, protocol=msgspec.structs.replace(self.protocol, grids=grids))

    def source_id(self, domain: str, index: int) -> str:
        """The named source ID, else `domain/0000` and so on."""
        return self.sources.get((domain, index), f"{domain}/{index:04d}")

    def boundary_id(self, name: str) -> int:
        """The registered ID of a boundary."""
        return next(boundary.id for boundary in self.protocol.boundaries if boundary.name == name)

    def ids(self, said: Said) -> tuple[int, ...]:
        """The generated IDs of what was said."""
        letters = tuple(FIRST_ID + ord(letter) for letter in said.text)
        return (*letters, self.boundary_id("eos")) if said.eos else letters

    def cell(self, condition: Condition, said: Said) -> CellRecord:
        """A row whose prompt keeps the single-ID contract and whose hashes and counts fit its IDs and text."""
        edits = self._edits(condition)
        prompt = self._prompt(condition, edits)
        ids = self.ids(said)
        eos_text = next(boundary.token for boundary in self.protocol.boundaries if boundary.name == "eos")
        text = said.text + (eos_text if said.eos else "")
        return CellRecord(
            condition=condition.id,
            prompt_ids=prompt,
            prompt_sha256=ids_sha256(prompt),
            left_padding=0 if condition.system else len(SYSTEM_TOKENS),
            edits=edits,
            generated_ids=ids,
            generated_sha256=ids_sha256(ids),
            text_escaped=escaped(text),
            text_sha256=text_sha256(text),
            eos=said.eos,
            truncated=not said.eos,
            length=len(ids),
        )

    def unit(
        self, domain: str, index: int, said: Mapping[str, Said], *, grid: str = "smoke", replicate: str = "greedy"
    ) -> UnitEvidence:
        """One batch. `said` maps condition IDs to what was said; "*" stands for the conditions not named."""
        chosen = {each.id: said.get(each.id, said.get("*")) for each in self.protocol.conditions}
        cells = tuple(self.cell(each, chosen[each.id] or Said("")) for each in self.protocol.conditions)
        rows = sum(cell.length for cell in cells)
        states = _states()
        return UnitEvidence(
            protocol_digest=digest(self.protocol),
            environment_sha256=sha256_hex(b"environment"),
            placement_sha256=digest(self.placement()),
            grid=grid,
            domain=domain,
            index=index,
            source_id=self.source_id(domain, index),
            source_text_sha256=text_sha256(f"source {domain} {index}"),
            replicate=replicate,
            max_new_tokens=self.protocol.grids[grid].max_new_tokens,
            cells=cells,
            checks=StepChecks(steps=max(cell.length for cell in cells), rows_checked=rows, finite=rows, argmax=rows),
            rng_before=states,
            rng_after=states,
        )

    def run(
        self,
        units: tuple[UnitEvidence, ...],
        *,
        domains: tuple[str, ...],
        gold: Mapping[str, str],
        grid: str = "smoke",
    ) -> Run:
        """The assembled evidence of units, in the order given."""
        return Run(
            schema=1,
            protocol=self.protocol.id,
            registered_id=self.protocol.registered_id,
            protocol_digest=digest(self.protocol),
            result_name=self.protocol.result_name,
            grid=grid,
            port=False,
            deviations=(),
            domains=domains,
            environment_sha256=sha256_hex(b"environment"),
            placement=self.placement(),
            gold=dict(gold),
            units=units,
        )

    def placement(self) -> PlacementFacts:
        """Everything on the CPU, under the protocol's own placement ID."""
        return PlacementFacts(
            id=self.protocol.placement,
            dispatched=False,
            device_map={"": "cpu"},
            parameter_bytes={"cpu": 4},
            offloaded=(),
            offloaded_moe_layers=(),
        )

    def _edits(self, condition: Condition) -> tuple[Edit, ...]:
        if not condition.edits:
            return ()
        position = BOUNDARY_POSITION + (len(SYSTEM_TOKENS) if condition.system else 0)
        eos, other = self.boundary_id("eos"), self.boundary_id(condition.boundary)
        return (Edit(position=position, official=eos, replaced=other),)

    def _prompt(self, condition: Condition, edits: tuple[Edit, ...]) -> tuple[int, ...]:
        system = SYSTEM_TOKENS if condition.system else ()
        official = [self.boundary_id("bos"), *system, 910, 911, 912, 913, self.boundary_id("eos"), 914, 915]
        for edit in edits:
            official[edit.position] = edit.replaced
        return tuple(official)


TASK = Task(
    id="code/0000", prompt="def f(n):\n", entry_point="f", test="def check(candidate):\n    assert candidate(1) == 2\n"
)


@dataclass(frozen=True)
class CompletionBuilder(Builder):
    """Makes runs of a completion protocol, with the baseline's cells, the code tasks and executions of programs.

    What the baseline said at its smaller budget is `before`; by default it said the first letters of what the run says,
    cut, so that every prefix is exact.
    """

    baseline_budget: int = 4

    def task(self, source_id: str) -> Task:
        """The one task of every code source, under its ID."""
        return msgspec.structs.replace(TASK, id=source_id)

    def before(self, cell: CellRecord) -> Said:
        """What the baseline said where a cell's beginning is all that is asked for: EOS only within its budget."""
        letters = "".join(chr(one - FIRST_ID) for one in cell.generated_ids if one >= FIRST_ID)
        ended = cell.eos and cell.length <= self.baseline_budget
        return Said(letters if ended else letters[: self.baseline_budget], eos=ended)

    def baseline(self, units: tuple[UnitEvidence, ...], said: Mapping[tuple[str, str], Said] | None = None) -> Baseline:
        """The baseline of units; `said` maps (source ID, condition) to what it said there."""
        cells = []
        for unit in units:
            for cell in unit.cells:
                one = (said or {}).get((unit.source_id, cell.condition), self.before(cell))
                ids = self.ids(one)
                cells.append(
                    BaselineCell(
                        source_id=unit.source_id,
                        replicate=unit.replicate,
                        condition=cell.condition,
                        prompt_sha256=cell.prompt_sha256,
                        generated_ids=ids,
                        eos=one.eos,
                        truncated=not one.eos,
                        length=len(ids),
                    )
                )
        return Baseline(
            schema=1,
            protocol="nano-behavior",
            protocol_digest=sha256_hex(b"baseline protocol"),
            run_sha256=sha256_hex(b"baseline run"),
            environment_sha256=sha256_hex(b"environment"),
            port=False,
            max_new_tokens=self.baseline_budget,
            cells=tuple(cells),
        )

    def completion_run(
        self,
        units: tuple[UnitEvidence, ...],
        *,
        gold: Mapping[str, str],
        grid: str,
        said: Mapping[tuple[str, str], Said] | None = None,
    ) -> CompletionRun:
        """The assembled run of units, over their domains in the protocol's order."""
        present = {unit.domain for unit in units}
        domains = tuple(domain.name for domain in self.protocol.domains if domain.name in present)
        run = self.run(units, domains=domains, gold=gold, grid=grid)
        tasks = {unit.source_id: self.task(unit.source_id) for unit in units if unit.domain == "code"}
        return CompletionRun(
            **{name: getattr(run, name) for name in Run.__struct_fields__},
            baseline=self.baseline(units, said),
            tasks=recorded_tasks(tasks),
        )

    def executions(self, run: CompletionRun, outcomes: Mapping[str, Outcome]) -> dict[str, Execution]:
        """An execution of each program of a run; `outcomes` by condition, "*" for the conditions not named."""
        return {
            cell.key: self.execution(
                cell.extraction.program,
                self.task(cell.source_id),
                outcomes.get(cell.condition, outcomes.get("*", "passed")),
                container=cell.key,
            )
            for cell in code_cells(self.protocol, run)
            if isinstance(cell.extraction, CodeFound)
        }

    def execution(self, program: str, task: Task, outcome: Outcome, *, container: str = "c") -> Execution:
        """One execution under the protocol's own contract, with digests that fit."""
        limits = wanted(self.protocol.sandbox)
        evidence = ExecutionEvidence(
            candidate_sha256=candidate_sha256(program),
            task_sha256=task_sha256(task),
            tests_sha256=tests_sha256(task),
            harness_sha256=harness_sha256(),
            image_id="sha256:image",
            python="CPython 3.11.2",
            limits_sha256=digest(limits),
            outcome=outcome,
            detail="",
            exit_code=0,
            nonce_returned=outcome == "passed",
        )
        return signed(evidence, limits, container)

    def facts(self) -> SandboxFacts:
        """What the executions share."""
        return SandboxFacts(
            schema=1,
            image_id="sha256:image",
            python="CPython 3.11.2",
            registered=False,
            limits=wanted(self.protocol.sandbox),
            harness_sha256=harness_sha256(),
        )


SMALL = Shape(
    architecture="Small",
    model_type="small",
    layers=3,
    dense_layers=1,
    routed_experts=5,
    experts_per_token=2,
    hidden_size=4,
    vocabulary_columns=2048,
)
TAIL_TOKENS = (920, 921)


@dataclass(frozen=True)
class DepthBuilder(Builder):
    """Makes runs of a depth protocol whose model has the given shape, and the baseline that they are joined to.

    A source's text is `tokens` tokens, the same in every cell, behind the prompt's beginning. Every record follows
    from the arrays of `lines`, which a test may change first.
    """

    shape: Shape = SMALL

    def content(self, domain: str, index: int, tokens: int) -> tuple[int, ...]:
        """The token IDs of a source's text."""
        first = FIRST_ID + 100 * index + sum(map(ord, domain)) % 50
        return tuple(range(first, first + tokens))

    def lines(self, domain: str, index: int, *, tokens: int = 3) -> dict[str, Line]:
        """The arrays of every cell, by condition, to be changed and handed to `trace`."""
        found = {}
        for condition in self.protocol.conditions:
            prompt = self._traced_prompt(condition, self.content(domain, index, tokens))
            target = self._target(condition, tokens, 0)
            found[condition.id] = line_of(self.shape, self.source_id(domain, index), condition.id, prompt, target)
        return found

    def trace(
        self,
        domain: str,
        index: int,
        *,
        tokens: int = 3,
        crossing: Mapping[str, int] | None = None,
        lines: Mapping[str, Line] | None = None,
        grid: str = "smoke",
    ) -> TraceEvidence:
        """One source traced. `crossing` by condition, 0 for those not named; `lines` as `lines` gives them."""
        cut, made = crossing or {}, lines or self.lines(domain, index, tokens=tokens)
        content, states = self.content(domain, index, tokens), _states()
        targets = {one.id: self._target(one, tokens, cut.get(one.id, 0)) for one in self.protocol.conditions}
        return TraceEvidence(
            protocol_digest=digest(self.protocol),
            environment_sha256=sha256_hex(b"environment"),
            placement_sha256=digest(self.placement()),
            grid=grid,
            domain=domain,
            index=index,
            source_id=self.source_id(domain, index),
            source_text_sha256=text_sha256(f"source {domain} {index}"),
            replicate="forward",
            rng_before=states,
            rng_after=states,
            content_token_ids_sha256=ids_sha256(content),
            target_tokens=tokens,
            crossing_tokens=sum(cut.values()),
            crossing_cells=sum(1 for one in cut.values() if one),
            cache_returned=False,
            cells=tuple(
                self._traced_cell(one, content, targets[one.id], made[one.id]) for one in self.protocol.conditions
            ),
            edges=tuple(
                EdgeTrace(
                    edge=edge.id,
                    left=edge.left,
                    right=edge.right,
                    stages=stage_edges(made[edge.left], made[edge.right], (targets[edge.left], targets[edge.right])),
                    gates=gate_edges(
                        made[edge.left],
                        made[edge.right],
                        (targets[edge.left], targets[edge.right]),
                        self.shape.routed_experts,
                    ),
                )
                for edge in self.protocol.edges
            ),
            hooks=HookCheck(
                logits_sha256_without=sha256_hex(b"logits"),
                logits_sha256_with=sha256_hex(b"logits"),
                logits_without=(8, 16),
                logits_with=(8, 16),
            ),
        )

    def depth_run(
        self,
        units: tuple[TraceEvidence, ...],
        *,
        grid: str = "smoke",
        said: Mapping[tuple[str, str], Said] | None = None,
    ) -> DepthRun:
        """The assembled run of units, over their domains in the protocol's order."""
        present = {unit.domain for unit in units}
        domains = tuple(domain.name for domain in self.protocol.domains if domain.name in present)
        head = self.run((), domains=domains, gold={}, grid=grid)
        plain = {name: getattr(head, name) for name in Run.__struct_fields__ if name not in ("gold", "units")}
        return DepthRun(**plain, baseline=self.trace_baseline(units, said), units=units)

    def trace_baseline(
        self, units: tuple[TraceEvidence, ...], said: Mapping[tuple[str, str], Said] | None = None
    ) -> TraceBaseline:
        """The greedy run of the same cells; `said` maps (source ID, condition) to what was said there, else "ok"."""
        cells = []
        for unit in units:
            for cell in unit.cells:
                one = (said or {}).get((unit.source_id, cell.condition), Said("ok"))
                ids = self.ids(one)
                cells.append(
                    BaselineCell(
                        source_id=unit.source_id,
                        replicate="greedy",
                        condition=cell.condition,
                        prompt_sha256=cell.prompt_sha256,
                        generated_ids=ids,
                        eos=one.eos,
                        truncated=not one.eos,
                        length=len(ids),
                    )
                )
        return TraceBaseline(
            schema=1,
            protocol="nano-behavior",
            protocol_digest=sha256_hex(b"baseline protocol"),
            run_sha256=sha256_hex(b"baseline run"),
            environment_sha256=sha256_hex(b"baseline environment"),
            port=False,
            max_new_tokens=128,
            cells=tuple(cells),
            checkpoint={"model.safetensors": sha256_hex(b"weights")},
            source_texts={unit.source_id: unit.source_text_sha256 for unit in units},
        )

    def _traced_prompt(self, condition: Condition, content: tuple[int, ...]) -> tuple[int, ...]:
        return (*self._prompt(condition, self._edits(condition)), *content, *TAIL_TOKENS)

    def _target(self, condition: Condition, tokens: int, crossing: int) -> TargetTokens:
        start = len(self._prompt(condition, self._edits(condition)))
        return TargetTokens(start=start, end=start + tokens, crossing=crossing)

    def _traced_cell(
        self, condition: Condition, content: tuple[int, ...], target: TargetTokens, line: Line
    ) -> TraceCell:
        prompt = self._traced_prompt(condition, content)
        return TraceCell(
            condition=condition.id,
            prompt_ids=prompt,
            prompt_sha256=ids_sha256(prompt),
            left_padding=0 if condition.system else len(SYSTEM_TOKENS),
            edits=self._edits(condition),
            target=target,
            hidden=hidden_stages(line, target),
            gates=gates(line, target, self.shape.routed_experts),
        )


def signed(evidence: ExecutionEvidence, limits: LimitsInForce, container: str) -> Execution:
    """An execution whose evidence digest fits."""
    return Execution(
        schema=1,
        evidence=evidence,
        evidence_sha256=digest(evidence),
        limits=limits,
        observation=ExecutionObservation(
            container=container,
            wall_ns=1,
            cpu_ns=1,
            total_ns=2,
            output_bytes=0,
            output_sha256=sha256_hex(b""),
            output_cut=False,
        ),
    )


def _states() -> RngStates:
    python, numpy, torch = (StateHash(sha256=sha256_hex(name)) for name in (b"python", b"numpy", b"torch"))
    return RngStates(python=python, numpy=numpy, torch_cpu=torch, torch_cuda=NoDevice())
