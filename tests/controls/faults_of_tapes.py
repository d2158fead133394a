"""Faults of how a task run was drawn. {0} to {5}: code 0 T0, code 0 T1, code 1 T0, and the same of mathematics."""

from collections.abc import Callable
from typing import Any

from .faults_of_a_run import FAULTS as OF_A_RUN
from .planting import ALL, Fault, in_cell, in_config, in_environment, in_unit, other, put
from .planting_sampling import both
from .planting_tapes import (
    CELL,
    OTHER,
    UNIT,
    given,
    in_account,
    in_blocks,
    in_manifest,
    in_outcome,
    in_smoke,
    in_state,
    in_tape,
    pool_blocks,
    pooled,
    read_at,
    same_outputs,
)

EVERY = tuple(f"{{{at}}}" for at in range(6))
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")
SAMPLER = {"temperature": 1.0}


def _without(*places: int) -> Callable[[Any], None]:
    """A change of run.json: some units are gone."""

    def change(run: Any) -> None:
        run["units"] = [unit for at, unit in enumerate(run["units"]) if at not in places]

    return change


def _unit_checks(name: str) -> Fault:
    def change(unit: Any) -> None:
        unit["checks"][name] -= 1

    words = {"rows_checked": "row steps checked", "finite": "finite logits", "steps": " steps: expected"}[name]
    return Fault("taped_steps", f"{name} off by one", in_unit(change), UNIT, (words,))


CONTRACT = (
    *(
        Fault("taped_contract", name, plant, UNIT, words)
        for name, plant, words in (
            (
                "another temperature",
                in_tape(sampler=lambda one: one | SAMPLER),
                ("sampler: expected", "temperature=1.0"),
            ),
            ("another top-p", in_tape(sampler=lambda one: one | {"top_p": 1.0}), ("sampler: expected", "top_p=1.0")),
            ("another rule", in_tape(sampler=lambda one: one | {"rule": "icdf-v1"}), ("sampler: expected", "icdf-v1")),
            ("a row's own sampler", in_account(sampler=lambda one: one | SAMPLER), ("s0_period sampler: expected",)),
            ("columns cut off", in_tape(columns=2000), ("columns: expected 2048, found 2000",)),
            ("another tape's name", in_tape(label="T1"), ("tape: expected ('T0'", "found ('T1'")),
            ("another tape's digest", in_tape(sha256="0" * 64), ("tape: expected", "0000")),
            ("no cache", in_tape(cached=1), ("positions in the cache: expected", "found 1")),
            ("a cache with a position less", in_tape(cached=lambda one: one - 1), ("positions in the cache",)),
            ("T1's unit for T0's", given(1, "tape"), ("tape: expected ('T0'", "found ('T1'")),
        )
    ),
    *(
        Fault("decode_contract", name, in_config(**changes), ALL, words)
        for name, changes, words in (
            ("greedy", {"strategy": '"greedy"'}, ("strategy: expected", "found")),
            ("another temperature", {"temperature": "1.0"}, ("temperature: expected 0.3, found 1.0",)),
            ("another top-p", {"top_p": "1.0"}, ("top_p: expected 0.95, found 1.0",)),
            ("two IDs kept", {"min_tokens_to_keep": "2"}, ("min_tokens_to_keep: expected 1, found 2",)),
            ("a sampler on the GPU", {"sampler_device": '"cuda"'}, ("sampler_device: expected",)),
            ("another rule", {"sampler_rule": '"icdf-v1"'}, ("sampler_rule: expected",)),
            ("another PAD", {"pad_token_id": "2"}, ("pad_token_id: expected 1, found 2",)),
            ("a setting that nobody registered", {"top_k": "50"}, ("top_k", "50")),
            ("a value not read back", {"temperature": None}, ("temperature: expected 0.3, found not read back",)),
        )
    ),
    *(fault for fault in OF_A_RUN if fault.gate == "decode_contract" and fault.name.startswith("other ")),
)
ACCOUNTS = (
    *(
        Fault("tape_account", name, plant, rows, words)
        for name, plant, rows, words in (
            ("the wrong step", read_at(1), CELL, ("consumed.first_z: expected", "consumed.sha256: expected")),
            ("a pooled tape", pooled, ("{1}:*",), ("consumed.first_z: expected", "consumed.sha256: expected")),
            ("another tape's values", read_at(label="T1"), CELL, ("consumed.first_z",)),
            ("another source's values", read_at(source_at=3), CELL, ("consumed.first_z",)),
            ("a finished row that still consumes", read_at(more=3), CELL, ("consumed.count: expected",)),
            ("a value less", read_at(more=-1), CELL, ("consumed.count: expected", "consumed.sha256")),
            (
                "another first u",
                in_account(consumed=lambda one: one | {"first_u": ["0x1p-1", *one["first_u"][1:]]}),
                CELL,
                ("consumed.first_u",),
            ),
            (
                "a hash alone",
                in_account(consumed=lambda one: one | {"sha256": "0" * 64}),
                CELL,
                ("consumed.sha256: expected", "0000"),
            ),
            ("another tape's name", in_account(tape="T1"), CELL, ("tape: expected 'T0', found 'T1'",)),
            ("another digest", in_account(tape_sha256="0" * 64), CELL, ("tape_sha256: expected",)),
            ("a mask left at 1", in_account(attended=lambda one: one + 1), CELL, ("attended: expected",)),
            ("more gaps than steps", in_account(gaps=999), CELL, ("gaps: expected 0 to",)),
            ("a gap without its step", in_account(gaps=1), CELL, ("gap_steps: expected 1 steps, found 0",)),
            (
                "a gap where another ID was drawn",
                in_account(gaps=1, gap_steps=[2]),
                CELL,
                ("ID of gap step 2: expected 2047",),
            ),
            ("a gap after the end", in_account(gaps=1, gap_steps=[500]), CELL, ("ascending steps below",)),
            ("more ties than steps", in_account(boundary_ties=999), CELL, ("boundary_ties: expected 0 to",)),
            (
                "a distance that isn't one",
                in_account(nearest_edge={"state": "edge", "distance": 1.5}),
                CELL,
                ("nearest_edge: expected a distance in [0, 1), found 1.5",),
            ),
            (
                "a row less",
                in_tape(rows=lambda rows: [row for row in rows if row["condition"] != "s0_period"]),
                CELL,
                ("one row with one account",),
            ),
        )
    ),
    *(
        Fault("shared_uniforms", name, plant, rows, words)
        for name, plant, rows, words in (
            ("one row at the wrong step", read_at(1), UNIT, ("s0_period first z: expected", "s0_period hash of")),
            ("all rows at the wrong step", read_at(1, rows=CONDITIONS), UNIT, ("s0_eos first z", "s1_period hash of")),
            ("one row under another tape", read_at(label="T1"), UNIT, ("s0_period first z: expected",)),
            ("a pooled tape", pooled, ("{1}",), ("s0_eos first z: expected",)),
            (
                "another value late",
                in_account(consumed=lambda one: one | {"sha256": "0" * 64}),
                UNIT,
                ("s0_period hash of", "0000"),
            ),
            ("rows in another order", in_tape(rows=lambda rows: rows[::-1]), UNIT, ("rows: expected ['s0_eos'",)),
            ("a row less", in_tape(rows=lambda rows: rows[1:]), UNIT, ("rows: expected",)),
        )
    ),
    *(
        Fault("finished_rows", name, plant, CELL, words)
        for name, plant, words in (
            (
                "a mask left at 1",
                in_account(attended=lambda one: one + 1),
                ("columns attended to in the last forward: expected",),
            ),
            ("a mask at 0 too early", in_account(attended=lambda one: one - 1), ("columns attended to",)),
            ("a finished row that still consumes", read_at(more=3), ("values consumed: expected",)),
            ("an end that wasn't", in_account(finish={"state": "not_finished"}), ("end: expected Finished",)),
            ("another end", in_account(finish={"state": "finished", "step": 0}), ("end: expected Finished",)),
        )
    ),
)
DRAWS = (
    *(_unit_checks(name) for name in ("rows_checked", "finite", "steps")),
    Fault("taped_steps", "a value more", read_at(more=1), UNIT, ("values consumed by the rows",)),
    Fault(
        "taped_steps",
        "more argmaxes than steps",
        in_unit(lambda unit: unit["checks"].update(argmax=10**6)),
        UNIT,
        ("that drew the argmax, at most",),
    ),
    *(
        Fault("rng_untouched", f"{name} drawn from", in_state("after", **{name: OTHER}), UNIT, (f"{name} generator",))
        for name in ("python", "numpy", "torch_cpu", "torch_cuda")
    ),
    Fault(
        "rng_untouched",
        "a consumed generator before",
        both(in_state("before", 1, torch_cpu=OTHER), in_state("after", 1, torch_cpu=OTHER)),
        ("{1}",),
        ("generator before the call", "0000"),
    ),
    Fault(
        "rng_untouched",
        "a GPU whose generator wasn't read",
        in_environment(gpus=["one"]),
        EVERY,
        ("torch_cuda generator before the call", "expected StateHash", "found NoDevice"),
    ),
    *(
        Fault("tapes_part", name, plant, ALL, words)
        for name, plant, words in (
            (
                "T1 says what T0 said",
                same_outputs,
                ("8 cells of two tapes: expected one or more that part, found none",),
            ),
            ("T1 drawn under T0", given(1, "tape"), ("tapes: expected 2, found 1", "first values, none shared")),
            ("a source less", lambda case: case.edit("run.json", _without(0)), ("sources of two tapes",)),
            ("no second tape", lambda case: case.edit("run.json", _without(1, 4)), ("sources of two tapes",)),
            ("another prompt", in_cell("s0_period", at=1, prompt_sha256="0" * 64), ("and T1 prompts: expected",)),
        )
    ),
)

WHOLE = (
    *(
        Fault("synthetic_cdf", name, plant, ALL, words)
        for name, plant, words in (
            ("another ID at an edge", in_outcome("first_edge", token=5), ("first_edge: expected", "(5, False)")),
            ("a filtered ID", in_outcome("tail_filtered_low", token=0), ("tail_filtered_low: expected",)),
            (
                "a filtered ID that isn't flagged",
                in_outcome("gap_inside", gap=False),
                ("gap_inside: expected",),
            ),
            ("a gap where there is none", in_outcome("gap_edge", gap=True), ("gap_edge: expected",)),
            (
                "a case less",
                in_smoke(lambda case: case.edit("synthetic.json", lambda one: one["outcomes"].pop())),
                ("clamped_into_survivors: expected one outcome, found 0",),
            ),
            (
                "another sampler's table",
                in_smoke(lambda case: case.edit("synthetic.json", lambda one: one["sampler"].update(rule="icdf-v1"))),
                ("sampler: expected", "icdf-v1"),
            ),
            (
                "no table",
                in_smoke(lambda case: (case.run / "synthetic.json").unlink()),
                ("synthetic.json",),
            ),
        )
    ),
    *(
        Fault("blocks_apart", name, plant, ALL, words)
        for name, plant, words in (
            ("pooled blocks", in_blocks(pool_blocks), ("blocks: expected", '"role":"diagnostic"')),
            ("a diagnostic block called primary", in_blocks(lambda one: one[1].update(role="primary")), ("blocks",)),
            ("a cell more in a block", in_blocks(lambda one: one[0].update(cells=17)), ('"cells":17',)),
            (
                "a diagnostic unit less",
                lambda case: case.edit("run.json", _without(1)),
                ("diagnostic block: expected",),
            ),
            (
                "a primary unit less",
                lambda case: case.edit("run.json", _without(2)),
                ("primary block: expected 4",),
            ),
            (
                "a unit of no block",
                in_unit(lambda unit: unit.update(index=1), 1),
                ("diagnostic block: expected 2 units",),
            ),
        )
    ),
    *(
        Fault("registered_prompts", name, plant, rows, words)
        for name, plant, rows, words in (
            (
                "the hash of a routing probe's short input",
                in_manifest(lambda one: one["prompts"]["s0_period"].update(sha256=one["text_sha256"])),
                ("{code}:s0_period",),
                ("sha256: expected",),
            ),
            (
                "another length",
                in_manifest(lambda one: one["prompts"]["s0_period"].update(length=1)),
                ("{code}:s0_period",),
                ("length: expected 1, found",),
            ),
            (
                "another text",
                in_manifest(lambda one: one.update(text_sha256="0" * 64)),
                ALL,
                ("text",),
            ),
        )
    ),
)
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
            ("a wrong EOS flag", {"eos": lambda one: not one}, ("eos: expected",)),
            ("short without EOS", {"generated_ids": [300, 301]}, ("2 tokens without EOS",)),
        )
    ),
    *(fault for fault in OF_A_RUN if fault.gate == "placement_recorded"),
)
FAULTS = (*CONTRACT, *ACCOUNTS, *DRAWS, *WHOLE, *PROMPTS)
