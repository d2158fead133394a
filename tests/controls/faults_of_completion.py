"""Faults of a completion run: its baseline, states, verdicts and ledger. {0} is its code source, {1} mathematics."""

from .faults_apart import FAULTS as APART
from .faults_of_a_run import FAULTS as OF_A_RUN
from .planting import ALL, CELL, UNIT, Fault, failed_unit, forged_gold, in_cell, in_ledger, other, remove
from .planting_completion import (
    CODE_ROW,
    FAILED,
    FLAGS,
    MATH,
    MATH_ROW,
    a_port,
    attempts,
    counted_pass,
    empty_file,
    failed_and_sealed,
    frozen,
    frozen_verdict,
    in_baseline,
    in_execution,
    in_facts,
    in_verdict,
    key_of,
    nothing_extracted,
    other_cell,
    other_stop,
    other_task,
    part_of,
    row_of,
    same_container,
    stranger,
    uncounted_failure,
)

BASELINE = (
    Fault(
        "baseline_prompts",
        "a cell of the recorded baseline",
        in_baseline(cells=other_cell),
        ALL,
        ("as recorded",),
    ),
    Fault(
        "baseline_prompts",
        "a baseline cell less",
        in_baseline(cells=lambda cells: cells[:-1]),
        ALL,
        ("as recorded",),
    ),
    Fault("baseline_prompts", "another prompt hash", in_cell("s0_x", prompt_sha256="0" * 64), CELL, ("prompt_sha256",)),
    *(
        Fault("baseline_prompts", name, in_baseline(**changes), ALL, words)
        for name, changes, words in (
            ("another run", {"run_sha256": "0" * 64}, ("baseline run: expected", "found 0000")),
            ("another protocol", {"protocol_digest": "0" * 64}, ("baseline protocol: expected", "found 0000")),
            ("another budget", {"max_new_tokens": 5}, ("other fields and cells",)),
            ("another environment", {"environment_sha256": "0" * 64}, ("other fields and cells",)),
            ("a port's", {"port": True}, ("baseline is a port's: expected False, found True",)),
        )
    ),
    Fault(
        "baseline_prompts",
        "the run's own protocol",
        lambda case: in_baseline(protocol_digest=case.loaded.digest)(case),
        ALL,
        ("baseline made apart: expected True, found False",),
    ),
    Fault(
        "baseline_prompts", "a port of another environment", a_port, ALL, ("baseline environment: expected", "found 00")
    ),
    *(
        Fault("baseline_prefix", name, in_cell("s0_x", generated_ids=change), CELL, (words,))
        for name, change, words in (
            ("the first token", lambda ids: other(ids, 0), "generated_ids from step 0 of 12: expected ["),
            ("the last compared token", lambda ids: other(ids, 11), "generated_ids from step 11 of 12: expected ["),
            ("a shorter output", lambda ids: ids[:5], "generated_ids from step 5 of 12"),
            ("no token at all", lambda ids: [], "generated_ids from step 0 of 12"),
        )
    ),
)
STATES = (
    Fault("completion_state", "another stop", other_stop, MATH, ("OTHER_STOP: investigate",)),
    Fault(
        "completion_state",
        "a class that doesn't follow",
        row_of(MATH_ROW, completion="BUDGET_TRUNCATED_UNRESOLVED"),
        MATH,
        ("completion class: expected BUDGET_TRUNCATED_WITH_FALLBACK_ONLY, found BUDGET_TRUNCATED_UNRESOLVED",),
    ),
    Fault(
        "completion_state",
        "a terminal that the class doesn't know",
        part_of(MATH_ROW, "terminal", reached=True),
        MATH,
        ("completion class: expected TASK_TERMINAL_BEFORE_EOS",),
    ),
    Fault(
        "completion_state",
        "EOS for a cut cell",
        row_of(MATH_ROW, stop="natural_eos", completion="NATURAL_EOS"),
        MATH,
        ("stop: expected budget_truncated, found natural_eos",),
    ),
    Fault(
        "completion_state",
        "EOS and the budget's end",
        in_cell("s0_x", truncated=True),
        CELL,
        ("stop: expected EOS or the budget's end, found both",),
    ),
    Fault(
        "completion_state",
        "a state less",
        in_ledger("cells", lambda rows: rows.pop(CODE_ROW)),
        CELL,
        ("completion states: expected 1, found 0",),
    ),
    Fault(
        "completion_state",
        "a state twice",
        in_ledger("cells", lambda rows: rows.append(rows[CODE_ROW])),
        CELL,
        ("completion states: expected 1, found 2",),
    ),
)
VERDICTS = (
    *(
        Fault("sandbox_verdicts", f"another {name}", in_verdict(**{name: value}), CELL, (f"{name}: expected", value))
        for name, value in (
            ("candidate_sha256", "0" * 64),
            ("task_sha256", "0" * 64),
            ("tests_sha256", "0" * 64),
            ("harness_sha256", "0" * 64),
            ("image_id", "sha256:other"),
            ("python", "CPython 3.8.0"),
        )
    ),
    *(
        Fault(
            "sandbox_verdicts",
            f"flag {name} of the container",
            in_execution(lambda one, name=name: one["limits"].update({name: FLAGS[name]})),
            CELL,
            (f"container flag {name}: expected",),
        )
        for name in FLAGS
    ),
    Fault(
        "sandbox_verdicts",
        "a flag of the probe",
        in_facts(lambda one: one["limits"].update(user="0:0")),
        ALL,
        ("probe flag user: expected 65534:65534, found 0:0",),
    ),
    Fault(
        "sandbox_verdicts",
        "another checker in the probe",
        in_facts(lambda one: one.update(harness_sha256="0" * 64)),
        ALL,
        ("harness_sha256 of the probe",),
    ),
    Fault(
        "sandbox_verdicts",
        "no facts",
        lambda case: (case.run / "sandbox.json").unlink(),
        ALL,
        ("sandbox.json: expected",),
    ),
    Fault(
        "sandbox_verdicts",
        "no execution",
        lambda case: (case.run / key_of(case)).unlink(),
        CELL,
        ("a verdict of the sandbox, found infrastructure: no execution",),
    ),
    Fault(
        "sandbox_verdicts",
        "no verdict",
        in_verdict(outcome="infrastructure", exit_code=None, nonce_returned=False),
        CELL,
        ("outcome: expected a verdict, found infrastructure",),
    ),
    Fault("sandbox_verdicts", "a pass without nonce", in_verdict(nonce_returned=False), CELL, ("nonce", "found False")),
    *(
        Fault(
            "sandbox_verdicts", f"a pass with exit code {code}", in_verdict(exit_code=code), CELL, ("exit code of a",)
        )
        for code in (1, 137, None)
    ),
    Fault(
        "sandbox_verdicts",
        "a nonce without a pass",
        in_verdict(**(FAILED | {"exit_code": 0})),
        CELL,
        ("nonce", "found True"),
    ),
    Fault(
        "sandbox_verdicts",
        "one container twice",
        same_container,
        ("{0}:s0_x", "{0}:s1_x"),
        ("executions in this container: expected 1, found 2",),
    ),
    Fault(
        "sandbox_verdicts",
        "no container",
        in_execution(lambda one: one["observation"].update(container="")),
        CELL,
        ("a container: expected True, found False",),
    ),
    Fault(
        "sandbox_verdicts",
        "nothing extracted",
        nothing_extracted,
        CELL,
        ("no verdict: nothing was extracted",),
    ),
    Fault(
        "sandbox_verdicts",
        "evidence that was altered alone",
        in_execution(lambda one: one["evidence"].update(FAILED), renew=False),
        ALL,
        ("evidence_sha256: expected",),
    ),
)
LEDGER = (
    *(
        Fault("observations", name, plant, rows, words)
        for name, plant, rows, words in (
            ("a pass that isn't", counted_pass, CELL, ("assertion_failed", "outcome='passed'")),
            (
                "a strict pass less",
                in_ledger("cells", lambda rows: rows[CODE_ROW]["code"]["verdict"].update(strict_complete_pass=False)),
                CELL,
                ("strict_complete_pass=False",),
            ),
            ("an exact number", part_of(MATH_ROW, "numeric", fixed_budget_exact=True), MATH, ("fixed_budget_exact",)),
            ("a terminal", part_of(MATH_ROW, "terminal", explicit=True), MATH, ("explicit=True",)),
            ("the baseline's stop", part_of(CODE_ROW, "baseline", stop="natural_eos"), CELL, ("ledger row",)),
            ("a prefix", part_of(CODE_ROW, "baseline", prefix_exact=False), CELL, ("prefix_exact=False",)),
            ("a row less", in_ledger("cells", lambda rows: rows.pop(CODE_ROW)), CELL, ("expected 1, found 0",)),
            ("a row twice", in_ledger("cells", lambda rows: rows.append(rows[CODE_ROW])), CELL, ("found 2",)),
            ("a stranger's execution", stranger, ALL, ("s9_x.json: expected no execution",)),
        )
    ),
    *(
        Fault("paired_comparison", name, in_ledger("edges", change), ("{0}:system_eos",), words)
        for name, change, words in (
            ("a distance", lambda rows: rows[0]["comparison"].update(distance=99), ("distance=99",)),
            ("a row less", lambda rows: rows.pop(0), ("ledger rows: expected 1, found 0",)),
            ("a row twice", lambda rows: rows.append(rows[0]), ("ledger rows: expected 1, found 2",)),
            (
                "a side's class",
                lambda rows: rows[0].update(left_completion="BUDGET_TRUNCATED_UNRESOLVED"),
                ("left_completion='BUDGET_TRUNCATED_UNRESOLVED'",),
            ),
            (
                "the sides",
                lambda rows: rows[0].update(left=rows[0]["right"], right=rows[0]["left"]),
                ("left='s1_eos'",),
            ),
        )
    ),
    *(
        Fault("assembled_run", name, plant, ALL, words)
        for name, plant, words in (
            ("a verdict", uncounted_failure, ("ledger.json: expected", "statistics.json: expected")),
            ("a lost verdict", lambda case: (case.run / key_of(case)).unlink(), ("s0_x.json: expected the verdict",)),
            ("a pass that isn't", counted_pass, ("ledger.json: expected",)),
            ("a stranger's execution", stranger, ("s9_x.json: expected no execution",)),
            ("a class", row_of(MATH_ROW, completion="NATURAL_EOS"), ("ledger.json: expected",)),
            (
                "a count",
                lambda case: case.edit("statistics.json", lambda one: one["groups"][0]["cells"].update(length={})),
                ("statistics.json: expected",),
            ),
            ("no ledger", remove("ledger.json"), ("ledger.json",)),
            (
                "the recorded baseline",
                lambda case: case.edit("baseline.json", lambda one: one.update(port=True)),
                ("run",),
            ),
            ("another prompt of the task", other_task(prompt="def f():\n"), ("code task", "{0}")),
            ("other tests of the task", other_task(tests_sha256="0" * 64), ("code task", "{0}")),
            ("forged gold", forged_gold, ("gold number", "{1}")),
            ("a stranger's failure", failed_unit("nobody"), ("failures of other units",)),
        )
    ),
)
FROZEN = (
    *(
        Fault("frozen_verdicts", name, plant, UNIT, words)
        for name, plant, words in (
            ("a flipped verdict, sealed", frozen(failed_and_sealed), ("s0_x snapshot: expected", "pass")),
            ("other tests", frozen(in_verdict(tests_sha256="0" * 64)), ('"tests_sha256": "0000',)),
            ("another program", frozen(in_verdict(candidate_sha256="0" * 64)), ('"candidate_sha256": "0000',)),
            ("a verdict less", frozen(lambda case: (case.run / key_of(case)).unlink()), ("s0_x snapshot: expected",)),
            ("a frozen verdict", frozen(frozen_verdict), ('"outcome": "timeout"',)),
            ("the run's own", frozen(lambda case: None, own=True), ("the frozen run's own: nothing to compare",)),
        )
    ),
    Fault(
        "frozen_snapshots",
        "a class",
        frozen(row_of(MATH_ROW, completion="BUDGET_TRUNCATED_UNRESOLVED")),
        ("{1}",),
        ("snapshot: expected", "BUDGET_TRUNCATED_UNRESOLVED"),
    ),
    Fault(
        "frozen_snapshots",
        "a token",
        frozen(in_cell("s0_x", generated_ids=lambda ids: other(ids, 3))),
        UNIT,
        ("s0_x snapshot: expected",),
    ),
    Fault("frozen_snapshots", "the run's own", frozen(lambda case: None, own=True), ALL, ("this run's own",)),
)
PLACES = (
    Fault("placement_attempts", "an attempt moved aside", empty_file("attempts/01-nano-resident/x"), ALL, ("01-nano",)),
    Fault("placement_attempts", "memory that ran out", empty_file("oom.json"), ALL, ("found oom.json",)),
    Fault("placement_attempts", "a list without an attempt", attempts, ALL, ("attempts: expected True, found False",)),
    Fault(
        "placement_attempts",
        "a placement below, unproved",
        lambda case: case.edit("placement.json", lambda one: one.update(id="nano-disk")),
        ALL,
        ("placement: expected nano-resident, found nano-disk",),
    ),
)
NEW = (*BASELINE, *STATES, *VERDICTS, *LEDGER, *FROZEN, *PLACES)
OLD = ("normal_return", "prompt_hashes", "single_id_contract", "batch_alignment", "decode_contract", "greedy_steps")
OLD += ("output_identity", "rng_untouched", "placement_recorded", "placement_equivalence", "independent_replay")
OLD += ("smoke_passed",)
# One fault of each gate that both protocols have: that the same check is in force over a completion run too.
SHARED = tuple(next(fault for fault in (*OF_A_RUN, *APART) if fault.gate == gate) for gate in OLD)
FAULTS = (*NEW, *SHARED)
