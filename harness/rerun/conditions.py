"""The conditions under which a side's step was made, from its records: a process with one load, and a batch.

What frozen results don't hold is as their protocol registers it, and their prompts are the other side's where the
digests are the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.difference.side import Side, SideUnit
from harness.errors import ComparisonError, HarnessError
from harness.explain.aspects import Cell, captured, executor_of, program
from harness.explain.tape import tape_of
from harness.model.identity import digests_of_a_run
from harness.places import Places, places
from harness.protocols.folders import beside
from harness.protocols.load import LoadedProtocol
from harness.protocols.loops import greedy_contract
from harness.records.decoding import DecodeContract
from harness.records.difference import SideName
from harness.records.profile import Profile
from harness.records.protocol import (
    DepthProtocol,
    Execution,
    Placement,
    SamplingProtocol,
    TapedProtocol,
)
from harness.records.run import Environment, PlacementFacts
from harness.rerun.rows import padded
from harness.rerun.trial import ByArgmax, BySeed, ByTape, Executed, Forward, Load, Row
from harness.snapshots.environments import VARIABLE

OWED_TODO = "Without it nothing says whether a folder has the side's weights: compare with a run, which records it."
CHECKPOINT_TODO = "Name its folder with --checkpoint DIR; it may be given twice."


@dataclass(frozen=True, slots=True)
class Conditions:
    """A process with its load, and the forward in it."""

    load: Load
    forward: Forward


@dataclass(frozen=True, slots=True)
class Step:
    """What is made again: a cell's step, and the IDs that A and B have there."""

    cell: Cell
    step: int
    candidates: tuple[int, int]


@dataclass(slots=True)
class Checkpoints:
    """Folders in which a side's checkpoint may lie: those named, then the profile's own. Each is hashed once."""

    named: tuple[Path, ...]
    _digests: dict[tuple[str, Path], dict[str, str]] = field(default_factory=dict)

    def find(self, loaded: LoadedProtocol, wanted: Iterable[tuple[str, str]]) -> Path:
        """The folder whose files have these digests; ComparisonError where none has, or where a file's is owed."""
        own = beside(loaded.folder, "checkpoint")
        trees = (places(), *map(Places, loaded.folder.parents))
        embedded = [tree.models / loaded.profile.id / "checkpoint" for tree in trees]
        folders, pinned, found = [*self.named, *own, *embedded], dict(wanted), "no such folder"
        where = f"checkpoint of {loaded.protocol.id}"
        expected = f"a folder with its {len(pinned)} recorded digests"
        if owed := [file.name for file in loaded.profile.files if file.name not in pinned]:
            raise ComparisonError(where, expected="a digest of each file", found=f"none of {owed[0]}", todo=OWED_TODO)
        for folder in (one for one in folders if one.is_dir()):
            found = self._other(loaded.profile, folder, pinned)
            if not found:
                return folder.resolve()
        raise ComparisonError(where, expected=expected, found=found, todo=CHECKPOINT_TODO)

    def require_named(self, sides: Iterable[Side]) -> None:
        """ComparisonError for a folder that was named and has no side's digests: nothing else is taken in its place."""
        asked = [(side.registered.loaded, side.checkpoint) for side in sides]
        known = [(loaded.profile, dict(pinned)) for loaded, pinned in asked if loaded is not None and pinned]
        for folder in self.named:
            found = [self._other(profile, folder, pinned) for profile, pinned in known]
            if found and all(found):
                where, expected = f"--checkpoint {folder}", "the recorded digests of A or of B"
                raise ComparisonError(where, expected=expected, found=found[0], todo="Name a side's own, or none.")

    def _other(self, profile: Profile, folder: Path, pinned: dict[str, str]) -> str:
        """What keeps a folder from having the digests; empty where it has them."""
        try:
            here = self._of(profile, folder.resolve())
        except HarnessError as error:
            return str(error)
        other = [name for name, sha256 in pinned.items() if here.get(name) != sha256]
        return f"{other[0]} with another in {folder.resolve().name}" if other else ""

    def _of(self, profile: Profile, folder: Path) -> dict[str, str]:
        key = (profile.id, folder)
        if key not in self._digests:
            self._digests[key] = digests_of_a_run(profile, folder)
        return self._digests[key]


def conditions_of(name: SideName, step: Step, checkpoints: Checkpoints) -> Conditions:
    """A side's own conditions; ComparisonError naming what its records or this machine don't have."""
    at = 0 if name == "a" else 1
    side = (step.cell.a, step.cell.b)[at]
    loaded = side.registered.loaded
    if loaded is None or isinstance(side.registered.kind, DepthProtocol):
        found = side.registered.why or "a trace"
        where = f"protocol of {name.upper()}, {side.protocol}"
        raise ComparisonError(where, expected="one that decodes, under the side's digest", found=found, todo="Add it.")
    if side.checkpoint is None:
        todo = "Add the profile that pins it."
        raise ComparisonError(f"checkpoint of {name.upper()}", expected="its digests", found="none", todo=todo)
    folder = checkpoints.find(loaded, side.checkpoint.items())
    return Conditions(_load(side, loaded, folder), _forward(at, side, step))


def _load(side: Side, loaded: LoadedProtocol, folder: Path) -> Load:
    """Settings as the environment has them; of frozen results as the protocol registers them."""
    placement, device = _placed(side, loaded)
    settings: Environment | Execution = side.environment or loaded.protocol.execution
    kernels = {} if side.environment is None else side.environment.kernels
    return Load(
        profile=loaded.profile,
        checkpoint=str(folder),
        placement=placement,
        device=device,
        dtype="bfloat16" if settings.dtype == "bfloat16" else "float32",
        attention=settings.attention,
        experts=settings.experts,
        threads=settings.threads,
        deterministic_algorithms=settings.deterministic_algorithms,
        float32_matmul_precision=settings.float32_matmul_precision,
        variables={name.removeprefix(VARIABLE): one for name, one in kernels.items() if name.startswith(VARIABLE)},
    )


def device_for(placement: Placement, execution: Execution) -> Literal["cpu", "cuda"]:
    """The device that a registered placement computes on."""
    return execution.device if placement.gpu_memory == "none" else "cuda"


def _placed(side: Side, loaded: LoadedProtocol) -> tuple[Placement, Literal["cpu", "cuda"]]:
    """The registered placement of that ID; a port's own as its map was read back."""
    protocol, facts = loaded.protocol, side.placement
    wanted = protocol.placement if facts is None else facts.id
    placement = next((one for one in protocol.placements if one.id == wanted), None)
    if facts is None and placement is not None:
        return placement, device_for(placement, protocol.execution)
    if facts is None:
        raise RuntimeError(f"{protocol.id} registers no placement {wanted}")
    device: Literal["cpu", "cuda"] = "cuda" if any(one.startswith("cuda") for one in facts.parameter_bytes) else "cpu"
    if not facts.dispatched and device == "cpu" and facts.device_map.get("", "cpu").startswith("cuda"):
        device = "cuda"
    return placement or _as_read(facts), device


def _as_read(facts: PlacementFacts) -> Placement:
    away = {name: facts.device_map[name] for name in facts.offloaded if name in facts.device_map}
    kept = next(iter(away.values()), "none")
    return Placement(
        id=facts.id,
        device_map="explicit" if facts.dispatched else "single",
        gpu_memory="none",
        cpu_memory="none",
        offload_device="disk" if kept == "disk" else "cpu" if away else "none",
        resident=tuple(name for name in facts.device_map if name not in away) if facts.dispatched else (),
        offloaded=tuple(away),
        allocator="",
    )


def _forward(at: int, side: Side, step: Step) -> Forward:
    unit, other = step.cell.units[at], step.cell.units[1 - at]
    names = list(unit.cells)
    rows = tuple(_row(unit, other, name, step.step) for name in names)
    return Forward(
        rows=rows if len(unit.rows) == len(names) else padded(rows),  # a lent prompt has the padding of another batch
        row=names.index(step.cell.condition),
        step=step.step,
        program=program(side),
        executed=_executed(side, unit),
        contract=_contract(side),
        rule=_rule(side, unit, step.step),
        candidates=step.candidates,
    )


def _executed(side: Side, unit: SideUnit) -> Executed | None:
    graph = executor_of(side)
    return (
        None
        if graph is None
        else Executed(graph=graph, captured=captured(side), budget=int(unit.plain["max_new_tokens"]))
    )


def _row(unit: SideUnit, other: SideUnit, condition: str, step: int) -> Row:
    cell, there = unit.cells[condition], other.cells.get(condition, {})
    prompt = unit.rows.get(condition)
    if prompt is None and there.get("prompt_sha256") == cell["prompt_sha256"]:
        prompt = other.rows.get(condition)
    if prompt is None:
        where = f"{unit.key.source_id} {condition}: prompt"
        todo = "Compare with a run folder: frozen results hold the prompt's digest alone."
        raise ComparisonError(where, expected="its token IDs", found="a digest", todo=todo)
    return Row(
        condition=condition,
        prompt_ids=prompt.prompt_ids,
        left_padding=prompt.left_padding,
        forced=tuple(cell["generated_ids"][:step]),
    )


def _contract(side: Side) -> DecodeContract:
    """What `generate` is called under, greedy: a drawn side's warpers come after the logits that are asked for."""
    kind = side.registered.kind
    if isinstance(kind, TapedProtocol):
        return greedy_contract(kind)
    if not isinstance(kind, SamplingProtocol):
        if isinstance(kind, DepthProtocol):
            raise RuntimeError("a trace decodes nothing")
        return kind.decode
    decode = kind.decode
    return DecodeContract(
        strategy="greedy",
        do_sample=False,
        num_beams=1,
        use_cache=decode.use_cache,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        repetition_penalty=decode.repetition_penalty,
        cache=decode.cache,
        rows_per_batch=decode.rows_per_batch,
        generator_seed=0,
        official_temperature=decode.official_temperature,
        official_top_p=decode.official_top_p,
    )


def _rule(side: Side, unit: SideUnit, step: int) -> ByArgmax | ByTape | BySeed:
    kind = side.registered.kind
    tape = tape_of(side, unit)
    if isinstance(kind, TapedProtocol) and tape is not None:
        return ByTape(sampler=kind.decode.sampler, u=tape.u(unit.key.source_id, step).hex())
    if isinstance(kind, SamplingProtocol):
        decode = kind.decode
        return BySeed(
            seed=str(unit.plain["run_seed"]), temperature=decode.temperature, top_k=decode.top_k, top_p=decode.top_p
        )
    return ByArgmax()
