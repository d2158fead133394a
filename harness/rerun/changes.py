"""Single changes to one side's conditions: everything in which the sides differ, then what is worth trying besides.

One thing is changed at a time, and nothing is chosen for its result. What can't be changed here is listed as untried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.errors import words
from harness.model.here import CAPABILITY
from harness.records.explanation import Aspect, ChangeKind
from harness.records.protocol import Execution, Placement
from harness.rerun.conditions import Conditions, device_for
from harness.rerun.trial import BySeed, Forward, Load

BETWEEN: ChangeKind = "between the sides"
BESIDES: ChangeKind = "tried besides"
PLAIN = ("dtype", "attention", "experts", "threads", "deterministic_algorithms", "float32_matmul_precision")
# What is tried where the sides agree in it; the first that isn't the base's own.
OTHERS: dict[str, tuple[object, ...]] = {
    "threads": (1, 2),
    "experts": ("grouped_mm", "eager"),
    "attention": ("eager", "sdpa"),
    "dtype": ("float32", "bfloat16"),
}
LOWER = {"DEFAULT": "default", "AVX2": "avx2"}
NO_EXPERTS = "none"  # of a dense model
NOT_SETTABLE = {
    "libraries": "another version isn't installed in this environment",
    "machine": "this machine is the one there is",
    "kernels": "a library's build or the processor decides it",
    "threads": "it isn't set by a run",
}
ONE_BATCH = "a row's seeded draw is part of its batch's: alone it is another draw"


@dataclass(frozen=True, slots=True)
class Single:
    """One change. `conditions` are what it makes; None where it can't be made, and `why`."""

    kind: ChangeKind
    field: str
    before: str
    after: str
    conditions: Conditions | None
    why: str = ""


def single_changes(
    base: Conditions, other: Conditions | None, *, between: tuple[Aspect, ...], turned: bool, registered: "Registered"
) -> tuple[Single, ...]:
    """All of them, each field once. `between`: what the records say; `turned`: the base is A, not B."""
    found = [] if other is None else [*_of_forward(base, other.forward), *_of_load(base, other.load)]
    found += _untried(base, between, turned=turned, named={one.field for one in found})
    named = {one.field for one in found}
    return (*found, *(one for one in _besides(base, registered) if one.field not in named))


@dataclass(frozen=True, slots=True)
class Registered:
    """What the base's protocol registers to choose from."""

    placements: tuple[Placement, ...]
    execution: Execution


def _of_forward(base: Conditions, other: Forward) -> Iterator[Single]:
    """Prompt or batch or what the rows beside it have, draws, program."""
    own = base.forward
    if own.rows != other.rows:
        field, before, after = _rows(own, other)
        yield _forward(BETWEEN, field, before, after, base=base, rows=other.rows, row=other.row)
    if own.rule != other.rule:
        yield _forward(BETWEEN, "draws", rule_words(own), rule_words(other), base=base, rule=other.rule)
    if own.program != other.program:
        yield _forward(BETWEEN, "program", own.program, other.program, base=base, program=other.program)


def _rows(own: Forward, other: Forward) -> tuple[str, str, str]:
    """What two batches differ in: the row's prompt, the batch's shape, or tokens of other rows before the step."""
    if own.rows[own.row].prompt_ids != other.rows[other.row].prompt_ids:
        return "prompt", batch_words(own), batch_words(other)
    if _shape(own) != _shape(other):
        return "batch", batch_words(own), batch_words(other)
    pairs = zip(own.rows, other.rows, strict=True)
    names = ", ".join(one.condition for one, two in pairs if one.forced != two.forced)
    return "tokens beside", f"its own of {names}", "the other side's"


def _shape(forward: Forward) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(one.condition, one.left_padding, one.prompt_ids) for one in forward.rows]


def _of_load(base: Conditions, other: Load) -> Iterator[Single]:
    """Checkpoint, each setting, each variable, placement with its device."""
    own = base.load
    if own.checkpoint != other.checkpoint:
        changed = {"checkpoint": other.checkpoint, "profile": other.profile}
        yield _load(BETWEEN, "checkpoint", "its own", "the other side's", base=base, **changed)
    for name in PLAIN:
        before, after = getattr(own, name), getattr(other, name)
        if before != after:
            yield _load(BETWEEN, name, str(before), str(after), base=base, **{name: after})
    for name in sorted({*own.variables, *other.variables}):
        before, after = own.variables.get(name), other.variables.get(name)
        if before != after:
            yield _variable(BETWEEN, base, name, after)
    if (own.placement, own.device) != (other.placement, other.device):
        changed = {"placement": other.placement, "device": other.device}
        yield _load(BETWEEN, "placement", own.placement.id, other.placement.id, base=base, **changed)


def _untried(base: Conditions, between: tuple[Aspect, ...], *, turned: bool, named: set[str]) -> Iterator[Single]:
    """Differences of the records that no process here can take over; the processor's kernels only downwards."""
    for aspect in between:
        for one in aspect.differing if aspect.name in NOT_SETTABLE else ():
            before, after = (one.a, one.b) if turned else (one.b, one.a)
            if one.field == "cpu_capability" and after in LOWER and f"variable {CAPABILITY}" not in named:
                yield _variable(BETWEEN, base, CAPABILITY, LOWER[after])
            elif one.field.removeprefix("kernels.env:") == one.field and one.field not in named:
                yield Single(BETWEEN, one.field, before, after, None, NOT_SETTABLE[aspect.name])


def _besides(base: Conditions, registered: Registered) -> Iterator[Single]:
    """What often decides a last bit: batch, cache, program, threads, kernels, placement, dtype."""
    yield _alone(base)
    yield _forward(BESIDES, "cache", "with", "without, in one forward", base=base, program="whole")
    program = "own_loop" if base.forward.program == "generate" else "generate"
    yield _forward(BESIDES, "program", base.forward.program, program, base=base, program=program)
    for name, values in OTHERS.items():
        own = getattr(base.load, name)
        if own == NO_EXPERTS:
            continue
        value = next(one for one in values if one != own)
        yield _load(BESIDES, name, str(own), str(value), base=base, **{name: value})
    if base.load.device == "cpu" and CAPABILITY not in base.load.variables:
        yield _variable(BESIDES, base, CAPABILITY, "default")
    for placement in registered.placements:
        device = device_for(placement, registered.execution)
        if placement != base.load.placement and device == base.load.device:
            changed = {"placement": placement, "device": device}
            yield _load(BESIDES, "placement", base.load.placement.id, placement.id, base=base, **changed)


def _alone(base: Conditions) -> Single:
    own = base.forward
    alone = msgspec.structs.replace(own.rows[own.row], left_padding=0)
    before, after = batch_words(own), batch_words(msgspec.structs.replace(own, rows=(alone,), row=0))
    if isinstance(own.rule, BySeed):
        return Single(BESIDES, "batch", before, after, None, ONE_BATCH)
    return _forward(BESIDES, "batch", before, after, base=base, rows=(alone,), row=0)


def _forward(kind: ChangeKind, field: str, before: str, after: str, *, base: Conditions, **changed: Any) -> Single:
    made = Conditions(base.load, msgspec.structs.replace(base.forward, **changed))
    return Single(kind, field, before, after, made)


def _load(kind: ChangeKind, field: str, before: str, after: str, *, base: Conditions, **changed: Any) -> Single:
    made = Conditions(msgspec.structs.replace(base.load, **changed), base.forward)
    return Single(kind, field, before, after, made)


def _variable(kind: ChangeKind, base: Conditions, name: str, value: str | None) -> Single:
    kept = {key: one for key, one in base.load.variables.items() if key != name}
    variables = kept if value is None else kept | {name: value}
    before, after = base.load.variables.get(name, "unset"), "unset" if value is None else value
    return _load(kind, f"variable {name}", words(before), words(after), base=base, variables=variables)


def batch_words(forward: Forward) -> str:
    """Rows, their width with what is forced, and the row's own prompt."""
    count, row = len(forward.rows), forward.rows[forward.row]
    width = max(one.left_padding + len(one.prompt_ids) for one in forward.rows)
    return f"{count} {'row' if count == 1 else 'rows'} of {width} tokens, the row's own {len(row.prompt_ids)}"


def rule_words(forward: Forward) -> str:
    """How the token is chosen, with the number that it is drawn by."""
    rule = forward.rule
    if isinstance(rule, BySeed):
        return f"seed {rule.seed}, temperature {rule.temperature}, top_p {rule.top_p}, top_k {rule.top_k}"
    u = getattr(rule, "u", "")
    return f"u {u}" if u else "argmax"
