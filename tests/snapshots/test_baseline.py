"""Baselines: the frozen one by three digests, a port's own by its audit; every cell by identity or a refusal."""

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest
from pregate_support.mini import COMPLETION, MINI, copy_tree, make_completion_tree

from harness.canon import canonical_bytes, sha256_hex
from harness.errors import HarnessError, ProtocolError, SnapshotError
from harness.files import file_sha256
from harness.journal.assemble import read_run
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.snapshots import baseline
from harness.snapshots.baseline import baseline_of_port, frozen_baseline
from harness.snapshots.store import frozen_folder

replace = msgspec.structs.replace
RUN = Path("reports") / MINI / "formal-1"


@pytest.fixture(scope="session")
def completion_tree(formal_run, tmp_path_factory) -> Path:
    """A tree with an accepted behaviour run and a completion protocol that names it. Read only."""
    return make_completion_tree(formal_run, tmp_path_factory.mktemp("baseline") / "tree")


@pytest.fixture
def root(completion_tree, tmp_path) -> Path:
    """A copy to damage."""
    return copy_tree(completion_tree, tmp_path / "tree")


@pytest.fixture(scope="session")
def completion(completion_tree) -> LoadedProtocol:
    """The completion protocol."""
    return load_protocol(COMPLETION, Places(completion_tree))


@pytest.fixture(scope="session")
def keys(completion):
    """Its formal units."""
    return completion.units("formal", completion.domains)


def registering(loaded, **changes):
    """The protocol with another baseline registered."""
    return dataclasses.replace(
        loaded, protocol=replace(loaded.protocol, baseline=replace(loaded.protocol.baseline, **changes))
    )


def test_the_frozen_cells_are_the_runs(completion, keys, completion_tree):
    """Each cell of the accepted run by source, replicate and condition, in the new run's order."""
    found = frozen_baseline(completion, keys, Places(completion_tree))
    before = load_protocol(MINI, Places(completion_tree))
    run = read_run(RunFolder(completion_tree / RUN), before.protocol)
    cells = {(unit.source_id, unit.replicate, cell.condition): cell for unit in run.units for cell in unit.cells}
    wanted = [(key.source_id, key.replicate, one.id) for key in keys for one in completion.protocol.conditions]
    assert [(cell.source_id, cell.replicate, cell.condition) for cell in found.cells] == wanted
    for one in found.cells:
        cell = cells[one.source_id, one.replicate, one.condition]
        assert (one.prompt_sha256, one.generated_ids) == (cell.prompt_sha256, cell.generated_ids)
        assert (one.eos, one.truncated, one.length) == (cell.eos, cell.truncated, cell.length)
    assert (found.max_new_tokens, found.port) == (12, False)
    assert found.run_sha256 == sha256_hex((completion_tree / RUN / "run.json").read_bytes())
    assert found.environment_sha256 == run.environment_sha256


def test_the_project_has_its_frozen_baseline():
    """nano-completion: 128 cells of nano-behavior's accepted run, cut at 128 tokens; prompt hashes as the manifest."""
    loaded = load_protocol("nano-completion")
    keys = loaded.units("formal", loaded.domains)
    found = frozen_baseline(loaded, keys, Places(Path(__file__).parents[2]))
    assert (len(found.cells), found.max_new_tokens) == (128, 128)
    for cell in found.cells:
        assert cell.prompt_sha256 == loaded.source(cell.source_id).prompts[cell.condition].sha256
        assert cell.length <= 128


@pytest.mark.parametrize(
    ("name", "seeds", "cells"), [("nano-cross-source-sampling", 4, 64), ("nano-single-source-sampling", 8, 32)]
)
def test_several_seeds_are_held_against_one_greedy_cell(name, seeds, cells):
    """A sampling protocol's baseline has each source and condition once, greedy, in the grid's order."""
    loaded, tree = load_protocol(name), Places(Path(__file__).parents[2])
    keys = loaded.units("formal", loaded.domains)
    found = frozen_baseline(loaded, keys, tree)
    sources = list(dict.fromkeys(key.source_id for key in keys))
    assert len(keys) == seeds * len(sources)
    wanted = [(source, "greedy", one.id) for source in sources for one in loaded.protocol.conditions]
    assert [(cell.source_id, cell.replicate, cell.condition) for cell in found.cells] == wanted
    assert len(found.cells) == cells
    for cell in found.cells:
        assert cell.prompt_sha256 == loaded.source(cell.source_id).prompts[cell.condition].sha256


def test_what_a_sampling_baseline_lacks_is_counted_once():
    """Two seeds of a source that the baseline doesn't have: four cells are missing, not eight."""
    loaded = load_protocol("nano-cross-source-sampling")
    keys = loaded.units("smoke", loaded.domains)
    strangers = [dataclasses.replace(keys[0], source_id="other/0001", replicate=seed) for seed in ("R0", "R1")]
    with pytest.raises(
        SnapshotError, match=r"expected 68 cells, found 64; missing \[\('other/0001', 'greedy', 's0_eos'\)"
    ):
        frozen_baseline(loaded, [*keys, *strangers], Places(Path(__file__).parents[2]))


def test_a_sampling_baseline_of_several_replicates_is_refused(monkeypatch):
    """Which of them a seed should be held against, nobody registered."""
    loaded = load_protocol("nano-cross-source-sampling")
    before = load_protocol(loaded.protocol.baseline.protocol)
    grids = {name: replace(grid, replicates=("greedy", "other")) for name, grid in before.protocol.grids.items()}
    several = dataclasses.replace(before, protocol=replace(before.protocol, grids=grids))
    monkeypatch.setattr(baseline, "load_protocol", lambda *_: several)
    keys, tree = loaded.units("formal", loaded.domains), Places(Path(__file__).parents[2])
    with pytest.raises(
        ProtocolError, match=f"baseline {before.protocol.id}: expected one replicate a source, found greedy, other"
    ):
        frozen_baseline(loaded, keys, tree)


@pytest.mark.parametrize("name", ["index_sha256", "run_sha256", "protocol_digest"])
def test_another_registered_digest_is_refused(completion, keys, completion_tree, name):
    """Each of the three says by itself that this isn't the registered baseline."""
    other = registering(completion, **{name: "0" * 64})
    message = f"baseline of {COMPLETION}: {name}: expected {'0' * 64}, found [0-9a-f]{{64}}"
    with pytest.raises(SnapshotError, match=message):
        frozen_baseline(other, keys, Places(completion_tree))


def test_an_altered_index_is_refused(completion, keys, root):
    """One that was written anew with the same content but other bytes, too."""
    path = frozen_folder(MINI, Places(root)) / "index.json"
    path.write_bytes(json.dumps(json.loads(path.read_bytes())).encode())
    with pytest.raises(SnapshotError, match="index_sha256: expected"):
        frozen_baseline(completion, keys, Places(root))


def test_an_altered_snapshot_is_refused(completion, keys, root):
    """One token of one cell."""
    path = next(one for one in frozen_folder(MINI, Places(root)).glob("*.json") if one.name != "index.json")
    path.write_bytes(path.read_bytes().replace(b'"generated_ids": [', b'"generated_ids": [9, ', 1))
    with pytest.raises(SnapshotError, match=path.name):
        frozen_baseline(completion, keys, Places(root))


def test_a_missing_unit_is_refused(completion, keys, completion_tree):
    """A run over a source that the baseline doesn't have: how many cells, and the first that are missing."""
    stranger = dataclasses.replace(keys[0], source_id="other/0001")
    with pytest.raises(
        SnapshotError, match=r"expected 24 cells, found 16; missing \[\('other/0001', 'greedy', 's0_eos'\)"
    ):
        frozen_baseline(completion, [*keys, stranger], Places(completion_tree))


def test_a_missing_condition_is_refused(completion, keys, completion_tree):
    """Nor is a condition made up."""
    protocol = completion.protocol
    more = replace(protocol, conditions=(*protocol.conditions, replace(protocol.conditions[0], id="s2_eos")))
    with pytest.raises(SnapshotError, match=r"expected 18 cells, found 16; missing .*s2_eos"):
        frozen_baseline(dataclasses.replace(completion, protocol=more), keys, Places(completion_tree))


def test_an_owed_baseline_says_why():
    """What it waits for, and that a port names its own."""
    loaded = load_protocol("deepseek-completion")
    with pytest.raises(
        ProtocolError, match=r"deepseek-completion: baseline: .*unfrozen \(no formal run.*--baseline RUN"
    ):
        frozen_baseline(loaded, (), Places(Path(__file__).parents[2]))


def test_no_frozen_results_are_an_error(completion, keys, tmp_path, completion_tree):
    """A tree in which nothing was accepted."""
    copy_tree(completion_tree, tmp_path / "tree")
    folder = frozen_folder(MINI, Places(tmp_path / "tree"))
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(HarnessError, match=r"index.json"):
        frozen_baseline(completion, keys, Places(tmp_path / "tree"))


def test_a_behaviour_protocol_has_no_baseline(loaded, completion_tree):
    """Asking for one is misuse."""
    with pytest.raises(RuntimeError, match="registers no baseline"):
        frozen_baseline(loaded, (), Places(completion_tree))


def sign(run: Path, **changes) -> None:
    """Change fields of an audit record and sign it again."""
    data = json.dumps(json.loads((run / "audit.json").read_bytes()) | changes).encode()
    (run / "audit.json").write_bytes(data)
    (run / "audit.json.sha256").write_text(f"{sha256_hex(data)}  audit.json\n")


@pytest.fixture
def port(root) -> RunFolder:
    """The behaviour run as a passed port: its request, run record and audit say so, and all digests fit."""
    run = root / RUN
    for name in ("spec.json", "run.json"):
        (run / name).write_bytes(canonical_bytes(json.loads((run / name).read_bytes()) | {"port": True}))
    audit = json.loads((run / "audit.json").read_bytes())
    files = audit["files"] | {one: file_sha256(run / one, what="file") for one in ("spec.json", "run.json")}
    sign(run, port=True, files=files, run_sha256=files["run.json"])
    return RunFolder(run)


def test_a_ports_own_baseline(completion, keys, root, port):
    """The run's cells, named by the run's digest, as a port's."""
    found = baseline_of_port(completion, keys, port, Places(root))
    frozen = frozen_baseline(completion, keys, Places(root))
    assert found.cells == frozen.cells
    assert (found.port, found.max_new_tokens) == (True, 12)
    assert found.run_sha256 == file_sha256(port.file("run.json"), what="run")
    assert found.environment_sha256 == frozen.environment_sha256


FAULTS = {
    "a registered run": ({"port": False}, "port: expected True, found False"),
    "a run that didn't pass": ({"passed": False}, "passed: expected True, found False"),
    "a smoke run": ({"tier": "smoke"}, "tier: expected formal, found smoke"),
    "another protocol": ({"protocol": "other"}, f"protocol: expected {MINI}, found other"),
    "another revision": ({"protocol_digest": "0" * 64}, "protocol digest: expected"),
    "another run": ({"run_sha256": "0" * 64}, "run.json: expected"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_is_no_ports_baseline_is_refused(completion, keys, root, port, fault):
    """Each reason alone, by name, with what to name instead."""
    changes, message = FAULTS[fault]
    sign(port.path, **changes)
    with pytest.raises(SnapshotError, match=f"--baseline .*: {message}.*Name a passed formal port of {MINI}"):
        baseline_of_port(completion, keys, port, Places(root))


def test_an_altered_run_is_refused(completion, keys, root, port):
    """A file of the run that was changed after its audit is named."""
    path = next((port.path / "journal").glob("*.json"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(SnapshotError, match=rf"files altered after the audit: .*{path.name}"):
        baseline_of_port(completion, keys, port, Places(root))


def test_an_audit_with_another_digest_is_refused(completion, keys, root, port):
    """The detached digest covers the audit record."""
    path = port.file("audit.json")
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(SnapshotError, match=r"audit.json: expected [0-9a-f]{64}"):
        baseline_of_port(completion, keys, port, Places(root))


def test_a_doubled_cell_is_refused(completion, keys, root, port):
    """A baseline that has a cell twice says nothing sure of it."""
    content = json.loads(port.file("run.json").read_bytes())
    content["units"].append(content["units"][0])
    port.file("run.json").write_bytes(canonical_bytes(content))
    digest = file_sha256(port.file("run.json"), what="run")
    files = json.loads(port.file("audit.json").read_bytes())["files"] | {"run.json": digest}
    sign(port.path, files=files, run_sha256=digest)
    with pytest.raises(SnapshotError, match="expected each cell once, found 8 doubled"):
        baseline_of_port(completion, keys, port, Places(root))


def test_no_run_is_refused(completion, keys, root, tmp_path):
    """A folder without an audit record."""
    with pytest.raises(HarnessError, match="expected a readable audit record"):
        baseline_of_port(completion, keys, RunFolder(tmp_path), Places(root))
