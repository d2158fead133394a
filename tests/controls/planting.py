"""How a fault is planted in the records that a check reads, past every digest, so that nothing else answers for it."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from harness.errors import HarnessError
from harness.protocols.generators import seeded_states

from .damage import Case, Damage, cell_of, edit, read

ALL = ("all",)


@dataclass(frozen=True)
class Fault:
    """A fault of one gate: how to plant it, which rows must be red, which words their messages must hold."""

    gate: str
    name: str
    plant: Damage
    rows: tuple[str, ...]
    words: tuple[str, ...]


def in_unit(change: Callable[[Any], None], at: int = 0, part: str = "") -> Damage:
    """A change of a unit in run.json."""
    return lambda case: case.edit(f"{part}/run.json".lstrip("/"), lambda run: change(run["units"][at]))


def of_seed(seed: int) -> Damage:
    """Every unit's states are those of another seed, and no generator was drawn from."""
    states = msgspec.to_builtins(seeded_states(seed, gpus=0))

    def change(run: Any) -> None:
        for unit in run["units"]:
            unit |= {"rng_before": states, "rng_after": states}

    return lambda case: case.edit("run.json", change)


def in_cell(condition: str, at: int = 0, part: str = "", **changes: Any) -> Damage:
    """Fields of a cell in run.json; a callable value is given the old one."""

    def change(unit: Any) -> None:
        cell = cell_of(unit, condition)
        cell.update({name: new(cell[name]) if callable(new) else new for name, new in changes.items()})

    return in_unit(change, at, part)


def in_environment(part: str = "", **changes: Any) -> Damage:
    """Fields of environment.json; run.json keeps its digest."""
    return lambda case: case.edit(f"{part}/environment.json".lstrip("/"), lambda one: one.update(changes))


def in_config(**changes: Any) -> Damage:
    """Fields of the generation config as read back; None takes one out."""

    def change(environment: Any) -> None:
        config = environment["generation_config"]
        config.update({name: value for name, value in changes.items() if value is not None})
        for name in [name for name, value in changes.items() if value is None]:
            del config[name]

    return lambda case: case.edit("environment.json", change)


def in_placement(part: str = "", **changes: Any) -> Damage:
    """Fields of the placement facts, in placement.json and in run.json."""

    def plant(case: Case) -> None:
        case.edit(f"{part}/placement.json".lstrip("/"), lambda one: one.update(changes))
        case.edit(f"{part}/run.json".lstrip("/"), lambda run: run["placement"].update(changes))

    return plant


def in_ledger(kind: str, change: Callable[[list[Any]], Any]) -> Damage:
    """A change of the ledger's cells or edges."""
    return lambda case: case.edit("ledger.json", lambda book: change(book[kind]))


def put(ids: list[int], place: int, token: int) -> list[int]:
    """IDs with one replaced."""
    return [*ids[:place], token, *ids[place + 1 :]]


def other(ids: list[int], place: int = 2) -> list[int]:
    """IDs with another ordinary one at a place."""
    return put(ids, place, 300 if ids[place] != 300 else 301)


def same_process(part: str, *fields: str) -> Damage:
    """The part's units say that they were made by the run's own process, as copied journals do."""

    def plant(case: Case) -> None:
        for at in (0, 1):
            own = read(case.journal(at))["observation"]["process"]
            copied = {name: own[name] for name in fields}
            edit(case.journal(at, part), lambda journal, new=copied: journal["observation"]["process"].update(new))

    return plant


def same_call(part: str) -> Damage:
    """The first unit's wall time and moment are those of the run's own call."""

    def plant(case: Case) -> None:
        own = read(case.journal())["observation"]
        moments = {name: own[name] for name in ("wall_ns", "finished_us")}
        edit(case.journal(0, part), lambda journal: journal["observation"].update(moments))

    return plant


def one_process(case: Case) -> None:
    """The two-process variant was made by one process."""
    own = read(case.journal(0, "workers-2"))["observation"]["process"]
    edit(case.journal(1, "workers-2"), lambda journal: journal["observation"].update(process=own))


def failed_unit(source: str) -> Damage:
    """A failure record of a source."""

    def plant(case: Case) -> None:
        journal = read(case.journal(1))
        failure = {
            "schema": 1,
            "protocol_digest": case.loaded.digest,
            "source_id": source or case.source(1),
            "replicate": journal["evidence"]["replicate"],
            "kind": "out_of_memory",
            "message": "generation: 20 GiB",
            "process": journal["observation"]["process"],
        }
        folder = case.run / "failures"
        folder.mkdir()
        (folder / "one.json").write_text("{}", encoding="ascii")
        edit(folder / "one.json", lambda record: record.update(failure))

    return plant


def forged_gold(case: Case) -> None:
    """Another gold number, in agreement with every record of the run."""
    case.edit("gold.json", lambda gold: gold.update(dict.fromkeys(gold, "123456")))
    case.seal()


def remove(name: str) -> Damage:
    """A file or folder is gone."""

    def plant(case: Case) -> None:
        path = case.run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return plant


def in_notes(**changes: Any) -> Damage:
    """What every process noted of itself, changed."""

    def plant(case: Case) -> None:
        for path in (case.run / "workers").iterdir():
            edit(path, lambda note: note.update(changes))

    return plant


def finer_map(case: Case) -> None:
    """Both placements are one map, the second listing it in more pieces."""
    facts = read(case.run / "placement.json")
    pieces = {"model": "cpu", "lm_head": "cpu"}
    changed = facts | {"id": "nano-disk", "device_map": pieces, "offloaded_moe_layers": [4]}
    in_placement("placement", **changed)(case)


CELL = ("{0}:s0_x",)
UNIT = ("{0}",)


def spelled(text: str, named: dict[str, str]) -> str:
    """A fault's row or word with the run's sources in it."""
    for place, source in named.items():
        text = text.replace("{" + place + "}", source)
    return text


def covers(row: str, name: str) -> bool:
    """Whether a fault's row stands for a row of that name."""
    return row == "all" or fnmatchcase(name, row)


def parts(name: str) -> list[str]:
    """What a message of a row must hold of its name."""
    return [] if name == "whole" else name.split(":")


def turns_red(case: Case, fault: Fault, named: Mapping[str, str] | None = None, *, said: int | None = None) -> None:
    """The planted fault makes exactly its rows red; each message has its words and the first `said` parts of its row.

    `named`: what the fault's placeholders stand for, the case's two sources where nothing is given.
    """
    named = named or {str(at): case.source(at) for at in (0, 1)}
    fault.plant(case)
    try:
        red = case.red(fault.gate)
    except HarnessError as error:
        red = {"whole": str(error)}
    rows = [spelled(row, named) for row in fault.rows]
    assert red, "the gate passes"
    assert all(any(covers(row, name) for row in rows) for name in red), red
    assert all(any(covers(row, name) for name in red) for row in rows), red
    words = [spelled(word, named) for word in fault.words]
    assert all(word in message for word in words for message in red.values()), red
    assert all(part in message for name, message in red.items() for part in parts(name)[:said]), red
