"""Seeded sampling through transformers `generate` (R07 2, 4, 5): one seed a batch, one draw a step for all its rows.

The rows of a batch are batch-seed aligned: they share the seed and the calls, and each consumes its own part of the
stream. So rows keep their order and a batch is never split. Nothing that is recorded is taken from the contract:
parameters and processors are the call's own, generator states are hashed just before and just after it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.decode.contract import READ_BACK, adopt_config, contract_config
from harness.decode.nucleus import Drawn, NucleusWatch, generator_of, generator_state, require_draws
from harness.decode.pipeline import Pipeline, described, watched_pipeline
from harness.decode.watch import (
    StepWatch,
    Tick,
    finished_steps,
    generate_rows,
    require_steps,
    require_watched,
    trim,
)
from harness.model.load import LoadedModel
from harness.model.rng import rng_states, seed_generators
from harness.protocols.seeds import seed_value
from harness.records.profile import SpecialIds
from harness.records.run import RngStates, StepChecks
from harness.records.sampling import BatchSeeds, SampledBatch, SampledContract

# In a call's generation config, but no setting: the prompt's width is in one, the environment record has the other.
NO_PARAMETER = ("max_length", "transformers_version")


@dataclass(frozen=True, slots=True)
class PaddedRows:
    """Left-padded prompts of one batch, int [rows, width], and their mask; the order is the batch's."""

    ids: Sequence[Sequence[int]]
    mask: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class SampledRows:
    """Generated IDs of each row, up to and including the first EOS, padding dropped; and what the call was."""

    rows: tuple[tuple[int, ...], ...]
    checks: StepChecks
    sampling: SampledBatch
    rng_before: RngStates
    rng_after: RngStates


@dataclass(frozen=True, slots=True)
class _Call:
    """One seeded call: what it emitted, int64 [rows, steps] on the CPU, and generator states around it."""

    generated: torch.Tensor
    state: torch.Tensor
    state_after: torch.Tensor
    rng_before: RngStates
    rng_after: RngStates


def adopt_sampling(
    loaded: LoadedModel, contract: SampledContract, ids: SpecialIds, max_new_tokens: int
) -> dict[str, Any]:
    """Make the contract the model's own generation config, and read it back; what a call used is in its record."""
    return adopt_config(loaded, contract_config(contract, ids, max_new_tokens))


def decode_sampled(loaded: LoadedModel, rows: PaddedRows, *, seeds: BatchSeeds, eos: int, tick: Tick) -> SampledRows:
    """Set every generator to the batch's run seed, then sample its rows in one call, never split, order kept.

    `adopt_sampling` must have been called: the budget is the adopted config's. Raises DecodeError: `out_of_memory`;
    `non_finite`; `not_drawable`, an ID without probability; `foreign_draw`, a generator that isn't where one draw a
    step leaves it.
    """
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    watch, nucleus = StepWatch(tick), NucleusWatch()
    with watched_pipeline(loaded.model, nucleus) as pipeline:
        call = _seeded_call(loaded, rows, watch, seed=seed_value(seeds))
    probabilities = nucleus.end(call.generated)
    checks, drawable, several = judge_draws(call.generated, watch, nucleus.drawn, eos=eos)
    require_draws(call.state, call.state_after, like=probabilities, draws=checks.steps)
    sampling = SampledBatch(
        seeds=seeds,
        generator=generator_of(probabilities.device),
        rows=probabilities.shape[0],
        columns=probabilities.shape[1],
        draws=checks.steps,
        parameters=parameters_of(pipeline),
        processors=tuple(described(one) for one in pipeline.processors if one is not watch),
        drawable=drawable,
        several=several,
    )
    kept = tuple(trim(row, eos) for row in call.generated.tolist())
    return SampledRows(kept, checks, sampling, call.rng_before, call.rng_after)


def _seeded_call(loaded: LoadedModel, rows: PaddedRows, watch: StepWatch, *, seed: int) -> _Call:
    seed_generators(seed)
    before, state = rng_states(), generator_state(loaded.device)
    try:
        generated = generate_rows(loaded, rows.ids, rows.mask, watch)
    except (
        RuntimeError
    ):  # torch's draw refuses NaN and infinity; on CUDA by an assertion after which nothing can be read
        if watch.finite:
            require_steps(torch.stack(watch.finite, 1).cpu(), kind="non_finite", expected="finite logits")
        raise
    return _Call(generated, state, generator_state(loaded.device), before, rng_states())


def judge_draws(generated: torch.Tensor, watch: StepWatch, drawn: Drawn, *, eos: int) -> tuple[StepChecks, int, int]:
    """Check int64 [rows, steps] against the flags of both watchers; finished rows aside. Checks, drawable, several."""
    finite, argmax = torch.stack(watch.finite, 1).cpu(), torch.stack(watch.argmax, 1).cpu()
    drawable, several = torch.stack(drawn.drawable, 1).cpu(), torch.stack(drawn.several, 1).cpu()
    for watched in (argmax, drawable):
        require_watched(generated, watched, kind="not_drawable")
    finished = finished_steps(generated, eos)
    require_steps(finite | finished, kind="non_finite", expected="finite logits")
    require_steps(drawable | finished, kind="not_drawable", expected="an ID with a probability after the warpers")
    live = ~finished
    count = int(live.sum())
    checks = StepChecks(
        steps=generated.shape[1], rows_checked=count, finite=count, argmax=int(((generated == argmax) & live).sum())
    )
    return checks, int((drawable & live).sum()), int((several & live).sum())


def parameters_of(pipeline: Pipeline) -> dict[str, str]:
    """A call's generation config as JSON text by name: every setting of a contract, and whatever else isn't none.

    Without the width of the prompt, which is no setting: `max_new_tokens` is the budget.
    """
    if pipeline.config is None:
        raise RuntimeError("no call was made")
    settings = {name: getattr(pipeline.config, name, None) for name in READ_BACK}
    values = settings | {name: value for name, value in pipeline.config.to_dict().items() if value is not None}
    kept = {name: value for name, value in values.items() if name not in NO_PARAMETER and not name.startswith("_")}
    return {name: json.dumps(_plain(value), default=repr) for name, value in sorted(kept.items())}


def _plain(value: Any) -> Any:
    """4.41 keeps special IDs as tensors; a tensor of one ID is that ID."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.item() if value.numel() == 1 else value.tolist()
