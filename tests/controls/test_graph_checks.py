"""The executor's gate, held against one planted fault at a time; and over what a CUDA device would leave."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from pregate_support.mini_tasks import GRAPH

from harness.canon import sha256_hex
from harness.checks.taped_graph import GraphSides, Side
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.snapshots.store import run_files
from harness.verify.run import verify

from .damage import edit, forge_audit, read
from .faults_of_graph import BY_GENERATE, OWN_LOOP
from .graph_fixtures import CHECKS, GraphCase, compared, red_rows
from .planting import Fault, other, turns_red


def _rows(case: GraphCase, fault: Fault) -> Fault:
    """A greedy part has one unit a source: its fault is of every tape's cell."""
    named = tuple(row.replace("{0}:", f"{case.source(0)}:*:") for row in fault.rows)
    return replace(fault, rows=named)


@pytest.mark.parametrize("gate", CHECKS)
def test_the_undamaged_run_has_no_red_row(graph_case: GraphCase, gate: str) -> None:
    """Without a fault the checks find nothing, so that what a control finds is its fault."""
    assert graph_case.red(gate) == {}


@pytest.mark.parametrize("gate", CHECKS)
def test_the_undamaged_run_beside_generate_has_no_red_row(generate_case: GraphCase, gate: str) -> None:
    """The same where `generate` is the contract that is named."""
    assert generate_case.red(gate) == {}


def test_a_session_on_the_cpu_says_that_nothing_was_captured(graph_runs: Callable[[str], Any]) -> None:
    """In its head and in graph.json; and what was compared is the contract that is named."""
    session = graph_runs("own_loop")
    assert f"{GRAPH}: executed on the CPU, where no step is captured" in " ".join(session.output.split())
    found = read(session.folder / "graph.json")
    assert (found["device"], found["captured"]["state"], found["named"]) == ("cpu", "not_compared", "own_loop")
    assert "nothing was captured" in found["captured"]["reason"]
    assert (found["against"]["exact"], len(found["against"]["cells"])) == (16, 16)
    assert not (session.folder / "graph_uncaptured").exists()


@pytest.mark.parametrize("fault", OWN_LOOP, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_is_red(graph_case: GraphCase, fault: Fault) -> None:
    """Held against the own loop: exactly the named rows, with what was found."""
    named = {"0": f"{graph_case.source(0)}:T0"}
    turns_red(graph_case, fault, named, said=1)


@pytest.mark.parametrize("fault", BY_GENERATE, ids=lambda fault: f"{fault.gate}: {fault.name}")
def test_the_planted_fault_of_a_greedy_part_is_red(generate_case: GraphCase, fault: Fault) -> None:
    """Held against `generate`: the fault of a greedy cell is of the cell under either tape."""
    turns_red(generate_case, _rows(generate_case, fault), {}, said=1)


def test_what_a_cuda_device_leaves_holds(captured_sides: Callable[..., GraphSides]) -> None:
    """The run captured, its part not: all cells by two programs, and graph.json has both sides."""
    sides = captured_sides()
    assert red_rows(sides.run.loaded, "graph_equivalence", sides) == {}
    found = compared(sides)
    assert (found["device"], found["captured"]["state"], found["captured"]["exact"]) == ("cuda", "compared", 16)
    assert found["captured"]["first_run_sha256"] == sides.run.run_sha256
    assert found["against"] == {"state": "not_compared", "reason": "the protocol names no other contract"}


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"run_captured": False}, "captured: expected true, found false"),
        ({"part_captured": True}, "graph_uncaptured: "),
    ],
    ids=["a run that captured nothing", "a part that was captured too"],
)
def test_two_sides_of_one_program_are_red(
    captured_sides: Callable[..., GraphSides], states: dict[str, bool], words: str
) -> None:
    """Captured beside captured, or uncaptured beside uncaptured, is no comparison: every row is red."""
    sides = captured_sides(**states)
    red = red_rows(sides.run.loaded, "graph_equivalence", sides)
    assert len(red) == 16
    assert all(words in " ".join(message.split()) for message in red.values()), red


def test_a_run_beside_itself_is_red(captured_sides: Callable[..., GraphSides]) -> None:
    """The run in the place of its part: its own process, its own load, its own name."""
    sides = captured_sides()
    itself = GraphSides(sides.run, {"uncaptured": Side(sides.run, sides.parts["uncaptured"].pids)})
    red = red_rows(sides.run.loaded, "graph_equivalence", itself)
    assert len(red) == 16
    assert all("processes: expected True" in one and "model loads" in one for one in red.values())


def test_a_token_that_capturing_changed_is_red(captured_sides: Callable[..., GraphSides]) -> None:
    """One token of one uncaptured cell is another: that cell is red, and graph.json counts it."""
    sides = captured_sides()
    part = sides.parts["uncaptured"].evidence
    run: Any = msgspec.to_builtins(part.run)
    cell = run["units"][1]["cells"][2]
    cell["generated_ids"] = other(cell["generated_ids"], 3)
    part.__dict__["run"] = msgspec.convert(run, type(part.run))
    source = run["units"][1]["source_id"]
    red = red_rows(sides.run.loaded, "graph_equivalence", sides)
    assert list(red) == [f"{source}:T1:s0_period"]
    assert f"uncaptured: {source} T1 s0_period generated_ids from step 3" in red[f"{source}:T1:s0_period"]
    assert compared(sides)["captured"]["exact"] == 15


def test_nothing_to_compare_with_is_red(graph_case: GraphCase) -> None:
    """On the CPU with no contract named the gate would be over nothing: it is red, and no protocol can register it."""
    sides = graph_case.sides()
    protocol: Any = sides.run.loaded.protocol
    graph = msgspec.structs.replace(protocol.decode.graph, against="none")
    alone = msgspec.structs.replace(protocol, decode=msgspec.structs.replace(protocol.decode, graph=graph))
    run = replace(sides.run, loaded=replace(sides.run.loaded, protocol=alone))
    red = red_rows(run.loaded, "graph_equivalence", GraphSides(run, {}))
    assert len(red) == 16
    assert all("comparisons: expected one or more, found none" in one for one in red.values())


def _verified(case: GraphCase) -> tuple[str, set[str]]:
    """The verdict over the case's files, its audit record made to list them; and the steps that fail."""
    forge_audit(case.run, lambda audit: audit.update(files=run_files(RunFolder(case.run))))
    found = verify(case.run, Places(case.tree))
    return found.verdict, {one.step for one in found.lines if one.state not in ("holds", "none")}


def _without_journals(case: GraphCase, part: str) -> None:
    for path in sorted((case.run / part / "journal").glob("*.json"))[1:]:
        path.unlink()


def _of_no_journal(case: GraphCase, part: str) -> None:
    """Other gold in the part's run.json alone; graph.json names that file."""
    edit(case.run / part / "run.json", lambda run: run.update(gold={}))
    named = sha256_hex((case.run / part / "run.json").read_bytes())
    side = "first_run_sha256" if part == "graph_argmax" else "second_run_sha256"
    edit(case.run / "graph.json", lambda one: one["against"].update({side: named}))


@pytest.mark.parametrize(
    ("name", "part"),
    [("graph_case", "graph_loop"), ("generate_case", "graph_argmax"), ("generate_case", "graph_generate")],
)
@pytest.mark.parametrize(
    ("damage", "step"), [(_without_journals, "parts"), (_of_no_journal, "records")], ids=["journals gone", "run.json"]
)
def test_verify_makes_a_part_again_from_its_journals(
    request: pytest.FixtureRequest, name: str, part: str, damage: Callable[[GraphCase, str], None], step: str
) -> None:
    """Digests renewed and the gates over it green: what a part's run.json says must follow from journals."""
    case: GraphCase = request.getfixturevalue(name)
    assert _verified(case) == ("holds", set())
    damage(case, part)
    assert _verified(case) == ("fails", {step})
