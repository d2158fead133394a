"""What a pair made apart is held against: this run, or its smoke run where the pair is one of the smoke budget."""

from types import SimpleNamespace

import msgspec
import pytest

from harness.errors import DecodeError, HarnessError
from harness.evidence import RunEvidence
from harness.journal.folder import RunFolder
from harness.plugin.stages import Stages
from harness.protocols.grids import placement_rule
from harness.protocols.load import load_protocol
from harness.run.request import Options, make_request

replace = msgspec.structs.replace
DEFAULTS = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)


@pytest.fixture
def stages(tmp_path):
    """`stages(protocol, tier, stopped)`: a session's stages over a run and its smoke run, nothing of them generated."""

    def make(name, tier="formal", stopped=None):
        loaded = load_protocol(name)
        made = Stages(None, loaded)
        made.__dict__["request"] = make_request(loaded, tier, f"{tier}-1", DEFAULTS)
        own = RunEvidence(loaded, RunFolder(tmp_path / f"{tier}-1"), stopped=stopped)
        own.__dict__.update({} if stopped else {"run": "the run"})
        made._run = lambda: own
        made._smoke_record = lambda: (None, RunFolder(tmp_path / "smoke-1"))
        made._evidence_at = lambda folder: RunEvidence(loaded, folder)
        return made

    return make


def first(made, rule):
    """The folder's name of what the rule's pair is held against."""
    return made._first_of(rule).folder.path.name


def test_placements_at_the_smoke_budget_are_held_against_the_smoke_run(stages):
    """R07 10: the same seeds at the same budget; the formal run's cells are longer."""
    made = stages("nano-cross-source-sampling")
    assert first(made, placement_rule(made._loaded.protocol)) == "smoke-1"


def test_a_replay_at_the_formal_budget_is_held_against_the_run(stages):
    """R07 7.3: the fresh process reproduces formal cells."""
    made = stages("nano-cross-source-sampling")
    assert first(made, made._loaded.protocol.independent_replay) == "formal-1"


@pytest.mark.parametrize("name", ["nano-behavior", "nano-completion"])
def test_pairs_of_greedy_protocols_are_held_against_the_run(stages, name):
    """Theirs are of the formal budget, whatever grid they are over."""
    made = stages(name)
    rules = (placement_rule(made._loaded.protocol), made._loaded.protocol.independent_replay)
    assert [first(made, rule) for rule in rules] == ["formal-1", "formal-1"]


def test_a_depth_replay_is_held_against_the_run(stages):
    """No grid of it has a budget."""
    made = stages("nano-depth")
    assert first(made, made._loaded.protocol.independent_replay) == "formal-1"


def test_within_smoke_the_run_is_the_smoke_run(stages):
    """A smoke session's own run has the budget."""
    made = stages("nano-cross-source-sampling", tier="smoke")
    assert first(made, placement_rule(made._loaded.protocol)) == "smoke-1"
    made._smoke_record = lambda: pytest.fail("a smoke run stands on no other")
    assert first(made, placement_rule(made._loaded.protocol)) == "smoke-1"


@pytest.mark.parametrize("which", ["placement", "replay"])
def test_a_stopped_run_has_no_second(stages, which):
    """What stopped it is the reason, also where the pair wouldn't touch it."""
    stop = DecodeError("step 3", kind="foreign_draw", expected="a", found="b", todo="c")
    made = stages("nano-cross-source-sampling", stopped=stop)
    protocol = made._loaded.protocol
    rule = {"placement": placement_rule(protocol), "replay": protocol.independent_replay}[which]
    with pytest.raises(HarnessError, match="step 3: expected a, found b"):
        _ = made._first_of(rule).run


def test_a_rule_over_an_unknown_grid_is_no_pair(stages):
    """Such a protocol isn't loaded; here it is misuse."""
    made = stages("nano-cross-source-sampling")
    rule = replace(made._loaded.protocol.independent_replay, grid="none")
    with pytest.raises(KeyError, match="none"):
        made._first_of(rule)


def pair(made, smoke, own="nano-resident"):
    """The placement pair of a run that is under `own` and stands on a smoke run under `smoke`, and its request."""
    asked = []
    placements = {one.id: one for one in made._loaded.protocol.placements}
    made.__dict__["request"] = replace(made.request, placement=placements[own])
    sides = {
        "formal-1": SimpleNamespace(run_id="formal-1", placement=own),
        "smoke-1": SimpleNamespace(run_id="smoke-1", placement=smoke),
    }
    evidence = made._evidence_at

    def at(folder):
        found = evidence(folder)
        found.__dict__.update(spec=sides[folder.path.name], run="the run")
        return found

    def apart(name, request, *, workers):
        asked.append((name, request, workers))
        return evidence(RunFolder(made._run().folder.path / name)), (1,)

    made._evidence_at, made._apart = at, apart
    made._run().__dict__["spec"] = sides["formal-1"]
    found = made._pair("placement", placement_rule(made._loaded.protocol))
    return found, asked[0][1]


@pytest.mark.parametrize(("smoke", "other"), [("nano-resident", "nano-disk"), ("nano-disk", "nano-resident")])
@pytest.mark.parametrize("own", ["nano-resident", "nano-disk"])
def test_the_other_placement_is_the_one_that_the_first_side_isnt(stages, smoke, other, own):
    """R07 10: after a step down the run isn't under its smoke run's placement; the pair's two sides are two all the
    same.
    """
    found, request = pair(stages("nano-cross-source-sampling"), smoke, own)
    assert found.first.spec.placement == smoke
    assert request.placement.id == other


def test_a_placement_pair_is_a_part_of_the_run_that_made_it(stages):
    """Two formal runs may stand on one smoke run: what one of them made isn't the other's."""
    found, request = pair(stages("nano-cross-source-sampling"), "nano-resident")
    assert request.run_id == found.part_id == "formal-1/placement"


def test_a_ports_sides_are_those_that_were_made(stages):
    """The smoke run's own placement stands where the registered one would."""
    made = stages("nano-cross-source-sampling")
    made.__dict__["request"] = replace(made.request, port=True)
    found, _ = pair(made, "port", "nano-disk")
    assert (found.rule.left, found.rule.right) == ("port", "nano-disk")
