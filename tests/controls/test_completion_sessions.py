"""Whole sessions over a damaged completion run: exit code, the gates that turn red, and what is said.

`seal` renews all digests and makes ledger and statistics again, so a red gate here isn't a stale digest's work.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.snapshots.baseline import baseline_of_port

from .damage import Case, Damage, cell_of, edit, failed_gates, forge_audit, junit_messages, read, unjudge
from .planting import other
from .planting_completion import FAILED, empty_file, frozen, in_execution, in_verdict, key_of, stranger

Judge = Callable[..., Any]
APART = {"placement_equivalence", "independent_replay"}
REMADE = {"assembled_run", "observations", "paired_comparison"}  # the gates that make the ledger again


def cell_without_stop(case: Case) -> None:
    """A cell that neither ended nor reached the budget, by its own words."""
    case.edit_cell("s0_x", lambda cell: cell.update(eos=False, truncated=False))


def last_compared_token(case: Case) -> None:
    """The last token that the baseline has too is another one."""
    case.edit_cell("s0_x", lambda cell: cell.update(generated_ids=other(cell["generated_ids"], 11)))


def pass_with_exit_code(case: Case) -> None:
    """A pass whose container ended with 1."""
    in_verdict(exit_code=1)(case)


def other_container_flag(case: Case) -> None:
    """The probe and every container had a network, and say so."""
    case.edit("sandbox.json", lambda one: one["limits"].update(network="bridge"))
    for cell in read(case.journal())["evidence"]["cells"]:
        in_execution(lambda one: one["limits"].update(network="bridge"), cell["condition"])(case)


@pytest.mark.parametrize(
    ("damage", "gates", "rows", "words"),
    [
        (
            cell_without_stop,
            {"output_identity", "completion_state", *APART},
            ("s0_x",),
            "found OTHER_STOP: investigate",
        ),
        (
            last_compared_token,
            {"smoke_passed", "output_identity", "baseline_prefix", *APART},
            ("s0_x",),
            "generated_ids from step 11 of 12: expected",
        ),
        (pass_with_exit_code, {"sandbox_verdicts"}, ("s0_x",), "exit code of a pass: expected 0, found 1"),
        (
            other_container_flag,
            {"sandbox_verdicts"},
            ("s0_eos", "s1_eos", "s0_bos", "s1_bos", "s0_x", "s1_x", "s0_period", "s1_period"),
            "container flag network: expected none, found bridge",
        ),
    ],
)
def test_a_completion_run_that_was_altered_with_all_its_digests(
    completion_case: Case,
    judge_completion: Judge,
    damage: Damage,
    gates: set[str],
    rows: tuple[str, ...],
    words: str,
) -> None:
    """Exactly these gates are red, on exactly these cells of the code source."""
    damage(completion_case)
    completion_case.seal()
    assert judge_completion().code == 1
    failed = failed_gates(completion_case.run)
    assert set(failed) == gates
    cells = {row for found in failed.values() for row in found} - {"whole"}
    assert cells == {f"{completion_case.source()}:{row}" for row in rows}
    assert any(words in " ".join(text.split()) for text in junit_messages(completion_case.run).values())


def test_a_flipped_verdict_against_frozen_ones(completion_case: Case, judge_completion: Judge) -> None:
    """A failure for a pass, with every digest renewed and the run judged for the first time: its frozen verdict alone
    tells.
    """

    def flip(case: Case) -> None:
        in_verdict(**FAILED, nonce_returned=False)(case)
        case.seal()
        unjudge(case.run)

    frozen(flip)(completion_case)
    assert judge_completion("none").code == 1
    assert failed_gates(completion_case.run) == {"frozen_verdicts": [completion_case.source()]}
    (said,) = junit_messages(completion_case.run).values()
    assert "s0_x snapshot: expected" in " ".join(said.split())


def test_a_flipped_verdict_of_an_unfrozen_run_is_not_found_out(completion_case: Case) -> None:
    """Known limit: who renews every digest forges the verdict of a run that nothing was frozen for."""
    in_verdict(**FAILED, nonce_returned=False)(completion_case)
    completion_case.seal()
    assert completion_case.red("sandbox_verdicts", closing=True) == {}
    assert completion_case.red("assembled_run", closing=True) == {}


@pytest.mark.parametrize(
    ("damage", "gates", "words"),
    [
        (stranger, REMADE | {"sandbox_verdicts"}, "s9_x.json: expected no execution"),
        (
            lambda case: case.edit("statistics.json", lambda one: one["groups"].pop()),
            {"assembled_run"},
            "statistics.json",
        ),
        (
            lambda case: (case.run / key_of(case)).unlink(),
            REMADE | {"sandbox_verdicts"},
            "expected the verdict on this cell's program, found none",
        ),
    ],
    ids=["a stranger's execution", "statistics", "a verdict less"],
)
def test_a_ledger_that_can_not_be_made(
    completion_case: Case, judge_completion: Judge, damage: Damage, gates: set[str], words: str
) -> None:
    """What rests on verdicts and ledger is red; prompts, tokens and parts made apart are judged as before."""
    damage(completion_case)
    assert judge_completion("none").code == 1
    assert set(failed_gates(completion_case.run)) == gates
    assert words in " ".join(" ".join(junit_messages(completion_case.run).values()).split())


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda case: case.edit("tasks.json", lambda tasks: tasks[case.source()].update(prompt="def f():\n")),
            "tasks.json",
        ),
        (
            lambda case: case.edit("baseline.json", lambda one: one["cells"][4].update(prompt_sha256="0" * 64)),
            "baseline.json",
        ),
        (empty_file("attempts/01-nano-resident/x"), "a step down the ladder was interrupted"),
    ],
    ids=["another prompt of the task", "a cell of the baseline", "an attempt that nobody recorded"],
)
def test_a_run_that_is_not_what_it_stands_on(
    completion_case: Case, judge_completion: Judge, damage: Damage, words: str
) -> None:
    """Task, baseline and attempts are held against what is registered before anything is judged: the run is red."""
    damage(completion_case)
    assert judge_completion().code == 1
    failed = failed_gates(completion_case.run)
    assert {"baseline_prompts", "baseline_prefix", "sandbox_verdicts", "assembled_run", "completion_state"} <= {*failed}
    assert {"placement_equivalence", "independent_replay", "smoke_passed"} <= {*failed}
    assert ("placement_attempts" in failed) is ("ladder" in words)
    assert words in " ".join(" ".join(junit_messages(completion_case.run).values()).split())


def test_a_baseline_cell_altered_in_its_frozen_file(completion_case: Case, judge_completion: Judge) -> None:
    """What the registered baseline's bytes don't hold is refused before anything is judged."""
    path = sorted((completion_case.tree / "snapshots/mini-behavior/formal").glob("code-*.json"))[0]
    path.write_bytes(path.read_bytes().replace(b'"length": 12', b'"length": 11', 1))
    result = judge_completion()
    assert result.code == 4
    assert path.name in result.output


FORGED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no port": (lambda run: forge_audit(run, lambda one: None), "port: expected True, found False"),
    "a failed run": (lambda run: forge_audit(run, lambda one: one.update(port=True, passed=False)), "passed: expected"),
    "a smoke run": (lambda run: forge_audit(run, lambda one: one.update(port=True, tier="smoke")), "tier: expected"),
    "another revision": (
        lambda run: forge_audit(run, lambda one: one.update(port=True, protocol_digest="0" * 64)),
        "protocol digest: expected",
    ),
    "another protocol": (
        lambda run: forge_audit(run, lambda one: one.update(port=True, protocol="mini-other")),
        "protocol: expected mini-behavior, found mini-other",
    ),
    "an altered run": (
        lambda run: (
            forge_audit(run, lambda one: one.update(port=True)),
            edit(run / "run.json", lambda one: cell_of(one["units"][0], "s0_x").update(length=11)),
        ),
        "files altered after the audit: expected [], found ['run.json']",
    ),
    "an audit that was edited alone": (
        lambda run: edit(run / "audit.json", lambda one: one.update(port=True)),
        "audit.json: expected",
    ),
    "no audit": (lambda run: (run / "audit.json").unlink(), "audit.json"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_ports_baseline_is_a_passed_unaltered_formal_port(fresh_run: Path, completion_case: Case, name: str) -> None:
    """R05 2: whatever else is named as a port's baseline is refused, by what it isn't."""
    damage, words = FORGED[name]
    damage(fresh_run)
    loaded = completion_case.loaded
    with pytest.raises(HarnessError) as refused:
        baseline_of_port(loaded, completion_case.main().keys, RunFolder(fresh_run), Places(completion_case.tree))
    assert words in str(refused.value)
