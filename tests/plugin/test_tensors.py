"""Frozen tensor digests in a session: compared in the environment that they belong to, and said not to be elsewhere.

What is frozen here was made by hand, so a session over it fails in other gates; only this one's rows are looked at.
"""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from pregate_support.mini import PROJECT, run_gates, run_pytest
from pregate_support.traces import audited, environment_of, land_traces, protocol_tree

from harness.errors import SessionError
from harness.ledgers.close import close_run
from harness.model.here import here
from harness.places import Places
from harness.plugin.collect import tier_rows
from harness.plugin.session import GateSession
from harness.protocols.load import load_protocol
from harness.snapshots.acceptance import FROZEN
from harness.snapshots.store import accept

NAMED = ("--protocol", "nano-depth")
REASON = "tensor digests belong to another environment (cpu: expected another processor, found "


def frozen_tree(root: Path, **environment) -> Places:
    """A tree in which a formal run by hand was accepted, with gates to collect and a replay run to judge."""
    tree = protocol_tree(root)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copyfile(PROJECT / name, root / name)
    shutil.copytree(PROJECT / "gates", tree.gates, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "fixtures/nano/pools", tree.embedded_inputs)
    (tree.models / "nano" / "checkpoint").symlink_to(PROJECT / "fixtures/models/nano/checkpoint")
    loaded = load_protocol("nano-depth", tree)
    own = here()
    made: dict[str, object] = {"packages": own.packages, "python": own.python, "cpu": own.cpu}
    made |= {"kernels": {"cpu_instructions": own.instructions}} | environment
    for grid in ("formal", "replay"):
        run = tree.reports / "nano-depth" / f"{grid}-1"
        folder = land_traces(run, loaded, grid=grid, tokens=1, environment=environment_of(loaded, **made))
        if grid == "formal":
            close_run(folder, loaded)
            audited(folder, loaded)
            accept(run, tree)
    return tree


@pytest.fixture(scope="module")
def same(tmp_path_factory) -> Places:
    """Frozen in this machine's environment."""
    return frozen_tree(tmp_path_factory.mktemp("same") / "tree")


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Places:
    """Frozen with another processor."""
    return frozen_tree(tmp_path_factory.mktemp("other") / "tree", cpu="another processor")


def rows(tree: Places, tier: str, monkeypatch, *left_out: str) -> dict[str, int]:
    """How many rows the two gates over frozen results have in a tier."""
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    loaded = load_protocol("nano-depth", tree)
    gates = [gate for gate in loaded.protocol.gates if gate.reach in ("snapshots", "tensors")]
    return {gate.id: len(tier_rows(loaded, gate, tier, loaded.domains, left_out=left_out)) for gate in gates}


@pytest.mark.parametrize(("tier", "count"), [("formal", 16), ("replay", 4), ("smoke", 0)])
def test_each_gate_has_the_tiers_units(same, monkeypatch, tier, count):
    """Every unit of the tier's grid by its trace and by its tensors; smoke compares nothing."""
    assert rows(same, tier, monkeypatch) == {"frozen_snapshots": count, "frozen_tensors": count}


@pytest.mark.parametrize(("tier", "count"), [("formal", 16), ("replay", 4), ("smoke", 0)])
def test_a_reach_that_is_left_out_has_no_rows(same, monkeypatch, tier, count):
    """The tensors alone, or both; no other gate's rows go with them."""
    assert rows(same, tier, monkeypatch, "tensors") == {"frozen_snapshots": count, "frozen_tensors": 0}
    assert rows(same, tier, monkeypatch, "tensors", "snapshots") == {"frozen_snapshots": 0, "frozen_tensors": 0}


def test_before_anything_is_frozen_neither_has_rows(tmp_path, monkeypatch):
    """Nothing to compare with."""
    tree = protocol_tree(tmp_path / "tree")
    assert rows(tree, "formal", monkeypatch) == {"frozen_snapshots": 0, "frozen_tensors": 0}


@pytest.mark.parametrize(("name", "tensors"), [("same", 16), ("other", 0)])
def test_a_session_collects_what_it_compares(request, name, tensors):
    """One item a row, and none of a gate without rows."""
    tree = request.getfixturevalue(name)
    code, output = run_pytest(tree.root, "gates", "-m", "formal", "--collect-only", "-q", *NAMED)
    assert code == 0, output
    assert output.count("::test_unit_is_the_frozen_one[") == 16
    assert output.count("::test_tensor_digests_are_the_frozen_ones[") == tensors


@pytest.mark.parametrize("name", ["same", "other"])
def test_a_session_says_what_it_does_not_compare(request, name):
    """In its header, and in its audit record by gate; nothing is said where the tensors are compared."""
    tree = request.getfixturevalue(name)
    result = run_gates(tree.root, "-m", "replay", "--run", "reports/nano-depth/replay-1", protocol="nano-depth")
    header = [line for line in result.output.splitlines() if line.startswith("nano-depth: not compared: ")]
    gates = {one["id"]: one["registered"] for one in result.audit["gates"]}
    assert gates["frozen_snapshots"] == 4
    if name == "same":
        assert (header, result.audit["not_compared"], gates["frozen_tensors"]) == ([], [], 4)
        assert "not compared" not in result.output
    else:
        assert len(header) == 1
        assert header[0].startswith(f"nano-depth: not compared: frozen_tensors: {REASON}")
        (said,) = result.audit["not_compared"]
        assert said.startswith(f"frozen_tensors: {REASON}")
        assert "frozen_tensors" not in gates


def test_a_replay_that_nothing_is_left_to_compare_with_is_refused(same, monkeypatch):
    """Every gate over frozen results left out: green would say that they were reproduced."""
    monkeypatch.setenv("HARNESS_ROOT", str(same.root))
    loaded = load_protocol("nano-depth", same)
    session = GateSession(SimpleNamespace(), same, "replay", (loaded,), {})
    for left_out, refused in (({}, False), ({"tensors": "x"}, False), (dict.fromkeys(FROZEN, "x"), True)):
        monkeypatch.setattr(GateSession, "left_out", lambda self, loaded, found=left_out: found)
        if not refused:
            session.require_compared(loaded)
            continue
        with pytest.raises(SessionError, match="nano-depth: replay: expected frozen results"):
            session.require_compared(loaded)
