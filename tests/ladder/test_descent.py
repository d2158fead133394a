"""Going down the ladder: memory that ran out ends the attempt, is recorded, and the next placement proves itself."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import msgspec
import pytest
from pregate_support.ladders import LADDER
from pregate_support.memory import MESSAGE

from harness.canon import digest
from harness.checks.attempts import placement_attempts
from harness.errors import DecodeError, JournalError, PlacementError, SessionError
from harness.journal.assemble import read_placement
from harness.journal.attempts import attempt_folder, attempts_of, check_folder
from harness.journal.folder import journals, read_journal, write_record
from harness.protocols.grids import RowKey
from harness.records.attempts import NextPlacement, NoPlacement, NotGenerated, RoundedRequest, WhileLoading
from harness.records.run import Journal
from harness.run import descent as descent_module
from harness.run import engine as engine_module
from harness.run.ladder import effective_request, generate_down_the_ladder, has_ladder

WHOLE = RowKey(None, "whole")


def test_the_whole_grid_is_made_again_one_placement_down(stepped):
    """Every unit of the run is of the new placement; none of the two that had landed is reused."""
    placement = read_placement(stepped.folder)
    aside = attempt_folder(stepped.folder, 1, "nano-resident")
    units = [read_journal(path, Journal) for path in journals(stepped.folder)]
    before = {read_journal(path, Journal).observation.process.model_load_id for path in journals(aside)}
    assert placement.id == "nano-disk"
    assert len(units) == len(stepped.loaded.units("formal", stepped.loaded.domains)) == 4
    assert {unit.evidence.placement_sha256 for unit in units} == {digest(placement)}
    assert not before & {unit.observation.process.model_load_id for unit in units}


def test_the_failure_is_recorded_as_the_allocator_said_it(stepped):
    """Its words without a number made of them, unit, placement with its map and bytes, peaks, process."""
    (attempt,) = attempts_of(stepped.folder)
    failure = attempt.out_of_memory
    third = stepped.loaded.units("formal", stepped.loaded.domains)[2]
    assert (attempt.number, attempt.placement, attempt.units_landed) == (1, "nano-resident", 2)
    assert attempt.next == NextPlacement(id="nano-disk")
    assert failure.requested == RoundedRequest(words="400.00 MiB")
    assert failure.message == MESSAGE
    assert (failure.stage.source_id, failure.stage.placement.device_map) == (third.source_id, {"": "cpu"})
    assert failure.stage.placement.parameter_bytes["cpu"] > 0
    assert failure.memory_bytes["peak_rss"] >= failure.memory_bytes["rss"] // 2 > 0
    assert failure.stage.process.pid == os.getpid()


def test_the_attempts_files_are_kept_and_are_no_result(stepped):
    """Two journals, what their process noted, the failure record and the facts of the attempt, without a run.json."""
    aside = attempt_folder(stepped.folder, 1, "nano-resident")
    names = {path.name for path in aside.path.iterdir()}
    assert names == {
        "spec.json", "environment.json", "placement.json", "gold.json", "journal", "workers", "failures", "oom.json",
    }  # fmt: skip
    assert len(list(journals(aside))) == 2
    assert not stepped.folder.file("oom.json").exists()
    assert not (stepped.folder.path / "failures").exists()


def test_the_next_placement_gave_the_last_smokes_cells(stepped):
    """32 cells in the registered grids, 16 here, on the protocol's four fields, under two maps, by a fresh process."""
    (attempt,) = attempts_of(stepped.folder)
    (check,) = attempt.checks
    rule = stepped.loaded.protocol.placement_equivalence
    part = check_folder(stepped.folder, 1, "nano-disk")
    assert (check.placement, check.passed) == ("nano-disk", True)
    assert (check.result.equal, check.result.of, check.result.fields) == (16, 16, rule.fields)
    assert check.result.two_maps
    assert {read_journal(path, Journal).observation.process.pid for path in journals(part)}.isdisjoint({os.getpid()})


def test_the_gate_passes_on_a_run_that_went_down(stepped):
    """Nothing is wrong with a descent that is on record."""
    assert placement_attempts(stepped.evidence, WHOLE) == ()


def test_a_run_that_went_down_is_verified_and_not_made_again(stepped, monkeypatch):
    """A later session finds it complete under the placement at which it arrived."""
    monkeypatch.setattr(engine_module, "load_model", None)
    assert effective_request(stepped.loaded, stepped.request(), stepped.folder).placement.id == "nano-disk"
    stepped.generate()
    assert len(attempts_of(stepped.folder)) == 1


@pytest.mark.usefixtures("checked")
def test_the_first_model_is_gone_before_another_is_loaded(fresh, out_of_memory_at, monkeypatch):
    """Also out of the frames of the error that ended its attempt."""
    out_of_memory_at("nano-resident:1")
    seen, load, run_apart = [], engine_module.load_model, descent_module.run_apart

    def watched(*arguments):
        loaded = load(*arguments)
        seen.append(weakref.ref(loaded.model))
        return loaded

    def apart(*arguments, **more):
        gc.collect()
        assert [ref() for ref in seen] == [None]
        return run_apart(*arguments, **more)

    monkeypatch.setattr(engine_module, "load_model", watched)
    monkeypatch.setattr(descent_module, "run_apart", apart)
    fresh.generate()
    assert len(seen) == 2


def test_where_no_placement_is_left_everything_tried_is_listed(fresh, out_of_memory_at):
    """The check ran out too, while it loaded: on record with its size, and the run has no result."""
    out_of_memory_at("nano-resident:3,nano-disk:load")
    with pytest.raises(PlacementError) as caught:
        fresh.generate()
    (attempt,) = attempts_of(fresh.folder)
    (check,) = attempt.checks
    assert isinstance(attempt.next, NoPlacement)
    assert isinstance(check.result, NotGenerated)
    assert isinstance(check.result.out_of_memory.stage, WhileLoading)
    assert not check.passed
    assert list(journals(fresh.folder)) == []
    assert not fresh.folder.file("run.json").exists()
    for words in (
        "nano-resident ran out of memory in",
        "asked for 400.00 MiB after 2 units",
        "check: nano-disk ran out of memory in its load asked for 400.00 MiB",
        "none of nano-disk passed the placement gate",
    ):
        assert words in str(caught.value)


def test_a_run_without_a_placement_left_stays_ended(fresh, out_of_memory_at, monkeypatch):
    """A second session says the same and loads nothing; the gate is red."""
    out_of_memory_at("nano-disk:1")
    for _ in range(2):
        with pytest.raises(PlacementError, match="nano-disk is the last of the ladder"):
            fresh.generate("nano-disk")
        monkeypatch.setattr(engine_module, "load_model", None)
    assert [one.checks for one in attempts_of(fresh.folder)] == [()]


@pytest.mark.usefixtures("checked")
def test_memory_that_runs_out_while_loading_ends_the_attempt_too(fresh, out_of_memory_at):
    """There is no map to record then; the run goes down all the same."""
    out_of_memory_at("nano-resident:load")
    fresh.generate()
    (attempt,) = attempts_of(fresh.folder)
    assert isinstance(attempt.out_of_memory.stage, WhileLoading)
    assert (attempt.units_landed, attempt.next) == (0, NextPlacement(id="nano-disk"))
    assert placement_attempts(fresh.evidence, WHOLE) == ()


@pytest.mark.usefixtures("checked")
def test_a_placement_with_other_tokens_is_not_taken(fresh, out_of_memory_at):
    """One cell of the last smoke differs: 15 of 16, no placement left, no second try at the grid."""
    out_of_memory_at("nano-resident:3")
    path = fresh.smoke.file("run.json")
    run = json.loads(path.read_bytes())
    run["units"][0]["cells"][3]["generated_ids"][2] += 1
    path.write_bytes(json.dumps(run).encode())
    with pytest.raises(PlacementError, match="check: nano-disk gave 15/16 cells of the last smoke"):
        fresh.generate()
    assert list(journals(fresh.folder)) == []


@pytest.mark.usefixtures("checked")
def test_a_smoke_under_the_same_map_proves_nothing(fresh, out_of_memory_at, monkeypatch):
    """The last smoke was made under the placement below already: equal cells aren't two placements."""
    out_of_memory_at("nano-resident:3")
    run_apart = descent_module.run_apart

    def apart(request, part, **more):
        report = run_apart(request, part, **more)
        placed = json.loads(part.file("placement.json").read_bytes())
        for name in ("placement.json", "run.json"):
            path = fresh.smoke.file(name)
            content = json.loads(path.read_bytes())
            path.write_bytes(
                json.dumps(placed if name == "placement.json" else content | {"placement": placed}).encode()
            )
        return report

    monkeypatch.setattr(descent_module, "run_apart", apart)
    with pytest.raises(PlacementError, match="16/16 cells of the last smoke, under the map of that smoke"):
        fresh.generate()


def test_another_failure_goes_down_no_ladder(fresh, monkeypatch):
    """It is the run's own: raised as it is, nothing moved, nothing recorded."""

    def refuse(*_, **__):
        raise DecodeError("step 1, row 0", kind="non_finite", expected="a", found="b", todo="c")

    monkeypatch.setattr(engine_module, "decode_greedy", refuse)
    with pytest.raises(DecodeError, match="step 1, row 0"):
        fresh.generate()
    assert attempts_of(fresh.folder) == ()
    assert not (fresh.folder.path / "attempts").exists()
    assert not fresh.folder.file("oom.json").exists()


def test_a_check_that_cannot_be_made_is_no_verdict(fresh, out_of_memory_at, monkeypatch):
    """The error goes on; the record holds the failure, and the run doesn't go on later."""
    out_of_memory_at("nano-resident:3")

    def broken(*_, **__):
        raise JournalError("part", expected="1 child processes that return 0", found="exit codes [1]", todo="c")

    monkeypatch.setattr(descent_module, "run_apart", broken)
    with pytest.raises(JournalError, match="exit codes"):
        fresh.generate()
    (attempt,) = attempts_of(fresh.folder)
    assert (attempt.checks, attempt.next) == ((), NoPlacement(reason="a check couldn't be made (JournalError)"))
    with pytest.raises(PlacementError, match="a check couldn't be made"):
        fresh.generate()


def test_a_step_that_was_killed_is_not_completed(fresh, monkeypatch):
    """Files were moved aside and nothing was recorded: the run refuses before it loads anything."""
    aside = attempt_folder(fresh.folder, 1, "nano-resident")
    aside.path.mkdir(parents=True)
    monkeypatch.setattr(engine_module, "load_model", None)
    with pytest.raises(SessionError, match=r"found \['01-nano-resident'\]: a step down the ladder was interrupted"):
        fresh.generate()


@pytest.mark.usefixtures("checked")
def test_memory_that_ran_out_before_a_kill_is_still_an_attempt(fresh, out_of_memory_at, monkeypatch):
    """Only oom.json was left: the next session steps down, without a unit under the old placement."""
    out_of_memory_at("nano-resident:1")
    with monkeypatch.context() as patch:
        patch.setattr("harness.run.ladder.step_down", _killed)
        with pytest.raises(KeyboardInterrupt):
            fresh.generate()
    assert fresh.folder.file("oom.json").exists()
    monkeypatch.delenv("OOM_AT")
    fresh.generate()
    assert [one.units_landed for one in attempts_of(fresh.folder)] == [0]
    assert read_placement(fresh.folder).id == "nano-disk"


def _killed(descent):
    raise KeyboardInterrupt


def test_two_processes_go_down_together(fresh, tmp_path):
    """One's second unit is refused, or the other's: one attempt is recorded, all units are of the next placement."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from harness.journal.folder import RunFolder\n"
        "from harness.protocols.load import load_protocol\n"
        "from harness.run.child import read_child_request\n"
        "from harness.run.ladder import Ground, generate_down_the_ladder\n"
        "import together\n"
        "run, smoke, asked = (Path(one) for one in sys.argv[2:])\n"
        "ground = Ground(smoke=RunFolder(smoke), close=together.close_part)\n"
        "request = read_child_request(asked).request\n"
        f"generate_down_the_ladder(load_protocol({LADDER!r}), request, RunFolder(run), ground)\n"
    )
    _write_together(tmp_path)
    asked = tmp_path / "asked.json"
    write_record(asked, {"request": fresh.request(), "forbidden": (), "workers": 1})
    command = [sys.executable, "-c", program, str(tmp_path), str(fresh.folder.path), str(fresh.smoke.path), str(asked)]
    environment = os.environ | {"OOM_AT": "nano-resident:2", "HARNESS_ROOT": str(fresh.tree)}
    workers = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    ends = [(worker.communicate(timeout=600)[1].decode()[-2000:], worker.returncode) for worker in workers]
    assert [code for _, code in ends] == [0, 0], ends
    (attempt,) = attempts_of(fresh.folder)
    placement = digest(read_placement(fresh.folder))
    assert attempt.next == NextPlacement(id="nano-disk")
    assert {read_journal(path, Journal).evidence.placement_sha256 for path in journals(fresh.folder)} == {placement}
    assert len(list(journals(fresh.folder))) == 4


def _write_together(folder):
    """`together.close_part` for a process that has no pytest: this project's tests/support as a package."""
    support = str(Path(__file__).parents[1] / "support")
    (folder / "together.py").write_text(
        "import importlib, importlib.util, sys\n"
        "spec = importlib.util.spec_from_loader('pregate_support', None, is_package=True)\n"
        "package = importlib.util.module_from_spec(spec)\n"
        f"package.__path__ = [{support!r}]\n"
        "sys.modules['pregate_support'] = package\n"
        "close_part = importlib.import_module('pregate_support.ladders').close_part\n"
    )


def test_only_the_tier_that_is_judged_has_a_ladder(fresh):
    """The protocol says so by its gate; a smoke run that runs out of memory fails."""
    assert [has_ladder(fresh.loaded, tier) for tier in ("smoke", "formal", "replay")] == [False, True, False]
    with pytest.raises(RuntimeError, match="no ladder in tier smoke"):
        generate_down_the_ladder(fresh.loaded, fresh.request("smoke"), fresh.folder, None)


def test_a_run_is_judged_under_a_placement_that_it_was_at(stepped):
    """Asked for by its first or by its last placement it is the same run; by a stranger it is refused."""
    loaded, folder = stepped.loaded, stepped.folder
    assert effective_request(loaded, stepped.request(placement="nano-disk"), folder).placement.id == "nano-disk"
    stranger = msgspec.structs.replace(stepped.request().placement, id="port")
    asked = msgspec.structs.replace(stepped.request(), placement=stranger)
    with pytest.raises(JournalError, match="expected a run asked for under placement nano-resident, found port"):
        effective_request(loaded, asked, folder)
