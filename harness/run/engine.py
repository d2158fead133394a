"""One model, loaded once a process, that turns prompt batches into unit records: generated or traced.

Everything that a unit's evidence needs is read back here: environment, placement, generator states, step checks.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.canon import digest, escaped, ids_sha256, text_sha256
from harness.decode.adopt import adopt_decoding
from harness.decode.executed import Executor, decode_executed, decode_greedily, make_executor
from harness.decode.greedy import decode_greedy
from harness.decode.icdf import InverseCdf
from harness.decode.loop import Rows
from harness.decode.sampled import PaddedRows, decode_sampled
from harness.decode.taped import TapedCall, TapedRows, decode_argmax, decode_taped, loop_contract
from harness.errors import HarnessError
from harness.model.environment import read_environment, software_deviations
from harness.model.identity import check_shape, check_special_ids, digests_of_a_run
from harness.model.load import LoadedModel, load_model, require_map, uses_remote_code
from harness.model.made import checkpoint_deviations
from harness.model.placement import memory_observation, placement_facts
from harness.model.process import now_us
from harness.model.rng import rng_states, seed_generators
from harness.prompts.build import padded
from harness.prompts.records import PromptBatch, StudyCell
from harness.prompts.registered import SourceBatch
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.grids import UnitKey
from harness.protocols.load import LoadedProtocol
from harness.protocols.maps import map_difference, map_field
from harness.protocols.seeds import batch_seeds
from harness.records.depth import TraceEvidence
from harness.records.graph import GraphBatch, GraphEvidence
from harness.records.kinds import AnyUnit
from harness.records.protocol import (
    BehaviorProtocol,
    CompletionProtocol,
    DepthProtocol,
    GraphCheckProtocol,
    GraphTaskProtocol,
    GreedyStudyProtocol,
    LoopCheckProtocol,
    SamplingProtocol,
    TapedProtocol,
    TapedStudyProtocol,
)
from harness.records.run import (
    CellRecord,
    Deviation,
    Environment,
    PlacementFacts,
    StepChecks,
    UnitEvidence,
    UnitObservation,
)
from harness.records.sampling import SampledEvidence
from harness.records.study import CellEdits, StudyEvidence
from harness.records.taped import TapedEvidence
from harness.records.taped_study import TapedStudyEvidence, TapedUnit
from harness.run.progress import Progress
from harness.run.request import Request
from harness.run.tracing import trace_source
from harness.tapes.tape import Tape
from harness.trace.forward import adopt_forward

Greedy = BehaviorProtocol | CompletionProtocol | GreedyStudyProtocol | LoopCheckProtocol
Padded = tuple[Rows, Rows]  # IDs and mask


@dataclass(slots=True)
class Engine:
    """A loaded model with what was read back from it."""

    loaded: LoadedProtocol
    request: Request
    model: LoadedModel
    environment: Environment
    placement: PlacementFacts
    deviations: tuple[Deviation, ...]
    sampler: InverseCdf | None
    executor: Executor | None

    def close(self) -> None:
        """Release the model, and before it the step that holds its tensors."""
        if self.executor is not None:
            self.executor.close()
        self.model.close()

    def make_unit(
        self, key: UnitKey, batch: SourceBatch, tokenizer: PromptTokenizer, progress: Progress
    ) -> tuple[AnyUnit, UnitObservation]:
        """Generate from one batch or trace it. DecodeError where it doesn't return as the contract says."""
        if isinstance(self.loaded.protocol, DepthProtocol):
            return self._trace(self.loaded.protocol, key, batch)
        if isinstance(self.loaded.protocol, SamplingProtocol):
            return self._sample(self.loaded.protocol, key, batch.prompts, tokenizer, progress)
        if isinstance(self.loaded.protocol, TapedProtocol):
            return self._draw(self.loaded.protocol, key, batch.prompts, tokenizer, progress)
        return self._generate(self.loaded.protocol, key, batch.prompts, tokenizer, progress)

    def _generate(
        self,
        protocol: Greedy,
        key: UnitKey,
        batch: PromptBatch,
        tokenizer: PromptTokenizer,
        progress: Progress,
    ) -> tuple[UnitEvidence, UnitObservation]:
        ids, mask = padded(batch, self.loaded.profile.special_ids.pad)
        seed_generators(protocol.decode.generator_seed)
        before, started = rng_states(), time.perf_counter_ns()
        rows, checks = self._greedy(protocol, PaddedRows(ids, mask), progress)
        wall_ns, after = time.perf_counter_ns() - started, rng_states()
        budget = self.budget
        evidence = UnitEvidence(
            **self._identity(key, batch),
            max_new_tokens=budget,
            cells=self._cells(batch, rows, tokenizer, budget),
            checks=checks,
            rng_before=before,
            rng_after=after,
        )
        if isinstance(protocol, GreedyStudyProtocol):
            evidence = StudyEvidence(**msgspec.structs.asdict(evidence), edited=_edited(batch))
        return evidence, self._observe(checks.rows_checked, wall_ns)

    def _greedy(
        self, protocol: Greedy, rows: PaddedRows, progress: Progress
    ) -> tuple[tuple[tuple[int, ...], ...], StepChecks]:
        """By `generate`; or with argmax, by the own loop or the executor, where a part of a smoke run is (R08 4)."""
        ids = self.loaded.profile.special_ids
        if isinstance(protocol, LoopCheckProtocol) and protocol.by != "generate":
            pair, contract, tick = (rows.ids, rows.mask), loop_contract(ids, self.budget), progress.step
            if self.executor is not None:
                return decode_greedily(self.model, pair, contract=contract, executor=self.executor, tick=tick)
            return decode_argmax(self.model, pair, contract=contract, tick=tick)
        decoded = decode_greedy(self.model, rows.ids, rows.mask, eos=ids.eos, tick=progress.step)
        return decoded.rows, decoded.checks

    def _draw(
        self,
        protocol: TapedProtocol,
        key: UnitKey,
        batch: PromptBatch,
        tokenizer: PromptTokenizer,
        progress: Progress,
    ) -> tuple[TapedUnit, UnitObservation]:
        """All rows of a unit at the tape's u in each step; nothing may draw from a generator meanwhile (R08 5.1)."""
        rows = padded(batch, self.loaded.profile.special_ids.pad)
        call = TapedCall(
            tape=Tape(protocol.registered_id, key.replicate),
            source_id=key.source_id,
            conditions=tuple(cell.condition for cell in batch.cells),
            contract=loop_contract(self.loaded.profile.special_ids, self.budget),
        )
        seed_generators(protocol.decode.generator_seed)
        before, started = rng_states(), time.perf_counter_ns()
        drawn = self._drawn(rows, call, progress)
        wall_ns, after = time.perf_counter_ns() - started, rng_states()
        shared = self._identity(key, batch) | {
            "max_new_tokens": self.budget,
            "cells": self._cells(batch, drawn.rows, tokenizer, self.budget),
            "checks": drawn.checks,
            "rng_before": before,
            "rng_after": after,
        }
        return _taped(protocol, batch, drawn, shared), self._observe(drawn.checks.rows_checked, wall_ns)

    def _drawn(self, rows: Padded, call: TapedCall, progress: Progress) -> TapedRows:
        """By the executor where the protocol's steps are executed, else by the own loop."""
        if self.executor is None:
            return decode_taped(self.model, rows, sampler=self.taped_sampler, call=call, tick=progress.step)
        return decode_executed(
            self.model, rows, sampler=self.taped_sampler, call=call, executor=self.executor, tick=progress.step
        )

    @property
    def taped_sampler(self) -> InverseCdf:
        """The sampler that this engine draws with; misuse where the protocol has none."""
        if self.sampler is None:
            raise RuntimeError(f"{self.loaded.protocol.id} draws under no tape")
        return self.sampler

    def _sample(
        self,
        protocol: SamplingProtocol,
        key: UnitKey,
        batch: PromptBatch,
        tokenizer: PromptTokenizer,
        progress: Progress,
    ) -> tuple[SampledEvidence, UnitObservation]:
        ids, mask = padded(batch, self.loaded.profile.special_ids.pad)
        contract, eos = protocol.decode.seeds, self.loaded.profile.special_ids.eos
        seeds = batch_seeds(contract, protocol.registered_id, source_id=key.source_id, replicate=key.replicate)
        started = time.perf_counter_ns()
        drawn = decode_sampled(self.model, PaddedRows(ids, mask), seeds=seeds, eos=eos, tick=progress.step)
        wall_ns = time.perf_counter_ns() - started
        budget = self.budget
        evidence = SampledEvidence(
            **self._identity(key, batch),
            max_new_tokens=budget,
            cells=self._cells(batch, drawn.rows, tokenizer, budget),
            checks=drawn.checks,
            sampling=drawn.sampling,
            rng_before=drawn.rng_before,
            rng_after=drawn.rng_after,
        )
        return evidence, self._observe(drawn.checks.rows_checked, wall_ns)

    @property
    def budget(self) -> int:
        """Tokens at most, by the request's grid."""
        return self.loaded.protocol.grids[self.request.grid].max_new_tokens

    def _trace(
        self, protocol: DepthProtocol, key: UnitKey, batch: SourceBatch
    ) -> tuple[TraceEvidence, UnitObservation]:
        if batch.targets is None:
            raise RuntimeError(f"{key.name}: a trace needs its target tokens")
        pad_id = self.loaded.profile.special_ids.pad
        traced = trace_source(protocol, self.model, batch.prompts, batch.targets, pad_id=pad_id)
        crossing = [target.crossing for target in batch.targets.cells]
        evidence = TraceEvidence(
            **self._identity(key, batch.prompts),
            content_token_ids_sha256=batch.targets.content_token_ids_sha256,
            target_tokens=batch.targets.tokens,
            crossing_tokens=sum(crossing),
            crossing_cells=sum(1 for tokens in crossing if tokens),
            cache_returned=traced.cache_returned,
            cells=traced.cells,
            edges=traced.edges,
            hooks=traced.hooks,
            rng_before=traced.rng_before,
            rng_after=traced.rng_after,
        )
        return evidence, self._observe(traced.tokens, traced.wall_ns)

    def _identity(self, key: UnitKey, batch: PromptBatch) -> dict[str, Any]:
        """What every unit's evidence begins with."""
        return {
            "protocol_digest": self.loaded.digest,
            "environment_sha256": digest(self.environment),
            "placement_sha256": digest(self.placement),
            "grid": self.request.grid,
            "domain": key.domain,
            "index": key.index,
            "source_id": key.source_id,
            "source_text_sha256": batch.text_sha256,
            "replicate": key.replicate,
        }

    def _cells(
        self, batch: PromptBatch, rows: tuple[tuple[int, ...], ...], tokenizer: PromptTokenizer, budget: int
    ) -> tuple[CellRecord, ...]:
        eos = self.loaded.profile.special_ids.eos
        cells = []
        for prompt, padding, generated in zip(batch.cells, batch.padding, rows, strict=True):
            text = tokenizer.decode(generated)
            ended = bool(generated) and generated[-1] == eos
            cells.append(
                CellRecord(
                    condition=prompt.condition,
                    prompt_ids=prompt.ids,
                    prompt_sha256=prompt.sha256,
                    left_padding=padding,
                    edits=prompt.edits,
                    generated_ids=generated,
                    generated_sha256=ids_sha256(generated),
                    text_escaped=escaped(text),
                    text_sha256=text_sha256(text),
                    eos=ended,
                    truncated=not ended and len(generated) == budget,
                    length=len(generated),
                )
            )
        return tuple(cells)

    def _observe(self, tokens: int, wall_ns: int) -> UnitObservation:
        return UnitObservation(process=self.model.process, wall_ns=wall_ns, tokens=tokens, finished_us=now_us())

    def memory(self) -> dict[str, int]:
        """Peak CUDA bytes and RSS."""
        return memory_observation()


def _edited(batch: PromptBatch) -> tuple[CellEdits, ...]:
    return tuple(cell.edited for cell in batch.cells if isinstance(cell, StudyCell))


def _taped(protocol: TapedProtocol, batch: PromptBatch, drawn: TapedRows, shared: dict[str, Any]) -> TapedUnit:
    """A unit under a tape as its protocol's kind records it."""
    if isinstance(protocol, TapedStudyProtocol):
        return TapedStudyEvidence(**shared, edited=_edited(batch), tape=drawn.tape)
    if isinstance(drawn.tape, GraphBatch):
        return GraphEvidence(**shared, tape=drawn.tape)
    return TapedEvidence(**shared, tape=drawn.tape)


def open_engine(loaded: LoadedProtocol, request: Request) -> Engine:
    """Check identity and software, then load and read back. Nothing of the checkpoint is executed before its check."""
    protocol, checkpoint = loaded.protocol, Path(request.checkpoint)
    check_shape(loaded.profile, checkpoint)
    check_special_ids(loaded.profile, checkpoint)
    digests = digests_of_a_run(loaded.profile, checkpoint)
    deviations = checkpoint_deviations(loaded.profile, checkpoint, digests, port=request.port)
    deviations += software_deviations(protocol.software, port=request.port)
    model = load_model(loaded.profile, request.execution, request.placement, checkpoint)
    try:
        return _read_back(loaded, request, model, digests, (*request.deviations, *deviations))
    except HarnessError:
        model.close()
        raise


def _read_back(
    loaded: LoadedProtocol,
    request: Request,
    model: LoadedModel,
    digests: dict[str, str],
    deviations: tuple[Deviation, ...],
) -> Engine:
    protocol = loaded.protocol
    sampler = InverseCdf(protocol.decode.sampler) if isinstance(protocol, TapedProtocol) else None
    executor = _executor(loaded, request, model)
    ids, budget = loaded.profile.special_ids, protocol.grids[request.grid].max_new_tokens
    if isinstance(protocol, DepthProtocol):
        effective = adopt_forward(model)
    else:
        effective = adopt_decoding(model, protocol, ids, budget, sampler=sampler, executor=executor)
    facts = placement_facts(model.model, request.placement.id, loaded.profile, model.device)
    if request.port:
        deviations += _other_map(loaded, request, facts)
    else:
        require_map(request.placement, facts.device_map)
    environment = read_environment(model, effective, digests)
    if request.execution.experts == "remote_code" and not uses_remote_code(loaded.profile, request.execution):
        deviations += (Deviation(field="experts", registered="remote_code", actual=environment.experts),)
    return Engine(loaded, request, model, environment, facts, deviations, sampler, executor)


def _executor(loaded: LoadedProtocol, request: Request, model: LoadedModel) -> Executor | None:
    """What executes the steps where that is registered: captured on a CUDA device, but in the uncaptured part."""
    captured = model.device.type == "cuda" and request.decoding != "uncaptured"
    if isinstance(loaded.protocol, GraphTaskProtocol):
        return make_executor(model, loaded.protocol.decode.graph, captured=captured)
    if isinstance(loaded.protocol, GraphCheckProtocol):
        return make_executor(model, loaded.protocol.graph, captured=captured)
    return None


def _other_map(loaded: LoadedProtocol, request: Request, facts: PlacementFacts) -> tuple[Deviation, ...]:
    """A registered placement whose budgets give another map under a port's software; a port's own has none to meet."""
    different = map_difference(request.placement, facts.device_map)
    if request.placement not in loaded.protocol.placements or different is None:
        return ()
    return (Deviation(field=map_field(request.placement.id), registered=different[0], actual=different[1]),)
