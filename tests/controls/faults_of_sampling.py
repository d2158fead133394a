"""Faults of how a sampling run was drawn. {0} to {3} stand for its units: code R0 and R1, mathematics R0 and R1."""

from .faults_of_a_run import FAULTS as OF_A_RUN
from .planting import ALL, Fault, in_cell, in_config, in_environment, in_placement, in_unit, other, put
from .planting_sampling import (
    CELL,
    OTHER,
    TOP_K,
    UNIT,
    given,
    greedy_seeds,
    in_parameters,
    in_sampling,
    in_state,
    in_temperature,
    late_seed,
    not_drawn,
    same_outputs,
    swapped_seeds,
)

TOP_P, KEEPS_TWO = "TopPLogitsWarper", {"filter_value": "-inf", "min_tokens_to_keep": "2", "top_p": "0.95"}
EVERY = ("{0}", "{1}", "{2}", "{3}")
PARAMETERS = (
    *(
        Fault("sampling_parameters", name, plant, UNIT, words)
        for name, plant, words in (
            ("a hidden top-k 50", in_parameters(top_k="50"), ("R0 parameter top_k: expected 0, found 50",)),
            (
                "a hidden top-k 50 that only a warper tells",
                in_sampling(processors=lambda found: [found[0], TOP_K, found[1]]),
                ("processors: expected ['Temp", "'TopKLogitsWarper(top_k=50)'"),
            ),
            (
                "another temperature",
                in_parameters(temperature="1.0"),
                ("temperature: expected 0.3, found 1.0",),
            ),
            ("another temperature in the warper", in_temperature("1.0"), ("TemperatureLogitsWarper(temperature=1.0)",)),
            ("another top-p", in_parameters(top_p="0.9"), ("top_p: expected 0.95, found 0.9",)),
            ("greedy under a sampled name", in_parameters(do_sample="false"), ("do_sample: expected true",)),
            ("no warper", in_sampling(processors=[]), ("processors: expected ['Temp", "found []")),
            ("warpers in another order", in_sampling(processors=lambda found: found[::-1]), ("found ['TopP",)),
            (
                "a warper that leaves two IDs",
                in_sampling(processors=lambda found: [found[0], {"name": TOP_P, "values": KEEPS_TWO}]),
                ("TopPLogitsWarper(min_tokens_to_keep=2, top_p=0.95)",),
            ),
            ("beams", in_parameters(num_beams="4"), ("num_beams: expected 1, found 4",)),
            ("true for one beam", in_parameters(num_beams="true"), ("num_beams: expected 1, found true",)),
            ("no cache", in_parameters(use_cache="false"), ("use_cache",)),
            ("another EOS", in_parameters(eos_token_id="[1, 5]"), ("eos_token_id", "[1, 5]")),
            ("another budget", in_parameters(max_new_tokens="75"), ("max_new_tokens: expected 76, found 75",)),
            ("a penalty", in_parameters(repetition_penalty="1.1"), ("repetition_penalty: expected 1.0",)),
            ("a setting that nobody registered", in_parameters(min_p="0.1"), ("min_p: expected null, found 0.1",)),
            ("several outputs a row", in_parameters(num_return_sequences="4"), ("num_return_sequences: expected 1",)),
            ("a value not read back", in_parameters(top_k=None), ("top_k: expected 0, found not read back",)),
        )
    ),
    *(
        Fault("decode_contract", name, in_config(**changes), ALL, words)
        for name, changes, words in (
            ("greedy", {"do_sample": "false"}, ("do_sample: expected true, found false",)),
            ("top-k 50", {"top_k": "50"}, ("top_k: expected 0, found 50",)),
            ("another temperature", {"temperature": "1.0"}, ("temperature: expected 0.3, found 1.0",)),
            ("another top-p", {"top_p": "1.0"}, ("top_p: expected 0.95, found 1.0",)),
            ("a setting that nobody registered", {"suppress_tokens": "[7]"}, ("suppress_tokens", "[7]")),
            ("a value not read back", {"top_k": None}, ("top_k: expected 0, found not read back",)),
        )
    ),
    *(fault for fault in OF_A_RUN if fault.gate == "decode_contract" and fault.name.startswith("other ")),
)
SEEDS = (
    *(
        Fault("seed_identity", name, plant, rows, words)
        for name, plant, rows, words in (
            ("the seeds of another replicate", given(1, "seeds"), UNIT, ("base seed: expected", "run seed: expected")),
            ("the seed of another source", given(2, "seeds"), UNIT, ("R0 run seed: expected",)),
            (
                "the seeds and states of another replicate",
                given(1, "seeds", "rng_before", "rng_after"),
                UNIT,
                ("base seed: expected", "run seed: expected"),
            ),
            (
                "the seeds and states of another source",
                given(2, "seeds", "rng_before", "rng_after"),
                UNIT,
                ("R0 run seed: expected",),
            ),
            ("two replicates that changed places", swapped_seeds, ("{0}", "{1}"), ("base seed: expected",)),
            (
                "another base seed",
                in_sampling(seeds=lambda seeds: seeds | {"base": seeds["base"] + 1}),
                UNIT,
                ("base seed: expected",),
            ),
            (
                "the base seed for the run seed",
                in_sampling(seeds=lambda seeds: seeds | {"run": f"{seeds['base']:016x}"}),
                UNIT,
                ("run seed: expected",),
            ),
            ("the run seed of base seed 0", greedy_seeds, UNIT, ("run seed: expected",)),
        )
    ),
    *(
        Fault("seeded_state", name, plant, rows, words)
        for name, plant, rows, words in (
            ("a seed set late", late_seed, UNIT, ("torch_cpu state before the call: expected",)),
            (
                "a consumed generator",
                in_state("before", torch_cpu=OTHER),
                UNIT,
                ("torch_cpu state before the call: expected", "0000"),
            ),
            (
                "the state of another replicate",
                given(1, "rng_before"),
                UNIT,
                ("torch_cpu state before the call", "python state", "numpy state"),
            ),
            ("the state of another source", given(2, "rng_before"), UNIT, ("torch_cpu state before the call",)),
            (
                "the seeds of another replicate",
                given(1, "seeds"),
                UNIT,
                ("torch_cpu state before the call",),
            ),
            ("Python's generator", in_state("before", python=OTHER), UNIT, ("python state before the call",)),
            ("NumPy's generator", in_state("before", numpy=OTHER), UNIT, ("numpy state before the call",)),
            (
                "a CUDA generator on a machine without a device",
                in_state("before", torch_cuda=OTHER),
                UNIT,
                ("torch_cuda state before the call: expected NoDevice",),
            ),
            (
                "a GPU whose generator wasn't read",
                in_environment(gpus=["one"]),
                EVERY,
                ("torch_cuda state before the call: expected StateHash", "found NoDevice"),
            ),
            (
                "a GPU in use that the environment doesn't list",
                in_placement(parameter_bytes={"cuda:0": 9}),
                EVERY,
                ("GPUs of the environment: expected 1 or more, found 0",),
            ),
        )
    ),
)
DRAWS = (
    *(
        Fault("drawn_generator", name, plant, rows, words)
        for name, plant, rows, words in (
            (
                "a generator that wasn't drawn from",
                not_drawn,
                UNIT,
                ("torch_cpu generator: expected drawn from, found untouched",),
            ),
            ("a draw less", in_sampling(draws=lambda draws: draws - 1), UNIT, ("draws: expected 72, found 71",)),
            (
                "a batch split in two",
                in_sampling(draws=lambda draws: 2 * draws),
                UNIT,
                ("draws: expected 72, found 144",),
            ),
            (
                "another generator's name",
                in_sampling(generator="torch_cuda"),
                UNIT,
                ("generator: expected torch_cpu, found torch_cuda",),
            ),
            *(
                (
                    f"{name} drawn from too",
                    in_state("after", **{name: OTHER}),
                    UNIT,
                    (f"{name} generator: expected untouched, found drawn from",),
                )
                for name in ("python", "numpy", "torch_cuda")
            ),
            (
                "a model that was on a GPU",
                in_placement(device_map={"": "0"}),
                EVERY,
                ("generator: expected torch_cuda, found torch_cpu",),
            ),
        )
    ),
    *(
        Fault("draw_shape", name, plant, UNIT, words)
        for name, plant, words in (
            ("a shuffled row order", in_unit(lambda unit: unit["cells"].reverse()), ("rows: expected ('s0_eos'",)),
            (
                "two rows that changed places",
                in_unit(lambda unit: unit["cells"].insert(0, unit["cells"].pop(1))),
                ("found ('s1_eos', 's0_eos'",),
            ),
            ("a batch split in two", in_sampling(rows=2), ("shape of a draw: expected (4, 2048), found (2, 2048)",)),
            ("a batch of eight", in_sampling(rows=8), ("found (8, 2048)",)),
            ("other columns", in_sampling(columns=2000), ("found (4, 2000)",)),
            ("a row less", in_unit(lambda unit: unit["cells"].pop()), ("found ('s0_eos', 's1_eos', 's0_period')",)),
            ("a row twice", in_unit(lambda unit: unit["cells"].append(unit["cells"][0])), ("'s1_period', 's0_eos')",)),
        )
    ),
    *(
        Fault("sampled_steps", f"{name} off by one", plant, UNIT, (words,))
        for name, plant, words in (
            *(
                (
                    name,
                    in_unit(lambda unit, name=name: unit["checks"].update({name: unit["checks"][name] - 1})),
                    words,
                )
                for name, words in (
                    ("rows_checked", "row steps checked: expected 288, found 287"),
                    ("finite", "finite logits: expected 288, found 287"),
                    ("steps", "R0 steps: expected 72, found 71"),
                )
            ),
            ("drawable", in_sampling(drawable=lambda rows: rows - 1), "an ID with a probability: expected 288"),
        )
    ),
    Fault(
        "sampled_steps",
        "more steps with a choice than steps",
        in_sampling(several=289),
        UNIT,
        ("several IDs: expected 0 to 288",),
    ),
    *(
        Fault("replicates_part", name, plant, ALL, words)
        for name, plant, words in (
            ("R1 says what R0 said", same_outputs, ("8 cells of two replicates: expected one or more that part",)),
            ("R1 drawn under R0's seeds", given(1, "seeds"), ("base seeds: expected 2, found 1", "run seeds")),
            ("a source less", lambda case: case.edit("run.json", lambda run: run["units"].pop()), ("sources of two",)),
            ("no second replicate", lambda case: case.edit("run.json", _first_only), ("sources of two replicates",)),
            ("another prompt", in_cell("s0_period", at=1, prompt_sha256="0" * 64), ("R0 and R1 prompts: expected",)),
        )
    ),
)


def _first_only(run: dict[str, list[dict[str, str]]]) -> None:
    run["units"] = [unit for unit in run["units"] if unit["replicate"] == "R0"]


PROMPTS = (
    Fault("prompt_hashes", "a prompt ID", in_cell("s0_period", prompt_ids=other), CELL, ("hash of the prompt IDs",)),
    Fault("single_id_contract", "a second ID", in_cell("s0_period", prompt_ids=other), CELL, ("expected 1, found 2",)),
    Fault("single_id_contract", "an edit not recorded", in_cell("s0_period", edits=[]), CELL, ("recorded edits",)),
    Fault(
        "batch_alignment",
        "a BOS inside",
        in_cell("s0_period", prompt_ids=lambda ids: put(ids, 4, 0)),
        UNIT,
        ("s0_period BOS positions", "found [0, 4]"),
    ),
    Fault("batch_alignment", "padding", in_cell("s0_period", left_padding=99), UNIT, ("s0_period left padding",)),
    *(
        Fault("output_identity", name, in_cell("s0_period", **changes), CELL, words)
        for name, changes, words in (
            ("another token", {"generated_ids": other}, ("text_sha256 of the decoded IDs", "generated_sha256")),
            ("another text", {"text_escaped": "7"}, ("text_sha256",)),
            ("a wrong EOS flag", {"eos": False}, ("eos: expected True, found False",)),
            ("a wrong truncated flag", {"truncated": True}, ("truncated: expected False, found True",)),
            ("short without EOS", {"generated_ids": [300, 301]}, ("2 tokens without EOS",)),
        )
    ),
    *(fault for fault in OF_A_RUN if fault.gate in ("normal_return", "placement_recorded") and "x" not in fault.name),
)
FAULTS = (*PARAMETERS, *SEEDS, *DRAWS, *PROMPTS)
