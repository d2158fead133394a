"""How faults of a task run are planted: in how a unit was drawn, in its rows' accounts, in its smoke run and its parts.

The run's units are code 0 T0, code 0 T1, code 1 T0, then mathematics in the same order.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from harness.canon import sha256_hex
from harness.snapshots.content import snapshot_bytes
from harness.tapes.consumed import Consumption
from harness.tapes.tape import Tape

from .damage import OUTPUT, Case, Damage, cell_of, edit, read
from .damage_tapes import TapedCase
from .planting import in_unit

CELL, UNIT, CELLS = ("{0}:s0_period",), ("{0}",), ("{0}:*",)
OTHER = {"state": "hashed", "sha256": "0" * 64}


def in_tape(at: int = 0, part: str = "", **changes: Any) -> Damage:
    """Fields of how a unit was drawn, in run.json; a callable value is given the old one."""

    def change(unit: Any) -> None:
        drawn = unit["tape"]
        drawn.update({name: new(drawn[name]) if callable(new) else new for name, new in changes.items()})

    return in_unit(change, at, part)


def account_of(unit: Any, condition: str) -> Any:
    """A row's account, by condition."""
    return next(row for row in unit["tape"]["rows"] if row["condition"] == condition)


def in_account(condition: str = "s0_period", at: int = 0, part: str = "", **changes: Any) -> Damage:
    """Fields of one row's account; a callable value is given the old one."""

    def change(unit: Any) -> None:
        row = account_of(unit, condition)
        row.update({name: new(row[name]) if callable(new) else new for name, new in changes.items()})

    return in_unit(change, at, part)


def consumed(registered_id: str, label: str, source_id: str, steps: range) -> dict[str, Any]:
    """What a row that read these steps of that tape consumed, as plain data."""
    consumption, tape = Consumption(), Tape(registered_id, label)
    for step in steps:
        consumption.take(tape.z(source_id, step))
    found: dict[str, Any] = msgspec.to_builtins(consumption.record())
    return found


def read_at(
    first: int = 0, *, label: str = "T0", source_at: int = 0, more: int = 0, rows: tuple[str, ...] = ("s0_period",)
) -> Damage:
    """Rows of the first unit read other values: from another step on, of another tape or source, or some more."""

    def plant(case: Case) -> None:
        registered, source = case.loaded.protocol.registered_id, case.source(source_at)

        def change(unit: Any) -> None:
            for row in rows or tuple(cell["condition"] for cell in unit["cells"]):
                count = cell_of(unit, row)["length"] + more
                steps = range(first, first + count)
                account_of(unit, row)["consumed"] = consumed(registered, label, source, steps)

        in_unit(change)(case)

    return plant


def pooled(case: Case) -> None:
    """T1's unit was drawn under T0's values, by another name: its own digest, T0's numbers."""
    registered, source = case.loaded.protocol.registered_id, case.source(1)

    def change(unit: Any) -> None:
        for cell in unit["cells"]:
            row = account_of(unit, cell["condition"])
            row["consumed"] = consumed(registered, "T0", source, range(cell["length"]))

    in_unit(change, 1)(case)


def given(at: int, *fields: str) -> Damage:
    """The first unit has fields of another one."""

    def plant(case: Case) -> None:
        other = units_of(case)[at]
        in_unit(lambda unit: unit.update({name: other[name] for name in fields}))(case)

    return plant


def same_outputs(case: Case) -> None:
    """T1 said what T0 said, in every cell of every task that has both."""
    units = units_of(case)
    for at in (0, 3):
        for condition in [cell["condition"] for cell in units[at]["cells"]]:
            said = {name: cell_of(units[at], condition)[name] for name in OUTPUT}
            in_unit(lambda unit, c=condition, new=said: cell_of(unit, c).update(new), at + 1)(case)


def in_smoke(damage: Callable[[TapedCase], None]) -> Damage:
    """The same damage to the smoke run that the formal run stands on."""

    def plant(case: Case) -> None:
        if not isinstance(case, TapedCase):
            raise TypeError("a task run has a smoke run")
        damage(case.smoke_case)

    return plant


def in_state(when: str, at: int = 0, part: str = "", **states: Any) -> Damage:
    """Generator states of a unit `before` or `after` it was drawn."""
    return in_unit(lambda unit: unit[f"rng_{when}"].update(states), at, part)


def in_outcome(case_name: str, **changes: Any) -> Damage:
    """What the smoke run's sampler drew on a case of the synthetic table."""

    def change(draws: Any) -> None:
        next(one for one in draws["outcomes"] if one["case"] == case_name).update(changes)

    return in_smoke(lambda case: case.edit("synthetic.json", change))


def in_manifest(change: Callable[[Any], None]) -> Damage:
    """The manifest's entry of the first code task is another; prompts, run and tokenizer are as they were."""

    def plant(case: Case) -> None:
        loaded = case.loaded
        plain = msgspec.to_builtins(loaded.manifest)
        change(next(one for one in plain["sources"] if (one["domain"], one["index"]) == ("code", 0)))
        manifest = msgspec.convert(plain, type(loaded.manifest))
        case.__dict__["loaded"] = replace(loaded, manifest=manifest)

    return plant


def in_blocks(change: Callable[[list[Any]], Any]) -> Damage:
    """The blocks of run.json."""
    return lambda case: case.edit("run.json", lambda run: change(run["blocks"]))


def pool_blocks(blocks: list[Any]) -> None:
    """One block of what are two: a primary one with the diagnostic cells in it."""
    second = blocks.pop()
    blocks[0]["units"] += second["units"]
    blocks[0]["cells"] += second["cells"]
    blocks[0]["replicates"] = [*blocks[0]["replicates"], *second["replicates"]]


def units_of(case: Case) -> Any:
    """The units of run.json as plain data."""
    return read(case.run / "run.json")["units"]


def in_frozen_of(pattern: str, change: Callable[[Any], None]) -> Damage:
    """A change of the one frozen file whose name has that form, the index agreeing with it."""

    def plant(case: Case) -> None:
        folder = case.tree / "snapshots" / case.protocol / "formal"
        (path,) = folder.glob(f"{pattern}.json")
        content = read(path)
        change(content)
        path.write_bytes(snapshot_bytes(content))
        named = sha256_hex(path.read_bytes())
        edit(folder / "index.json", lambda one: one["units"].update({path.stem: named}))

    return plant


def made_by_the_first(part: str, *fields: str) -> Damage:
    """The part's units say that the process of the run that they are held against made them, in these fields or in all.

    Placements are held against the smoke run.
    """

    def plant(case: Case) -> None:
        first = case.smoke_case if part == "placement" and isinstance(case, TapedCase) else case
        own = read(first.journal())["observation"]["process"]
        new = {name: own[name] for name in fields or own}
        for path in sorted((case.run / part / "journal").glob("*.json")):
            edit(path, lambda journal: journal["observation"]["process"].update(new))

    return plant
