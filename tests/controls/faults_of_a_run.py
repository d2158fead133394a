"""Faults of the gates that judge a run by itself. {0} and {1} stand for the run's two sources."""

import shutil

from .damage import cell_of, read
from .planting import (
    ALL,
    CELL,
    UNIT,
    Fault,
    failed_unit,
    forged_gold,
    in_cell,
    in_config,
    in_environment,
    in_ledger,
    in_notes,
    in_placement,
    in_unit,
    of_seed,
    other,
    put,
    remove,
)

NO_MEMORY = "model loads that made units and left no memory: expected [], found ['"
FAULTS = (
    Fault("normal_return", "a recorded failure", failed_unit(""), ("{1}:*",), ("out_of_memory", "20 GiB")),
    Fault(
        "normal_return", "a missing journal", lambda case: case.journal().unlink(), ("{0}:*",), ("a journal", "none")
    ),
    Fault("prompt_hashes", "a prompt ID", in_cell("s0_x", prompt_ids=other), CELL, ("hash of the prompt IDs",)),
    Fault("prompt_hashes", "a stored hash", in_cell("s0_x", prompt_sha256="0" * 64), CELL, ("prompt_sha256", "0000")),
    Fault("prompt_hashes", "a prompt too long", in_cell("s0_x", prompt_ids=lambda ids: [*ids, 300]), CELL, ("length",)),
    Fault(
        "single_id_contract", "a second ID changed", in_cell("s0_x", prompt_ids=other), CELL, ("expected 1, found 2",)
    ),
    Fault(
        "single_id_contract",
        "no ID changed",
        lambda case: in_cell(
            "s0_x", prompt_ids=cell_of(read(case.run / "run.json")["units"][0], "s0_eos")["prompt_ids"]
        )(case),
        CELL,
        ("expected 1, found 0",),
    ),
    Fault(
        "single_id_contract",
        "an edit elsewhere recorded",
        in_cell("s0_x", edits=lambda edits: [edits[0] | {"position": 3}]),
        CELL,
        ("recorded edits",),
    ),
    Fault(
        "single_id_contract", "an edit not recorded", in_cell("s0_x", edits=[]), CELL, ("recorded edits", "found []")
    ),
    Fault(
        "single_id_contract",
        "an official cell with an edit",
        in_cell("s0_eos", edits=[{"position": 3, "official": 1, "replaced": 5}]),
        ("{0}:s0_eos",),
        ("recorded edits",),
    ),
    Fault(
        "batch_alignment",
        "a BOS inside",
        in_cell("s0_x", prompt_ids=lambda ids: put(ids, 4, 0)),
        UNIT,
        ("s0_x BOS positions", "expected [0]", "found [0, 4]"),
    ),
    Fault(
        "batch_alignment",
        "no BOS in front",
        in_cell("s0_x", prompt_ids=lambda ids: put(ids, 0, 300)),
        UNIT,
        ("s0_x BOS positions", "found []"),
    ),
    Fault(
        "batch_alignment", "other padding", in_cell("s0_x", left_padding=lambda n: n + 1), UNIT, ("s0_x left padding",)
    ),
    Fault(
        "batch_alignment",
        "a longer cell",
        in_cell("s0_x", prompt_ids=lambda ids: [*ids, 300]),
        UNIT,
        ("s0_x length within its system level",),
    ),
    Fault("decode_contract", "sampling", in_config(do_sample="true"), ALL, ("do_sample", "expected false, found true")),
    Fault("decode_contract", "true for one beam", in_config(num_beams="true"), ALL, ("num_beams", "found true")),
    Fault("decode_contract", "another EOS", in_config(eos_token_id="[1, 5]"), ALL, ("eos_token_id", "[1, 5]")),
    Fault("decode_contract", "no cache", in_config(use_cache="false"), ALL, ("use_cache",)),
    Fault("decode_contract", "a value not read back", in_config(top_p=None), ALL, ("top_p", "not read back")),
    Fault(
        "decode_contract",
        "a setting that nobody registered",
        in_config(suppress_tokens="[7]"),
        ALL,
        ("suppress_tokens", "nothing set", "[7]"),
    ),
    Fault(
        "decode_contract", "another attention", in_environment(attention="sdpa"), ALL, ("attention", "eager", "sdpa")
    ),
    Fault("decode_contract", "other experts", in_environment(experts="eager"), ALL, ("experts", "grouped_mm")),
    Fault("decode_contract", "another dtype", in_environment(dtype="bfloat16"), ALL, ("dtype", "float32")),
    Fault("decode_contract", "other threads", in_environment(threads=7), ALL, ("threads", "expected 1, found 7")),
    Fault("decode_contract", "no determinism", in_environment(deterministic_algorithms=False), ALL, ("deterministic",)),
    Fault(
        "decode_contract", "other precision", in_environment(float32_matmul_precision="high"), ALL, ("highest", "high")
    ),
    Fault(
        "decode_contract", "other weights", in_environment(checkpoint={}), ALL, ("checkpoint.model.safetensors", "none")
    ),
    *(
        Fault(
            "greedy_steps",
            f"{name} off by one",
            in_unit(lambda unit, name=name: unit["checks"].update({name: unit["checks"][name] - 1})),
            UNIT,
            (words,),
        )
        for name, words in (
            ("rows_checked", "row steps checked"),
            ("finite", "finite logits"),
            ("argmax", "is the argmax"),
            ("steps", "steps"),
        )
    ),
    Fault("output_identity", "another text", in_cell("s0_x", text_escaped="7"), CELL, ("text_sha256",)),
    Fault(
        "output_identity",
        "a text that isn't the IDs'",
        in_cell("s0_x", generated_ids=other),
        CELL,
        ("text_sha256 of the decoded IDs", "generated_sha256"),
    ),
    Fault("output_identity", "a wrong EOS flag", in_cell("s0_x", eos=lambda one: not one), CELL, ("eos: expected",)),
    Fault(
        "output_identity",
        "a wrong truncated flag",
        in_cell("s0_x", truncated=lambda one: not one),
        CELL,
        ("truncated",),
    ),
    Fault(
        "output_identity",
        "EOS and then more",
        in_cell("s0_x", generated_ids=lambda ids: [1, 1, *ids[2:-1], 1]),
        CELL,
        ("position of the first EOS", "found 0"),
    ),
    Fault(
        "output_identity",
        "short without EOS",
        in_cell("s0_x", generated_ids=[300, 301]),
        CELL,
        ("2 tokens without EOS",),
    ),
    Fault(
        "output_identity",
        "beyond the budget",
        in_cell("s0_x", generated_ids=[300] * 13, length=13),
        CELL,
        ("length within the budget",),
    ),
    Fault(
        "output_identity",
        "an ID that no column has",
        in_cell("s0_x", generated_ids=[10**6] * 12),
        CELL,
        ("IDs within the vocabulary",),
    ),
    *(
        Fault(
            "rng_untouched",
            f"{name} drawn from",
            in_unit(lambda unit, name=name: unit["rng_after"].update({name: {"state": "hashed", "sha256": "0" * 64}})),
            UNIT,
            (f"{name} generator", "0000"),
        )
        for name in ("python", "numpy", "torch_cpu", "torch_cuda")
    ),
    Fault(
        "rng_untouched",
        "a unit that started from another state",
        in_unit(lambda unit: [unit[side]["python"].update(sha256="0" * 64) for side in ("rng_before", "rng_after")], 1),
        ("{1}",),
        ("generator before the call", "0000"),
    ),
    Fault(
        "rng_untouched",
        "a run of another seed",
        of_seed(1),
        ("{0}", "{1}"),
        ("python generator before the call", "numpy generator before the call", "torch_cpu generator before the call"),
    ),
    Fault(
        "rng_untouched",
        "a GPU whose generator wasn't read",
        in_environment(gpus=["one"]),
        ("{0}", "{1}"),
        ("torch_cuda generator before the call", "expected StateHash", "found NoDevice"),
    ),
    Fault(
        "rng_untouched",
        "a GPU in use that the environment doesn't list",
        in_placement(parameter_bytes={"cuda:1": 9}),
        ("{0}", "{1}"),
        ("GPUs of the environment: expected 2 or more, found 0",),
    ),
    Fault(
        "placement_recorded", "another name", in_placement(id="nano-disk"), ALL, ("expected nano-resident", "nano-disk")
    ),
    Fault("placement_recorded", "no device map", in_placement(device_map={}), ALL, ("device map: expected True",)),
    Fault("placement_recorded", "no bytes", in_placement(parameter_bytes={"cpu": 0}), ALL, ("parameter bytes",)),
    Fault(
        "placement_recorded", "modules away", in_placement(offloaded=["lm_head"]), ALL, ("offloaded modules", "lm_head")
    ),
    Fault("placement_recorded", "an MoE layer claimed", in_placement(offloaded_moe_layers=[4]), ALL, ("MoE layers",)),
    Fault("placement_recorded", "dispatched to one place", in_placement(dispatched=True), ALL, ("dispatched",)),
    Fault(
        "placement_recorded",
        "split over two",
        in_placement(device_map={"model": "cpu", "lm_head": "disk"}, dispatched=True),
        ALL,
        ("devices: expected 1, found 2",),
    ),
    Fault(
        "placement_recorded",
        "mapped to another device",
        in_placement(device_map={"": "cuda:0"}),
        ALL,
        ("devices of the map: expected ['cpu'], found ['cuda']",),
    ),
    Fault(
        "placement_recorded",
        "bytes on another device",
        in_placement(parameter_bytes={"cuda:0": 9}),
        ALL,
        ("devices of the bytes: expected ['cpu'], found ['cuda']",),
    ),
    Fault(
        "placement_recorded",
        "bytes away",
        in_placement(parameter_bytes={"offloaded:disk": 9}),
        ALL,
        ("offloaded bytes",),
    ),
    Fault(
        "placement_recorded",
        "run.json says another",
        lambda case: case.edit("run.json", lambda run: run["placement"].update(parameter_bytes={"cpu": 9})),
        ALL,
        ("placement in run.json",),
    ),
    Fault("placement_recorded", "no memory note", remove("workers"), ALL, (NO_MEMORY,)),
    Fault("placement_recorded", "another load", in_notes(process={"model_load_id": "another"}), ALL, (NO_MEMORY,)),
    Fault("placement_recorded", "no resident bytes", in_notes(memory_bytes={"rss": 0}), ALL, (NO_MEMORY,)),
    Fault("placement_recorded", "no memory in the note", in_notes(memory_bytes=None), ALL, (NO_MEMORY,)),
    Fault("assembled_run", "run.json", in_cell("s0_x", eos=True), ALL, ("run.json",)),
    Fault(
        "assembled_run",
        "a ledger row",
        in_ledger("cells", lambda rows: rows[0].update(length=1)),
        ALL,
        ("ledger.json",),
    ),
    Fault(
        "assembled_run", "a doubled ledger row", in_ledger("cells", lambda rows: rows.append(rows[0])), ALL, ("ledger",)
    ),
    Fault(
        "assembled_run",
        "the ledger's run",
        lambda case: case.edit("ledger.json", lambda book: book.update(run_sha256="0" * 64)),
        ALL,
        ("ledger.json",),
    ),
    Fault(
        "assembled_run",
        "a count",
        lambda case: case.edit(
            "statistics.json", lambda one: one["by_domain"][0]["cells"]["natural_eos"].update(count=7)
        ),
        ALL,
        ("statistics.json",),
    ),
    Fault("assembled_run", "no statistics", remove("statistics.json"), ALL, ("statistics.json",)),
    Fault(
        "assembled_run",
        "a unit less",
        lambda case: case.edit("run.json", lambda run: run["units"].pop()),
        ALL,
        ("units",),
    ),
    Fault(
        "assembled_run",
        "another name",
        lambda case: case.edit("run.json", lambda run: run.update(result_name="a benchmark")),
        ALL,
        ("name of the result", "a benchmark"),
    ),
    Fault(
        "assembled_run",
        "a journal of another grid",
        lambda case: shutil.copy(case.journal(), case.run / "journal/stranger.json"),
        ALL,
        ("not of this grid", "stranger.json"),
    ),
    Fault("assembled_run", "forged gold numbers", forged_gold, ALL, ("gold number", "{1}")),
    Fault("assembled_run", "a stranger's failure", failed_unit("nobody"), ALL, ("failures of other units", "nobody")),
    Fault(
        "observations",
        "another number",
        in_ledger(
            "cells",
            lambda rows: rows[8]["number"].update(last_number={"state": "found", "value": "7", "start": 0, "end": 1}),
        ),
        ("{1}:s0_eos",),
        ("ledger row",),
    ),
    Fault(
        "observations",
        "syntax",
        in_ledger("cells", lambda rows: rows[0]["syntax"].update(outcome={"state": "too_deep"})),
        ("{0}:s0_eos",),
        ("ledger row", "TooDeep"),
    ),
    Fault(
        "observations",
        "a row less",
        in_ledger("cells", lambda rows: rows.pop(0)),
        ("{0}:s0_eos",),
        ("expected 1, found 0",),
    ),
    Fault(
        "observations",
        "a row twice",
        in_ledger("cells", lambda rows: rows.append(rows[0])),
        ("{0}:s0_eos",),
        ("expected 1, found 2",),
    ),
    Fault(
        "paired_comparison",
        "a distance",
        in_ledger("edges", lambda rows: rows[0]["comparison"].update(distance=99)),
        ("{0}:system_eos",),
        ("ledger row", "distance=99"),
    ),
    Fault(
        "paired_comparison",
        "exactness",
        in_ledger("edges", lambda rows: rows[0]["comparison"].update(ids_exact=not rows[0]["comparison"]["ids_exact"])),
        ("{0}:system_eos",),
        ("ids_exact",),
    ),
    Fault(
        "paired_comparison",
        "a row less",
        in_ledger("edges", lambda rows: rows.pop(0)),
        ("{0}:system_eos",),
        ("found 0",),
    ),
)
