"""How faults of a depth run are planted: in its cells' stages and gates, its edges, its baseline, its frozen digests.

`planting.in_unit` and `in_cell` reach a trace's units and cells too.
"""

import math
from collections.abc import Callable
from typing import Any

from harness.canon import digest, sha256_hex
from harness.places import Places
from harness.snapshots.content import snapshot_bytes
from harness.snapshots.store import frozen_folder

from .damage import Case, Damage, cell_of, edit, read
from .planting import in_unit

OTHER = "0" * 64
EDGES = ("{0}:system_x", "{0}:x_s0")  # the registered edges of the code source's s0_x
EDGE = ("{0}:x_s0",)
PLACES = {"stages": "stage", "gates": "gate", "hidden": "stage"}


def named(listed: list[Any], field: str, name: str) -> Any:
    """The member of a list whose field has that value."""
    return next(one for one in listed if one[field] == name)


def updated(record: Any, changes: dict[str, Any]) -> None:
    """Change fields; a callable value is given the old one."""
    record.update({name: new(record[name]) if callable(new) else new for name, new in changes.items()})


def in_facts(
    line: str, name: str, scope: str, condition: str = "s0_x", *, at: int = 0, part: str = "", **changes: Any
) -> Damage:
    """Fields of a stage's (`hidden`) or gate's (`gates`) facts over a scope, in one cell."""

    def change(unit: Any) -> None:
        updated(named(cell_of(unit, condition)[line], PLACES[line], name)[scope], changes)

    return in_unit(change, at, part)


def in_statistics(line: str, name: str, change: Callable[[float], float], *, part: str = "") -> Damage:
    """The mean of the statistics of a stage or gate over the target of s0_x."""
    field = "statistics" if line == "hidden" else "weight_statistics"
    return in_facts(line, name, "target", part=part, **{field: lambda old: old | {"mean": change(old["mean"])}})


def one_ulp(number: float) -> float:
    """The next number upwards."""
    return math.nextafter(number, math.inf)


def in_line(line: str, change: Callable[[list[Any]], Any], condition: str = "s0_x") -> Damage:
    """A change of a cell's list of stages (`hidden`) or gates."""
    return in_unit(lambda unit: change(cell_of(unit, condition)[line]))


def in_edge(change: Callable[[Any], Any], edge: str = "x_s0", *, part: str = "") -> Damage:
    """A change of an edge of the first source."""
    return in_unit(lambda unit: change(named(unit["edges"], "edge", edge)), part=part)


def on_edge(line: str, name: str, edge: str = "x_s0", **changes: Any) -> Damage:
    """Fields of a stage or gate on an edge; a callable value is given the old one."""
    return in_edge(lambda one: updated(named(one[line], PLACES[line], name), changes), edge)


def idle(case: Case, at: int = 1) -> tuple[str, int]:
    """A gate of a source's s0_x and an expert that no token of its target chose there."""
    gates = cell_of(read(case.run / "run.json")["units"][at], "s0_x")["gates"]
    return next((one["gate"], one["target"]["load"].index(0)) for one in gates if 0 in one["target"]["load"])


def weight_without_load(case: Case) -> None:
    """An expert that no token chose has a weight."""
    gate, expert = idle(case)
    change = {"weighted_load": lambda old: [*old[:expert], 0.25, *old[expert + 1 :]]}
    in_facts("gates", gate, "target", at=1, **change)(case)


def last_content(case: Case) -> None:
    """The content digest of the last source stands for every source's: the published audit's own defect."""
    last = read(case.run / "run.json")["units"][-1]["content_token_ids_sha256"]
    in_unit(lambda unit: unit.update(content_token_ids_sha256=last))(case)


def same_digests(case: Case) -> None:
    """The two sides of an edge have one digest at layer 2, and the edge's rows differ."""
    unit = read(case.run / "run.json")["units"][0]
    digest = named(cell_of(unit, "s0_eos")["hidden"], "stage", "layer_02")["target"]["sha256"]
    in_facts("hidden", "layer_02", "target", sha256=digest)(case)


def same_routes(case: Case) -> None:
    """The same of the routes of layer 2."""
    unit = read(case.run / "run.json")["units"][0]
    digest = named(cell_of(unit, "s0_eos")["gates"], "gate", "layer_02")["target"]["routes_sha256"]
    in_facts("gates", "layer_02", "target", routes_sha256=digest)(case)


def swapped_names(edge: Any) -> None:
    """An edge that says that it runs the other way."""
    edge["left"], edge["right"] = edge["right"], edge["left"]


def frozen_digest(case: Case) -> None:
    """A frozen tensor digest is another one, and the index agrees with it."""
    folder = frozen_folder(case.protocol, Places(case.tree))
    path = next(one for one in sorted(folder.glob("*-tensors.json")) if one.name.startswith("code"))
    content = read(path)
    cell_of(content, "s0_x")["hidden_sha256"]["layer_02"][0] = OTHER
    rewrite(case, path.stem, content)


def altered_alone(suffix: str) -> Damage:
    """The first frozen file with that end of its name has another byte; the index lists it as it was."""

    def plant(case: Case) -> None:
        path = sorted(frozen_folder(case.protocol, Places(case.tree)).glob(f"*{suffix}"))[0]
        path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))

    return plant


def rewrite(case: Case, name: str, content: Any) -> None:
    """A frozen file with other content, and an index that agrees."""
    folder = frozen_folder(case.protocol, Places(case.tree))
    path = folder / f"{name}.json"
    path.write_bytes(snapshot_bytes(content))
    edit(folder / "index.json", lambda one: one["units"].update({name: sha256_hex(path.read_bytes())}))


def elsewhere(case: Case, **changes: Any) -> None:
    """The frozen tensor digests belong to an environment with these fields, and the index agrees."""
    content = read(frozen_folder(case.protocol, Places(case.tree)) / "environment.json")
    updated(content, changes)
    rewrite(case, "environment", content)
    index = frozen_folder(case.protocol, Places(case.tree)) / "index.json"
    edit(index, lambda one: one.update(environment_sha256=digest(content)))


def in_baseline_files(case: Case, change: Callable[[Any], Any]) -> None:
    """The baseline as the run, its replay and its smoke run recorded it; no digest is renewed."""
    for path in (case.run / "baseline.json", case.run / "replay/baseline.json", case.smoke / "baseline.json"):
        edit(path, change)
