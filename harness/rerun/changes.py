"""Single changes to one side's conditions: everything in which the sides differ, then what is worth trying besides.

One thing is changed at a time, and nothing is chosen for its result. What can't be changed here is listed as untried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.canon import digest
from harness.difference.leaves import ABSENT
from harness.errors import words
from harness.records.decoding import DecodeContract
from harness.records.explanation import Aspect, AspectName, ChangeKind
from harness.records.protocol import Execution, Placement
from harness.rerun.conditions import Conditions, device_for
from harness.rerun.rows import BESIDE, row_changes
from harness.rerun.rules import rule_changes
from harness.rerun.trial import BySeed, Forward, Load, Program
from harness.snapshots.environments import CAPABILITY, VARIABLE

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
# Of what `generate` is called by: what changes logits. The rest is the draws'.
CONTRACT = {"cache": ("use_cache", "cache"), "repetition_penalty": ("repetition_penalty",)}
LOWER = {"DEFAULT": "default", "AVX2": "avx2"}
RECORDED = f"kernels.{VARIABLE}"  # before the name of a variable
NO_EXPERTS = "none"  # of a dense model
NOT_SETTABLE: dict[AspectName, str] = {
    "libraries": "another version isn't installed in this environment",
    "machine": "this machine is the one there is",
    "kernels": "a library's build or the processor decides it",
    "threads": "it isn't set by a run",
}
NOT_ALONE = "what the records hold of the other side isn't enough to change it alone here"
# Aspects that an aspect of the records is changed by, where a change has another name; `protocol` acts by the others.
FIELD_OF: dict[str, AspectName] = {
    "tokens beside": "batch",
    "deterministic_algorithms": "settings",
    "float32_matmul_precision": "settings",
    "repetition_penalty": "sampler",
}
BY_OTHERS: tuple[AspectName, ...] = ("protocol",)
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
    """All of them, each field once. `between`: what the records say; `turned`: the base is A, not B.

    Whatever the records differ in is there, made or untried; only of what they don't differ in something is tried
    besides. `other` is None where the other side's conditions can't be made: its records have its settings.
    """
    found = [*_of_records(base, between, turned=turned)] if other is None else [*_of_sides(base, other)]
    found += _untried(base, between, turned=turned, named={one.field for one in found})
    found += _left(between, turned=turned, covered={aspect_of(one.field) for one in found})
    named = {one.field for one in found}
    differing = {aspect_of(one) for one in named}
    besides = (one for one in _besides(base, registered) if one.field not in named)
    return (*found, *(one for one in besides if aspect_of(one.field) not in differing))


def aspect_of(field: str) -> str:
    """The aspect that a change is of."""
    if field.startswith("variable "):
        return field
    return FIELD_OF.get(field, field)


def _of_sides(base: Conditions, other: Conditions) -> Iterator[Single]:
    yield from _of_forward(base, other.forward)
    yield from _of_load(base, other.load)


def _of_records(base: Conditions, between: tuple[Aspect, ...], *, turned: bool) -> Iterator[Single]:
    """Settings of a load that the records name with their values."""
    for aspect in between:
        for one in aspect.differing:
            before, after = (one.a, one.b) if turned else (one.b, one.a)
            if aspect.name == "kernels" and one.field.startswith(RECORDED):
                yield _variable(BETWEEN, base, one.field.removeprefix(RECORDED), None if after == ABSENT else after)
            elif one.field in PLAIN and str(getattr(base.load, one.field)) == before:
                value = next((made for made in _typed(one.field, after, base) if str(made) == after), None)
                if value is not None:
                    yield _load(BETWEEN, one.field, before, after, base=base, **{one.field: value})


def _typed(field: str, text: str, base: Conditions) -> Iterator[object]:
    """A recorded value in the type that a load has for it; nothing for a word that no load has."""
    own = getattr(base.load, field)
    if isinstance(own, bool):
        yield from (True, False)
    elif isinstance(own, int):
        yield from (int(text),) if text.isdecimal() else ()
    else:
        yield from (text,) if field != "dtype" or text in OTHERS["dtype"] else ()


def _left(between: tuple[Aspect, ...], *, turned: bool, covered: set[str]) -> Iterator[Single]:
    """Aspects in which the records differ and that no change is of: listed, so that nobody takes them for equal."""
    for aspect in between:
        if aspect.name in BY_OTHERS or aspect.name in NOT_SETTABLE or aspect.name in covered:
            continue
        for one in aspect.differing[:1]:
            before, after = (one.a, one.b) if turned else (one.b, one.a)
            yield Single(BETWEEN, aspect.name, before, after, None, NOT_ALONE)


@dataclass(frozen=True, slots=True)
class Registered:
    """What the base's protocol registers to choose from."""

    placements: tuple[Placement, ...]
    execution: Execution


def _of_forward(base: Conditions, other: Forward) -> Iterator[Single]:
    """Prompt, batch, what the rows beside it have, draws, program with its executor, cache and what it is called by."""
    own = base.forward
    for field, rows, row in row_changes(own, other):
        made = msgspec.structs.replace(own, rows=rows, row=row)
        before, after = (f"its own of {_names(own, made)}", "the other side's") if field == BESIDE else _both(own, made)
        yield _forward(BETWEEN, field, before, after, base=base, rows=rows, row=row)
    for field, before, after, rule in rule_changes(own.rule, other.rule):
        yield _forward(BETWEEN, field, before, after, base=base, rule=rule)
    if (own.program, own.executed) != (other.program, other.executed):
        changed = {"program": other.program, "executed": other.executed}
        yield _forward(BETWEEN, "program", program_words(own), program_words(other), base=base, **changed)
    for field, names in CONTRACT.items():
        changed = {name: getattr(other.contract, name) for name in names}
        contract = msgspec.structs.replace(own.contract, **changed)
        if contract != own.contract:
            before, after = (_contract_words(one, names) for one in (own.contract, contract))
            yield _forward(BETWEEN, field, before, after, base=base, contract=contract)


def _contract_words(contract: DecodeContract, names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {getattr(contract, name)}" for name in names)


def _both(own: Forward, made: Forward) -> tuple[str, str]:
    """Two batches in words; by the digest of what is in them where the shapes are the same."""
    before, after = batch_words(own), batch_words(made)
    if before != after:
        return before, after
    one, other = (digest([row.prompt_ids for row in forward.rows])[:16] for forward in (own, made))
    return f"{before} ({one})", f"{after} ({other})"


def _names(own: Forward, made: Forward) -> str:
    pairs = zip(own.rows, made.rows, strict=True)
    return ", ".join(one.condition for one, two in pairs if one.forced != two.forced)


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
            elif not one.field.startswith(RECORDED) and one.field not in named:
                yield Single(BETWEEN, one.field, before, after, None, NOT_SETTABLE[aspect.name])


def _besides(base: Conditions, registered: Registered) -> Iterator[Single]:
    """What often decides a last bit: batch, cache, program, threads, kernels, placement, dtype."""
    yield _alone(base)
    yield _forward(BESIDES, "cache", "with", "without, in one forward", base=base, program="whole", executed=None)
    program: Program = "own_loop" if base.forward.program == "generate" else "generate"
    changed: dict[str, Any] = {"program": program, "executed": None}
    yield _forward(BESIDES, "program", program_words(base.forward), program, base=base, **changed)
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


def program_words(forward: Forward) -> str:
    """The program; of the executor what it is given too."""
    one = forward.executed
    if one is None:
        return forward.program
    how = "captured" if one.captured else "uncaptured"
    kernels = f" with {', '.join(one.graph.kernels)}" if one.graph.kernels else ""
    columns = f"columns for {one.budget} new tokens"
    return f"{forward.program} ({one.graph.step} step{kernels}, {how}, {columns}, a look every {one.graph.look})"
