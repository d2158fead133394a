"""How faults of a sampling run are planted: in how a batch was drawn, in its smoke run, in the parts made apart.

The run's units are code R0, code R1, mathematics R0, mathematics R1.
"""

import shutil
from collections.abc import Callable
from typing import Any

from harness.canon import sha256_hex
from harness.journal.folder import RunFolder
from harness.protocols.seeds import run_seed
from harness.snapshots.store import run_files

from .damage import OUTPUT, Case, Damage, cell_of, edit, forge_audit, read
from .damage_sampling import SampledCase
from .planting import in_unit

CELL, UNIT = ("{0}:s0_period",), ("{0}",)
OTHER = {"state": "hashed", "sha256": "0" * 64}
TOP_K = {"name": "TopKLogitsWarper", "values": {"filter_value": "-inf", "top_k": "50"}}


def in_sampling(at: int = 0, part: str = "", **changes: Any) -> Damage:
    """Fields of how a batch was drawn, in run.json; a callable value is given the old one."""

    def change(unit: Any) -> None:
        drawn = unit["sampling"]
        drawn.update({name: new(drawn[name]) if callable(new) else new for name, new in changes.items()})

    return in_unit(change, at, part)


def in_parameters(part: str = "", **changes: Any) -> Damage:
    """The first batch's call config, JSON text by name; None takes one out."""

    def change(parameters: Any) -> Any:
        new = parameters | changes
        return {name: value for name, value in new.items() if value is not None}

    return in_sampling(0, part, parameters=change)


def in_temperature(value: str) -> Damage:
    """Another temperature in the first batch's warper."""
    return in_sampling(processors=lambda found: [found[0] | {"values": {"temperature": value}}, *found[1:]])


def in_state(when: str, at: int = 0, part: str = "", **states: Any) -> Damage:
    """Generator states of a batch `before` or `after` its call."""
    return in_unit(lambda unit: unit[f"rng_{when}"].update(states), at, part)


def in_smoke(damage: Callable[[SampledCase], None]) -> Damage:
    """The same damage to the smoke run that the formal run stands on."""

    def plant(case: Case) -> None:
        damage(SampledCase(case.smoke, case.protocol))

    return plant


def both(*damages: Damage) -> Damage:
    """Several damages, one after another."""

    def plant(case: Case) -> None:
        for damage in damages:
            damage(case)

    return plant


def late_seed(case: Case) -> None:
    """A generator that was drawn from between seed and call: it stood where another unit's draws had left it."""
    in_state("before", torch_cpu=units_of(case)[1]["rng_after"]["torch_cpu"])(case)


def not_drawn(case: Case, part: str = "") -> None:
    """The state after the first batch's call is the state before it: nothing was drawn."""
    in_unit(lambda unit: unit["rng_after"].update(torch_cpu=unit["rng_before"]["torch_cpu"]), 0, part)(case)


def given(at: int, *fields: str) -> Damage:
    """The first batch has seeds or states of another one; `seeds` lies in `sampling`."""

    def plant(case: Case) -> None:
        other = units_of(case)[at]
        if "seeds" in fields:
            in_sampling(seeds=other["sampling"]["seeds"])(case)
        states = {name: other[name] for name in fields if name != "seeds"}
        in_unit(lambda unit: unit.update(states))(case)

    return plant


def swapped_seeds(case: Case) -> None:
    """The two replicates of the code source have each other's seeds and states."""
    one, other = (units_of(case)[at] for at in (0, 1))
    for at, new in ((0, other), (1, one)):
        in_sampling(at, seeds=new["sampling"]["seeds"])(case)
        in_unit(lambda unit, new=new: unit.update({name: new[name] for name in ("rng_before", "rng_after")}), at)(case)


def greedy_seeds(case: Case) -> None:
    """The run seed of base seed 0, as a greedy protocol's own generator seed would give it."""
    source = units_of(case)[0]["source_id"]
    seed = run_seed(case.loaded.protocol.registered_id, 0, source)
    in_sampling(seeds=lambda seeds: seeds | {"run": f"{seed:016x}"})(case)


def same_outputs(case: Case) -> None:
    """R1 said what R0 said, in every cell of every source."""
    units = units_of(case)
    for at in (0, 2):
        for condition in [cell["condition"] for cell in units[at]["cells"]]:
            said = {name: cell_of(units[at], condition)[name] for name in OUTPUT}
            in_unit(lambda unit, c=condition, new=said: cell_of(unit, c).update(new), at + 1)(case)


def units_of(case: Case) -> Any:
    """The units of run.json as plain data."""
    return read(case.run / "run.json")["units"]


def made_by_the_first(part: str, *fields: str) -> Damage:
    """The part's units say that the process of the run that they are held against made them, in these fields or in all.

    Placements are held against the smoke run.
    """

    def plant(case: Case) -> None:
        first = case.smoke_case if part == "placement" and isinstance(case, SampledCase) else case
        own = read(first.journal())["observation"]["process"]
        new = {name: own[name] for name in fields or own}
        for path in sorted((case.run / part / "journal").glob("*.json")):
            edit(path, lambda journal: journal["observation"]["process"].update(new))

    return plant


def in_observation(part: str, change: Callable[[Any, Any], None], at: int = 0) -> Damage:
    """A change of how the part's unit was made, given how the run's own unit of that source and replicate was."""

    def plant(case: Case) -> None:
        path = case.journal(at, part)
        own = read(case.run / "journal" / path.name)["observation"]
        edit(path, lambda journal: change(journal["observation"], own))

    return plant


def same_call(part: str) -> Damage:
    """The part's first unit was made by the run's own call, by its wall time and its moment."""
    moments = ("wall_ns", "finished_us")
    return in_observation(part, lambda seen, own: seen.update({name: own[name] for name in moments}))


def copied(part: str) -> Damage:
    """The part's journals are the run's own, with the part's grid and all digests renewed."""

    def plant(case: Case) -> None:
        for path in sorted((case.run / part / "journal").glob("*.json")):
            grid = read(path)["evidence"]["grid"]
            shutil.copyfile(case.run / "journal" / path.name, path)
            edit(path, lambda journal, grid=grid: journal["evidence"].update(grid=grid))
        case.seal(part)

    return plant


def parting_smoke(case: Case) -> None:
    """The smoke run drew another last token in one cell; its records and its audit agree with that."""

    def change(cell: Any) -> None:
        cell["generated_ids"][-1] = 300 if cell["generated_ids"][-1] != 300 else 301

    smoke = SampledCase(case.smoke, case.protocol)
    smoke.edit_cell("s0_period", change)
    smoke.seal()
    _judge_smoke(case)


def _judge_smoke(case: Case) -> None:
    found = {
        "run_sha256": sha256_hex((case.smoke / "run.json").read_bytes()),
        "files": run_files(RunFolder(case.smoke)),
    }
    forge_audit(case.smoke, lambda audit: audit.update(found), reference=case.run / "smoke.json")
