"""Units drawn again by the process that drew them (R07 7.1): which, when, by whom, and what a killed run leaves."""

import multiprocessing
import os
import signal
import time
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from pregate_support.sampled_runs import drawn_for, sampled_builder
from pregate_support.traces import environment_of

from harness.checks.pairs import call_of
from harness.errors import DecodeError, JournalError, SessionError
from harness.journal.assemble import read_spec, read_units
from harness.journal.folder import RunFolder, failures, journals
from harness.model.process import now_us
from harness.plugin.stages import require_resumable
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.run import ProcessIdentity, UnitObservation
from harness.run import produce as produce_module
from harness.run.again import SAME_PROCESS, again_engine, key_again, same_process_rule
from harness.run.child import replace_request
from harness.run.request import Request, make_request
from harness.run.start import generate_run as produce

FORK = multiprocessing.get_context("fork")
TIMEOUT_S = 120
UNITS = 32


@dataclass
class Drawing:
    """An engine without a model: units by hand, drawn under the protocol's seeds.

    `made` is shared with the engine that draws again: (grid, unit) in the order of the draws. `killed_at`: how many
    draws come before its process is killed. `killed_in`: a grid; over it the process is killed in its first draw, once
    all other units of the folder have landed.
    """

    loaded: LoadedProtocol
    request: Request
    process: ProcessIdentity
    made: list[tuple[str, str]] = field(default_factory=list)
    planned: dict[tuple[str, str], BaseException] = field(default_factory=dict)
    killed_at: int | None = None
    killed_in: tuple[str, RunFolder] | None = None
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        """What was read back is what the protocol registers."""
        self.environment = environment_of(self.loaded)
        self.placement = sampled_builder(self.loaded).placement()
        self.deviations = ()
        self.sampler = None
        self.model = type("Model", (), {"process": self.process, "load_ns": 1})()

    def close(self) -> None:
        """There is nothing to release."""

    def memory(self) -> dict[str, int]:
        """No memory was used."""
        return {"rss": 1}

    def make_unit(self, key, batch, tokenizer, progress):
        """The unit of that key over this engine's own grid."""
        del batch, tokenizer, progress
        if self.killed_at == len(self.made):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.killed_in is not None and self.killed_in[0] == self.request.grid:
            self._die_last(self.killed_in[1])
        self.made.append((self.request.grid, key.name))
        if (self.request.grid, key.name) in self.planned:
            raise self.planned[self.request.grid, key.name]
        time.sleep(self.pause_s)
        unit = drawn_for(self.loaded, key, self.request.grid, self.environment)
        return unit, UnitObservation(
            process=self.process, wall_ns=time.perf_counter_ns(), tokens=1, finished_us=now_us()
        )

    def _die_last(self, folder):
        until = time.monotonic() + TIMEOUT_S
        while len(list(journals(folder))) < UNITS - 1 and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def loaded():
    """The nano protocol of Round 07's shape."""
    return load_protocol("nano-cross-source-sampling")


@pytest.fixture
def request_of(loaded, options):
    """`request_of(tier)`: the request of a tier."""
    return lambda tier: make_request(loaded, tier, f"{tier}-1", options())


@pytest.fixture
def drawing(loaded, request_of, monkeypatch):
    """`drawing(tier)`: a stand-in engine for that tier's run, opened wherever `produce` opens one."""

    def open_it(tier="smoke", **plan):
        engine = Drawing(loaded, request_of(tier), process_of("the load"), **plan)
        monkeypatch.setattr(produce_module, "open_engine", lambda *_: engine)
        return engine

    return open_it


def process_of(load):
    """The process that asks, with one model load."""
    return ProcessIdentity(
        pid=os.getpid(), started_us=1, model_loaded_us=2, model_load_id=load, str_hash="0123456789abcdef"
    )


@pytest.mark.parametrize(("tier", "there"), [("smoke", True), ("formal", False), ("replay", False)])
def test_only_the_tier_that_judges_it_draws_again(loaded, request_of, tier, there):
    """The smoke grid is the only one: a formal run has no gate for it."""
    found = same_process_rule(loaded, request_of(tier))
    assert found == (loaded.protocol.same_process_replay if there else None)


def test_another_grid_in_that_tier_draws_nothing_again(loaded, request_of):
    """A placement's part is made in the formal tier over the smoke grid, a check in smoke over another one."""
    assert same_process_rule(loaded, replace_request(request_of("formal"), grid="smoke")) is None
    assert same_process_rule(loaded, replace_request(request_of("smoke"), grid="replay")) is None


def test_without_its_gate_nothing_is_drawn_again(loaded, request_of):
    """A rule that no gate judges asks for no work."""
    gates = tuple(gate for gate in loaded.protocol.gates if gate.reach != SAME_PROCESS)
    without = replace(loaded, protocol=msgspec.structs.replace(loaded.protocol, gates=gates))
    assert same_process_rule(without, request_of("smoke")) is None


@pytest.mark.parametrize("name", ["nano-behavior", "nano-completion", "nano-depth"])
def test_other_families_draw_nothing_again(name, options):
    """They have no such rule."""
    other = load_protocol(name)
    assert same_process_rule(other, make_request(other, "smoke", "smoke-1", options())) is None


def test_which_unit_is_drawn_again(loaded, request_of):
    """R0's, as the same source's unit of the rule's grid; another replicate's is nobody's."""
    request, rule = request_of("smoke"), loaded.protocol.same_process_replay
    keys = loaded.units("smoke", loaded.domains)
    again = {key: key_again(loaded, request, rule, key) for key in keys}
    assert [key for key, one in again.items() if one is not None] == [key for key in keys if key.replicate == "R0"]
    assert {one for one in again.values() if one is not None} == set(loaded.units(rule.grid, loaded.domains))


def test_a_run_that_leaves_a_domain_out_draws_no_unit_of_it_again(loaded, request_of):
    """A port over fewer domains: the rule's grid is cut as the run's is."""
    request = replace_request(request_of("smoke"), domains=("code", "math"))
    keys = loaded.units("smoke", loaded.domains)
    found = [key_again(loaded, request, loaded.protocol.same_process_replay, key) for key in keys]
    assert {one.domain for one in found if one is not None} == {"code", "math"}


def test_each_unit_is_drawn_again_right_after(loaded, drawing, tmp_path):
    """One process: R0's batch, the same batch again over the rule's grid, then R1's, which is drawn once."""
    engine, folder = drawing(), RunFolder(tmp_path / "smoke-1")
    produce(loaded, engine.request, folder)
    wanted = []
    for key in loaded.units("smoke", loaded.domains):
        wanted += [("smoke", key.name), ("smoke_again", key.name)][: 2 if key.replicate == "R0" else 1]
    assert engine.made == wanted


def test_the_replay_is_a_part_of_the_run(loaded, drawing, tmp_path):
    """It says what it is, has the run's environment, placement and gold, and exactly the rule's units."""
    engine, folder = drawing(), RunFolder(tmp_path / "smoke-1")
    produce(loaded, engine.request, folder)
    part = folder.part(SAME_PROCESS)
    spec, own = read_spec(part), read_spec(folder)
    assert (spec.run_id, spec.grid) == (f"smoke-1/{SAME_PROCESS}", "smoke_again")
    assert msgspec.structs.replace(spec, run_id=own.run_id, grid=own.grid) == own
    for name in ("environment.json", "placement.json", "gold.json"):
        assert part.file(name).read_bytes() == folder.file(name).read_bytes()
    assert tuple(read_units(part, loaded)) == loaded.units("smoke_again", loaded.domains)


def test_the_two_draws_are_one_processes_and_two_calls(loaded, drawing, tmp_path):
    """Each journal of the replay is of the process that landed the unit, and of a later call."""
    engine, folder = drawing(), RunFolder(tmp_path / "smoke-1")
    produce(loaded, engine.request, folder)
    first, second = read_units(folder, loaded), read_units(folder.part(SAME_PROCESS), loaded)
    for key, journal in second.items():
        before = first[key].observation
        assert journal.observation.process == before.process
        assert call_of(journal.observation) != call_of(before)
        assert journal.observation.finished_us >= before.finished_us
        assert journal.evidence.sampling.seeds == first[key].evidence.sampling.seeds


def test_a_formal_run_has_no_such_part(loaded, drawing, tmp_path):
    """Each of its units is drawn once."""
    engine, folder = drawing("formal"), RunFolder(tmp_path / "formal-1")
    produce(loaded, engine.request, folder)
    assert {grid for grid, _ in engine.made} == {"formal"}
    assert len(engine.made) == 64
    assert not folder.part(SAME_PROCESS).path.exists()


@pytest.mark.parametrize("kind", ["not_drawable", "foreign_draw", "non_finite", "out_of_memory"])
def test_a_replay_that_fails_is_its_units_failure(loaded, drawing, tmp_path, kind):
    """The run stops, and the failure has the decoder's word and the unit's name."""
    engine, folder = drawing(), RunFolder(tmp_path / "smoke-1")
    key = next(key for key in loaded.units("smoke", loaded.domains) if key.domain == "code")
    error = DecodeError("step 3, row 1", kind=kind, expected="a", found="b", todo="c")
    engine.planned["smoke_again", key.name] = error
    with pytest.raises(DecodeError, match="step 3, row 1"):
        produce(loaded, engine.request, folder)
    (failure,) = failures(folder)
    assert (failure.kind, failure.source_id, failure.replicate) == (kind, key.source_id, "R0")
    assert engine.made[-1] == ("smoke_again", key.name)


def test_a_part_of_another_run_is_not_continued(loaded, drawing, tmp_path):
    """A part that says that it is of another run stops the run before any draw."""
    engine, folder = drawing(), RunFolder(tmp_path / "smoke-1")
    rule = loaded.protocol.same_process_replay
    again_engine(replace(engine, request=replace_request(engine.request, run_id="smoke-0")), folder, rule)
    with pytest.raises(JournalError, match=r"same_process/spec.json: expected the run request of this run"):
        produce(loaded, engine.request, folder)
    assert engine.made == []


def work(loaded, request, folder, load, barrier, plan):
    """A worker: draws what it claims, from the moment at which all workers are ready. Ends by itself at a refusal."""
    engine = Drawing(loaded, request, process_of(load), pause_s=0.01, **plan)
    produce_module.open_engine = lambda *_: engine
    try:
        produce(loaded, request, folder, ready=lambda _: barrier.wait(TIMEOUT_S))
    except SessionError as error:
        folder.file(f"refused-{load}").write_text(str(error))
        raise SystemExit(1) from error


def run_workers(loaded, request, folder, plans):
    """Exit codes of as many workers as there are plans, started together."""
    folder.create()
    barrier = FORK.Barrier(len(plans))
    workers = [
        FORK.Process(target=work, args=(loaded, request, folder, f"load-{at}", barrier, plan))
        for at, plan in enumerate(plans)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(TIMEOUT_S)
    return [worker.exitcode for worker in workers]


def test_of_two_workers_each_draws_its_own_again(loaded, request_of, tmp_path):
    """No worker replays what the other drew, every R0 batch is drawn again once, and both had some."""
    folder = RunFolder(tmp_path / "smoke-1")
    assert run_workers(loaded, request_of("smoke"), folder, [{}, {}]) == [0, 0]
    first, second = read_units(folder, loaded), read_units(folder.part(SAME_PROCESS), loaded)
    assert tuple(second) == loaded.units("smoke_again", loaded.domains)
    for key, journal in second.items():
        assert journal.observation.process == first[key].observation.process
    assert {one.observation.process.model_load_id for one in first.values()} == {"load-0", "load-1"}
    assert {one.observation.process.model_load_id for one in second.values()} == {"load-0", "load-1"}


@pytest.mark.parametrize("killed_at", [6, 7], ids=["at a draw", "at a replay"])
def test_a_killed_smoke_starts_over(loaded, request_of, tmp_path, killed_at):
    """What it left is evidence of nothing whole: neither the run nor the part is assembled, and none is resumed."""
    folder, request = RunFolder(tmp_path / "smoke-1"), request_of("smoke")
    assert run_workers(loaded, request, folder, [{"killed_at": killed_at}]) == [-signal.SIGKILL]
    assert 0 < len(list(journals(folder))) < UNITS
    for one in (folder, folder.part(SAME_PROCESS)):
        with pytest.raises(JournalError, match=r"expected the journals of (32|16) units, found"):
            read_units(one, loaded)
    with pytest.raises(SessionError, match=r"expected all 32 units or none, found \d+ units of a run that ended"):
        require_resumable(loaded, folder, request)


@pytest.mark.parametrize("killed_at", range(3, 9))
def test_a_unit_that_landed_has_its_replay(loaded, request_of, tmp_path, killed_at):
    """Wherever the process is killed: whoever finds a unit finds what was drawn again of it."""
    folder = RunFolder(tmp_path / "smoke-1")
    run_workers(loaded, request_of("smoke"), folder, [{"killed_at": killed_at}])
    landed = {path.name for path in journals(folder) if path.stem.endswith("-R0")}
    assert landed <= {path.name for path in journals(folder.part(SAME_PROCESS))}


@pytest.mark.parametrize("grid", ["smoke", "smoke_again"])
def test_a_killed_workers_unit_ends_the_run(loaded, request_of, tmp_path, grid):
    """The other worker says that it died; it draws neither the unit nor its replay in the dead one's place."""
    folder, request = RunFolder(tmp_path / "smoke-1"), request_of("smoke")
    codes = run_workers(loaded, request, folder, [{}, {"killed_in": (grid, folder)}])
    assert codes == [1, -signal.SIGKILL]
    assert "none: the worker died" in folder.file("refused-load-0").read_text()
    with pytest.raises(JournalError, match="expected the journals of 32 units, found 31: missing"):
        read_units(folder, loaded)
