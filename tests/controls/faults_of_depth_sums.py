"""Faults of a trace's numbers that contradict each other, each by itself possible. {0} is the code source."""

import math
from typing import Any

from .damage import Case, cell_of, read
from .planting import CELL, Fault
from .planting_depth import EDGE, in_edge, in_facts, named, on_edge


def sides_swapped(case: Case) -> None:
    """The numbers of an edge are those from right to left; its sides are named left to right."""
    unit = read(case.run / "run.json")["units"][0]

    def change(edge: Any) -> None:
        for stage in edge["stages"]:
            right = named(cell_of(unit, edge["right"])["hidden"], "stage", stage["stage"])["target"]
            squared = right["statistics"]["root_mean_square"] ** 2 * math.prod(right["shape"])
            stage.update(left_squared=squared, relative_l2=math.sqrt(stage["difference_squared"] / squared))

    in_edge(change)(case)


ON_STAGES = tuple(
    Fault("edge_trace", name, on_edge("stages", stage, **changes), EDGE, (f"{stage} {words}",))
    for name, stage, changes, words in (
        (
            "a cosine of exact rows that isn't 1",
            "embedding",
            {"cosine": 0.5, "cosine_sum": 32.5},
            "cosine where every row is exact: expected 1.0, found 0.5",
        ),
        ("a square below 0", "layer_02", {"difference_squared": -1.0}, "squares at or above 0: expected True"),
        (
            "two squares below 0",
            "layer_02",
            {"difference_squared": -1.0, "left_squared": -1.0, "relative_l2": 1.0},
            "squares at or above 0: expected True",
        ),
        (
            "a left side of zeros",
            "layer_02",
            {"left_squared": 0.0, "relative_l2": 0.0},
            "squared norm of the left side: expected",
        ),
        (
            "a left side by one in a million, and all that follows",
            "layer_02",
            {"left_squared": lambda old: old * (1 + 1e-6)},
            "squared norm of the left side: expected",
        ),
    )
)
ON_EDGES = (
    Fault(
        "edge_trace", "the sides' numbers swapped", sides_swapped, EDGE, ("squared norm of the left side: expected",)
    ),
    Fault(
        "edge_trace",
        "no set of experts apart, and a load that moved",
        on_edge("gates", "layer_02", set_exact=65),
        EDGE,
        ("layer_02 load moved by tokens whose set differs: expected True",),
    ),
)


def far_apart(case: Case) -> None:
    """A difference larger than both sides together, with the relative difference that follows."""

    def change(edge: Any) -> None:
        stage = named(edge["stages"], "stage", "layer_02")
        squared = 9 * stage["left_squared"]
        stage.update(difference_squared=squared, relative_l2=math.sqrt(squared / stage["left_squared"]))

    in_edge(change)(case)


FAR = (Fault("edge_trace", "sides too far apart", far_apart, EDGE, ("layer_02 difference within what the two norms",)),)
LOADS = tuple(
    Fault("stages_and_gates", name, in_facts("gates", "layer_02", "full", **changes), CELL, (f"layer_02 {words}",))
    for name, changes, words in (
        (
            "a load below 0",
            {"load": lambda old: [old[0] + old[1] + 1, -1, *old[2:]]},
            "full tokens of one expert within their bounds: expected True",
        ),
        ("another entropy", {"load_entropy": lambda old: old * (1 + 1e-6)}, "full load entropy: expected"),
        (
            "a weighted load below 0",
            {"weighted_load": lambda old: [-old[0], *old[1:]]},
            "full weighted load at or above 0: expected True",
        ),
        ("twice the weight", {"weighted_load": lambda old: [2 * one for one in old]}, "full weighted load: expected"),
        (
            "an expert's weight missing",
            {"weighted_load": lambda old: old[1:]},
            "full experts: expected (32, 32), found (32, 31)",
        ),
        ("no load at all", {"load": [], "experts_used": 0}, "full experts: expected (32, 32), found (0, 32)"),
        (
            "the target's tokens not among the full input's",
            {"load": lambda old: [0, old[0] + old[1], *old[2:]]},
            "target load beyond the full one: expected [], found [0]",
        ),
    )
)
STATISTICS = tuple(
    Fault(
        "stages_and_gates",
        f"{name} ({line})",
        in_facts(line, "layer_02", scope, **{field: lambda old, changes=changes: old | changes}),
        CELL,
        (f"layer_02 {words}",),
    )
    for line, field in (("hidden", "statistics"), ("gates", "weight_statistics"))
    for name, scope, changes, words in (
        ("another root mean square", "target", {"root_mean_square": 9.0}, "target root mean square: expected"),
        ("a mean beyond the extremes", "full", {"minimum": 8.0}, "full mean within the extremes: expected True"),
        ("a deviation below 0", "full", {"standard_deviation": -1.0}, "full mean within the extremes: expected True"),
        (
            "extremes beyond the full input's",
            "target",
            {"minimum": -999.0},
            "target within the full extremes: expected",
        ),
    )
)
FAULTS = (*ON_STAGES, *ON_EDGES, *FAR, *LOADS, *STATISTICS)
