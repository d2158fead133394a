"""Resuming a damaged task run, and whole sessions over one: what is refused by name, and which gates turn red.

R08 5.2: a unit that is there is verified by protocol, source, prompt and content before anything is drawn.
"""

from collections.abc import Callable
from typing import Any

import pytest

from harness.canon import digest, ids_sha256
from harness.errors import JournalError
from harness.journal.assemble import verify_units
from harness.journal.folder import RunFolder

from .damage import Damage, cell_of, edit, failed_gates, junit_messages, read, unjudge
from .damage_tapes import TapedCase
from .planting import put
from .planting_tapes import account_of, consumed

CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")


def verify(case: TapedCase) -> None:
    """What a session that goes on with the run does before it draws."""
    loaded = case.loaded
    verify_units(RunFolder(case.run), loaded.units("formal", loaded.domains), loaded)


def renewed(change: Callable[[Any], None]) -> Damage:
    """A change of the first unit, its digests renewed as a careful forger would."""

    def plant(case: Any) -> None:
        def altered(journal: Any) -> None:
            change(journal["evidence"])
            journal["evidence_sha256"] = digest(journal["evidence"])

        edit(case.journal(), altered)

    return plant


def cut(case: Any) -> None:
    """The file ends in the middle, as no atomic write leaves it."""
    path = case.journal()
    path.write_bytes(path.read_bytes()[:-200])


def another_prompt(unit: Any) -> None:
    """One prompt ID is another, its hash and the edit's place agreeing with it."""
    cell = cell_of(unit, "s0_period")
    cell["prompt_ids"] = put(cell["prompt_ids"], 3, 300 if cell["prompt_ids"][3] != 300 else 301)
    cell["prompt_sha256"] = ids_sha256(cell["prompt_ids"])


def _another_token(cell: Any) -> None:
    cell["generated_ids"] = put(cell["generated_ids"], 2, 9)


def other_checkpoint(case: Any) -> None:
    """The run's environment has another digest of the weights; the units are of the first."""
    case.edit("environment.json", lambda one: one["checkpoint"].update({"model.safetensors": "0" * 64}))


REFUSED = {
    "an edited token": (
        lambda case: case.edit_cell("s0_period", _another_token),
        "s0_period: generated_sha256: expected",
    ),
    "an edited account": (
        lambda case: case.edit_unit(lambda unit: account_of(unit, "s0_period").update(gaps=1)),
        "evidence_sha256: expected",
    ),
    "a journal cut off": (cut, "expected"),
    "an unknown field": (lambda case: edit(case.journal(), lambda one: one.update(more=1)), "more"),
    "another protocol": (renewed(lambda unit: unit.update(protocol_digest="0" * 64)), "protocol_digest: expected"),
    "another environment": (renewed(lambda unit: unit.update(environment_sha256="0" * 64)), "environment_sha256"),
    "another placement": (renewed(lambda unit: unit.update(placement_sha256="0" * 64)), "placement_sha256: expected"),
    "another checkpoint": (other_checkpoint, "environment_sha256: expected"),
    "another source": (renewed(lambda unit: unit.update(source_text_sha256="0" * 64)), "source_text_sha256: expected"),
    "another tape": (renewed(lambda unit: unit.update(replicate="T1")), "replicate: expected T0, found T1"),
    "another grid": (renewed(lambda unit: unit.update(grid="smoke")), "grid: expected formal, found smoke"),
    "another budget": (renewed(lambda unit: unit.update(max_new_tokens=8)), "max_new_tokens: expected"),
    "another prompt": (renewed(another_prompt), "prompt of s0_period: expected"),
    "rows in another order": (renewed(lambda unit: unit["cells"].reverse()), "rows: expected"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_a_damaged_unit_is_refused_by_name(tasks_case: TapedCase, fault: str) -> None:
    """The unit's file and the field, before a model is loaded for the rest."""
    plant, words = REFUSED[fault]
    verify(tasks_case)
    plant(tasks_case)
    with pytest.raises(JournalError) as caught:
        verify(tasks_case)
    assert tasks_case.journal().name in str(caught.value)
    assert words in str(caught.value)


def test_nothing_is_drawn_over_a_damaged_unit(tasks_case: TapedCase, judge_tasks: Callable[..., Any]) -> None:
    """A unit is missing and another was edited: the session that goes on names it and draws nothing."""
    missing = tasks_case.journal(-1)
    missing.unlink()
    REFUSED["an edited token"][0](tasks_case)
    unjudge(tasks_case.run)
    assert judge_tasks().code == 1
    said = " ".join(" ".join(junit_messages(tasks_case.run).values()).split())
    assert f"{tasks_case.journal().name}: {tasks_case.source()} s0_period: generated_sha256: expected" in said
    assert not missing.exists()


def pooled(case: TapedCase) -> None:
    """T1's unit of the first task says that it read T0's values; the file's digest agrees."""
    registered, source = case.loaded.protocol.registered_id, case.source(1)

    def change(unit: Any) -> None:
        for condition in CONDITIONS:
            steps = range(cell_of(unit, condition)["length"])
            account_of(unit, condition)["consumed"] = consumed(registered, "T0", source, steps)

    case.edit_unit(change, at=1)


def test_a_pooled_tape_has_no_statistics(tasks_case: TapedCase) -> None:
    """Two rows that didn't read the same numbers: the books of such a run can't be closed at all."""
    pooled(tasks_case)
    with pytest.raises(JournalError, match="T1"):
        tasks_case.seal()


def leaking(case: TapedCase) -> None:
    """One row of the first unit attended to a column more in the last forward."""
    case.edit_unit(
        lambda unit: account_of(unit, "s0_period").update(attended=account_of(unit, "s0_period")["attended"] + 1)
    )


def consumed_generator(case: TapedCase) -> None:
    """Torch's generator stood elsewhere after the first unit."""
    state = {"state": "hashed", "sha256": "0" * 64}
    case.edit_unit(lambda unit: unit["rng_after"].update(torch_cpu=state))


@pytest.mark.parametrize(
    ("damage", "red", "words"),
    [
        (
            leaking,
            {"tape_account": ["{0}:s0_period"], "finished_rows": ["{0}:s0_period"]},
            "columns attended to in the last forward: expected",
        ),
        (consumed_generator, {"rng_untouched": ["{0}"]}, "torch_cpu generator: expected"),
    ],
    ids=["a row that leaks", "a consumed generator"],
)
def test_a_task_run_that_was_altered_with_all_its_digests(
    tasks_case: TapedCase, judge_tasks: Callable[..., Any], damage: Damage, red: dict[str, list[str]], words: str
) -> None:
    """Exactly these gates are red, on exactly these rows."""
    damage(tasks_case)
    tasks_case.seal()
    assert judge_tasks().code == 1
    named = {gate: [row.replace("{0}", tasks_case.name(0)) for row in rows] for gate, rows in red.items()}
    assert failed_gates(tasks_case.run) == named
    assert any(words in " ".join(text.split()) for text in junit_messages(tasks_case.run).values())


def test_a_run_is_gone_on_with(tasks_case: TapedCase, judge_tasks: Callable[..., Any]) -> None:
    """A unit less, and everything that was made of them gone: the session draws it again and the run is what it was."""
    before = {name: (tasks_case.run / name).read_bytes() for name in ("run.json", "ledger.json", "statistics.json")}
    journal = read(tasks_case.journal(-1))["evidence_sha256"]
    tasks_case.journal(-1).unlink()
    for name in (*before, "audit.json", "audit.json.sha256", "junit.xml"):
        (tasks_case.run / name).unlink()
    assert judge_tasks().code == 0
    assert {name: (tasks_case.run / name).read_bytes() for name in before} == before
    assert read(tasks_case.journal(-1))["evidence_sha256"] == journal
