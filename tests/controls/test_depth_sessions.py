"""Whole depth sessions: over a run that was damaged, and with a fault planted while it is made or made again.

`seal` renews all digests and makes ledger and statistics again, so a red gate here isn't a stale digest's work.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pregate_support.mini import DEPTH, copy_tree, run_gates

from harness.places import Places
from harness.run.comparable import not_comparable

from .damage import Case, cell_of, edit, failed_gates, junit_messages, read, unjudge
from .planting_completion import frozen
from .planting_depth import OTHER, elsewhere, named, one_ulp

Judge = Callable[[], Any]
ROWS = {"replay_sources": 2, "replay_hidden": 256, "replay_routes": 160, "replay_weights": 160}
REPLAYS = set(ROWS)
RUN = f"reports/{DEPTH}/smoke-9"


def said(run: Path) -> str:
    """All that the session's JUnit file says, on one line."""
    return " ".join(" ".join(junit_messages(run).values()).split()).replace("&#x27;", "'")


def other_target(unit: Any) -> None:
    """A target one token on, in one cell."""
    target = cell_of(unit, "s0_x")["target"]
    target.update(start=target["start"] + 1, end=target["end"] + 1)


def other_digest(unit: Any) -> None:
    """Another digest of a layer over the target of one cell."""
    named(cell_of(unit, "s0_x")["hidden"], "stage", "layer_02")["target"]["sha256"] = OTHER


def other_statistic(unit: Any) -> None:
    """A mean by one ulp."""
    statistics = named(cell_of(unit, "s0_x")["hidden"], "stage", "layer_02")["target"]["statistics"]
    statistics["mean"] = one_ulp(statistics["mean"])


def other_cosine(unit: Any) -> None:
    """A cosine that isn't its rows' mean."""
    named(named(unit["edges"], "edge", "x_s0")["stages"], "stage", "layer_02")["cosine"] = 0.5


@pytest.mark.parametrize(
    ("damage", "gates", "rows", "words"),
    [
        (
            other_target,
            {"smoke_passed", "target_tokens", "embedding_identity", "replay_sources"},
            {"whole", "{0}:s0_x", "{0}:system_x", "{0}:x_s0", "{0}"},
            "target: expected TargetTokens(start=42",
        ),
        (
            other_digest,
            {"smoke_passed", "replay_sources", "replay_hidden"},
            {"whole", "{0}", "layer_02.target:{0}:s0_x"},
            f"layer_02.target {{0}} forward s0_x: expected {OTHER}",
        ),
        (other_cosine, {"edge_trace", "replay_sources"}, {"{0}:x_s0", "{0}"}, "layer_02 cosine: expected"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_trace_that_was_altered_with_all_its_digests(
    depth_case: Case, judge_depth: Judge, damage: Any, gates: set[str], rows: set[str], words: str
) -> None:
    """Exactly these gates are red, on exactly these rows of the code source."""
    depth_case.edit_unit(damage)
    depth_case.seal()
    assert judge_depth().code == 1
    failed = failed_gates(depth_case.run)
    assert set(failed) == gates
    source = depth_case.source()
    assert {row for found in failed.values() for row in found} == {row.replace("{0}", source) for row in rows}
    assert words.replace("{0}", source) in said(depth_case.run)


FORGED = {
    "nothing": ((), "processes: expected the started children"),
    "PIDs": (("pid",), "model loads: expected none shared, found 1 shared"),
    "model loads": (("pid", "model_load_id"), "shared processes: expected []"),
    "starts": (("pid", "model_load_id", "started_us"), "calls: expected two, found the same one twice"),
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("gate", sorted(REPLAYS))
def test_a_replay_fed_with_the_runs_own_journals(depth_case: Case, name: str, gate: str) -> None:
    """Copied journals are found out by PID, model load, process start or moment, on every row of the replay."""
    forged, words = FORGED[name]
    copied_replay(depth_case, forged)
    red = depth_case.red(gate, closing=True)
    assert len(red) == ROWS[gate]
    assert all(words in message for message in red.values())


def test_a_session_over_a_replay_fed_with_the_runs_own_journals(depth_case: Case, judge_depth: Judge) -> None:
    """The same end to end, with the PIDs forged: every row of the replay is red, and no other."""
    copied_replay(depth_case, ("pid",))
    assert judge_depth().code == 1
    assert {gate: len(rows) for gate, rows in failed_gates(depth_case.run).items()} == ROWS
    assert FORGED["PIDs"][1] in said(depth_case.run)
    assert "Python's hash seed: expected another, found the same" in said(depth_case.run)


def copied_replay(case: Case, forged: tuple[str, ...], *, moments: bool = False) -> None:
    """The run's journals under replay/, with these fields of the process forged, and new moments."""
    for at in (0, 1):
        own = read(case.journal(at, "replay"))["observation"]
        shutil.copyfile(case.journal(at), case.journal(at, "replay"))

        def forge(journal: Any, own: Any = own) -> None:
            journal["evidence"]["grid"] = "replay"
            journal["observation"]["process"].update({name: own["process"][name] for name in forged})
            journal["observation"].update({n: own[n] for n in ("wall_ns", "finished_us")} if moments else {})

        edit(case.journal(at, "replay"), forge)
    case.seal("replay")


def test_a_replay_with_every_witness_forged_is_not_found_out(depth_case: Case) -> None:
    """Known limit: who forges process, moments and hashes of every unit makes a replay that the files allow."""
    copied_replay(depth_case, ("pid", "model_load_id", "started_us", "model_loaded_us", "str_hash"), moments=True)
    assert [depth_case.red(gate) for gate in sorted(REPLAYS)] == [{}] * 4


BASELINES: dict[str, Callable[[Any], Any]] = {
    "another prompt": lambda one: one["cells"][4].update(prompt_sha256=OTHER),
    "another run": lambda one: one.update(run_sha256=OTHER),
    "another checkpoint": lambda one: one["checkpoint"].clear(),
    "another source text": lambda one: one["source_texts"].clear(),
    "other tokens": lambda one: one["cells"][4]["generated_ids"].pop(),
}


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_that_was_altered_in_the_run(depth_case: Case, name: str) -> None:
    """A run that doesn't follow from its recorded baseline isn't joined to anything: red on every cell."""
    depth_case.edit("baseline.json", BASELINES[name])
    for gate, rows in (("generation_join", 16), ("assembled_run", 1), ("replay_hidden", 256)):
        red = depth_case.red(gate, closing=True)
        assert len(red) == rows
        assert all("baseline" in message for message in red.values())


def test_a_session_over_a_baseline_that_was_altered_in_the_run(depth_case: Case, judge_depth: Judge) -> None:
    """The same end to end: the recorded baseline is held against the registered one before anything is judged."""
    depth_case.edit("baseline.json", BASELINES["another prompt"])
    assert judge_depth().code == 1
    failed = failed_gates(depth_case.run)
    green = {gate["id"] for gate in read(depth_case.run / "audit.json")["gates"]} - set(failed)
    assert green == {"registration", "normal_return"}
    assert all("baseline.json" in text for text in junit_messages(depth_case.run).values())


def test_a_baseline_cell_altered_in_its_frozen_file(depth_case: Case, judge_depth: Judge) -> None:
    """What the registered baseline's bytes don't hold is refused before anything is judged."""
    path = sorted((depth_case.tree / "snapshots/mini-behavior/formal").glob("code-*.json"))[0]
    path.write_bytes(path.read_bytes().replace(b'"length": 12', b'"length": 11', 1))
    result = judge_depth()
    assert result.code == 4
    assert path.name in result.output


def test_a_digest_against_the_frozen_ones(depth_case: Case, judge_depth: Judge) -> None:
    """Altered in run and replay alike, and judged for the first time: the frozen tensor digests alone tell."""

    def alter(case: Case) -> None:
        for part in ("", "replay"):
            case.edit_unit(other_statistic, part=part)
            case.seal(part)
        unjudge(case.run)

    frozen(alter)(depth_case)
    assert judge_depth().code == 1
    failed = failed_gates(depth_case.run)
    assert failed.pop("smoke_passed") == ["whole"]  # the smoke run has the number as it was
    assert failed == {"frozen_tensors": [depth_case.source()]}
    assert "s0_x" in said(depth_case.run)


ELSEWHERE: dict[str, tuple[dict[str, Any], str]] = {
    "processor": ({"cpu": "another processor"}, "cpu: expected another processor, found "),
    "instructions": (
        {"kernels": lambda old: old | {"cpu_instructions": "mmx"}},
        "cpu_instructions: expected mmx, found ",
    ),
    "interpreter": ({"python": "2.7.18"}, "python: expected 2.7.18, found "),
    "package": ({"packages": lambda old: old | {"numpy": "1.0"}}, "numpy: expected 1.0, found "),
    "package more": ({"packages": lambda old: old | {"other": "1.0"}}, "other: expected 1.0, found none"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_an_environment_that_the_frozen_tensors_do_not_belong_to(depth_case: Case, name: str) -> None:
    """Each of these makes digests incomparable, and is named; the run's own environment leaves them comparable."""
    changes, words = ELSEWHERE[name]
    frozen(lambda case: None)(depth_case)
    assert not_comparable(depth_case.loaded, Places(depth_case.tree)) is None
    elsewhere(depth_case, **changes)
    assert words in str(not_comparable(depth_case.loaded, Places(depth_case.tree)))


def test_frozen_tensors_of_another_environment(depth_case: Case, judge_depth: Judge) -> None:
    """They aren't compared: no row of that gate is collected, header and audit record say so, and the rest passes."""
    changes, words = ELSEWHERE["processor"]
    frozen(lambda case: elsewhere(case, **changes))(depth_case)
    result = judge_depth()
    assert result.code == 0, result.output[-3000:]
    audit = result.audit
    gates = {one["id"]: one["registered"] for one in audit["gates"]}
    assert ("frozen_tensors" in gates, gates["frozen_snapshots"], audit["passed"]) == (False, 2, True)
    (line,) = audit["not_compared"]
    assert line.startswith("frozen_tensors: tensor digests belong to another environment (")
    assert words in line
    (header,) = [one for one in result.output.splitlines() if one.startswith(f"{DEPTH}: not compared: ")]
    assert words in header


def test_frozen_tensors_of_this_environment(depth_case: Case, judge_depth: Judge) -> None:
    """Another run's digests of the same environment are compared, and nothing is said to be left out."""
    frozen(lambda case: None)(depth_case)
    result = judge_depth()
    assert (result.code, result.audit["not_compared"]) == (0, [])
    assert {one["id"]: one["passed"] for one in result.audit["gates"]}["frozen_tensors"] == 2
    assert "not compared" not in result.output


HOOK = """
import harness.trace.capture as capture

honest = capture.Capture.stage_hook

def planted(self, place):
    inner = honest(self, place)
    def hook(module, inputs, output):
        inner(module, inputs, output)
        return output * 2 if place.name == "layer_04" else None
    return hook

capture.Capture.stage_hook = planted
"""
SOFTMAXED = """
import harness.run.tracing as tracing

honest = tracing.trace_batch

def planted(loaded, *given, **named):
    gate = loaded.model.model.layers[2].mlp.gate
    handle = gate.register_forward_hook(lambda module, inputs, out: (out[0].softmax(-1), *out[1:]))
    try:
        return honest(loaded, *given, **named)
    finally:
        handle.remove()

tracing.trace_batch = planted
"""
CACHE = """
import harness.trace.forward as forward

forward.FORWARD["use_cache"] = True
"""
OWN_PROCESS = """
import os
import harness.run.child as child
from harness.run.start import generate_run
from harness.protocols.load import load_protocol

def planted(request, folder, *, forbidden, workers=1):
    generate_run(load_protocol(request.protocol), request, folder)
    return child.ChildReport(pids=(os.getpid(),), parent_pid=os.getppid())

child.run_apart = planted
"""
OWN_SEED = """
import harness.run.child as child

child.another_hash_seed = lambda own: own
"""


@pytest.fixture
def unmade(fresh_depth: Path, tmp_path: Path) -> Callable[[str], Path]:
    """`unmade(code)`: the tree without its depth runs, whose sessions run with the fault."""

    def make(code: str) -> Path:
        tree = copy_tree(fresh_depth.parents[2], tmp_path / "tree", without=DEPTH)
        with (tree / "conftest.py").open("a", encoding="utf-8") as stream:
            stream.write(code)
        return tree

    return make


@pytest.mark.parametrize(
    ("code", "gate", "rows", "words"),
    [
        (HOOK, "hooks_change_nothing", 2, "logits with hooks: expected"),
        (CACHE, "forward_contract", 1, "'use_cache': 'true'"),
    ],
    ids=["a hook that returns its output doubled", "a cache asked for"],
)
def test_a_fault_while_a_trace_is_made(
    unmade: Callable[[str], Path], code: str, gate: str, rows: int, words: str
) -> None:
    """A smoke session is red by that gate alone."""
    tree = unmade(code)
    assert run_gates(tree, "-m", "smoke", "--run", RUN, protocol=DEPTH).code == 1
    failed = failed_gates(tree / RUN)
    assert {name: len(found) for name, found in failed.items()} == {gate: rows}
    assert words in said(tree / RUN)


def test_a_router_that_is_already_softmaxed(unmade: Callable[[str], Path]) -> None:
    """The run stops: no journal, one recorded failure with the gate's path, and every row of the run says why."""
    tree = unmade(SOFTMAXED)
    assert run_gates(tree, "-m", "smoke", "--run", RUN, protocol=DEPTH).code == 1
    assert not list((tree / RUN / "journal").glob("*.json"))
    (record,) = (tree / RUN / "failures").glob("*.json")
    failure = read(record)
    words = "model.layers.2.mlp.gate: unknown gate contract"
    assert (failure["kind"], words in failure["message"]) == ("exception", True)
    failed = failed_gates(tree / RUN)
    assert {"normal_return", "stages_and_gates", "edge_trace", "assembled_run"} <= set(failed)
    assert "registration" not in failed
    of_the_unit = [text for name, text in junit_messages(tree / RUN).items() if name.startswith("normal_return")]
    assert len([text for text in of_the_unit if words in " ".join(text.split())]) == 8


@pytest.mark.parametrize(
    ("code", "seed", "gates", "words"),
    [
        (
            OWN_PROCESS,
            None,
            REPLAYS,
            ("start after the run's own: expected True", "Python's hash seed: expected another"),
        ),
        (OWN_SEED, "1", {"replay_sources"}, ("Python's hash seed: expected another, found the same",)),
    ],
    ids=["in the session's own process", "with the session's own hash seed"],
)
def test_a_replay_that_is_none(
    unmade: Callable[[str], Path], code: str, seed: str | None, gates: set[str], words: tuple[str, ...]
) -> None:
    """The trace made a second time by the run's process, or by a child that hashes as it does."""
    tree = unmade(code)
    run = tree / f"reports/{DEPTH}/formal-9"
    env = {} if seed is None else {"PYTHONHASHSEED": seed}
    assert run_gates(tree, "-m", "formal", "--run", str(run), protocol=DEPTH, env=env).code == 1
    assert set(failed_gates(run)) == gates
    assert all(word in said(run) for word in words)
