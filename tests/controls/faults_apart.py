"""Faults of the gates that hold a run against another one. {0} and {1} stand for the run's two sources."""

from .damage import edit, forge_audit, read
from .planting import (
    ALL,
    CELL,
    Fault,
    finer_map,
    in_cell,
    in_environment,
    in_placement,
    one_process,
    other,
    same_call,
    same_process,
)

FAULTS = (
    *(
        Fault(
            gate,
            f"another token ({part})",
            in_cell("s0_x", part=part, generated_ids=lambda ids: other(ids, 5)),
            rows,
            ("generated_ids from step 5",),
        )
        for gate, part, rows in (
            ("placement_equivalence", "placement", CELL),
            ("independent_replay", "replay", CELL),
            ("row_determinism", "threads-2", ("threads-2:{0}:s0_x",)),
            ("row_determinism", "workers-2", ("workers-2:{0}:s0_x",)),
        )
    ),
    *(
        Fault(gate, f"{field} ({part})", in_cell("s0_x", part=part, **{field: value}), CELL, (f"s0_x {field}",))
        for gate, part in (("placement_equivalence", "placement"), ("independent_replay", "replay"))
        for field, value in (("prompt_sha256", "0"), ("text_escaped", "x"), ("eos", lambda one: not one))
    ),
    *(
        Fault(gate, f"{name} ({part})", plant, rows, words)
        for gate, part, every in (
            ("placement_equivalence", "placement", ALL),
            ("independent_replay", "replay", ALL),
            ("row_determinism", "threads-2", ("threads-2:*",)),
        )
        for name, plant, rows, words in (
            (
                "the run's model load",
                same_process(part, "model_load_id"),
                every,
                ("model loads: expected none shared",),
            ),
            ("the run's process", same_process(part, "started_us", "model_loaded_us"), every, ("shared processes",)),
            (
                "a process that nobody started",
                same_process(part, "pid"),
                every,
                ("processes: expected the started children",),
            ),
            (
                "another grid",
                lambda case, part=part: case.edit(f"{part}/run.json", lambda run: run.update(grid="smoke")),
                every,
                ("grid: expected long_repro, found smoke",),
            ),
            (
                "another protocol",
                lambda case, part=part: case.edit(f"{part}/run.json", lambda run: run.update(protocol_digest="0")),
                every,
                ("protocol: expected",),
            ),
        )
    ),
    Fault("independent_replay", "the run's own call", same_call("replay"), ("{0}:*",), ("the same one twice",)),
    Fault(
        "independent_replay",
        "no unit",
        lambda case: case.edit("replay/run.json", lambda run: run["units"].pop(0)),
        ("{0}:*",),
        ("expected a unit, found none",),
    ),
    Fault(
        "independent_replay",
        "another environment",
        lambda case: case.edit("replay/run.json", lambda run: run.update(environment_sha256="0")),
        ALL,
        ("environment: expected",),
    ),
    Fault(
        "independent_replay",
        "another placement",
        in_placement("replay", parameter_bytes={"cpu": 5}),
        ALL,
        ("placement",),
    ),
    Fault(
        "placement_equivalence",
        "the resident map under the other name",
        lambda case: in_placement("placement", **(read(case.run / "placement.json") | {"id": "nano-disk"}))(case),
        ALL,
        ("the same map twice", "MoE layer"),
    ),
    Fault("placement_equivalence", "one map in two granularities", finer_map, ALL, ("the same map twice",)),
    Fault(
        "placement_equivalence", "another placement", in_placement("placement", id="third"), ALL, ("nano-disk", "third")
    ),
    Fault(
        "placement_equivalence",
        "no MoE layer away",
        in_placement("placement", offloaded_moe_layers=[]),
        ALL,
        ("an MoE layer offloaded on one side",),
    ),
    Fault(
        "placement_equivalence",
        "what stays on another device",
        in_placement("placement", parameter_bytes={"cuda:0": 9, "offloaded:disk": 9}),
        ALL,
        ("devices of the bytes: expected ['cpu'], found ['cuda']",),
    ),
    Fault(
        "placement_equivalence",
        "another environment",
        lambda case: case.edit("placement/run.json", lambda run: run.update(environment_sha256="0")),
        ALL,
        ("environment: expected",),
    ),
    Fault(
        "row_determinism",
        "threads that didn't vary",
        in_environment("threads-2", threads=1),
        ("threads-2:*",),
        ("threads: expected 2, found 1",),
    ),
    Fault(
        "row_determinism",
        "one process of two",
        one_process,
        ("workers-2:*",),
        ("processes that made units: expected 2",),
    ),
    Fault(
        "row_determinism",
        "other kernels",
        in_environment("workers-2", attention="sdpa"),
        ("workers-2:*",),
        ("environment apart from threads",),
    ),
    Fault("row_determinism", "another placement", in_placement("workers-2", id="x"), ("workers-2:*",), ("placement",)),
    Fault(
        "smoke_passed",
        "a smoke journal",
        lambda case: edit(sorted((case.smoke / "journal").glob("*"))[0], lambda one: one.update(schema=2)),
        ALL,
        ("files altered after the audit", "journal/"),
    ),
    Fault(
        "smoke_passed", "a smoke file gone", lambda case: (case.smoke / "ledger.json").unlink(), ALL, ("ledger.json",)
    ),
    Fault(
        "smoke_passed",
        "an edited audit",
        lambda case: edit(case.smoke / "audit.json", lambda one: one.update(tier="formal")),
        ALL,
        ("audit.json",),
    ),
    Fault(
        "smoke_passed",
        "an audit edited with its digest",
        lambda case: forge_audit(case.smoke, lambda one: one.update(collected=1)),
        ALL,
        ("audit record",),
    ),
    *(
        Fault(
            "smoke_passed",
            f"a forged record: {field}",
            lambda case, field=field, value=value: forge_audit(
                case.smoke, lambda one: one.update({field: value}), reference=case.run / "smoke.json"
            ),
            ALL,
            words,
        )
        for field, value, words in (
            ("tier", "formal", ("tier: expected smoke",)),
            ("protocol_digest", "0", ("protocol digest",)),
            ("environment_sha256", "0", ("environment: expected",)),
            ("passed", False, ("passed: expected True, found False",)),
            ("port", True, ("port: expected False",)),
            ("run_sha256", "0", ("run.json: expected 0",)),
            ("gates", [], ("gates: expected", "found {}")),
            ("books", ["open"], ("open books",)),
        )
    ),
    Fault(
        "smoke_passed",
        "a gate that didn't pass whole",
        lambda case: forge_audit(
            case.smoke, lambda one: one["gates"][1].update(passed=0), reference=case.run / "smoke.json"
        ),
        ALL,
        ("rows passed",),
    ),
    Fault(
        "smoke_passed",
        "the run as its own smoke",
        lambda case: case.edit("smoke.json", lambda one: one.update(run_id=case.run.name)),
        ALL,
        ("run folder", "tier"),
    ),
)
