"""Faults of the gates that hold a depth run against its replay and its frozen results. {0} is code, {1} mathematics."""

from .planting import ALL, UNIT, Fault, in_cell, in_unit, same_call, same_process
from .planting_completion import frozen
from .planting_depth import OTHER, altered_alone, frozen_digest, in_edge, in_facts, in_line, in_statistics, one_ulp

REPLAYS = ("replay_sources", "replay_hidden", "replay_routes", "replay_weights")
DIGESTS = (
    ("replay_hidden", "hidden", "sha256"),
    ("replay_routes", "gates", "routes_sha256"),
    ("replay_weights", "gates", "weights_sha256"),
)
PROCESS = ("pid", "started_us", "model_loaded_us", "model_load_id", "str_hash")

APART = (
    *(
        Fault(gate, f"{name} ({gate})", plant, rows, words)
        for gate in REPLAYS
        for name, plant, rows, words in (
            (
                "made in the run's own process",
                same_process("replay", *PROCESS),
                ALL,
                ("shared processes: expected []", "model loads: expected none shared", "start after the run's own"),
            ),
            (
                "a second load in the run's own process",
                same_process("replay", "pid", "started_us"),
                ALL,
                ("start after the run's own: expected True, found False",),
            ),
            ("the run's model load", same_process("replay", "model_load_id"), ALL, ("model loads: expected none",)),
            ("a process that nobody started", same_process("replay", "pid"), ALL, ("expected the started children",)),
            ("the run's own call", same_call("replay"), ("*{0}*",), ("calls: expected two, found the same one twice",)),
            (
                "another grid",
                lambda case: case.edit("replay/run.json", lambda run: run.update(grid="smoke")),
                ALL,
                ("grid: expected replay, found smoke",),
            ),
            (
                "another protocol",
                lambda case: case.edit("replay/run.json", lambda run: run.update(protocol_digest=OTHER)),
                ALL,
                ("protocol: expected",),
            ),
            (
                "a replay of another run",
                lambda case: case.edit("replay/spec.json", lambda one: one.update(run_id="formal-9/replay")),
                ALL,
                ("part of this run: expected formal-1/replay, found formal-9/replay",),
            ),
            (
                "no unit",
                lambda case: case.edit("replay/run.json", lambda run: run["units"].pop(0)),
                ("*{0}*",),
                ("expected a unit, found none",),
            ),
        )
    ),
    Fault(
        "replay_sources",
        "the run's hash seed",
        same_process("replay", "str_hash"),
        ALL,
        ("Python's hash seed: expected another, found the same",),
    ),
)
SOURCES = tuple(
    Fault("replay_sources", name, plant, UNIT, words)
    for name, plant, words in (
        (
            "another content digest",
            in_unit(lambda unit: unit.update(content_token_ids_sha256=OTHER), part="replay"),
            ("content_token_ids_sha256: expected", f"found $='{OTHER}'"),
        ),
        (
            "another content digest in the run",
            in_unit(lambda unit: unit.update(content_token_ids_sha256=OTHER)),
            ("content_token_ids_sha256: expected",),
        ),
        (
            "a statistic by one ulp",
            in_statistics("hidden", "layer_02", one_ulp, part="replay"),
            ("cells: expected [4].hidden[3].target.statistics.mean=",),
        ),
        (
            "a weight statistic by one ulp",
            in_statistics("gates", "layer_02", one_ulp, part="replay"),
            ("cells: expected [4].gates[1].target.weight_statistics.mean=",),
        ),
        (
            "an entropy by one ulp",
            in_facts("gates", "layer_02", "full", part="replay", load_entropy=one_ulp),
            ("gates[1].full.load_entropy=",),
        ),
        (
            "a cosine by one ulp",
            in_edge(lambda edge: edge["stages"][3].update(cosine=one_ulp(edge["stages"][3]["cosine"])), part="replay"),
            ("edges: expected [5].stages[3].cosine=",),
        ),
        (
            "a total variation by one ulp",
            in_edge(
                lambda edge: edge["gates"][1].update(
                    load_total_variation=one_ulp(edge["gates"][1]["load_total_variation"])
                ),
                part="replay",
            ),
            ("edges: expected [5].gates[1].load_total_variation=",),
        ),
        (
            "other logits",
            in_unit(
                lambda unit: unit["hooks"].update(logits_sha256_without=OTHER, logits_sha256_with=OTHER), part="replay"
            ),
            ("hooks: expected logits_sha256_with",),
        ),
        (
            "a crossing token not counted",
            in_unit(lambda unit: unit.update(crossing_tokens=7), part="replay"),
            ("crossing_tokens: expected $=8, found $=7",),
        ),
        (
            "a generator's state",
            in_unit(lambda unit: unit["rng_after"]["numpy"].update(sha256=OTHER), part="replay"),
            ("rng_after: expected numpy.sha256=",),
        ),
        (
            "another environment",
            in_unit(lambda unit: unit.update(environment_sha256=OTHER), part="replay"),
            ("environment_sha256: expected",),
        ),
        (
            "another placement",
            in_unit(lambda unit: unit.update(placement_sha256=OTHER), part="replay"),
            ("placement_sha256: expected",),
        ),
        (
            "another prompt",
            in_cell("s0_x", part="replay", left_padding=0),
            ("cells: expected [4].left_padding=19, found [4].left_padding=0",),
        ),
    )
)
ROWS = tuple(
    Fault(gate, name, plant, (f"layer_02.{scope}:{{0}}:s0_x",), words)
    for gate, line, field in DIGESTS
    for scope in ("target", "full")
    for name, plant, words in (
        (
            f"another digest of the replay ({scope})",
            in_facts(line, "layer_02", scope, part="replay", **{field: OTHER}),
            (f"found {OTHER}",),
        ),
        (
            f"another digest of the run ({scope})",
            in_facts(line, "layer_02", scope, **{field: OTHER}),
            ("expected 000",),
        ),
    )
)
LACKING = tuple(
    Fault(gate, f"a digest that isn't there ({gate})", plant, ("layer_02.*:{0}:s0_x",), ("in the run: expected a dig",))
    for gate, plant in (
        ("replay_hidden", in_line("hidden", lambda one: one.pop(3))),
        ("replay_routes", in_line("gates", lambda one: one.pop(1))),
        ("replay_weights", in_line("gates", lambda one: one.pop(1))),
    )
)
FROZEN = (
    *(
        Fault("frozen_tensors", name, frozen(plant), UNIT, words)
        for name, plant, words in (
            *(
                (
                    f"another {field} of the {scope}",
                    in_facts(line, "layer_02", scope, **{field: OTHER}),
                    (f"s0_x tensors: expected {kind}.layer_02[{place}]=", f"found {kind}.layer_02[{place}]='{OTHER}'"),
                )
                for _, line, field in DIGESTS
                for kind in (field if line == "gates" else "hidden_sha256",)
                for place, scope in enumerate(("target", "full"))
            ),
            (
                "a statistic by one ulp",
                in_statistics("hidden", "layer_02", one_ulp),
                ("s0_x tensors: expected record_sha256=",),
            ),
            (
                "an edge by one ulp",
                in_edge(lambda edge: edge["stages"][3].update(cosine=one_ulp(edge["stages"][3]["cosine"]))),
                ("tensors: expected edges_sha256.x_s0=",),
            ),
            (
                "another placement",
                in_unit(lambda unit: unit.update(placement_sha256=OTHER)),
                ("expected", "placement_sha256", OTHER),
            ),
            ("a frozen digest", frozen_digest, ("s0_x", "expected", OTHER)),
        )
    ),
    Fault(
        "frozen_tensors",
        "the run's own",
        frozen(lambda case: None, own=True),
        ALL,
        ("tensors: expected another run's, found the frozen run's own: nothing to compare",),
    ),
    *(
        Fault("frozen_snapshots", name, frozen(plant), UNIT, words)
        for name, plant, words in (
            (
                "another target",
                in_cell("s0_x", target=lambda old: old | {"start": 43, "end": 108}),
                ("s0_x snapshot: expected", '"end": 108'),
            ),
            (
                "another embedding",
                in_facts("hidden", "embedding", "target", sha256=OTHER),
                ("s0_x snapshot: expected", f'"embedding_sha256": ["{OTHER}"'),
            ),
            (
                "another content digest",
                in_unit(lambda unit: unit.update(content_token_ids_sha256=OTHER)),
                (f'"content_token_ids_sha256": "{OTHER}"',),
            ),
            ("a stage less", in_line("hidden", lambda one: one.pop(3)), ("s0_x snapshot: expected", '"layer_02"')),
            ("another top-k", in_facts("gates", "layer_02", "full", top_k=5), ('"layer_02": 5',)),
        )
    ),
    Fault("frozen_snapshots", "the run's own", frozen(lambda case: None, own=True), ALL, ("this run's own",)),
)
ALONE = tuple(
    Fault(
        gate,
        f"a frozen file that was altered alone: {suffix}",
        frozen(altered_alone(suffix)),
        ALL,
        (suffix, "expected"),
    )
    for gate, suffix in (
        ("frozen_tensors", "-tensors.json"),
        ("frozen_tensors", "environment.json"),
        ("frozen_snapshots", "-forward.json"),
    )
)
FAULTS = (*ALONE, *APART, *SOURCES, *ROWS, *LACKING, *FROZEN)
