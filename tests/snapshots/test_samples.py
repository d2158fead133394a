"""What is frozen of sampled units: cells with their run seed, verdicts that cells share, and nothing of a machine."""

import json
import re
import shutil

import msgspec
import pytest
from pregate_support.books import Said
from pregate_support.sampled_runs import FENCED, drawn_for, land_samples, sampled_builder
from pregate_support.traces import audited, environment_of

from harness.checks.frozen import SnapshotEvidence, frozen_snapshots, frozen_verdicts
from harness.errors import SnapshotError
from harness.evidence import RunEvidence
from harness.journal.folder import RunFolder, read_journal, write_journal, write_record
from harness.ledgers.close import close_run
from harness.ledgers.sampling import sampled_ledger
from harness.places import Places, places
from harness.protocols.grids import RowKey
from harness.protocols.load import load_protocol
from harness.records.run import StateHash
from harness.records.sampling import SampledJournal
from harness.snapshots.content import snapshot_bytes, unit_snapshot, verdict_snapshot
from harness.snapshots.store import accept, frozen_folder, frozen_names, read_frozen, verdicts_name

replace = msgspec.structs.replace
SAMPLES = "nano-cross-source-sampling"
TWO = "```python\ndef f(n):\n    return n + 2\n```"


@pytest.fixture(scope="module")
def loaded():
    """The nano protocol of Round 07's shape."""
    return load_protocol(SAMPLES)


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A tree in which a hand-made formal run was accepted, and that run. Read only."""
    project, tree = places(), Places(tmp_path_factory.mktemp("accepted") / "tree")
    for name in ("nano-behavior", SAMPLES):
        shutil.copytree(project.protocols / name, tree.protocols / name)
    (tree.models / "nano").mkdir(parents=True)
    shutil.copyfile(project.models / "nano" / "profile.toml", tree.models / "nano" / "profile.toml")
    own = load_protocol(SAMPLES, tree)
    folder = land_samples(tree.reports / SAMPLES / "formal-1", own)
    close_run(folder, own)
    audited(folder, own)
    return tree, folder, accept(folder.path, tree)


@pytest.fixture(scope="module")
def again(loaded, tmp_path_factory):
    """The same cells, drawn by another model load and executed in other containers. Read only."""
    folder = land_samples(tmp_path_factory.mktemp("again") / "formal-2", loaded, made_by="another load")
    close_run(folder, loaded)
    return folder


@pytest.fixture
def damaged(again, tmp_path):
    """A copy of it without ledger and records, to be changed and closed again."""
    shutil.copytree(again.path, tmp_path / "formal-2")
    for name in ("run.json", "ledger.json", "statistics.json"):
        (tmp_path / "formal-2" / name).unlink()
    return RunFolder(tmp_path / "formal-2")


@pytest.fixture(scope="module")
def code(loaded):
    """The first code batch: two conditions say one program, one says another, one says nothing."""
    key = next(key for key in loaded.units("formal", loaded.domains) if key.domain == "code")
    builder = sampled_builder(loaded).with_grid("formal", per_domain=1, replicates=(key.replicate,))
    said = {"*": Said(FENCED), "s0_period": Said(TWO), "s1_period": Said("", eos=False)}
    unit = builder.drawn("code", 0, said, replicate=key.replicate)
    run = builder.sampled_run((unit,))
    made = builder.verdicts(run, {"return n + 2": "assertion_failed"})
    return unit, sampled_ledger(builder.protocol, run, made), made


def row(loaded, domain, replicate="R0"):
    """A row of the first source of a domain."""
    return RowKey(
        next(
            key for key in loaded.units("formal", loaded.domains) if (key.domain, key.replicate) == (domain, replicate)
        ),
        "",
    )


def held(loaded, folder, accepted, check, key):
    """What a check finds of a run beside the accepted one."""
    return check(SnapshotEvidence(RunEvidence(loaded, folder), read_frozen(SAMPLES, accepted[0])), key)


def test_a_snapshot_has_the_run_seed(code):
    """The seed that drew the batch, and of each cell tokens, stops and accounts, without a baseline."""
    unit, book, _ = code
    content = unit_snapshot(unit, book)
    assert content["run_seed"] == unit.sampling.seeds.run
    assert content["replicate"] == unit.replicate
    assert [cell["condition"] for cell in content["cells"]] == ["s0_eos", "s1_eos", "s0_period", "s1_period"]
    assert {"stop", "numeric", "program"} <= set(content["cells"][0])
    assert not {"baseline", "verdict", "outcome", "completion", "terminal"} & set(content["cells"][0])


def test_a_snapshot_has_no_generator_state_and_no_time(code):
    """Neither a state nor its hash, nor how many draws led from one to the other; no path, host, process."""
    unit, book, _ = code
    text = snapshot_bytes(unit_snapshot(unit, book)).decode("ascii")
    assert not re.search(r"rng|state_|torch|numpy|python_|wall|_us\b|_ns\b|\bpid|host|/tmp|environment|placement", text)
    for states in (unit.rng_before, unit.rng_after):
        hashes = [one.sha256 for one in msgspec.structs.astuple(states) if isinstance(one, StateHash)]
        assert hashes
        assert not [one for one in hashes if one in text]
    assert not re.search(r"processors|drawable|columns", text)


@pytest.mark.parametrize("name", ["rng_before", "rng_after", "environment_sha256", "placement_sha256"])
def test_where_a_batch_was_drawn_is_not_in_it(code, name):
    """Another machine's states, environment or placement with the same cells."""
    unit, book, _ = code
    value = {"rng_before": unit.rng_after, "rng_after": unit.rng_before}.get(name, "x")
    assert unit_snapshot(replace(unit, **{name: value}), book) == unit_snapshot(unit, book)


def test_another_seed_is_another_snapshot(code):
    """Even where it drew the same tokens."""
    unit, book, _ = code
    seeds = replace(unit.sampling.seeds, run="0" * 16)
    other = replace(unit, sampling=replace(unit.sampling, seeds=seeds))
    assert snapshot_bytes(unit_snapshot(other, book)) != snapshot_bytes(unit_snapshot(unit, book))


def test_cells_that_share_an_execution_each_have_its_verdict(code):
    """Two executions for three programs in four cells: every cell has a verdict or the reason why it has none."""
    unit, book, made = code
    cells = {one["condition"]: one["verdict"] for one in verdict_snapshot(unit, book, made)["cells"]}
    assert len(made) == 2
    assert cells["s0_eos"] == cells["s1_eos"]
    assert (cells["s0_eos"]["outcome"], cells["s0_period"]["outcome"]) == ("passed", "assertion_failed")
    assert cells["s0_eos"]["candidate_sha256"] != cells["s0_period"]["candidate_sha256"]
    assert cells["s0_eos"]["tests_sha256"] == cells["s0_period"]["tests_sha256"]
    assert cells["s1_period"] == {"state": "not_executed", "reason": "extract_failed"}


@pytest.fixture(scope="module")
def unfenced(loaded):
    """A batch whose programs passed, cut at the budget without a fence; its books with its verdicts and without."""
    key = next(key for key in loaded.units("formal", loaded.domains) if key.domain == "code")
    builder = sampled_builder(loaded).with_grid("formal", per_domain=1, replicates=(key.replicate,))
    unit = builder.drawn("code", 0, {"*": Said(FENCED.strip("`").removeprefix("python\n"), eos=False)}, replicate="R0")
    run = builder.sampled_run((unit,))
    made = builder.verdicts(run, {})
    replayed = builder.with_grid("replay", per_domain=1, replicates=(key.replicate,))
    executed = sampled_ledger(builder.protocol, run, made)
    return unit, executed, sampled_ledger(replayed.protocol, replace(run, grid="replay"), {}), made


def test_tests_that_passed_are_a_terminal_beside_the_verdict_alone(unfenced):
    """R07 8.2: without a fence only the tests end a program, and a replay that runs none has the frozen cells."""
    unit, executed, replayed, made = unfenced
    assert [row.terminal.reached for row in executed.cells] == [True] * 4
    assert [row.terminal.reached for row in replayed.cells] == [False] * 4
    assert unit_snapshot(unit, executed) == unit_snapshot(unit, replayed)
    verdicts = [(one["terminal"], one["completion"]) for one in verdict_snapshot(unit, executed, made)["cells"]]
    reached = {"state": "judged", "explicit": False, "reached": True}
    assert verdicts == [(reached, "TASK_TERMINAL_BEFORE_EOS")] * 4


def test_a_sampled_run_is_accepted(loaded, accepted):
    """One file a batch, and one more for each batch of programs; the index names run and origins."""
    tree, folder, index = accepted
    names = frozen_names(loaded)
    assert len(names) == 64 + 16 == len(index.units)
    assert sorted(index.units) == names
    assert index.run_sha256 == RunEvidence(loaded, folder).run_sha256
    assert len(index.origins) == 1 + 4  # one model load, four containers for 64 cells
    frozen = json.loads((frozen_folder(SAMPLES, tree) / f"{row(loaded, 'math').unit.name}.json").read_bytes())
    assert (
        frozen["run_seed"]
        == read_journal(folder.journal(row(loaded, "math").unit), SampledJournal).evidence.sampling.seeds.run
    )


@pytest.mark.parametrize("domain", ["english", "chinese", "code", "math"])
def test_a_run_made_apart_has_the_frozen_cells(loaded, again, accepted, domain):
    """Another load, other containers, the same cells and verdicts."""
    for seed in ("R0", "R3"):
        assert held(loaded, again, accepted, frozen_snapshots, row(loaded, domain, seed)) == ()
    if domain == "code":
        assert held(loaded, again, accepted, frozen_verdicts, row(loaded, domain, "R2")) == ()


def test_the_frozen_run_proves_nothing_of_itself(loaded, accepted):
    """Its own model load, its own containers."""
    for check in (frozen_snapshots, frozen_verdicts):
        (found,) = held(loaded, accepted[1], accepted, check, row(loaded, "code"))
        assert found.endswith("own: nothing to compare")


def test_a_shared_container_is_the_frozen_runs_own(loaded, damaged, accepted):
    """One execution that was copied, whichever batch it is looked at from."""
    name = min(path.name for path in (accepted[1].path / "sandbox").glob("*.json"))
    shutil.copyfile(accepted[1].path / "sandbox" / name, damaged.path / "sandbox" / name)
    close_run(damaged, loaded)
    (found,) = held(loaded, damaged, accepted, frozen_verdicts, row(loaded, "code", "R3"))
    assert "expected another run's" in found


def test_another_token_is_found_in_its_batch_alone(loaded, damaged, accepted):
    """Batch and condition are named; the other seeds of the source are as frozen."""
    key = row(loaded, "english", "R2").unit
    journal = read_journal(damaged.journal(key), SampledJournal)
    cell = sampled_builder(loaded).cell(loaded.protocol.conditions[2], Said("other", eos=False))
    cells = (*journal.evidence.cells[:2], cell, journal.evidence.cells[3])
    write_journal(damaged, key, replace(journal.evidence, cells=cells), journal.observation)
    close_run(damaged, loaded)
    (found,) = held(loaded, damaged, accepted, frozen_snapshots, row(loaded, "english", "R2"))
    assert found.startswith(f"{key.source_id} R2 s0_period snapshot: expected ")
    assert held(loaded, damaged, accepted, frozen_snapshots, row(loaded, "english", "R1")) == ()


def test_another_verdict_is_found_in_every_batch_that_shares_it(loaded, damaged, accepted):
    """One execution, four seeds of one task; the other tasks are as frozen."""
    builder = sampled_builder(loaded)
    run = builder.sampled_run(
        tuple(
            drawn_for(loaded, key, "formal", environment_of(loaded)) for key in loaded.units("formal", loaded.domains)
        )
    )
    made = builder.verdicts(run, {"*": "timeout"})
    name = min(made)
    write_record(damaged.path / "sandbox" / f"{name}.json", made[name])
    close_run(damaged, loaded)
    units = [key for key in loaded.units("formal", loaded.domains) if key.domain == "code"]
    red = {
        (key.index, key.replicate) for key in units if held(loaded, damaged, accepted, frozen_verdicts, RowKey(key, ""))
    }
    assert red == {(0, seed) for seed in ("R0", "R1", "R2", "R3")}


@pytest.mark.parametrize("name", ["run.json", "ledger.json", "statistics.json"])
def test_a_run_whose_records_do_not_follow_is_not_accepted(loaded, again, accepted, tmp_path, name):
    """Each record is made again from journals and verdicts; an audit over other bytes isn't enough."""
    shutil.copytree(again.path, tmp_path / "formal-2")
    folder = RunFolder(tmp_path / "formal-2")
    content = json.loads(folder.file(name).read_bytes())
    write_record(folder.file(name), content | {"result_name": "another name"})
    audited(folder, loaded)
    with pytest.raises(SnapshotError, match=rf"found .*{name}: [0-9a-f]{{64}}"):
        accept(folder.path, accepted[0])


def test_a_smoke_run_is_not_accepted(loaded, accepted, tmp_path):
    """Only a formal run is frozen."""
    folder = land_samples(tmp_path / "smoke-1", loaded, grid="smoke")
    close_run(folder, loaded)
    audited(folder, loaded)
    with pytest.raises(SnapshotError, match="expected a formal run, found a smoke run"):
        accept(folder.path, accepted[0])


def test_verdicts_of_a_batch_have_a_file_of_their_own(loaded):
    """Sixteen of the 64 batches are programs."""
    units = loaded.units("formal", loaded.domains)
    named = [verdicts_name(key) for key in units if key.domain == "code"]
    assert len(named) == 16
    assert set(named) <= set(frozen_names(loaded))
