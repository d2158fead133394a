"""The generation run that a trace is joined to: frozen, or a port's own; with its checkpoint and its source texts."""

import dataclasses
import json

import msgspec
import pytest
from pregate_support.books import Builder, Said
from pregate_support.traces import audited, environment_of, protocol_tree

from harness.canon import digest, sha256_hex
from harness.errors import ProtocolError, SnapshotError
from harness.files import file_sha256
from harness.journal.folder import RunFolder, write_record
from harness.places import places
from harness.protocols.load import load_protocol
from harness.records.base import Frozen
from harness.records.depth import TraceBaseline
from harness.records.protocol import OwedBaseline
from harness.records.run import Baseline, Deviation, RunSpec
from harness.snapshots import baseline as module
from harness.snapshots.baseline import baseline_of_port, frozen_baseline

replace = msgspec.structs.replace
PORT = (Deviation(field="software.torch", registered="1", actual="2"),)


@pytest.fixture(scope="module")
def depth():
    """The nano depth protocol."""
    return load_protocol("nano-depth")


@pytest.fixture(scope="module")
def behavior():
    """The protocol of its baseline."""
    return load_protocol("nano-behavior")


@pytest.fixture(scope="module")
def keys(depth):
    """Its formal units."""
    return depth.units("formal", depth.domains)


@pytest.fixture(scope="module")
def frozen(depth, keys):
    """The baseline from the project's frozen results."""
    return frozen_baseline(depth, keys, places())


def test_the_frozen_baseline_is_a_traces(frozen, depth, behavior):
    """128 cells of the accepted greedy run by its three digests, checkpoint and texts among them."""
    assert type(frozen) is TraceBaseline
    registered = depth.protocol.baseline
    assert (frozen.protocol, frozen.protocol_digest) == ("nano-behavior", behavior.digest)
    assert frozen.run_sha256 == registered.run_sha256
    assert (frozen.port, frozen.max_new_tokens, len(frozen.cells)) == (False, 128, 128)
    index = json.loads((places().snapshots / "nano-behavior" / "formal" / "index.json").read_bytes())
    assert frozen.environment_sha256 == index["environment_sha256"]


def test_its_cells_stand_in_the_traces_order(frozen, depth, keys):
    """Source by source, condition by condition; the trace's replicate is forward, the run's is greedy."""
    wanted = [(key.source_id, "greedy", one.id) for key in keys for one in depth.protocol.conditions]
    assert [(one.source_id, one.replicate, one.condition) for one in frozen.cells] == wanted
    assert {key.replicate for key in keys} == {"forward"}


def test_its_prompts_are_the_manifests(frozen, depth):
    """What the join compares is the same already in the two protocols."""
    for cell in frozen.cells:
        assert cell.prompt_sha256 == depth.source(cell.source_id).prompts[cell.condition].sha256


def test_its_checkpoint_is_the_pinned_one(frozen, depth):
    """SHA-256 of every file of the profile."""
    pins = {file.name: file.digest.sha256 for file in depth.profile.files if isinstance(file.digest, Frozen)}
    assert frozen.checkpoint == pins
    assert len(pins) == len(depth.profile.files) == 5


def test_its_texts_are_the_sources(frozen, depth, keys):
    """One hash a source, and the manifest's."""
    assert frozen.source_texts == {key.source_id: depth.source(key.source_id).text_sha256 for key in keys}


def test_a_smaller_grid_has_its_own_cells_and_texts(depth):
    """Four sources: 32 cells, and the texts of no other source."""
    keys = depth.units("smoke", depth.domains)
    found = frozen_baseline(depth, keys, places())
    assert len(found.cells) == 32
    assert set(found.source_texts) == {key.source_id for key in keys} == {one.source_id for one in found.cells}


def test_a_completion_runs_baseline_has_neither():
    """It is joined by prompts alone: a plain baseline, whose bytes stay what they were."""
    loaded = load_protocol("nano-completion")
    found = frozen_baseline(loaded, loaded.units("smoke", loaded.domains), places())
    assert type(found) is Baseline


def registering(loaded, **changes):
    """The protocol with another baseline registered."""
    protocol = replace(loaded.protocol, baseline=replace(loaded.protocol.baseline, **changes))
    return dataclasses.replace(loaded, protocol=protocol)


@pytest.mark.parametrize("name", ["index_sha256", "run_sha256", "protocol_digest"])
def test_another_registered_digest_is_refused(depth, keys, name):
    """Each of the three says by itself that this isn't the registered baseline."""
    message = f"^baseline of nano-depth: {name}: expected {'0' * 64}, found [0-9a-f]{{64}}"
    with pytest.raises(SnapshotError, match=message):
        frozen_baseline(registering(depth, **{name: "0" * 64}), keys, places())


def test_an_altered_text_of_a_frozen_source_is_refused(depth, keys, tmp_path):
    """The digest in a frozen file that a trace is joined by."""
    tree = protocol_tree(tmp_path / "tree")
    path = tree.snapshots / "nano-behavior" / "formal" / "math-00-nano-math-0128-greedy.json"
    data = path.read_bytes()
    text = depth.source("nano-math/0128").text_sha256.encode()
    assert text in data
    path.write_bytes(data.replace(text, b"0" * 64))
    with pytest.raises(SnapshotError, match=path.name):
        frozen_baseline(depth, keys, tree)


def test_a_source_that_the_baseline_lacks_is_refused(depth, keys):
    """How many cells, and the first that are missing, under the baseline's replicate."""
    stranger = dataclasses.replace(keys[0], source_id="other/0001")
    with pytest.raises(
        SnapshotError, match=r"expected 136 cells, found 128; missing \[\('other/0001', 'greedy', 's0_eos'\)"
    ):
        frozen_baseline(depth, [*keys, stranger], places())


def test_an_owed_baseline_says_why():
    """What it waits for, and that a port names its own."""
    loaded = load_protocol("deepseek-depth")
    message = (
        r"^deepseek-depth: baseline: expected an accepted run of deepseek-behavior, found unfrozen .*--baseline RUN"
    )
    with pytest.raises(ProtocolError, match=message):
        frozen_baseline(loaded, (), places())


def test_a_behaviour_protocol_has_no_baseline(behavior):
    """Asking for one is misuse."""
    with pytest.raises(RuntimeError, match="nano-behavior registers no baseline"):
        frozen_baseline(behavior, (), places())


REPLICATES = {"two": ("greedy", "R1"), "none": ()}


@pytest.mark.parametrize("name", REPLICATES)
def test_a_baseline_of_several_replicates_is_refused(depth, keys, behavior, monkeypatch, name):
    """A trace is one forward a source: which of several outputs would stand beside it, nothing says."""
    formal = replace(behavior.protocol.grids["formal"], replicates=REPLICATES[name])
    protocol = replace(behavior.protocol, grids=behavior.protocol.grids | {"formal": formal})
    monkeypatch.setattr(module, "load_protocol", lambda *_: dataclasses.replace(behavior, protocol=protocol))
    message = (
        f"^nano-depth: baseline nano-behavior: expected one replicate a source, found {', '.join(formal.replicates)}"
    )
    with pytest.raises(ProtocolError, match=message):
        frozen_baseline(depth, keys, places())


def test_a_baseline_of_one_other_replicate_is_found_by_it(depth, keys, behavior, monkeypatch):
    """The name is the baseline's own; its cells are sought under it, and here there are none."""
    formal = replace(behavior.protocol.grids["formal"], replicates=("R0",))
    protocol = replace(behavior.protocol, grids=behavior.protocol.grids | {"formal": formal})
    monkeypatch.setattr(module, "load_protocol", lambda *_: dataclasses.replace(behavior, protocol=protocol))
    with pytest.raises(SnapshotError, match=r"found 0; missing \[\('nano-english/003', 'R0', 's0_eos'\)"):
        frozen_baseline(depth, keys, places())


@pytest.fixture
def port(behavior, tmp_path) -> RunFolder:
    """A passed formal port of nano-behavior by hand: request, environment, run record and audit."""
    sources = {(one.domain, one.index): one.source_id for one in behavior.manifest.sources}
    builder = Builder(behavior.protocol, sources)
    units = tuple(
        replace(
            builder.unit(key.domain, key.index, {"*": Said("ok"), "s0_x": Said("cut", eos=False)}, grid="formal"),
            source_text_sha256=behavior.source(key.source_id).text_sha256,
        )
        for key in behavior.units("formal", behavior.domains)
    )
    environment = environment_of(behavior, checkpoint={"model.safetensors": sha256_hex(b"a port's weights")})
    run = replace(
        builder.run(units, domains=behavior.domains, gold={}, grid="formal"),
        port=True,
        deviations=PORT,
        protocol_digest=behavior.digest,
        environment_sha256=digest(environment),
    )
    spec = RunSpec(
        schema=1,
        run_id="formal-1",
        protocol="nano-behavior",
        registered_id=behavior.protocol.registered_id,
        protocol_digest=behavior.digest,
        tier="formal",
        grid="formal",
        placement=behavior.protocol.placement,
        domains=behavior.domains,
        port=True,
        deviations=PORT,
        threads=1,
    )
    folder = RunFolder(tmp_path / "port")
    for name, record in (("run.json", run), ("spec.json", spec), ("environment.json", environment)):
        write_record(folder.file(name), record)
    audited(folder, behavior)
    return folder


def test_a_ports_own_baseline_is_a_traces(depth, keys, port, behavior):
    """Named by its run's digest, as a port's; checkpoint and texts are what that run recorded, not what is pinned."""
    found = baseline_of_port(depth, keys, port, places())
    assert type(found) is TraceBaseline
    assert (found.port, found.max_new_tokens, found.protocol_digest) == (True, 128, behavior.digest)
    assert found.run_sha256 == file_sha256(port.file("run.json"), what="run")
    assert found.checkpoint == {"model.safetensors": sha256_hex(b"a port's weights")}
    assert found.source_texts == {key.source_id: depth.source(key.source_id).text_sha256 for key in keys}
    assert found.environment_sha256 == json.loads(port.file("run.json").read_bytes())["environment_sha256"]


def test_a_ports_cells_are_its_runs(depth, port):
    """In the trace's order, under the run's replicate, with the outputs that the run recorded."""
    keys = depth.units("smoke", depth.domains)
    found = baseline_of_port(depth, keys, port, places())
    wanted = [(key.source_id, "greedy", one.id) for key in keys for one in depth.protocol.conditions]
    assert [(one.source_id, one.replicate, one.condition) for one in found.cells] == wanted
    assert {(one.eos, one.truncated, one.length) for one in found.cells if one.condition == "s0_x"} == {
        (False, True, 3)
    }
    assert set(found.source_texts) == {key.source_id for key in keys}


def test_a_ports_other_text_is_its_own(depth, port, keys, behavior):
    """A text that isn't the manifest's is recorded as it was: the join refuses it, not this reader."""
    content = json.loads(port.file("run.json").read_bytes())
    content["units"][0]["source_text_sha256"] = "0" * 64
    write_record(port.file("run.json"), content)
    audited(port, behavior)
    assert baseline_of_port(depth, keys, port, places()).source_texts[keys[0].source_id] == "0" * 64


FAULTS = {
    "a registered run": ({"port": False}, "port: expected True, found False"),
    "a run that didn't pass": ({"passed": False}, "passed: expected True, found False"),
    "a smoke run": ({"tier": "smoke"}, "tier: expected formal, found smoke"),
    "another protocol": ({"protocol": "nano-completion"}, "protocol: expected nano-behavior, found nano-completion"),
    "another revision": ({"protocol_digest": "0" * 64}, "protocol digest: expected"),
    "another run": ({"run_sha256": "0" * 64}, "run.json: expected"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_is_no_ports_baseline_is_refused(depth, keys, port, behavior, fault):
    """Each reason alone, by name, with what to name instead."""
    changes, message = FAULTS[fault]
    audited(port, behavior, **changes)
    with pytest.raises(SnapshotError, match=f"--baseline .*: {message}.*Name a passed formal port of nano-behavior"):
        baseline_of_port(depth, keys, port, places())


@pytest.mark.parametrize("name", ["environment.json", "run.json", "spec.json"])
def test_an_altered_run_is_refused(depth, keys, port, name):
    """The checkpoint's digests are read from a file that the audit covers."""
    with port.file(name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(SnapshotError, match=rf"files altered after the audit: .*{name}"):
        baseline_of_port(depth, keys, port, places())


def test_an_owed_baseline_takes_a_port_of_the_protocol_that_owes_it(depth, keys, port):
    """Only the protocol's name is needed of it."""
    owed = OwedBaseline(protocol="nano-behavior", reason="being made")
    loaded = dataclasses.replace(depth, protocol=replace(depth.protocol, baseline=owed))
    assert baseline_of_port(loaded, keys, port, places()) == baseline_of_port(depth, keys, port, places())


def test_a_port_without_a_source_of_the_trace_is_refused(depth, keys, port, behavior):
    """A port over fewer domains can't be joined to a trace over all."""
    content = json.loads(port.file("run.json").read_bytes())
    content["units"] = [one for one in content["units"] if one["domain"] != "chinese"]
    write_record(port.file("run.json"), content)
    audited(port, behavior)
    with pytest.raises(SnapshotError, match=r"expected 128 cells, found 96; missing \[\('nano-chinese/001', 'greedy'"):
        baseline_of_port(depth, keys, port, places())
    three = depth.units("formal", ("english", "code", "math"))
    assert len(baseline_of_port(depth, three, port, places()).cells) == 96
