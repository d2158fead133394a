"""Faults of a task run's return, executions, ledger, pairs and statistics. {0} to {5}: its units."""

from collections.abc import Callable
from typing import Any

from harness.canon import digest

from .damage import Case, Damage, read
from .faults_of_a_run import FAULTS as OF_A_RUN
from .planting import ALL, Fault, failed_unit, forged_gold, in_cell, in_ledger, remove
from .planting_completion import FAILED, FLAGS, in_facts
from .planting_tapes import CELL, in_account, in_blocks, pool_blocks

CODE_ROW, MATH_ROW = 2, 14  # the ledger's rows of s0_period: code 0 T0, mathematics 0 T0
MATH = ("{3}:s0_period",)


def execution_of(case: Case, condition: str = "s0_period") -> str:
    """The execution of the first code unit's cell, by its file's name."""
    return f"sandbox/code-00-{case.source().replace('/', '-')}-T0-{condition}.json"


def in_execution(change: Callable[[Any], None], *, renew: bool = True) -> Damage:
    """A change of that execution, with its digests renewed."""

    def altered(execution: Any) -> None:
        change(execution)
        if renew:
            execution["evidence"]["limits_sha256"] = digest(execution["limits"])
            execution["evidence_sha256"] = digest(execution["evidence"])

    return lambda case: case.edit(execution_of(case), altered)


def in_verdict(**changes: Any) -> Damage:
    """Fields of that execution's evidence."""
    return in_execution(lambda one: one["evidence"].update(changes))


def failed_and_sealed(case: Case) -> None:
    """The verdict was flipped, and ledger and statistics were made again from it."""
    in_verdict(**FAILED, nonce_returned=False)(case)
    case.seal()


def shared_container(case: Case) -> None:
    """Two cells' programs ran in one container: no verdict is shared in this round."""
    container = read(case.run / execution_of(case, "s0_eos"))["observation"]["container"]
    case.edit(execution_of(case), lambda one: one["observation"].update(container=container))


def stranger(case: Case) -> None:
    """An execution of a cell that the run hasn't."""
    path = case.run / execution_of(case)
    path.with_name(path.name.replace("-T0-", "-T9-")).write_bytes(path.read_bytes())


def row_of(at: int, **changes: Any) -> Damage:
    """Fields of a row of the ledger."""
    return in_ledger("cells", lambda rows: rows[at].update(changes))


def part_of(at: int, part: str, **changes: Any) -> Damage:
    """Fields of one account of a row of the ledger."""
    return in_ledger("cells", lambda rows: rows[at][part].update(changes))


RETURNS = (
    *(fault for fault in OF_A_RUN if fault.gate == "normal_return" and fault.name == "a missing journal"),
    Fault("normal_return", "a recorded failure", failed_unit(""), ("{1}:*",), ("out_of_memory", "20 GiB")),
)
VERDICTS = tuple(
    Fault("sandbox_verdicts", name, plant, rows, words)
    for name, plant, rows, words in (
        ("other tests", in_verdict(tests_sha256="0" * 64), CELL, ("tests_sha256: expected",)),
        ("another program", in_verdict(candidate_sha256="0" * 64), CELL, ("candidate_sha256: expected",)),
        ("another checker", in_verdict(harness_sha256="0" * 64), CELL, ("harness_sha256: expected",)),
        ("another image", in_verdict(image_id="sha256:other"), CELL, ("image_id: expected",)),
        *(
            (
                f"flag {name} of the container",
                in_execution(lambda one, name=name: one["limits"].update({name: FLAGS[name]})),
                CELL,
                (f"container flag {name}: expected",),
            )
            for name in ("network", "memory_bytes", "tmpfs")
        ),
        (
            "a flag of the probe",
            in_facts(lambda one: one["limits"].update(user="0:0")),
            ("{0}:*", "{1}:*", "{2}:*"),
            ("probe flag user",),
        ),
        ("a shared verdict", shared_container, ("{0}:s0_period", "{0}:s0_eos"), ("executions in this container",)),
        (
            "no execution",
            lambda case: (case.run / execution_of(case)).unlink(),
            CELL,
            ("infrastructure: no execution",),
        ),
        (
            "no verdict",
            in_verdict(outcome="infrastructure", exit_code=None, nonce_returned=False),
            CELL,
            ("outcome: expected a verdict, found infrastructure",),
        ),
        ("a pass without nonce", in_verdict(outcome="passed", exit_code=0, nonce_returned=False), CELL, ("nonce",)),
        (
            "evidence that was altered alone",
            in_execution(lambda one: one["evidence"].update(tests_sha256="0" * 64), renew=False),
            CELL,
            ("evidence_sha256: expected",),
        ),
    )
)
LEDGER = (
    *(
        Fault("observations", name, plant, rows, words)
        for name, plant, rows, words in (
            ("a cell less", in_ledger("cells", lambda rows: rows.pop(MATH_ROW)), MATH, ("rows: expected 1, found 0",)),
            ("a cell twice", in_ledger("cells", lambda rows: rows.append(rows[CODE_ROW])), CELL, ("found 2",)),
            (
                "another result",
                part_of(MATH_ROW, "numeric", result="no_numeric_answer"),
                MATH,
                ("'no_numeric_answer'",),
            ),
            ("another gold number", part_of(MATH_ROW, "numeric", gold="7777"), MATH, ("gold='7777'",)),
            ("another role", row_of(CODE_ROW, role="diagnostic"), CELL, ("role='diagnostic'",)),
            ("another failure type", in_ledger("cells", lambda rows: _verdict(rows, "timeout")), CELL, ("'timeout'",)),
            ("another length", row_of(CODE_ROW, length=1), CELL, ("length=1",)),
            ("another tape's row", row_of(CODE_ROW, replicate="T1"), ("*:s0_period",), ("ledger rows",)),
            ("another tape fact", part_of(CODE_ROW, "tape", consumed=1), CELL, ("consumed=1",)),
            ("a stranger's execution", stranger, ALL, ("expected no execution: the run has no such program",)),
        )
    ),
    *(
        Fault("assembled_run", name, plant, ALL, words)
        for name, plant, words in (
            ("run.json", in_cell("s0_period", eos=lambda one: not one), ("run.json: expected",)),
            ("an account", in_account(gaps=1), ("run.json: expected",)),
            ("pooled blocks", in_blocks(pool_blocks), ("run.json: expected",)),
            ("a cell less", in_ledger("cells", lambda rows: rows.pop(MATH_ROW)), ("ledger.json: expected",)),
            ("a pair less", in_ledger("pairs", lambda rows: rows.pop()), ("ledger.json: expected",)),
            (
                "a divergence",
                in_ledger("pairs", lambda rows: rows[0]["comparison"].update(distance=9)),
                ("ledger.json",),
            ),
            ("a flipped verdict", in_verdict(**FAILED, nonce_returned=False), ("ledger.json", "statistics")),
            ("a lost verdict", lambda case: (case.run / execution_of(case)).unlink(), ("expected the verdict",)),
            ("a stranger's execution", stranger, ("expected no execution",)),
            ("a contrast", lambda case: case.edit("statistics.json", _first_contrast), ("statistics.json: expected",)),
            ("no statistics", remove("statistics.json"), ("statistics.json",)),
            ("no ledger", remove("ledger.json"), ("ledger.json",)),
            ("a unit less", lambda case: case.edit("run.json", lambda run: run["units"].pop()), ("units",)),
            (
                "another name",
                lambda case: case.edit("run.json", lambda run: run.update(result_name="95% CI")),
                ("name of the result", "95% CI"),
            ),
            ("forged gold", forged_gold, ("gold number", "{math}")),
            ("a stranger's failure", failed_unit("nobody"), ("failures of other units",)),
        )
    ),
)


def _verdict(rows: list[Any], word: str) -> None:
    rows[CODE_ROW]["code"]["verdict"].update(failure_type=word, passed=False)


def _first_contrast(statistics: Any) -> None:
    statistics["contrasts"][0].update(sum=99)


FAULTS = (*RETURNS, *VERDICTS, *LEDGER)
