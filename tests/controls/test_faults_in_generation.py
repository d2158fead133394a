"""Faults while a run is made, planted through the tree's conftest: what stops, what is kept, what is said.

Two units of eight cells and eight steps; the faults are in the library's call and not in the records.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.mini import copy_tree, environment, make_tree, run_gates

from .damage import failed_gates, junit_messages, read

RUN = "reports/mini-behavior/smoke-9"
HEAD = """
import random
import numpy
import torch
import harness.run.engine as engine

calls = []
original = engine.decode_greedy

def patched(loaded, *arguments, **named):
    calls.append(0)
    generate = type(loaded.model).generate
    def planted(*one, **two):
        return fault(lambda: generate(loaded.model, *one, **two), loaded.model, len(calls))
    loaded.model.generate = planted
    return original(loaded, *arguments, **named)

engine.decode_greedy = patched
"""
DRAWS = """
def fault(generate, model, call):
    output = generate()
    (random.random, numpy.random.rand)[call - 1]()
    if call == 2:
        torch.rand(1)
    return output
"""
MEMORY = """
def fault(generate, model, call):
    if call == 2:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
    return generate()
"""
NOT_FINITE = """
def fault(generate, model, call):
    def spoil(module, arguments, logits):
        logits = logits.clone()
        logits[3, -1, 7] = float("nan")
        return logits
    hook = model.lm_head.register_forward_hook(spoil)
    output = generate()
    hook.remove()
    return output
"""
NOT_ARGMAX = """
def fault(generate, model, call):
    output = generate()
    output[2, -8] = 300 if output[2, -8] != 300 else 301
    return output
"""
CRASH = """
def fault(generate, model, call):
    raise ValueError("a kernel that isn't there")
"""


@pytest.fixture
def plant(mini_tree: Path, tmp_path: Path) -> Callable[[str], Path]:
    """`plant(code)`: a private tree whose sessions generate with the fault."""

    def make(code: str) -> Path:
        tree = copy_tree(mini_tree, tmp_path / "tree")
        with (tree / "conftest.py").open("a", encoding="utf-8") as stream:
            stream.write(HEAD + code)
        return tree

    return make


def test_a_generator_that_was_drawn_from(plant: Callable[[str], Path]) -> None:
    """A draw from Python's, NumPy's or torch's generator during a unit is red for that unit, by generator's name."""
    tree = plant(DRAWS)
    assert run_gates(tree, "-m", "smoke", "--run", RUN).code == 1
    first, second = (read(path)["evidence"]["source_id"] for path in sorted((tree / RUN / "journal").glob("*.json")))
    assert failed_gates(tree / RUN) == {"rng_untouched": [first, second]}
    said = {name: " ".join(text.split()) for name, text in junit_messages(tree / RUN).items()}
    assert f"{first} greedy python generator: expected" in said[f"rng_untouched {first}"]
    assert f"{second} greedy numpy generator: expected" in said[f"rng_untouched {second}"]
    assert f"{second} greedy torch_cpu generator: expected" in said[f"rng_untouched {second}"]
    assert "numpy" not in said[f"rng_untouched {first}"]


def test_memory_that_runs_out_at_the_second_unit(plant: Callable[[str], Path]) -> None:
    """The run stops; the failure is recorded and names the unit; the finished unit stays; nothing is assembled."""
    tree = plant(MEMORY)
    assert run_gates(tree, "-m", "smoke", "--run", RUN).code == 1
    (kept,) = (tree / RUN / "journal").glob("*.json")
    (record,) = (tree / RUN / "failures").glob("*.json")
    failure = read(record)
    assert (failure["kind"], failure["source_id"] != read(kept)["evidence"]["source_id"]) == ("out_of_memory", True)
    assert not (tree / RUN / "run.json").exists()
    failed = failed_gates(tree / RUN)
    assert len(failed["normal_return"]) == 8
    assert all(row.startswith(failure["source_id"]) for row in failed["normal_return"])
    assert "registration" not in failed
    said = [text for name, text in junit_messages(tree / RUN).items() if name.startswith("normal_return")]
    assert len(said) == 8
    assert all("out_of_memory" in text and "20.00 GiB" in text for text in said)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (NOT_FINITE, "non_finite", "step 0, row 3"),
        (NOT_ARGMAX, "not_argmax", "step 0, row 2"),
        (CRASH, "exception", "a kernel that isn't there"),
    ],
    ids=["not finite", "not the argmax", "an exception"],
)
def test_a_step_that_breaks_the_contract(plant: Callable[[str], Path], code: str, kind: str, words: str) -> None:
    """Logits that aren't finite, an emitted ID that isn't the argmax, an exception: no journal, and red by unit."""
    tree = plant(code)
    assert run_gates(tree, "-m", "smoke", "--run", RUN).code == 1
    assert not list((tree / RUN / "journal").glob("*.json"))
    (record,) = (tree / RUN / "failures").glob("*.json")
    failure = read(record)
    assert failure["kind"] == kind
    assert words in failure["message"]
    failed = failed_gates(tree / RUN)
    assert {"normal_return", "greedy_steps", "output_identity", "assembled_run"} <= set(failed)
    said = junit_messages(tree / RUN)[f"normal_return {failure['source_id']}:s0_x"]
    assert words in " ".join(said.split()).replace("&#x27;", "'")
    assert kind in said


def test_a_formal_run_whose_smoke_fails(plant: Callable[[str], Path]) -> None:
    """The formal session stops before it generates: no journal is written, and every gate of the run says why."""
    tree = plant(CRASH)
    run = tree / "reports/mini-behavior/formal-9"
    assert run_gates(tree, "-m", "formal", "--run", str(run)).code == 1
    assert not (run / "journal").exists()
    assert not (run / "spec.json").exists()
    failed = failed_gates(run)
    assert set(failed) == {gate["id"] for gate in read(run / "audit.json")["gates"]} - {"registration"}
    said = " ".join(junit_messages(run)["smoke_passed whole"].split())
    assert "all smoke gates passed, found exit code 1" in said
    assert len(list((run.parent / "smoke-9/failures").glob("*.json"))) == 1


def test_a_run_that_may_not_be_resumed(tmp_path: Path) -> None:
    """Where the protocol doesn't resume, a run that lacks a unit is refused before anything is generated."""
    tree = make_tree(tmp_path / "tree", resume=False)
    assert run_gates(tree, "-m", "smoke", "--run", RUN).code == 0
    (first, _) = sorted((tree / RUN / "journal").glob("*.json"))
    first.unlink()
    refused = run_gates(tree, "-m", "smoke", "--run", RUN)
    assert refused.code == 4
    assert "expected all 2 units or none, found 1 units of a run that ended" in " ".join(refused.output.split())
    assert not first.exists()


def test_a_replay_cannot_read_the_run(case: Any) -> None:
    """The child that replays gets an error from opening anything of the run that it must reproduce."""
    code = (
        "from pathlib import Path; from harness.run.guard import forbid_reading;"
        f"forbid_reading((Path({str(case.run)!r}),)); open({str(case.journal())!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(case.tree), capture_output=True, check=False)
    assert done.returncode == 1
    assert b"ForbiddenReadError" in done.stderr
