"""Faults of what the executor is held against: the own loop under the same tapes, `generate`, and what is recorded."""

from typing import Any

from .damage import edit, read
from .faults_of_tapes_apart import in_part_run
from .planting import ALL, Fault, in_cell, in_config, in_environment, in_placement, in_unit, other, remove
from .planting_tapes import CELL, CELLS, UNIT, in_account, in_tape

LOOP, ARGMAX, GENERATE = "graph_loop", "graph_argmax", "graph_generate"
CHANGED = {"generated_ids": lambda ids: other(ids, 2)}


def in_ran(**changes: Any) -> Any:
    """How the first unit of the run ran."""
    return in_tape(ran=lambda one: one | changes)


def of_the_run(part: str) -> Any:
    """The part's units say that the run's own process made them."""

    def plant(case: Any) -> None:
        own = read(case.journal())["observation"]["process"]
        for path in sorted((case.run / part / "journal").glob("*.json")):
            edit(path, lambda journal: journal["observation"].update(process=own))

    return plant


def no_step(case: Any) -> None:
    """Every row of the run ended at its first token, which the prompt's own forward gives."""
    case.edit("run.json", lambda run: [unit["checks"].update(steps=1) for unit in run["units"]])


def config_of(part: str, **changes: str) -> Any:
    """What was read back of a part's program."""
    return lambda case: case.edit(f"{part}/environment.json", lambda one: one["generation_config"].update(changes))


def _equivalence(part: str, program: str) -> tuple[Fault, ...]:
    """Faults of the part, by name."""
    return tuple(
        Fault("graph_equivalence", f"{name} ({part})", plant, rows, words)
        for name, plant, rows, words in (
            ("one token", in_cell("s0_period", part=part, **CHANGED), CELL, ("generated_ids from step 2",)),
            ("the run's own process", of_the_run(part), ALL, ("processes: expected True", "model loads")),
            ("another prompt", in_cell("s0_period", part=part, prompt_sha256="0" * 64), CELL, ("prompt_sha256",)),
            ("another program", config_of(part, **{program: '"other"'}), ALL, (f"{part}: ", f"{program}: expected")),
            ("a rule besides", config_of(part, no_repeat_ngram_size="3"), ALL, (f"{part}: ", "expected nothing set")),
            ("another environment", in_environment(part, threads=7), ALL, ("environment: expected", "threads=7")),
            ("another placement", in_placement(part, id="third"), ALL, ("placements: expected", "third")),
            ("another protocol", in_part_run(part, protocol_digest="0"), ALL, ("protocol: expected",)),
            ("another grid", in_part_run(part, grid="formal"), ALL, ("grids: expected", "formal")),
            (
                "a part of another run",
                lambda case: case.edit(f"{part}/spec.json", lambda spec: spec.update(run_id=f"smoke-7/{part}")),
                ALL,
                ("parts of this run: expected", "smoke-7"),
            ),
            ("no part", remove(f"{part}/run.json"), ALL, ("run.json",)),
        )
    )


OWN_LOOP = (
    *_equivalence(LOOP, "strategy"),
    *(
        Fault("graph_equivalence", name, plant, rows, words)
        for name, plant, rows, words in (
            ("a token of the run", in_cell("s0_period", **CHANGED), CELL, ("own_loop: ", "generated_ids from step 2")),
            ("a captured step on the CPU", in_config(captured="true"), ALL, ("captured: expected false, found true",)),
            ("a captured unit", in_ran(captured=True), CELLS, ("captured: expected false", "replays: expected")),
            ("nothing executed", no_step, ALL, ("own_loop: ", "steps executed: expected one or more, found 0")),
            ("another step", in_config(step='"lean, kernels none"'), ALL, ("step: expected", "lean, kernels none")),
            ("a part by the executor", config_of(LOOP, executor='"graph"'), ALL, ("executor: expected nothing set",)),
            ("a mask left at 1", in_account(part=LOOP, attended=lambda one: one + 1), CELLS, ("columns attended to",)),
            (
                "a unit less",
                lambda case: case.edit(f"{LOOP}/run.json", lambda run: run["units"].pop(0)),
                CELLS,
                ("expected a unit, found none",),
            ),
        )
    ),
    *(
        Fault("graph_recorded", name, plant, ALL, words)
        for name, plant, words in (
            ("a count", lambda case: case.edit("graph.json", _fewer), ("graph.json: expected",)),
            (
                "something captured",
                lambda case: case.edit("graph.json", lambda one: one["captured"].update(reason="captured")),
                ("graph.json: expected", "nothing was captured"),
            ),
            ("a parting that isn't told", in_cell("s0_period", part=LOOP, **CHANGED), ("graph.json: expected",)),
            ("no comparison", remove("graph.json"), ("graph.json",)),
            ("the run's own process", of_the_run(LOOP), ("processes: expected True",)),
        )
    ),
    *(
        Fault("taped_contract", name, plant, UNIT, words)
        for name, plant, words in (
            ("a step by another name", in_ran(step="lean, kernels none"), ("step: expected", "lean, kernels none")),
            ("a captured unit", in_ran(captured=True), ("captured: expected false", "replays: expected")),
            ("replays without a graph", in_ran(replays=3), ("replays: expected 0, found 3",)),
            ("another look", in_ran(look=2), ("look: expected 8, found 2",)),
        )
    ),
)
BY_GENERATE = (
    *_equivalence(ARGMAX, "executor"),
    *_equivalence(GENERATE, "do_sample"),
    Fault(
        "graph_equivalence",
        "a step that isn't the argmax",
        in_unit(lambda unit: unit["checks"].update(argmax=1), 0, ARGMAX),
        CELLS,
        ("where the emitted ID is the argmax",),
    ),
)


def _fewer(comparison: Any) -> None:
    comparison["against"]["exact"] -= 1
