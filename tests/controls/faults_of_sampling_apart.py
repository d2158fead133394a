"""Faults of what a sampling run is held against: what was drawn again, other placements, its smoke run, frozen results.

{0} to {3}: code R0 and R1, mathematics R0 and R1. What the same process drew again belongs to the smoke run.
"""

from collections.abc import Callable
from typing import Any

from .damage import Damage
from .faults_apart import FAULTS as APART
from .planting import ALL, Fault, failed_unit, in_cell, in_placement, other
from .planting_completion import frozen
from .planting_sampling import (
    CELL,
    OTHER,
    TOP_K,
    UNIT,
    copied,
    in_observation,
    in_parameters,
    in_sampling,
    in_smoke,
    in_state,
    made_by_the_first,
    not_drawn,
    parting_smoke,
    same_call,
)
from .planting_sampling_books import failed_and_sealed, in_frozen, in_shared_verdict, row_of, shared_key

CELLS = ("{0}:*",)
SAME, PLACED, REPLAYED = "same_process", "placement", "replay"
GATES = {SAME: "same_process_replay", PLACED: "placement_equivalence", REPLAYED: "independent_replay"}


def of(part: str, name: str, damage: Damage, rows: tuple[str, ...], *words: str) -> Fault:
    """A fault of the gate that judges a part; the part that the same process drew lies in the smoke run."""
    return Fault(GATES[part], name, in_smoke(damage) if part == SAME else damage, rows, words)


def in_part_run(part: str, **changes: Any) -> Damage:
    """Top-level fields of the part's run.json."""
    return lambda case: case.edit(f"{part}/run.json", lambda run: run.update(changes))


def in_part_seeds(part: str) -> Damage:
    """The part's first batch was drawn under another run seed."""
    return in_sampling(part=part, seeds=lambda seeds: seeds | {"run": "0" * 16})


def failed_part(part: str) -> Damage:
    """A failure record in the part's folder."""

    def plant(case: Any) -> None:
        failed_unit("")(case)
        (case.run / "failures").rename(case.run / part / "failures")

    return plant


FIELDS: dict[str, Callable[[str], tuple[Damage, tuple[str, ...], str]]] = {
    "run_seed": lambda part: (in_part_seeds(part), CELLS, "run_seed: expected"),
    "prompt_sha256": lambda part: (in_cell("s0_period", part=part, prompt_sha256="0"), CELL, "prompt_sha256: expected"),
    "generated_ids": lambda part: (
        in_cell("s0_period", part=part, generated_ids=lambda ids: other(ids, 5)),
        CELL,
        "from step 5, found [30",
    ),
    "text": lambda part: (in_cell("s0_period", part=part, text_escaped="x"), CELL, " text: expected"),
    "eos": lambda part: (in_cell("s0_period", part=part, eos=lambda one: not one), CELL, "eos: expected"),
    "truncated": lambda part: (
        in_cell("s0_period", part=part, truncated=lambda one: not one),
        CELL,
        "truncated: expected",
    ),
    "stop_state": lambda part: (
        in_cell("s0_period", part=part, eos=lambda one: not one, truncated=lambda one: not one),
        CELL,
        "stop_state: expected (",
    ),
    "torch_cpu_before": lambda part: (in_state("before", part=part, torch_cpu=OTHER), CELLS, "torch_cpu_before"),
    "torch_cuda_before": lambda part: (in_state("before", part=part, torch_cuda=OTHER), CELLS, "torch_cuda_before"),
}
FIVE = ("run_seed", "prompt_sha256", "generated_ids", "text", "stop_state")
EIGHT = ("run_seed", "prompt_sha256", "generated_ids", "text", "eos", "truncated")
EIGHT += ("torch_cpu_before", "torch_cuda_before")
REGISTERED = {SAME: FIVE, PLACED: FIVE, REPLAYED: EIGHT}
FIELD_FAULTS = tuple(
    of(part, f"{name} ({part})", damage, rows, word)
    for part, names in REGISTERED.items()
    for name in names
    for damage, rows, word in (FIELDS[name](part),)
)
# What a batch must be wherever it was drawn: the second one isn't judged by any other gate.
HELD_OF_THE_SECOND = tuple(
    of(part, f"{name} ({part})", damage, CELLS, word)
    for part in GATES
    for name, damage, word in (
        ("another batch shape", in_sampling(part=part, rows=2), "shape of a draw: expected (4, 2048), found (2, 2048)"),
        ("a hidden top-k 50", in_parameters(part, top_k="50"), "parameter top_k: expected 0, found 50"),
        ("a warper more", in_sampling(part=part, processors=lambda found: [TOP_K, *found]), "TopKLogitsWarper"),
        ("another base seed", in_sampling(part=part, seeds=lambda one: one | {"base": 1}), "base seed: expected"),
        ("a consumed generator", in_state("before", part=part, torch_cpu=OTHER), "torch_cpu state before the call"),
        (
            "a generator that wasn't drawn from",
            lambda case, part=part: not_drawn(case, part),
            "torch_cpu generator: expected drawn from, found untouched",
        ),
        ("a draw more", in_sampling(part=part, draws=lambda draws: draws + 1), "draws: expected"),
        ("a step that wasn't checked", in_sampling(part=part, drawable=1), "an ID with a probability"),
    )
)
WHOLE = tuple(
    of(part, f"{name} ({part})", damage, ALL, *words)
    for part in GATES
    for name, damage, words in (
        ("another grid", in_part_run(part, grid="formal"), ("grid: expected", "found formal")),
        ("another protocol", in_part_run(part, protocol_digest="0"), ("protocol: expected",)),
        ("another environment", in_part_run(part, environment_sha256="0"), ("environment: expected",)),
        ("another placement", in_placement(part, id="third"), ("placement: expected", "third")),
        (
            "a part of another run",
            lambda case, part=part: case.edit(f"{part}/spec.json", lambda spec: spec.update(run_id="smoke-7/replay")),
            ("part of this run: expected", "found smoke-7/replay"),
        ),
    )
)
AGAIN = (
    of(
        SAME,
        "another process",
        in_observation(SAME, lambda seen, own: seen["process"].update(pid=own["process"]["pid"] + 1)),
        CELLS,
        "process: expected",
    ),
    of(
        SAME,
        "another model load of one process",
        in_observation(SAME, lambda seen, own: seen["process"].update(model_load_id="0" * 32)),
        CELLS,
        "process: expected",
    ),
    of(SAME, "the same call twice", same_call(SAME), CELLS, "calls: expected 2, found 1"),
    of(SAME, "a copied unit", copied(SAME), ALL, "calls: expected 2, found 1"),
    of(
        SAME,
        "a call before the run's own",
        in_observation(SAME, lambda seen, own: seen.update(finished_us=own["finished_us"] - 1)),
        CELLS,
        "one after the other: expected True, found False",
    ),
    of(
        SAME,
        "a unit less",
        lambda case: case.edit(f"{SAME}/run.json", lambda run: run["units"].pop(0)),
        CELLS,
        "expected a unit, found none",
    ),
)
MADE_APART = (
    *(
        of(part, f"{name} ({part})", damage, rows, *words)
        for part in (PLACED, REPLAYED)
        for name, damage, rows, words in (
            ("the first run's process", made_by_the_first(part), ALL, ("shared processes", "model loads", "processes")),
            (
                "the first run's model load",
                made_by_the_first(part, "model_load_id"),
                ALL,
                ("model loads: expected none shared",),
            ),
            ("a process that nobody started", made_by_the_first(part, "pid"), ALL, ("the started children",)),
            (
                "a process older than the run",
                in_observation(part, lambda seen, own: seen["process"].update(started_us=1)),
                ALL,
                ("start after the run's own: expected True, found False",),
            ),
            ("a port", in_part_run(part, port=True), ALL, ("port: expected False, found True",)),
            ("a failure", failed_part(part), ALL, ("failures, also in attempts", "found ['out_of_memory']")),
        )
    ),
    of(
        PLACED,
        "a placement run of another run that stands on the same smoke run",
        lambda case: case.edit("placement/spec.json", lambda spec: spec.update(run_id="formal-7/placement")),
        ALL,
        "part of this run: expected formal-1/placement, found formal-7/placement",
    ),
    of(REPLAYED, "a copied replay", copied(REPLAYED), ALL, "calls: expected two, found the same one twice", "loads"),
    of(REPLAYED, "the run's own call", same_call(REPLAYED), CELLS, "the same one twice"),
    of(
        REPLAYED,
        "the same hash seed",
        made_by_the_first(REPLAYED, "str_hash"),
        ALL,
        "Python's hash seed: expected another, found the same",
    ),
    of(
        REPLAYED,
        "a unit less",
        lambda case: case.edit(f"{REPLAYED}/run.json", lambda run: run["units"].pop(0)),
        CELLS,
        "expected a unit, found none",
    ),
    *(fault for fault in APART if fault.gate == "placement_equivalence" and fault.name.endswith(("name", "larities"))),
    *(fault for fault in APART if fault.gate == "placement_equivalence" and fault.name == "no MoE layer away"),
)
SMOKE = (
    *(fault for fault in APART if fault.gate == "smoke_passed"),
    Fault(
        "smoke_passed",
        "a smoke run that drew another token",
        parting_smoke,
        ALL,
        ("smoke cells that part from this run's: expected [], found ['{code} s0_period']",),
    ),
    Fault(
        "smoke_passed",
        "what was drawn again, altered after the audit",
        in_smoke(in_observation(SAME, lambda seen, own: seen.update(tokens=1))),
        ALL,
        ("files altered after the audit", "same_process/journal/"),
    ),
    Fault(
        "smoke_passed",
        "what was drawn again is gone",
        in_smoke(lambda case: case.journal(0, SAME).unlink()),
        ALL,
        ("files altered after the audit", "same_process/journal/"),
    ),
)
FROZEN = (
    *(
        Fault("frozen_snapshots", name, plant, rows, words)
        for name, plant, rows, words in (
            (
                "a run seed of the frozen file",
                frozen(in_frozen(lambda content: content.update(run_seed="0" * 16))),
                UNIT,
                ('snapshot: expected "run_seed": "0000000000000000"',),
            ),
            ("a run seed of the run", frozen(in_part_seeds("")), UNIT, ('found "run_seed": "0000000000000000"',)),
            (
                "a token",
                frozen(in_cell("s0_period", generated_ids=lambda ids: other(ids, 3))),
                UNIT,
                ("s0_period snapshot: expected",),
            ),
            (
                "a class",
                frozen(row_of(10, completion="BUDGET_TRUNCATED_UNRESOLVED")),
                ("{2}",),
                ("snapshot: expected", "BUDGET_TRUNCATED_UNRESOLVED"),
            ),
            ("the run's own", frozen(lambda case: None, own=True), ALL, ("this run's own",)),
        )
    ),
    *(
        Fault("frozen_verdicts", name, plant, rows, words)
        for name, plant, rows, words in (
            ("a flipped verdict, sealed", frozen(failed_and_sealed), ("{0}", "{1}"), ("s0_eos snapshot", "pass")),
            (
                "another task",
                frozen(in_shared_verdict(task_sha256="0" * 64)),
                ("{0}", "{1}"),
                ("s0_eos snapshot: expected", "found"),
            ),
            (
                "a verdict less",
                frozen(lambda case: (case.run / shared_key(case)).unlink()),
                ("{0}", "{1}"),
                ("s0_eos snapshot: expected",),
            ),
            (
                "a frozen verdict",
                frozen(in_frozen(lambda one: one["cells"][2]["verdict"].update(outcome="timeout"), "R1-verdicts")),
                ("{1}",),
                ('s0_period snapshot: expected "outcome": "timeout"',),
            ),
            (
                "a class that stands with its verdict",
                frozen(in_frozen(lambda one: one["cells"][2].update(completion="OTHER_STOP"), "R1-verdicts")),
                ("{1}",),
                ('s0_period snapshot: expected "completion": "OTHER_STOP"',),
            ),
            ("the run's own", frozen(lambda case: None, own=True), ("{0}", "{1}"), ("the frozen run's own",)),
        )
    ),
)
FAULTS = (*FIELD_FAULTS, *HELD_OF_THE_SECOND, *WHOLE, *AGAIN, *MADE_APART, *SMOKE, *FROZEN)
