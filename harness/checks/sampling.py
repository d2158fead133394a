"""Sampling checks (R07 2, 4, 5, 7): parameters, seeds, generator states, steps, and replays of one batch.

Over the records of sampled units directly: a unit, or two of the same source. A row's draws depend on its place in the
batch (the rows are batch-seed aligned), so the order of the rows is held too.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Literal

from harness.checks.cells import parted_cells, shown
from harness.checks.generation import NEUTRAL, registered_config
from harness.evidence import Differences, differs
from harness.protocols.generators import STATES, seeded_states
from harness.protocols.seeds import batch_seeds, seed_value
from harness.records.profile import SpecialIds
from harness.records.run import CellRecord
from harness.records.sampling import Processor, SampledContract, SampledEvidence

# R07 7.1 (3): run seed, prompt hash, token IDs, text, stop state.
SMOKE_REPLAY = ("run_seed", "prompt_sha256", "generated_ids", "text", "stop_state")
# R07 7.3, in the document's order.
FORMAL_REPLAY = (
    "run_seed",
    "prompt_sha256",
    "generated_ids",
    "text",
    "eos",
    "truncated",
    "torch_cpu_before",
    "torch_cuda_before",
)

# What the library fills in and what changes no score of a single sequence without an assistant model.
FILLED_IN = {
    "encoder_repetition_penalty": "1.0",
    "length_penalty": "1.0",
    "num_beam_groups": "1",
    "num_return_sequences": "1",
    "typical_p": "1.0",
}
ASSISTANT = (
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "target_lookbehind",
)

# How a warper cuts an ID off, and that it leaves one: what `generate` sets for one sequence a row.
UNSTEERING = (("filter_value", "-inf"), ("min_tokens_to_keep", "1"))

Triple = tuple[str, object, object]


def effective_parameters(unit: SampledEvidence, contract: SampledContract, ids: SpecialIds) -> Differences:
    """R07 2: the call's own generation config, and the processors that it built, are the registered contract's.

    Values are compared as JSON text, so that 1 isn't true and 1.0 isn't 1. Nothing else is set that could steer a draw.
    """
    wanted = registered_config(contract, ids) | {"max_new_tokens": unit.max_new_tokens}
    found = unit.sampling.parameters
    pairs: list[Triple] = [
        (f"parameter {name}", json.dumps(value), found.get(name, "not read back")) for name, value in wanted.items()
    ]
    for name in sorted(set(found) - set(wanted) - set(ASSISTANT)):
        allowed = (FILLED_IN[name], "null") if name in FILLED_IN else (*NEUTRAL, "{}")
        pairs += [] if found[name] in allowed else [(f"parameter {name}", allowed[0], found[name])]
    wanted_processors = [_steering(one) for one in expected_processors(contract)]
    pairs.append(("processors", wanted_processors, [_steering(one) for one in unit.sampling.processors]))
    return _differences(unit, pairs)


def expected_processors(contract: SampledContract) -> tuple[Processor, ...]:
    """What a contract gives, in the library's order; a neutral value gives none. Top-k 0 is no top-k."""
    listed = (
        (contract.temperature != 1.0, "TemperatureLogitsWarper", {"temperature": repr(contract.temperature)}),
        (contract.top_k != 0, "TopKLogitsWarper", {"top_k": repr(contract.top_k)}),
        (contract.top_p < 1.0, "TopPLogitsWarper", {"top_p": repr(contract.top_p)}),
    )
    return tuple(Processor(name=name, values=values) for there, name, values in listed if there)


def _steering(processor: Processor) -> str:
    """A processor with the values that steer it: `TopPLogitsWarper(top_p=0.95)`."""
    kept = [f"{name}={value}" for name, value in processor.values.items() if (name, value) not in UNSTEERING]
    return f"{processor.name}({', '.join(kept)})"


def seed_identity(unit: SampledEvidence, contract: SampledContract, registered_id: str) -> Differences:
    """R07 5: base seed and run seed follow from the registered ID, the replicate and the source."""
    wanted = batch_seeds(contract.seeds, registered_id, source_id=unit.source_id, replicate=unit.replicate)
    found = unit.sampling.seeds
    return _differences(
        unit,
        (
            ("seed rule", wanted.rule, found.rule),
            ("base seed", wanted.base, found.base),
            ("run seed", wanted.run, found.run),
        ),
    )


def seeded_state(unit: SampledEvidence, *, gpus: int) -> Differences:
    """R07 5: just before the call every generator was where the run seed puts it, computed here without torch."""
    wanted = seeded_states(seed_value(unit.sampling.seeds), gpus=gpus)
    pairs = [
        (f"{name} state before the call", getattr(wanted, name), getattr(unit.rng_before, name)) for name in STATES
    ]
    return _differences(unit, pairs)


def drawn_generator(unit: SampledEvidence, device: Literal["cpu", "cuda"]) -> Differences:
    """R07 5: the draws came from the execution device's generator, one a step, and from no other generator."""
    sampling, wanted = unit.sampling, f"torch_{device}"
    pairs: list[Triple] = [("generator", wanted, sampling.generator), ("draws", unit.checks.steps, sampling.draws)]
    for name in STATES:
        before, after = getattr(unit.rng_before, name), getattr(unit.rng_after, name)
        moved = "drawn from" if before != after else "untouched"
        pairs.append((f"{name} generator", "drawn from" if name == wanted else "untouched", moved))
    return _differences(unit, pairs)


def sampled_steps(unit: SampledEvidence) -> Differences:
    """R07 7.1 (2): every emitted ID of every row was checked: its logits finite, itself drawable after the warpers.

    Counts of these steps (those that drew the argmax, those that could draw several IDs) can't exceed them.
    """
    emitted, checks = sum(cell.length for cell in unit.cells), unit.checks
    parts = {"drew the argmax": checks.argmax, "could draw several IDs": unit.sampling.several}
    beyond = tuple(
        differs(f"{_name(unit)} row steps that {name}", f"0 to {emitted}", count)
        for name, count in parts.items()
        if not 0 <= count <= emitted
    )
    return beyond + _differences(
        unit,
        (
            ("row steps checked", emitted, checks.rows_checked),
            ("row steps with finite logits", emitted, checks.finite),
            ("row steps that drew an ID with a probability", emitted, unit.sampling.drawable),
            ("steps", max((cell.length for cell in unit.cells), default=0), checks.steps),
        ),
    )


def draw_shape(unit: SampledEvidence, conditions: Sequence[str], columns: int) -> Differences:
    """R07 4 and 10: each draw was for all conditions, in the registered order, over all columns of the logits.

    Another order, half a batch or another width draws other tokens from the same state.
    """
    found = tuple(cell.condition for cell in unit.cells)
    shape = (unit.sampling.rows, unit.sampling.columns)
    return _differences(
        unit, (("rows", tuple(conditions), found), ("shape of a draw", (len(conditions), columns), shape))
    )


def replay_exact(first: SampledEvidence, second: SampledEvidence, condition: str, fields: Sequence[str]) -> Differences:
    """R07 7.1 (3) and 7.3: the same cell drawn again has the same value in each field; IDs say where they part."""
    same = (("source and replicate", _identity(first), _identity(second)),)
    where = f"{_name(first)} {condition}"
    if found := _differences(first, same):
        return found
    left, right = _cell(first, condition), _cell(second, condition)
    if left is None or right is None:
        return (differs(where, "one row on each side", f"{left is not None:d} and {right is not None:d}"),)
    pairs = [(name, _value(first, left, name), _value(second, right, name)) for name in fields]
    return tuple(differs(f"{where} {name}", *shown(name, one, other)) for name, one, other in pairs if one != other)


def replicates_part(first: Iterable[SampledEvidence], second: Iterable[SampledEvidence]) -> Differences:
    """R07 7.1 (4): two replicates over the same cells, under other seeds, and at least one cell parts."""
    one, other = ({unit.source_id: unit for unit in units} for units in (first, second))
    if set(one) != set(other) or not one:
        return (differs("sources of two replicates", sorted(one) or "one or more", sorted(other)),)
    found = [text for source in sorted(one) for text in _two_replicates(one[source], other[source])]
    parted, cells = parted_cells(one, other)
    if not parted:
        found.append(differs(f"{cells} cells of two replicates", "one or more that part", "none"))
    return tuple(found)


def _two_replicates(one: SampledEvidence, other: SampledEvidence) -> Differences:
    where = f"{one.source_id} {one.replicate} and {other.replicate}"
    prompts = [[(cell.condition, cell.prompt_sha256) for cell in unit.cells] for unit in (one, other)]
    pairs = (
        ("replicates", 2, len({one.replicate, other.replicate})),
        ("base seeds", 2, len({one.sampling.seeds.base, other.sampling.seeds.base})),
        ("run seeds", 2, len({one.sampling.seeds.run, other.sampling.seeds.run})),
        ("prompts", prompts[0], prompts[1]),
    )
    return tuple(differs(f"{where} {name}", left, right) for name, left, right in pairs if left != right)


def _value(unit: SampledEvidence, cell: CellRecord, name: str) -> object:
    values: dict[str, object] = {
        "run_seed": unit.sampling.seeds.run,
        "text": cell.text_escaped,
        "stop_state": (cell.eos, cell.truncated),
        "torch_cpu_before": unit.rng_before.torch_cpu,
        "torch_cuda_before": unit.rng_before.torch_cuda,
    }
    return values[name] if name in values else getattr(cell, name)


def _cell(unit: SampledEvidence, condition: str) -> CellRecord | None:
    cells = [cell for cell in unit.cells if cell.condition == condition]
    return cells[0] if len(cells) == 1 else None


def _identity(unit: SampledEvidence) -> tuple[str, str]:
    return unit.source_id, unit.replicate


def _name(unit: SampledEvidence) -> str:
    return f"{unit.source_id} {unit.replicate}"


def _differences(unit: SampledEvidence, pairs: Iterable[Triple]) -> Differences:
    return tuple(differs(f"{_name(unit)} {name}", one, other) for name, one, other in pairs if one != other)
