"""Faults of a depth run by itself: what it traced, its join, its books. {0} is its code source, {1} mathematics."""

from .faults_apart import FAULTS as APART
from .faults_of_a_run import FAULTS as OF_A_RUN
from .faults_of_depth_edges import FAULTS as ON_EDGES
from .planting import ALL, CELL, UNIT, Fault, failed_unit, in_cell, in_config, in_environment, in_ledger, in_unit, other
from .planting_completion import in_baseline, other_cell
from .planting_depth import (
    OTHER,
    in_facts,
    in_line,
    in_statistics,
    last_content,
    one_ulp,
    weight_without_load,
)

CELLS = ("{0}:*",)

JOIN = (
    *(
        Fault("generation_join", name, in_baseline(**changes), ALL, words)
        for name, changes, words in (
            ("another run", {"run_sha256": OTHER}, ("as recorded: expected True", "baseline run: expected")),
            ("another protocol", {"protocol_digest": OTHER}, ("baseline as recorded: expected True, found False",)),
            ("another environment", {"environment_sha256": OTHER}, ("baseline as recorded",)),
            ("another budget", {"max_new_tokens": 5}, ("baseline as recorded",)),
            ("a cell of the recorded baseline", {"cells": other_cell}, ("baseline as recorded",)),
            ("a baseline cell less", {"cells": lambda cells: cells[:-1]}, ("baseline as recorded",)),
            ("a port's", {"port": True}, ("baseline is a port's: expected False, found True",)),
            ("another checkpoint there", {"checkpoint": {}}, ("checkpoint: expected {}",)),
            ("no source text there", {"source_texts": {}}, ("source_text_sha256: expected none",)),
        )
    ),
    Fault(
        "generation_join",
        "the run's own protocol",
        lambda case: in_baseline(protocol_digest=case.loaded.digest)(case),
        ALL,
        ("baseline made apart: expected True, found False",),
    ),
    Fault(
        "generation_join",
        "another checkpoint here",
        in_environment(checkpoint={"model.safetensors": OTHER}),
        ALL,
        ("checkpoint: expected", "found {'model.safetensors': '0000"),
    ),
    Fault(
        "generation_join",
        "another source text",
        in_unit(lambda unit: unit.update(source_text_sha256=OTHER)),
        CELLS,
        ("source_text_sha256: expected", "found 0000"),
    ),
    Fault(
        "generation_join",
        "another prompt",
        in_cell("s0_x", prompt_sha256=OTHER),
        CELL,
        ("prompt_sha256: expected", "found ['0000"),
    ),
    Fault(
        "generation_join",
        "a baseline cell twice",
        in_baseline(cells=lambda cells: [*cells, cells[4]]),
        ALL,
        ("baseline as recorded",),
    ),
)
TARGET = (
    *(
        Fault("target_tokens", name, in_cell("s0_x", target=change), CELL, words)
        for name, change, words in (
            (
                "one token on",
                lambda old: old | {"start": old["start"] + 1, "end": old["end"] + 1},
                ("target: expected TargetTokens(start=42,", "found TargetTokens(start=43,", "target token IDs"),
            ),
            ("one token short", lambda old: old | {"end": old["end"] - 1}, ("target: expected", "target token IDs")),
            (
                "places in the padded row",
                lambda old: old | {"start": old["start"] + 19, "end": old["end"] + 19},
                ("target: expected TargetTokens(start=42,", "found TargetTokens(start=61,"),
            ),
            ("a crossing token not counted", lambda old: old | {"crossing": 0}, ("crossing=1", "crossing=0")),
        )
    ),
    Fault(
        "target_tokens",
        "another token in the target",
        in_cell("s0_x", prompt_ids=lambda ids: other(ids, 50)),
        CELL,
        ("target token IDs: expected",),
    ),
    Fault(
        "target_tokens",
        "the content of the last source",
        last_content,
        CELLS,
        ("content_token_ids_sha256 of its source: expected",),
    ),
    *(
        Fault(
            "target_tokens",
            f"{field} off by one",
            in_unit(lambda unit, field=field: unit.update({field: unit[field] - 1})),
            CELLS,
            (words,),
        )
        for field, words in (
            ("target_tokens", "target tokens of its source: expected 65, found 64"),
            ("crossing_tokens", "crossing tokens of its source: expected 8, found 7"),
            ("crossing_cells", "crossing cells of its source: expected 8, found 7"),
        )
    ),
)
FORWARD = (
    Fault(
        "forward_contract",
        "a cache that came back",
        in_unit(lambda unit: unit.update(cache_returned=True)),
        ALL,
        ("sources whose forward gave a cache back: expected [], found ['{0}']",),
    ),
    *(
        Fault("forward_contract", name, plant, ALL, words)
        for name, plant, words in (
            ("a cache asked for", in_config(use_cache="true"), ("forward settings", "'use_cache': 'true'")),
            ("training", in_config(training="true"), ("forward settings", "'training': 'true'")),
            ("states asked for", in_config(output_hidden_states="true"), ("'output_hidden_states': 'true'",)),
            ("a setting that nobody registered", in_config(num_logits_to_keep="1"), ("num_logits_to_keep",)),
            ("a setting not read back", in_config(use_cache=None), ("forward settings",)),
            ("another attention", in_environment(attention="sdpa"), ("attention: expected eager, found sdpa",)),
            ("other experts", in_environment(experts="eager"), ("experts: expected grouped_mm, found eager",)),
            ("other threads", in_environment(threads=7), ("threads: expected 1, found 7",)),
            ("other weights", in_environment(checkpoint={}), ("checkpoint.model.safetensors", "found none")),
        )
    ),
)
LINES = (
    *(
        Fault("stages_and_gates", name, in_line(line, change), CELL, words)
        for name, line, change, words in (
            ("a stage less", "hidden", lambda one: one.pop(3), ("stages: expected", "'layer_01', 'layer_03'")),
            ("a stage twice", "hidden", lambda one: one.insert(3, one[3]), ("'layer_02', 'layer_02'",)),
            ("two stages swapped", "hidden", lambda one: one.insert(2, one.pop(3)), ("'layer_02', 'layer_01'",)),
            ("no pre-norm stage", "hidden", lambda one: one.pop(-2), ("'layer_04', 'final_norm'",)),
            ("a gate less", "gates", lambda one: one.pop(1), ("gates: expected", "'layer_01', 'layer_03'")),
            ("a gate twice", "gates", lambda one: one.insert(1, one[1]), ("'layer_02', 'layer_02'",)),
            ("a gate of the dense layer", "gates", lambda one: one[0].update(gate="layer_00"), ("found ('layer_00'",)),
        )
    ),
    *(
        Fault("stages_and_gates", name, plant, CELL, words)
        for name, plant, words in (
            (
                "padding counted in",
                in_facts("hidden", "layer_02", "full", shape=lambda old: [old[0] + 19, old[1]]),
                ("layer_02 full shape and dtype: expected ((111, 128), 'float32'), found ((130, 128)",),
            ),
            (
                "padding counted in at a gate",
                in_facts("gates", "layer_02", "full", tokens=lambda old: old + 19),
                ("layer_02 full tokens: expected 111, found 130",),
            ),
            (
                "fewer tokens of the target",
                in_facts("hidden", "layer_02", "target", shape=lambda old: [old[0] - 1, old[1]]),
                ("layer_02 target shape and dtype",),
            ),
            (
                "another width",
                in_facts("hidden", "layer_02", "target", shape=lambda old: [old[0], 64]),
                ("layer_02 target shape", "(65, 64)"),
            ),
            ("another dtype", in_facts("hidden", "layer_02", "target", dtype="bfloat16"), ("'bfloat16'",)),
            ("another top-k", in_facts("gates", "layer_02", "target", top_k=5), ("layer_02 target top_k: expected 6",)),
            (
                "an expert less",
                in_facts("gates", "layer_02", "target", load=lambda old: [old[0] + old[1], *old[2:]]),
                ("layer_02 target experts: expected (32, 32), found (31, 32)",),
            ),
            (
                "a load that doesn't sum",
                in_facts("gates", "layer_02", "target", load=lambda old: [old[0] + 1, *old[1:]]),
                ("layer_02 target load: expected 390, found 391",),
            ),
            (
                "more tokens of one expert than there are",
                in_facts("gates", "layer_02", "target", load=lambda old: [sum(old), *[0] * 31]),
                ("layer_02 target", "tokens of one expert"),
            ),
            (
                "experts used",
                in_facts("gates", "layer_02", "target", experts_used=lambda old: old - 1),
                ("layer_02 target experts used",),
            ),
        )
    ),
)
MATH = ("{1}:s0_x",)
LINES += (
    Fault(
        "stages_and_gates",
        "weight without load",
        weight_without_load,
        MATH,
        ("target weight without load: expected [",),
    ),
)
REST = (
    Fault(
        "hooks_change_nothing",
        "other logits with the hooks",
        in_unit(lambda unit: unit["hooks"].update(logits_sha256_with=OTHER)),
        UNIT,
        ("logits with hooks: expected", f"found {OTHER}"),
    ),
    Fault(
        "hooks_change_nothing",
        "other logits without the hooks",
        in_unit(lambda unit: unit["hooks"].update(logits_sha256_without=OTHER), 1),
        ("{1}",),
        (f"logits with hooks: expected {OTHER}",),
    ),
    Fault(
        "scale_identity",
        "a decision more",
        in_facts("gates", "layer_02", "target", load=lambda old: [old[0] + 1, *old[1:]]),
        UNIT,
        ("route decisions over the target: expected 15600, found 15601",),
    ),
    Fault("scale_identity", "a gate less", in_line("gates", lambda one: one.pop(1)), UNIT, ("15600, found 15210",)),
    Fault(
        "scale_identity",
        "a cell less",
        in_unit(lambda unit: unit["cells"].pop(4)),
        UNIT,
        ("expected 15600, found 13650",),
    ),
    Fault(
        "scale_identity",
        "a target token more",
        in_unit(lambda unit: unit.update(target_tokens=unit["target_tokens"] + 1)),
        UNIT,
        ("expected 15840, found 15600",),
    ),
    *(
        Fault("assembled_run", name, plant, ALL, words)
        for name, plant, words in (
            ("a digest", in_facts("hidden", "layer_02", "target", sha256=OTHER), ("run.json: expected",)),
            ("a statistic by one ulp", in_statistics("hidden", "layer_02", one_ulp), ("run.json: expected",)),
            (
                "the recorded baseline alone",
                lambda case: case.edit("baseline.json", lambda one: one["cells"][4].update(length=1)),
                ("run.json: expected",),
            ),
            (
                "another prompt in the recorded baseline",
                lambda case: case.edit("baseline.json", lambda one: one["cells"][4].update(prompt_sha256=OTHER)),
                ("join with mini-behavior: prompt_sha256: expected 0000",),
            ),
            (
                "another source text in the recorded baseline",
                lambda case: case.edit("baseline.json", lambda one: one.update(source_texts={})),
                ("source_text_sha256: expected none",),
            ),
            (
                "no cell in the recorded baseline",
                lambda case: case.edit("baseline.json", lambda one: one["cells"].pop(4)),
                ("s0_x: join with mini-behavior: expected one cell, found 0",),
            ),
            (
                "route decisions of a cell",
                in_ledger("cells", lambda rows: rows[0].update(route_decisions=1)),
                ("ledger.json",),
            ),
            ("an edge row", in_ledger("edges", lambda rows: rows.append(rows[0])), ("ledger.json",)),
            (
                "the scale",
                lambda case: case.edit("statistics.json", lambda one: one["scale"].update(route_decisions=1)),
                ("statistics.json",),
            ),
            ("a stranger's failure", failed_unit("nobody"), ("failures of other units",)),
        )
    ),
)
NEW = (*JOIN, *TARGET, *FORWARD, *LINES, *ON_EDGES, *REST)
OLD = ("normal_return", "prompt_hashes", "single_id_contract", "batch_alignment", "rng_untouched", "placement_recorded")
OLD += ("smoke_passed",)
# One fault of each gate that other protocols have too: that the same check is in force over a depth run.
SHARED = tuple(next(fault for fault in (*OF_A_RUN, *APART) if fault.gate == gate) for gate in OLD)
FAULTS = (*NEW, *SHARED)
