"""Faults in the drawing itself, planted through the tree's conftest: what stops, and which gates are red over the rest.

The faults are in `generation_sampling.py`. The code source leaves nothing to chance (one ID a step), mathematics does.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from pregate_support.mini import copy_tree, run_gates
from pregate_support.mini_sampling import SAMPLING

from harness.places import Places
from harness.snapshots.store import accept

from .damage import failed_gates, junit_messages, read
from .generation_sampling import (
    ANOTHER_ID,
    COPIED,
    FOREIGN,
    GREEDY,
    GREEDY_THAT_DRAWS,
    HEAD,
    LATE_SEED,
    NO_PROBABILITY,
    NOT_FINITE,
    PYTHON,
    SAME_SEEDS,
    SAME_SEEDS_UNSAID,
    SEEDED_ONCE,
    SHUFFLED,
    SHUFFLED_ONCE,
    SPLIT_AS_IT_IS,
    SPLIT_CALL,
    SPLIT_UNSAID,
    TEMPERATURE,
    TOP_K,
)

RUN = f"reports/{SAMPLING}/smoke-9"
REPLAY = f"reports/{SAMPLING}/replay-9"
CONDITIONS = ("s0_eos", "s1_eos", "s0_period", "s1_period")


@pytest.fixture
def plant(sampling_run: Path, tmp_path: Path) -> Callable[[str], Path]:
    """`plant(code)`: a private tree whose sessions draw with the fault."""

    def make(code: str) -> Path:
        tree = copy_tree(sampling_run.parents[2], tmp_path / "tree")
        with (tree / "conftest.py").open("a", encoding="utf-8") as stream:
            stream.write(HEAD + code)
        return tree

    return make


def draw(tree: Path, tier: str = "smoke") -> int:
    """The exit code of a session that draws."""
    named = ("--run", RUN if tier == "smoke" else REPLAY)
    return run_gates(tree, "-m", tier, *named, protocol=SAMPLING).code


def rows(*units: str) -> list[str]:
    """The rows of these units' cells, sorted as an audit record has them."""
    return [f"{unit}:{condition}" for unit in units for condition in CONDITIONS]


CODE, MATH = "nano-code/004", "nano-math/0128"
UNITS = [f"{source}:{replicate}" for source in (CODE, MATH) for replicate in ("R0", "R1")]
FIRST, SECOND = UNITS[::2], UNITS[1::2]
AGAIN = {"same_process_replay": rows(*FIRST)}


@pytest.mark.parametrize(
    ("code", "red", "words"),
    [
        (LATE_SEED, {"seeded_state": UNITS, **AGAIN}, "torch_cpu state before the call: expected"),
        (SEEDED_ONCE, {"seeded_state": UNITS[1:], **AGAIN}, "torch_cpu state before the call: expected"),
        (TOP_K, {"sampling_parameters": UNITS, **AGAIN}, "TopKLogitsWarper(top_k=50)"),
        (TEMPERATURE, {"sampling_parameters": UNITS, **AGAIN}, "parameter temperature: expected 0.3, found 1.0"),
        (GREEDY_THAT_DRAWS, {"replicates_part": ["whole"]}, "8 cells of two replicates: expected one or more that"),
        (PYTHON, {"drawn_generator": [f"{CODE}:R1"]}, "python generator: expected untouched, found drawn from"),
        (SPLIT_AS_IT_IS, {"draw_shape": UNITS, **AGAIN}, "shape of a draw: expected (4, 2048), found (2, 2048)"),
        (SHUFFLED_ONCE, {"same_process_replay": rows(f"{MATH}:R0")}, "generated_ids: expected"),
        (SAME_SEEDS, {"seed_identity": SECOND, "replicates_part": ["whole"]}, "base seed: expected"),
        (SAME_SEEDS_UNSAID, {"seeded_state": SECOND, "replicates_part": ["whole"]}, "expected one or more that part"),
        (COPIED, AGAIN, "calls: expected 2, found 1"),
    ],
    ids=[
        "a seed set late",
        "a generator that is seeded once",
        "a hidden top-k 50",
        "another temperature",
        "greedy under a sampled name",
        "Python's generator drawn from",
        "a batch split in two",
        "rows shuffled the first time",
        "R1 under R0's seeds",
        "R1 drawn as R0, by another name",
        "a unit that was copied and not drawn again",
    ],
)
def test_a_run_that_was_drawn_otherwise(
    plant: Callable[[str], Path], code: str, red: dict[str, list[str]], words: str
) -> None:
    """Exactly these gates are red on exactly these rows: what the records say of the draw, or what two draws say."""
    tree = plant(code)
    assert draw(tree) == 1
    found = failed_gates(tree / RUN)
    assert {gate: sorted(names) for gate, names in found.items()} == {
        gate: sorted(names) for gate, names in red.items()
    }
    assert any(words in " ".join(text.split()) for text in junit_messages(tree / RUN).values())


@pytest.mark.parametrize(
    ("code", "kind", "words", "landed"),
    [
        (GREEDY, "foreign_draw", "after 8 draws for 4 rows", 0),
        (FOREIGN, "foreign_draw", "after 8 draws for 4 rows", 1),
        (ANOTHER_ID, "not_drawable", "step 0, row 2: expected the ID that the call drew", 0),
        (NO_PROBABILITY, "not_drawable", "an ID with a probability after the warpers", 0),
        (NOT_FINITE, "non_finite", "step 0, row 3", 0),
        (SPLIT_CALL, "not_drawable", "draws for all 4 rows at once, found draws for 2", 0),
    ],
    ids=[
        "greedy",
        "somebody else's draw",
        "an ID that wasn't drawn",
        "an ID without probability",
        "not finite",
        "two calls a batch",
    ],
)
def test_a_draw_that_breaks_the_contract(
    plant: Callable[[str], Path], code: str, kind: str, words: str, landed: int
) -> None:
    """The unit doesn't land; its failure says how the call was not the contract's; every gate of the run is red."""
    tree = plant(code)
    assert draw(tree) == 1
    assert len(list((tree / RUN / "journal").glob("*.json"))) == landed
    (record,) = (tree / RUN / "failures").glob("*.json")
    failure = read(record)
    assert failure["kind"] == kind
    assert words in failure["message"]
    failed = failed_gates(tree / RUN)
    judged = {"normal_return", "seed_identity", "seeded_state", "draw_shape", "same_process_replay", "assembled_run"}
    assert judged <= set(failed)
    said = junit_messages(tree / RUN)[f"normal_return {failure['source_id']}:{failure['replicate']}:s0_eos"]
    assert kind in said


@pytest.mark.parametrize(
    "code", [SHUFFLED, SPLIT_UNSAID], ids=["rows shuffled", "a batch split in two that isn't said"]
)
def test_a_fault_that_every_process_shares(plant: Callable[[str], Path], code: str) -> None:
    """R07 4 and 10: rows shuffled or split by the code of every process, with records that don't say so, are green in
    smoke. Frozen results of a run that was drawn as registered tell, wherever a draw could have given another ID.
    """
    tree = plant(code)
    assert draw(tree) == 0
    accept(tree / f"reports/{SAMPLING}/formal-1", Places(tree))
    assert draw(tree, "replay") == 1
    assert failed_gates(tree / REPLAY) == {"frozen_snapshots": [f"{MATH}:R0"]}


def test_a_replay_as_registered(plant: Callable[[str], Path]) -> None:
    """Without a fault the same replay against the same frozen results is green."""
    tree = plant("")
    accept(tree / f"reports/{SAMPLING}/formal-1", Places(tree))
    assert draw(tree, "replay") == 0
