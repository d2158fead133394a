"""The conditions that the records of two sides hold for one cell, aspect by aspect: same, different, or not to be said.

A frozen side holds digests where a run holds fields. What one side lacks is `unknown` with its reason, never `same`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from harness.canon import ids_sha256
from harness.compare import common_prefix
from harness.difference.leaves import ABSENT, differing, leaves
from harness.difference.side import Side, SideUnit
from harness.records.difference import Fact
from harness.records.explanation import Aspect, AspectField, AspectName
from harness.records.graph import GraphExecution
from harness.records.protocol import GraphCheckProtocol, GraphTaskProtocol, LoopCheckProtocol, TapedProtocol
from harness.snapshots.environments import environment_facts

Held = dict[str, str]
ProgramName = Literal["generate", "own_loop", "executor"]
CAPTURED = "captured"  # in an environment's generation_config, and in the program's aspect
ORDER: tuple[AspectName, ...] = get_args(AspectName)
NO_ENVIRONMENT = "frozen results hold the environment's digest alone"
NO_PLACEMENT = "frozen results hold no placement"
NO_PROMPT_IDS = "frozen results hold the prompt's digest, and no padding"
NO_CHECKPOINT = "the profile that pins it isn't at hand"
# Fields of an environment, by the aspect that they belong to; `generation_config` is cut in two.
OF_ENVIRONMENT: Mapping[AspectName, tuple[str, ...]] = {
    "dtype": ("dtype",),
    "attention": ("attention",),
    "experts": ("experts",),
    "settings": ("deterministic_algorithms", "float32_matmul_precision"),
    "kernels": ("kernels", "cpu_capability"),
    "libraries": ("packages", "python"),
    "machine": ("machine", "cpu", "gpus", "cuda"),
    "threads": ("threads", "interop_threads"),
}
CACHE = ("generation_config.use_cache", "generation_config.cache_implementation")
CACHED = ("cache", "parameters.use_cache", "parameters.cache_implementation")
SAMPLER = ("sampler", "parameters", "processors", "columns")
# What the executor over a fixed cache reads back of itself: the program's, whatever draws inside it.
EXECUTED = tuple(f"generation_config.{name}" for name in ("executor", "step", "captured", "look"))
RAN = "ran."  # the same of a unit
NAMED = 8  # members that stand for a larger table


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell that both sides have, with its units, what compare found besides, and the step in which it parts."""

    a: Side
    b: Side
    units: tuple[SideUnit, SideUnit]
    condition: str
    facts: tuple[Fact, ...]
    step: int | None


def aspects(cell: Cell) -> tuple[Aspect, ...]:
    """Every aspect of a cell, in the record's order."""
    made: dict[AspectName, Callable[[], Aspect]] = {
        "prompt": lambda: _prompt(cell),
        "batch": lambda: _batch(cell),
        "draws": lambda: _drawn(cell, "draws"),
        "sampler": lambda: _drawn(cell, "sampler"),
        "program": lambda: _programs(cell),
        "cache": lambda: _drawn(cell, "cache"),
        "checkpoint": lambda: _checkpoint(cell),
        "protocol": lambda: _protocol(cell),
        "placement": lambda: _placement(cell),
    }
    return tuple(made[name]() if name in made else _of_environment(cell, name) for name in ORDER)


def program(side: Side) -> ProgramName:
    """What decodes a side's rows, by its protocol's kind: `executor` is the one over a fixed cache."""
    kind = side.registered.kind
    if executor_of(side) is not None:
        return "executor"
    own = isinstance(kind, TapedProtocol) or (isinstance(kind, LoopCheckProtocol) and kind.by == "own_loop")
    return "own_loop" if own else "generate"


def executor_of(side: Side) -> GraphExecution | None:
    """The executor over a fixed cache as a side's protocol registers it; None where another program decodes."""
    kind = side.registered.kind
    if isinstance(kind, GraphTaskProtocol):
        return kind.decode.graph
    return kind.graph if isinstance(kind, GraphCheckProtocol) else None


def captured(side: Side) -> bool:
    """Whether the executor's steps were captured: as read back, of frozen results as the registered device has it."""
    if side.environment is not None:
        return side.environment.generation_config.get(CAPTURED) == "true"
    return side.registered.kind.execution.device == "cuda"


def _programs(cell: Cell) -> Aspect:
    """What decodes; of the executor over a fixed cache also how it was registered and whether steps were captured."""
    sides: list[Held] = []
    for side, unit in zip((cell.a, cell.b), cell.units, strict=True):
        graph = executor_of(side)
        held: Held = {"program": program(side)}
        if graph is not None:
            held |= leaves(msgspec.to_builtins(graph)) | {CAPTURED: str(captured(side)).lower()}
            held |= {"columns_for": f"{unit.plain['max_new_tokens']} new tokens"}
        sides.append(held)
    return _aspect("program", sides)


def _aspect(name: AspectName, sides: Iterable[Mapping[str, str]], why: str = "") -> Aspect:
    one, other = sides
    found = tuple(AspectField(field=field, a=left, b=right) for field, left, right in differing(one, other))
    return Aspect(
        name=name, state="differs" if found else "same", held="" if found else _words(one), differing=found, why=why
    )


def _unknown(name: AspectName, why: str) -> Aspect:
    return Aspect(name=name, state="unknown", held="", differing=(), why=why)


def _words(held: Mapping[str, str]) -> str:
    """A few values in words: members without the table's name."""
    shown = [f"{name.rpartition('.')[2] or name} {value}" for name, value in list(held.items())[:NAMED]]
    more = len(held) - NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "") or "none"


def _prompt(cell: Cell) -> Aspect:
    """Digests of source and prompt; the IDs from the first position that differs where both sides have them."""
    sides: list[Held] = []
    for unit in cell.units:
        prompt = unit.cells[cell.condition]["prompt_sha256"]
        sides.append({"source_text_sha256": unit.plain["source_text_sha256"], "prompt_sha256": prompt})
    rows = [unit.rows.get(cell.condition) for unit in cell.units]
    if sides[0] != sides[1] and rows[0] is not None and rows[1] is not None:
        at = common_prefix(rows[0].prompt_ids, rows[1].prompt_ids)
        for held, row in zip(sides, rows, strict=True):
            if row is not None:
                held["prompt_ids"] = f"position {at} of {len(row.prompt_ids)}: {list(row.prompt_ids[at : at + 4])}"
    return _aspect("prompt", sides)


def _batch(cell: Cell) -> Aspect:
    """Rows in order, and what the others have before the step; width and padding where both sides hold them."""
    sides: list[Held] = [{"rows": str(len(unit.cells)), "conditions": " ".join(unit.cells)} for unit in cell.units]
    beside = [_beside(unit, cell) for unit in cell.units]
    if beside[0] != beside[1]:
        for held, digests in zip(sides, beside, strict=True):
            held["tokens_beside"] = ", ".join(one for one in digests if one not in beside[0] or one not in beside[1])
    if not all(cell.condition in unit.rows for unit in cell.units):
        return _aspect("batch", sides, why=NO_PROMPT_IDS)
    for held, unit in zip(sides, cell.units, strict=True):
        widths = {row.left_padding + len(row.prompt_ids) for row in unit.rows.values()}
        held |= {"width": str(max(widths)), "left_padding": str(unit.rows[cell.condition].left_padding)}
        held["prompts"] = " ".join(row.prompt_sha256[:16] for row in unit.rows.values())
    same = sides[0] == sides[1]
    return _aspect("batch", ({k: v for k, v in held.items() if not same or k != "prompts"} for held in sides))


def _beside(unit: SideUnit, cell: Cell) -> list[str]:
    """Digests, by condition, of what the other rows have before the step; arithmetic of a batch may depend on them."""
    rows = {name: one["generated_ids"] for name, one in unit.cells.items() if "generated_ids" in one}
    return [f"{name} {ids_sha256(ids[: cell.step or 0])[:16]}" for name, ids in rows.items() if name != cell.condition]


def _drawn(cell: Cell, name: AspectName) -> Aspect:
    """What chooses tokens, as units and environments have it: seeds and tapes, sampler, cache."""
    sides = [_chosen(side, unit, name) for side, unit in zip((cell.a, cell.b), cell.units, strict=True)]
    lacking = [unit for unit in cell.units if not unit.rows]
    if lacking and name == "draws" and any(unit.rows for unit in cell.units):
        sides = [{key: held[key] for key in held if key in sides[0] and key in sides[1]} for held in sides]
    elif lacking and name != "draws":
        return _environment_digest(cell, name)
    return _aspect(name, sides)


def _chosen(side: Side, unit: SideUnit, name: AspectName) -> Held:
    held: Held = {"run_seed": str(unit.plain["run_seed"])} if "run_seed" in unit.plain else {}
    config = {} if side.environment is None else environment_facts(side.environment)
    config = {key: one for key, one in config.items() if key.startswith("generation_config.") and key not in EXECUTED}
    if name == "cache":
        taken = {key: value for key, value in unit.drawn.items() if key in CACHED}
        return {key: value for key, value in config.items() if key in CACHE} | taken
    of_sampler = {key: value for key, value in unit.drawn.items() if key.partition(".")[0].partition("[")[0] in SAMPLER}
    of_sampler = {key: value for key, value in of_sampler.items() if key not in CACHED}
    if name == "sampler":
        return {key: value for key, value in config.items() if key not in CACHE} | of_sampler
    drawn = {key: value for key, value in unit.drawn.items() if not key.startswith(RAN)}
    return held | {key: value for key, value in drawn.items() if key not in of_sampler and key not in CACHED}


def _environment_digest(cell: Cell, name: AspectName) -> Aspect:
    """All that can be said where a side has no fields: the same digest, or nothing."""
    if cell.a.environment_sha256 == cell.b.environment_sha256:
        return Aspect(name=name, state="same", held="one environment, by its digest", differing=(), why="")
    return _unknown(name, NO_ENVIRONMENT)


def _of_environment(cell: Cell, name: AspectName) -> Aspect:
    if cell.a.environment is None or cell.b.environment is None:
        return _environment_digest(cell, name)
    sides = (environment_facts(cell.a.environment), environment_facts(cell.b.environment))
    wanted = OF_ENVIRONMENT[name]
    return _aspect(name, ({key: one for key, one in side.items() if key.partition(".")[0] in wanted} for side in sides))


def _checkpoint(cell: Cell) -> Aspect:
    one, other = cell.a.checkpoint, cell.b.checkpoint
    if one is None or other is None:
        return _unknown("checkpoint", NO_CHECKPOINT)
    found = _aspect("checkpoint", (one, other))
    return found if found.differing else msgspec.structs.replace(found, held=f"{len(one)} files by digest")


def _protocol(cell: Cell) -> Aspect:
    """Digest and fields, as compare has them; a port's deviations too."""
    named = [one for one in cell.facts if one.group in ("protocol", "port")]
    if named:
        fields = tuple(AspectField(field=one.field, a=one.a, b=one.b) for one in named)
        why = next((one.where for one in named if one.field == "digest" and one.where), "")
        return Aspect(name="protocol", state="differs", held="", differing=fields, why=why)
    return Aspect(name="protocol", state="same", held=f"{cell.a.protocol} {cell.a.digest[:16]}", differing=(), why="")


def _placement(cell: Cell) -> Aspect:
    one, other = cell.a.placement, cell.b.placement
    if one is None or other is None:
        return _unknown("placement", NO_PLACEMENT)
    found = _aspect("placement", (leaves(msgspec.to_builtins(placement)) for placement in (one, other)))
    return found if found.differing else msgspec.structs.replace(found, held=one.id or ABSENT)
