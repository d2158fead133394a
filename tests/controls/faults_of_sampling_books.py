"""Faults of a sampling run's baseline, states, shared executions, ledger and statistics. {0} to {3}: its units."""

from .faults_of_completion import BASELINE, PLACES
from .planting import ALL, Fault, failed_unit, forged_gold, in_cell, in_ledger, remove
from .planting_completion import FAILED, FLAGS, in_baseline, in_facts
from .planting_sampling import CELL
from .planting_sampling_books import (
    CODE,
    CODE_ROW,
    MATH,
    MATH_ROW,
    another_container,
    ended_uncovered,
    in_baseline_cell,
    in_shared,
    in_shared_verdict,
    other_program,
    other_stop,
    other_task,
    part_of,
    row_of,
    second_execution,
    shared_key,
    the_same_execution,
    without_cache,
    without_row,
)

FROM_COMPLETION = ("another run", "another protocol", "another budget", "another environment", "a port's")
FROM_COMPLETION += ("the run's own protocol", "a port of another environment", "a baseline cell less")
BASELINES = (
    *(fault for fault in BASELINE if fault.gate == "baseline_prompts" and fault.name in FROM_COMPLETION),
    Fault(
        "baseline_prompts",
        "a prompt that isn't the baseline's",
        in_cell("s0_period", prompt_sha256="0" * 64),
        CELL,
        ("R0 s0_period prompt_sha256: expected", "found 0000"),
    ),
    Fault(
        "baseline_prompts",
        "a prompt of a later replicate",
        in_cell("s0_period", at=3, prompt_sha256="0" * 64),
        ("{3}:s0_period",),
        ("R1 s0_period prompt_sha256: expected",),
    ),
    Fault(
        "baseline_prompts",
        "a cell of the recorded baseline",
        in_baseline(cells=in_baseline_cell(2, prompt_sha256="0" * 64)),
        ALL,
        ("as recorded",),
    ),
)
STATES = tuple(
    Fault("completion_state", name, plant, rows, words)
    for name, plant, rows, words in (
        ("another stop", other_stop, MATH, ("OTHER_STOP: investigate",)),
        (
            "a class that doesn't follow",
            row_of(MATH_ROW, completion="BUDGET_TRUNCATED_UNRESOLVED"),
            MATH,
            ("completion class: expected BUDGET_TRUNCATED_WITH_FALLBACK_ONLY, found BUDGET_TRUNCATED_UNRESOLVED",),
        ),
        (
            "EOS for a cut cell",
            row_of(MATH_ROW, stop="natural_eos", completion="NATURAL_EOS"),
            MATH,
            ("stop: expected budget_truncated, found natural_eos",),
        ),
        ("EOS and the budget's end", in_cell("s0_period", truncated=True), CELL, ("found both",)),
        ("an uncovered cell less", without_row(MATH_ROW), MATH, ("completion states: expected 1, found 0",)),
        (
            "a state twice",
            in_ledger("cells", lambda rows: rows.append(rows[CODE_ROW])),
            CELL,
            ("completion states: expected 1, found 2",),
        ),
    )
)
VERDICTS = tuple(
    Fault("sandbox_verdicts", name, plant, rows, words)
    for name, plant, rows, words in (
        (
            "a program executed for another task and counted for this one",
            in_shared_verdict(task_sha256="0" * 64),
            CODE,
            ("task_sha256: expected", "found 0000"),
        ),
        ("other tests", in_shared_verdict(tests_sha256="0" * 64), CODE, ("tests_sha256: expected",)),
        ("another program", in_shared_verdict(candidate_sha256="0" * 64), CODE, ("candidate_sha256: expected",)),
        ("another checker", in_shared_verdict(harness_sha256="0" * 64), CODE, ("harness_sha256: expected",)),
        ("another image", in_shared_verdict(image_id="sha256:other"), CODE, ("image_id: expected",)),
        *(
            (
                f"flag {name} of the container",
                in_shared(lambda one, name=name: one["limits"].update({name: FLAGS[name]})),
                CODE,
                (f"container flag {name}: expected",),
            )
            for name in ("network", "memory_bytes", "tmpfs")
        ),
        ("a flag of the probe", in_facts(lambda one: one["limits"].update(user="0:0")), CODE, ("probe flag user",)),
        (
            "the execution of another program, shared",
            other_program(the_same_execution),
            CODE,
            ("executions in this container: expected 1, found 2",),
        ),
        (
            "the verdict on another program in a container of its own",
            other_program(another_container),
            CELL,
            ("candidate_sha256: expected",),
        ),
        (
            "a program that has no execution of its own",
            in_cell("s0_period", text_escaped=lambda text: text.replace("    return", "    #\\n    return", 1)),
            CELL,
            ("a verdict of the sandbox, found infrastructure: no execution",),
        ),
        ("a cell's own execution for the shared one", without_cache, CODE, ("infrastructure: no execution",)),
        ("no execution", lambda case: (case.run / shared_key(case)).unlink(), CODE, ("infrastructure: no execution",)),
        (
            "no verdict",
            in_shared_verdict(outcome="infrastructure", exit_code=None, nonce_returned=False),
            CODE,
            ("outcome: expected a verdict, found infrastructure",),
        ),
        ("a pass without nonce", in_shared_verdict(nonce_returned=False), CODE, ("nonce", "found False")),
        ("a pass with exit code 1", in_shared_verdict(exit_code=1), CODE, ("exit code of a pass",)),
        (
            "evidence that was altered alone",
            in_shared(lambda one: one["evidence"].update(FAILED), renew=False),
            CODE,
            ("evidence_sha256: expected",),
        ),
    )
)
LEDGER = (
    *(
        Fault("observations", name, plant, rows, words)
        for name, plant, rows, words in (
            ("an uncovered cell less", without_row(MATH_ROW), MATH, ("ledger rows: expected 1, found 0",)),
            ("a cell twice", in_ledger("cells", lambda rows: rows.append(rows[CODE_ROW])), CELL, ("found 2",)),
            (
                "a corrected evaluator's number",
                part_of(MATH_ROW, "numeric", evaluable=True, fixed_budget_exact=True, strict_complete_exact=True),
                MATH,
                ("ledger row: expected", "strict_complete_exact=True"),
            ),
            (
                "another answer",
                in_ledger("cells", lambda rows: rows[MATH_ROW]["numeric"]["extraction"].update(value="7777")),
                MATH,
                ("value='7777'",),
            ),
            (
                "another gold number",
                part_of(MATH_ROW, "numeric", gold="7777"),
                MATH,
                ("gold='7777'",),
            ),
            (
                "a pass less",
                in_ledger("cells", lambda rows: rows[CODE_ROW]["code"]["verdict"].update(fixed_budget_pass=False)),
                CELL,
                ("fixed_budget_pass=False",),
            ),
            ("a terminal", part_of(MATH_ROW, "terminal", explicit=True), MATH, ("explicit=True",)),
            (
                "a terminal that only EOS gives",
                ended_uncovered,
                MATH,
                ("ledger row: expected", "reached=True"),
            ),
            ("another length", row_of(CODE_ROW, length=1), CELL, ("length=1",)),
            ("another replicate's row", row_of(CODE_ROW, replicate="R1"), ("*:s0_period",), ("ledger rows",)),
            ("a stranger's execution", second_execution, ALL, ("expected no execution: the run has no such program",)),
        )
    ),
    *(
        Fault("assembled_run", name, plant, ALL, words)
        for name, plant, words in (
            ("run.json", in_cell("s0_period", eos=False), ("run.json: expected",)),
            ("a drawn batch", in_cell("s0_period", at=3, length=1), ("run.json: expected",)),
            ("an uncovered cell less", without_row(MATH_ROW), ("ledger.json: expected",)),
            (
                "a corrected evaluator's number",
                part_of(MATH_ROW, "numeric", evaluable=True, fixed_budget_exact=True),
                ("ledger.json: expected",),
            ),
            ("a pair of seeds", in_ledger("pairs", lambda rows: rows[0]["comparison"].update(distance=9)), ("ledger",)),
            ("a pair of seeds less", in_ledger("pairs", lambda rows: rows.pop()), ("ledger.json: expected",)),
            ("a flipped verdict", in_shared_verdict(**FAILED, nonce_returned=False), ("ledger.json", "statistics")),
            ("a lost verdict", lambda case: (case.run / shared_key(case)).unlink(), ("expected the verdict",)),
            ("a stranger's execution", second_execution, ("expected no execution",)),
            (
                "the execution of another program",
                other_program(another_container),
                ("expected no execution: the run has no such program",),
            ),
            (
                "a contrast",
                lambda case: case.edit("statistics.json", lambda one: one["contrasts"][0].update(median=7)),
                ("statistics.json: expected",),
            ),
            (
                "a majority",
                lambda case: case.edit("statistics.json", lambda one: one["by_source"].pop()),
                ("statistics.json: expected",),
            ),
            ("no statistics", remove("statistics.json"), ("statistics.json",)),
            ("no ledger", remove("ledger.json"), ("ledger.json",)),
            ("a unit less", lambda case: case.edit("run.json", lambda run: run["units"].pop()), ("units",)),
            (
                "another name",
                lambda case: case.edit("run.json", lambda run: run.update(result_name="pass@4")),
                ("name of the result", "pass@4"),
            ),
            ("another prompt of the task", other_task(prompt="def f():\n"), ("code task", "{code}")),
            ("other tests of the task", other_task(tests_sha256="0" * 64), ("code task", "{code}")),
            ("forged gold", forged_gold, ("gold number", "{math}")),
            ("a stranger's failure", failed_unit("nobody"), ("failures of other units",)),
        )
    ),
)
FAULTS = (*BASELINES, *STATES, *VERDICTS, *LEDGER, *PLACES)
