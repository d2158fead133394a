"""Faults of what a task run is held against: what was drawn again, the loop, placements, replay, smoke, frozen results.

{0} to {5}: the run's units. What the same process drew again and the two greedy parts belong to the smoke run.
"""

from collections.abc import Callable
from typing import Any

from .damage import Damage, cell_of, edit, read
from .faults_apart import FAULTS as APART
from .faults_of_tapes_books import failed_and_sealed
from .planting import ALL, Fault, in_cell, in_environment, in_placement, in_unit, other
from .planting_completion import frozen
from .planting_sampling import in_observation, same_call
from .planting_tapes import (
    CELL,
    CELLS,
    OTHER,
    UNIT,
    in_account,
    in_frozen_of,
    in_smoke,
    in_state,
    in_tape,
    made_by_the_first,
)

SAME, PLACED, REPLAYED = "same_process", "placement", "replay"
GENERATE, OWN = "loop_generate", "loop_argmax"
GATES = {SAME: "same_process_replay", PLACED: "placement_equivalence", REPLAYED: "independent_replay"}


def of(part: str, name: str, damage: Damage, rows: tuple[str, ...], *words: str) -> Fault:
    """A fault of the gate that judges a part; the part that the same process drew lies in the smoke run."""
    return Fault(GATES[part], name, in_smoke(damage) if part == SAME else damage, rows, words)


def in_part_run(part: str, **changes: Any) -> Damage:
    """Top-level fields of the part's run.json."""
    return lambda case: case.edit(f"{part}/run.json", lambda run: run.update(changes))


FIELDS: dict[str, Callable[[str], tuple[Damage, tuple[str, ...], str]]] = {
    "protocol": lambda part: (in_unit(lambda unit: unit.update(protocol_digest="0"), 0, part), CELLS, "protocol: exp"),
    "model_revision": lambda part: (in_environment(part, checkpoint={}), ALL, "model_revision: expected"),
    "generation_contract": lambda part: (
        lambda case: case.edit(f"{part}/environment.json", lambda one: one["generation_config"].update(top_p="1.0")),
        ALL,
        "generation_contract: expected",
    ),
    "tape": lambda part: (in_account(part=part, tape="T7"), CELLS, "tape: expected 'T0', found 'T7'"),
    "prompt_sha256": lambda part: (in_cell("s0_period", part=part, prompt_sha256="0"), CELL, "prompt_sha256: expected"),
    "uniforms_sha256": lambda part: (
        in_account(part=part, consumed=lambda one: one | {"sha256": "0" * 64}),
        CELLS,
        "s0_period hash of",
    ),
    "generated_ids": lambda part: (
        in_cell("s0_period", part=part, generated_ids=lambda ids: other(ids, 5)),
        CELL,
        "from step 5, found [30",
    ),
    "text": lambda part: (in_cell("s0_period", part=part, text_escaped="x"), CELL, " text: expected"),
    "eos": lambda part: (in_cell("s0_period", part=part, eos=lambda one: not one), CELLS, "s0_period end: expected"),
    "truncated": lambda part: (
        in_cell("s0_period", part=part, truncated=lambda one: not one),
        CELL,
        "truncated: expected",
    ),
    "rng_before": lambda part: (in_state("before", 1, part, torch_cpu=OTHER), ("{3}:*",), "generator before the call"),
}
SEVEN = ("tape", "prompt_sha256", "uniforms_sha256", "generated_ids", "text", "eos", "truncated")
ELEVEN = ("protocol", "model_revision", "generation_contract", *SEVEN, "rng_before")
REGISTERED = {SAME: SEVEN, PLACED: SEVEN, REPLAYED: ELEVEN}
FIELD_FAULTS = tuple(
    of(part, f"{name} ({part})", damage, rows, word)
    for part, names in REGISTERED.items()
    for name in names
    for damage, rows, word in (FIELDS[name](part),)
)
# What a unit must be wherever it was drawn: the second one isn't judged by any other gate.
HELD_OF_THE_SECOND = tuple(
    of(part, f"{name} ({part})", damage, CELLS, word)
    for part in GATES
    for name, damage, word in (
        ("another sampler", in_tape(part=part, sampler=lambda one: one | {"top_p": 1.0}), "sampler: expected"),
        ("a mask left at 1", in_account(part=part, attended=lambda one: one + 1), "columns attended to"),
        ("a consumed generator", in_state("after", part=part, torch_cpu=OTHER), "torch_cpu generator: expected"),
        (
            "a step that wasn't checked",
            in_unit(lambda unit: unit["checks"].update(finite=1), 0, part),
            "row steps with finite logits",
        ),
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
    of(SAME, "the same call twice", same_call(SAME), CELLS, "calls: expected 2, found 1"),
    of(
        SAME,
        "a call before the run's own",
        in_observation(SAME, lambda seen, own: seen.update(finished_us=own["finished_us"] - 1)),
        CELLS,
        "one after the other: expected True, found False",
    ),
)
MADE_APART = (
    *(
        of(part, f"{name} ({part})", damage, ALL, *words)
        for part in (PLACED, REPLAYED)
        for name, damage, words in (
            ("the first run's process", made_by_the_first(part), ("shared processes", "model loads", "processes")),
            ("a process that nobody started", made_by_the_first(part, "pid"), ("the started children",)),
            ("a port", in_part_run(part, port=True), ("port: expected False, found True",)),
        )
    ),
    of(REPLAYED, "the run's own call", same_call(REPLAYED), CELLS, "the same one twice"),
    of(
        REPLAYED,
        "the same hash seed",
        made_by_the_first(REPLAYED, "str_hash"),
        ALL,
        "Python's hash seed: expected another, found the same",
    ),
    *(fault for fault in APART if fault.gate == "placement_equivalence" and fault.name == "no MoE layer away"),
)


def in_loop(name: str, change: Callable[[Any], None]) -> Damage:
    """A change of a file of the smoke run."""
    return in_smoke(lambda case: case.edit(name, change))


def one_program(case: Any) -> None:
    """Both parts were made by the same process, as a copy of one into the other would be."""
    one, two = (sorted((case.run / part / "journal").glob("*.json")) for part in (GENERATE, OWN))
    for source, target in zip(one, two, strict=True):
        process = read(source)["observation"]["process"]
        edit(target, lambda journal, process=process: journal["observation"].update(process=process))


LOOP = (
    *(
        Fault("loop_equivalence", name, in_smoke(plant), rows, words)
        for name, plant, rows, words in (
            (
                "tokens of wrong positions",
                in_cell("s0_period", part=OWN, generated_ids=lambda ids: other(ids, 1)),
                CELL,
                ("generated_ids from step 1",),
            ),
            (
                "another greedy token",
                in_cell("s0_period", part=GENERATE, generated_ids=lambda ids: other(ids, 5)),
                CELL,
                ("generated_ids from step 5",),
            ),
            ("one process for both", one_program, ALL, ("processes: expected True", "model loads: expected 3")),
            ("another prompt", in_cell("s0_period", part=OWN, prompt_sha256="0" * 64), CELL, ("prompt_sha256",)),
            (
                "a step that isn't the argmax",
                in_unit(lambda unit: unit["checks"].update(argmax=1), 0, OWN),
                CELLS,
                ("where the emitted ID is the argmax",),
            ),
            (
                "a contract of another program",
                lambda case: case.edit(f"{OWN}/environment.json", lambda one: one.update(generation_config={})),
                ALL,
                ("own_loop contract: expected", "not read back"),
            ),
            ("another environment", in_environment(GENERATE, threads=7), ALL, ("environment: expected", "threads=7")),
            ("another placement", in_placement(OWN, id="third"), ALL, ("placements: expected", "third")),
            ("another protocol", in_part_run(OWN, protocol_digest="0"), ALL, ("protocol: expected",)),
            ("another grid", in_part_run(OWN, grid="formal"), ALL, ("grids: expected 1, found 2",)),
            (
                "a part of another run",
                lambda case: case.edit(f"{OWN}/spec.json", lambda spec: spec.update(run_id="smoke-7/loop_argmax")),
                ALL,
                ("parts of this run: expected", "smoke-7"),
            ),
            (
                "a unit less",
                lambda case: case.edit(f"{OWN}/run.json", lambda run: run["units"].pop(0)),
                CELLS,
                ("expected a unit, found none",),
            ),
        )
    ),
    *(
        Fault("loop_recorded", name, plant, ALL, words)
        for name, plant, words in (
            ("a count", in_loop("loop.json", lambda one: one.update(exact=0)), ("loop.json: expected", "exact=0")),
            ("a cell less", in_loop("loop.json", lambda one: one["cells"].pop()), ("loop.json: expected",)),
            (
                "a parting that isn't told",
                in_smoke(in_cell("s0_period", part=OWN, generated_ids=lambda ids: other(ids, 1))),
                ("loop.json: expected",),
            ),
            ("no comparison", in_smoke(lambda case: (case.run / "loop.json").unlink()), ("loop.json",)),
            ("one process for both", in_smoke(one_program), ("processes: expected True",)),
        )
    ),
)
SMOKE = (
    *(fault for fault in APART if fault.gate == "smoke_passed"),
    Fault(
        "smoke_passed",
        "what was drawn again is gone",
        in_smoke(lambda case: case.journal(0, SAME).unlink()),
        ALL,
        ("files altered after the audit", "same_process/journal/"),
    ),
    Fault(
        "smoke_passed",
        "the loop's comparison, altered after the audit",
        in_loop("loop.json", lambda one: one.update(exact=0)),
        ALL,
        ("files altered after the audit", "loop.json"),
    ),
)


def frozen_consumed(content: Any) -> None:
    """Another hash of consumed values in a frozen cell."""
    cell_of(content, "s0_period")["consumed"].update(consumed_sha256="0" * 64)


def without_verdicts(case: Any) -> None:
    """The first task's executions are gone: equal programs have equal evidence, so one of them would stand for all."""
    for path in (case.run / "sandbox").glob("code-00-*.json"):
        path.unlink()


FROZEN = (
    *(
        Fault("frozen_snapshots", name, plant, rows, words)
        for name, plant, rows, words in (
            (
                "consumed values of the frozen file",
                frozen(in_frozen_of("code-00-*-T0", frozen_consumed)),
                UNIT,
                ("s0_period snapshot: expected", "0000"),
            ),
            (
                "a token",
                frozen(in_cell("s0_period", generated_ids=lambda ids: other(ids, 3))),
                UNIT,
                ("s0_period snapshot: expected",),
            ),
            ("the run's own", frozen(lambda case: None, own=True), ALL, ("this run's own",)),
        )
    ),
    *(
        Fault("frozen_verdicts", name, plant, rows, words)
        for name, plant, rows, words in (
            ("a flipped verdict, sealed", frozen(failed_and_sealed), UNIT, ("s0_period snapshot",)),
            (
                "a verdict less",
                frozen(without_verdicts),
                ("{0}", "{1}"),
                ("snapshot: expected",),
            ),
            (
                "a frozen verdict",
                frozen(
                    in_frozen_of("code-00-*-T1-verdicts", lambda one: one["cells"][2]["verdict"].update(x="timeout"))
                ),
                ("{1}",),
                ("s0_period snapshot: expected",),
            ),
            ("the run's own", frozen(lambda case: None, own=True), ("{0}", "{1}", "{2}"), ("the frozen run's own",)),
        )
    ),
)
FAULTS = (*FIELD_FAULTS, *HELD_OF_THE_SECOND, *WHOLE, *AGAIN, *MADE_APART, *LOOP, *SMOKE, *FROZEN)
