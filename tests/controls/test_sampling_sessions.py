"""Whole sessions over a damaged sampling run: exit code, the gates that turn red, and what is said.

`seal` renews all digests and makes ledger and statistics again, so a red gate here isn't a stale digest's work.
"""

from collections.abc import Callable
from typing import Any

import pytest

from harness.canon import escaped

from .damage import OUTPUT, Damage, failed_gates, junit_messages, read, unjudge
from .damage_sampling import SAMPLING_CHECKS, SampledCase
from .planting import other
from .planting_completion import FAILED, frozen
from .planting_sampling import TOP_K, in_smoke
from .planting_sampling_books import MATH_ROW, failed_and_sealed, in_shared_verdict, second_execution, without_row

Judge = Callable[..., Any]
CODE, MATH = "nano-code/004", "nano-math/0128"
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")
UNITS = [f"{source}:{replicate}" for source in (CODE, MATH) for replicate in ("R0", "R1")]


def cells(*units: str) -> list[str]:
    """The rows of these units' cells."""
    return [f"{unit}:{condition}" for unit in units for condition in CONDITIONS]


def seeds_of_r1(case: SampledCase) -> None:
    """Code R0 was drawn under R1's seeds, by its seeds and its states."""
    drawn = read(case.journal(1))["evidence"]
    states = {name: drawn[name] for name in ("rng_before", "rng_after")}
    case.edit_unit(lambda unit: unit.update(states))
    case.edit_unit(lambda unit: unit["sampling"].update(seeds=drawn["sampling"]["seeds"]))


def hidden_top_k(case: SampledCase) -> None:
    """The call of code R1 had a warper more."""
    case.edit_unit(lambda unit: unit["sampling"]["processors"].insert(1, TOP_K), at=1)


def split(case: SampledCase) -> None:
    """Each draw of mathematics R1 was for two rows."""
    case.edit_unit(lambda unit: unit["sampling"].update(rows=2), at=3)


def undrawn(case: SampledCase) -> None:
    """The generator of mathematics R1 stands where the seed had put it."""
    case.edit_unit(lambda unit: unit["rng_after"].update(torch_cpu=unit["rng_before"]["torch_cpu"]), at=3)


def one_trajectory(case: SampledCase) -> None:
    """R1 of each source said what R0 said, and its steps and draws agree with that."""
    for at in (0, 2):
        first = read(case.journal(at))["evidence"]
        for cell in first["cells"]:
            said = {name: cell[name] for name in OUTPUT}
            case.edit_cell(cell["condition"], lambda one, said=said: one.update(said), at=at + 1)
        drawn = {name: first["sampling"][name] for name in ("draws", "drawable", "several")}
        case.edit_unit(lambda unit, checks=first["checks"]: unit.update(checks=checks), at=at + 1)
        case.edit_unit(lambda unit, drawn=drawn: unit["sampling"].update(drawn), at=at + 1)


@pytest.mark.parametrize(
    ("damage", "red", "words"),
    [
        (
            seeds_of_r1,
            {"seed_identity": UNITS[:1], "replicates_part": ["whole"], "independent_replay": cells(UNITS[0])},
            "R0 run seed: expected",
        ),
        (hidden_top_k, {"sampling_parameters": UNITS[1:2]}, "TopKLogitsWarper(top_k=50)"),
        (split, {"draw_shape": UNITS[3:]}, "shape of a draw: expected (4, 2048), found (2, 2048)"),
        (undrawn, {"drawn_generator": UNITS[3:]}, "torch_cpu generator: expected drawn from, found untouched"),
        (
            one_trajectory,
            {"smoke_passed": ["whole"], "replicates_part": ["whole"]},
            "8 cells of two replicates: expected one or more that part, found none",
        ),
    ],
)
def test_a_sampling_run_that_was_altered_with_all_its_digests(
    sampling_case: SampledCase, judge_sampling: Judge, damage: Damage, red: dict[str, list[str]], words: str
) -> None:
    """Exactly these gates are red, on exactly these rows."""
    damage(sampling_case)
    sampling_case.seal()
    assert judge_sampling().code == 1
    assert failed_gates(sampling_case.run) == red
    assert any(words in " ".join(text.split()) for text in junit_messages(sampling_case.run).values())


@pytest.mark.parametrize(
    ("damage", "red", "words"),
    [
        (
            without_row(MATH_ROW),
            {name: [f"{MATH}:R0:s0_period"] for name in ("observations", "completion_state")}
            | {"assembled_run": ["whole"]},
            "R0 s0_period ledger rows: expected 1, found 0",
        ),
        (
            second_execution,
            {"assembled_run": ["whole"], "observations": cells(*UNITS), "sandbox_verdicts": cells(*UNITS[:2])},
            "expected no execution: the run has no such program",
        ),
        (
            in_smoke(lambda case: case.journal(0, "same_process").unlink()),
            {"smoke_passed": ["whole"]},
            "found ['same_process/journal/code-00-nano-code-004-R0.json']",
        ),
    ],
    ids=["an uncovered cell dropped", "a stranger's execution", "what was drawn again is gone"],
)
def test_a_record_that_was_altered_alone(
    sampling_case: SampledCase, judge_sampling: Judge, damage: Damage, red: dict[str, list[str]], words: str
) -> None:
    """What rests on it is red and nothing else; what an evaluator doesn't cover keeps its row (R07 10)."""
    damage(sampling_case)
    assert judge_sampling().code == 1
    assert failed_gates(sampling_case.run) == red
    assert any(words in " ".join(text.split()) for text in junit_messages(sampling_case.run).values())


def test_rows_that_changed_places_in_a_journal(sampling_case: SampledCase, judge_sampling: Judge) -> None:
    """R07 4: the order of the rows is permanent: a journal with another order isn't a unit of this run."""
    sampling_case.edit_unit(lambda unit: unit["cells"].reverse())
    sampling_case.seal_journals()
    assert judge_sampling().code == 1
    assert {"draw_shape", "assembled_run", "independent_replay"} <= set(failed_gates(sampling_case.run))
    said = " ".join(" ".join(junit_messages(sampling_case.run).values()).split()).replace("&#x27;", "'")
    assert "rows: expected ['s0_eos', 's1_eos', 's0_period', 's1_period'], found ['s1_period'" in said


def test_a_flipped_verdict_against_frozen_ones(sampling_case: SampledCase, judge_sampling: Judge) -> None:
    """A failure for a pass, with every digest renewed and the run judged for the first time: its frozen verdict alone
    tells, in each cell that shares it.
    """

    def flip(case: SampledCase) -> None:
        failed_and_sealed(case)
        unjudge(case.run)

    frozen(flip)(sampling_case)
    assert judge_sampling("none").code == 1
    assert failed_gates(sampling_case.run) == {"frozen_verdicts": UNITS[:2]}


def test_another_token_of_r1_is_told_by_frozen_results_alone(sampling_case: SampledCase) -> None:
    """Known limit: R07 7.3 draws R0 again and nothing else, so R1 past the smoke budget is only what its run said."""
    tokenizer = sampling_case.main().tokenizer

    def change(cell: Any) -> None:
        cell["generated_ids"] = other(cell["generated_ids"], 20)
        cell["text_escaped"] = escaped(tokenizer.decode(cell["generated_ids"]))

    def forge(case: SampledCase) -> None:
        case.edit_cell("s0_period", change, at=3)
        case.seal()

    frozen(forge)(sampling_case)
    gates = set(SAMPLING_CHECKS) - {"registration"}
    assert {gate for gate in gates if sampling_case.red(gate, closing=True)} == {"frozen_snapshots"}


def test_a_flipped_verdict_of_an_unfrozen_run_is_not_found_out(sampling_case: SampledCase) -> None:
    """Known limit: who renews every digest forges the verdict of a run that nothing was frozen for."""
    in_shared_verdict(**FAILED, nonce_returned=False)(sampling_case)
    sampling_case.seal()
    assert sampling_case.red("sandbox_verdicts", closing=True) == {}
    assert sampling_case.red("assembled_run", closing=True) == {}
