"""What is frozen of a trace: everywhere the same in one file, of one environment in another, and the environment."""

import json
import re
import shutil

import msgspec
import pytest
from pregate_support.traces import audited, depth_builder, environment_of, land_traces, protocol_tree

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.errors import HarnessError, SnapshotError
from harness.journal.assemble import read_environment
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_run
from harness.ledgers.depth import depth_ledger
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.records.depth import TraceCell, TraceEvidence
from harness.snapshots.content import snapshot_bytes, tensor_snapshot, trace_snapshot, unit_snapshot
from harness.snapshots.store import accept, frozen_environment, frozen_folder, frozen_names, read_frozen, tensors_name

replace = msgspec.structs.replace
HEX = re.compile(r"[0-9a-f]{64}")


@pytest.fixture(scope="module")
def depth():
    """The nano depth protocol."""
    return load_protocol("nano-depth")


@pytest.fixture(scope="module")
def unit(depth):
    """One trace; two of its cells are cut at an end."""
    return depth_builder(depth).trace("math", 0, crossing={"s0_x": 1, "s1_x": 2})


@pytest.fixture(scope="module")
def everywhere(unit):
    """Its snapshot."""
    return trace_snapshot(unit)


@pytest.fixture(scope="module")
def here(unit):
    """Its tensors' snapshot."""
    return tensor_snapshot(unit)


def digests(content) -> set[str]:
    """Every digest in a snapshot's bytes."""
    return set(HEX.findall(snapshot_bytes(content).decode("ascii")))


def tensor_digests(unit, *, embedding: bool) -> set[str]:
    """Digests of hidden stages (of the embedding alone, or of the others), and with the others of the gates."""
    stages = [one for cell in unit.cells for one in cell.hidden if (one.stage == "embedding") is embedding]
    found = {facts.sha256 for one in stages for facts in (one.target, one.full)}
    gates = (
        [] if embedding else [facts for cell in unit.cells for one in cell.gates for facts in (one.target, one.full)]
    )
    return found | {facts.routes_sha256 for facts in gates} | {facts.weights_sha256 for facts in gates}


def test_what_every_environment_gives(unit, everywhere):
    """Identity, the text's and the content's hash, tokens, and by cell prompt, target, embedding, shapes, top-k."""
    cell, first = unit.cells[5], everywhere["cells"][5]
    assert first == {
        "condition": "s1_x",
        "prompt_sha256": cell.prompt_sha256,
        "target": {"start": 11, "end": 14, "crossing": 2},
        "embedding_sha256": [cell.hidden[0].target.sha256, cell.hidden[0].full.sha256],
        "shapes": {name: [16, 4] for name in ("embedding", "layer_00", "layer_01", "layer_02", "final_norm")},
        "top_k": {"layer_01": 2, "layer_02": 2},
    }
    assert {name: one for name, one in everywhere.items() if name != "cells"} == {
        "schema": 1,
        "protocol_digest": unit.protocol_digest,
        "domain": "math",
        "index": 0,
        "source_id": "nano-math/0128",
        "replicate": "forward",
        "source_text_sha256": unit.source_text_sha256,
        "content_token_ids_sha256": unit.content_token_ids_sha256,
        "target_tokens": 3,
        "crossing_tokens": 3,
        "crossing_cells": 2,
    }


def test_what_one_environment_gives(unit, here):
    """By cell both scopes of every stage and gate, and the whole record; by edge the whole record."""
    cell, first = unit.cells[2], here["cells"][2]
    assert set(here) == {
        "schema", "protocol_digest", "domain", "index", "source_id", "replicate", "placement_sha256", "cells",
        "edges_sha256",
    }  # fmt: skip
    assert set(first) == {"condition", "hidden_sha256", "routes_sha256", "weights_sha256", "record_sha256"}
    assert first["hidden_sha256"] == {one.stage: [one.target.sha256, one.full.sha256] for one in cell.hidden}
    assert list(first["routes_sha256"]) == list(first["weights_sha256"]) == ["layer_01", "layer_02"]
    facts = cell.gates[1]
    assert first["routes_sha256"]["layer_02"] == [facts.target.routes_sha256, facts.full.routes_sha256]
    assert first["weights_sha256"]["layer_02"] == [facts.target.weights_sha256, facts.full.weights_sha256]
    assert first["record_sha256"] == digest(cell)
    assert here["edges_sha256"] == {edge.edge: digest(edge) for edge in unit.edges}
    assert len(here["edges_sha256"]) == 10


def test_tensor_digests_are_in_their_own_file_alone(unit, everywhere, here):
    """The embedding's, a lookup, are in both; every other one belongs to an environment."""
    assert tensor_digests(unit, embedding=True) <= digests(everywhere)
    assert tensor_digests(unit, embedding=True) | tensor_digests(unit, embedding=False) <= digests(here)
    assert not tensor_digests(unit, embedding=False) & digests(everywhere)
    assert unit.hooks.logits_sha256_with not in digests(everywhere) | digests(here)


def test_no_time_path_host_process_or_number_is_in_either(everywhere, here):
    """Two runs of the same trace have the same files: no observation, no statistic, no generator state."""
    for content in (everywhere, here):
        text = snapshot_bytes(content).decode("ascii")
        assert not re.search(r"wall|_us|_ns|\bpid|host|/work|/tmp|/home|environment|mean|cosine|rng|load", text)
        assert not re.search(r"\d\.\d", text)
    assert "placement" not in snapshot_bytes(everywhere).decode("ascii")


def test_the_bytes_are_ascii_json_of_one_field_a_line(everywhere, here):
    """Git and any terminal can show what differs; a pair of digests stays on its line."""
    for content in (everywhere, here):
        data = snapshot_bytes(content)
        assert json.loads(data) == content
        assert data.decode("ascii").endswith("}\n")
    lines = snapshot_bytes(here).decode("ascii").splitlines()
    assert sum('"layer_02": ["' in line for line in lines) == 8 * 3
    assert sum('"record_sha256": "' in line for line in lines) == 8


def test_a_unit_of_a_trace_has_the_traces_snapshot(depth, unit):
    """Whatever ledger lies beside it."""
    builder = depth_builder(depth).with_grid("smoke", per_domain=1, replicates=("forward",))
    book = depth_ledger(builder.protocol, builder.depth_run((unit,)))
    assert unit_snapshot(unit, book) == trace_snapshot(unit)


def altered_cell(unit, **changes):
    """The unit with fields of its last cell changed."""
    return replace(unit, cells=(*unit.cells[:-1], replace(unit.cells[-1], **changes)))


def altered_facts(unit, stage, scope, **changes):
    """The unit with one tensor's facts changed in its last cell."""
    hidden = tuple(
        replace(one, **{scope: replace(getattr(one, scope), **changes)}) if one.stage == stage else one
        for one in unit.cells[-1].hidden
    )
    return altered_cell(unit, hidden=hidden)


def altered_routes(unit, scope, **changes):
    """The unit with one gate's facts changed in its last cell."""
    gate = unit.cells[-1].gates[0]
    other = replace(gate, **{scope: replace(getattr(gate, scope), **changes)})
    return altered_cell(unit, gates=(other, *unit.cells[-1].gates[1:]))


def altered_edge(unit, **changes):
    """The unit with a stage of its last edge changed."""
    edge = unit.edges[-1]
    stages = (*edge.stages[:-1], replace(edge.stages[-1], **changes))
    return replace(unit, edges=(*unit.edges[:-1], replace(edge, stages=stages)))


BOTH, TRACE, TENSORS, NEITHER = (True, True), (True, False), (False, True), (False, False)
CHANGES = {
    "protocol_digest": (lambda u: replace(u, protocol_digest="x"), BOTH),
    "domain": (lambda u: replace(u, domain="code"), BOTH),
    "index": (lambda u: replace(u, index=3), BOTH),
    "source_id": (lambda u: replace(u, source_id="x"), BOTH),
    "replicate": (lambda u: replace(u, replicate="x"), BOTH),
    "source_text_sha256": (lambda u: replace(u, source_text_sha256="x"), TRACE),
    "content_token_ids_sha256": (lambda u: replace(u, content_token_ids_sha256="x"), TRACE),
    "target_tokens": (lambda u: replace(u, target_tokens=9), TRACE),
    "crossing_tokens": (lambda u: replace(u, crossing_tokens=9), TRACE),
    "crossing_cells": (lambda u: replace(u, crossing_cells=9), TRACE),
    "placement_sha256": (lambda u: replace(u, placement_sha256="x"), TENSORS),
    "environment_sha256": (lambda u: replace(u, environment_sha256="x"), NEITHER),
    "grid": (lambda u: replace(u, grid="x"), NEITHER),
    "cache_returned": (lambda u: replace(u, cache_returned=True), NEITHER),
    "hooks": (lambda u: replace(u, hooks=replace(u.hooks, logits_sha256_with="x")), NEITHER),
    "rng_before": (lambda u: replace(u, rng_before=replace(u.rng_before, python=u.rng_before.numpy)), NEITHER),
    "rng_after": (lambda u: replace(u, rng_after=replace(u.rng_after, python=u.rng_after.numpy)), NEITHER),
    "edges": (lambda u: altered_edge(u, cosine=0.5), TENSORS),
    "edges, a count": (lambda u: altered_edge(u, exact_rows=1), TENSORS),
    "cells.condition": (lambda u: altered_cell(u, condition="x"), BOTH),
    "cells.prompt_sha256": (lambda u: altered_cell(u, prompt_sha256="x"), BOTH),
    "cells.prompt_ids": (lambda u: altered_cell(u, prompt_ids=(1,)), TENSORS),
    "cells.left_padding": (lambda u: altered_cell(u, left_padding=7), TENSORS),
    "cells.edits": (lambda u: altered_cell(u, edits=()), TENSORS),
    "cells.target": (lambda u: altered_cell(u, target=replace(u.cells[-1].target, crossing=5)), BOTH),
    "cells.hidden, the embedding": (lambda u: altered_facts(u, "embedding", "full", sha256="x"), BOTH),
    "cells.hidden, a later target": (lambda u: altered_facts(u, "layer_01", "target", sha256="x"), TENSORS),
    "cells.hidden, a later full": (lambda u: altered_facts(u, "final_norm", "full", sha256="x"), TENSORS),
    "cells.hidden, a shape": (lambda u: altered_facts(u, "layer_01", "full", shape=(1, 1)), BOTH),
    "cells.hidden, a dtype": (lambda u: altered_facts(u, "layer_01", "full", dtype="x"), TENSORS),
    "cells.gates, routes": (lambda u: altered_routes(u, "target", routes_sha256="x"), TENSORS),
    "cells.gates, weights": (lambda u: altered_routes(u, "full", weights_sha256="x"), TENSORS),
    "cells.gates, top-k": (lambda u: altered_routes(u, "full", top_k=9), BOTH),
    "cells.gates, load": (lambda u: altered_routes(u, "full", load=(1,)), TENSORS),
}


@pytest.mark.parametrize("change", CHANGES)
def test_where_a_field_is_frozen(unit, everywhere, here, change):
    """Each field of a trace is in the first file, in the second, in both, or left out on purpose."""
    alter, (in_trace, in_tensors) = CHANGES[change]
    other = alter(unit)
    assert (trace_snapshot(other) != everywhere, tensor_snapshot(other) != here) == (in_trace, in_tensors)


def test_every_field_is_decided_on():
    """A field that is added to a trace's evidence or cell must be put into the table above."""
    named = {name.split(",")[0] for name in CHANGES}
    cells = {f"cells.{name}" for name in TraceCell.__struct_fields__}
    assert named == (set(TraceEvidence.__struct_fields__) - {"cells"}) | cells


def test_a_depth_protocol_freezes_two_files_a_unit_and_the_environment(depth):
    """16 units: 16 traces, 16 files of tensors, one environment; programs are executed by no trace."""
    names = frozen_names(depth)
    keys = depth.units("formal", depth.domains)
    assert names == sorted([*(key.name for key in keys), *(tensors_name(key) for key in keys), "environment"])
    assert len(names) == 33
    assert tensors_name(keys[0]) == "english-00-nano-english-003-forward-tensors"


@pytest.mark.parametrize(("protocol_id", "files"), [("nano-behavior", 16), ("nano-completion", 20)])
def test_other_protocols_freeze_no_tensors(protocol_id, files):
    """Nor an environment."""
    names = frozen_names(load_protocol(protocol_id))
    assert len(names) == files
    assert not [name for name in names if name.endswith("-tensors") or name == "environment"]
    assert frozen_environment(protocol_id) is None


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A closed formal run of nano-depth by hand in a tree of its own, with an audit that it passed. Read only."""
    tree = protocol_tree(tmp_path_factory.mktemp("judged") / "tree")
    loaded = load_protocol("nano-depth", tree)
    folder = land_traces(tree.reports / "nano-depth" / "formal-1", loaded, grid="formal", tokens=1)
    close_run(folder, loaded)
    audited(folder, loaded)
    return folder


@pytest.fixture
def run(judged, tmp_path) -> RunFolder:
    """A copy of it with its tree."""
    root = judged.path.parents[2]
    shutil.copytree(root, tmp_path / "tree")
    return RunFolder(tmp_path / "tree" / judged.path.relative_to(root))


@pytest.fixture
def tree(run) -> Places:
    """The copied tree."""
    return Places(run.path.parents[2])


@pytest.fixture
def frozen(run, tree):
    """The results that were just frozen in it."""
    accept(run.path, tree)
    return read_frozen("nano-depth", tree)


def test_accepting_writes_exactly_these_files(frozen, depth, tree, run):
    """The index lists what lies there, with its digest; the run and its environment are named."""
    files = sorted(path.stem for path in frozen.folder.iterdir() if path.name != "index.json")
    assert files == frozen_names(depth) == sorted(frozen.index.units)
    for name, expected in frozen.index.units.items():
        assert sha256_hex((frozen.folder / f"{name}.json").read_bytes()) == expected
    assert frozen.index.run_sha256 == sha256_hex(run.file("run.json").read_bytes())
    assert frozen.index.environment_sha256 == digest(read_environment(run))


def test_what_is_accepted_is_the_runs(frozen, depth, run):
    """Each unit's two files are what its evidence gives."""
    units = json.loads(run.file("run.json").read_bytes())["units"]
    for key, plain in zip(depth.units("formal", depth.domains), units, strict=True):
        unit = msgspec.convert(plain, TraceEvidence)
        assert frozen.file(key).read_bytes() == snapshot_bytes(trace_snapshot(unit))
        assert frozen.tensors(key).read_bytes() == snapshot_bytes(tensor_snapshot(unit))


def test_the_frozen_environment_is_the_runs(frozen, tree, run):
    """As a record; nothing of it says where or when."""
    assert frozen_environment("nano-depth", tree) == read_environment(run)
    text = (frozen.folder / "environment.json").read_text(encoding="ascii")
    assert not re.search(r"/work|/tmp|/home|pid|host|_us|_ns", text)


def test_another_environment_is_refused_though_the_index_lists_it(frozen, tree):
    """Frozen tensors would belong to another machine, and no session here would compare them."""
    path = frozen.folder / "environment.json"
    content = json.loads(path.read_bytes()) | {"cpu": "another processor"}
    path.write_bytes(snapshot_bytes(content))
    index = json.loads((frozen.folder / "index.json").read_bytes())
    index["units"]["environment"] = sha256_hex(path.read_bytes())
    (frozen.folder / "index.json").write_bytes(canonical_bytes(index))
    with pytest.raises(SnapshotError, match="environment_sha256"):
        read_frozen("nano-depth", tree)


def test_before_anything_is_frozen_there_is_no_environment(tree):
    """None: nothing to compare with."""
    assert frozen_environment("nano-depth", tree) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"cpu": 1}'], ids=["empty", "list", "object", "other"])
def test_a_damaged_environment_is_refused(frozen, tree, data):
    """It isn't taken for none, nor for another machine's."""
    (frozen.folder / "environment.json").write_bytes(data)
    with pytest.raises(SnapshotError, match=r"environment\.json"):
        frozen_environment("nano-depth", tree)


@pytest.mark.parametrize("name", ["environment", "math-00-nano-math-0128-forward-tensors"])
def test_an_altered_file_is_refused(frozen, tree, name):
    """Another processor in the environment, or another digest of one stage: by its file."""
    path = frozen.folder / f"{name}.json"
    data = path.read_bytes()
    altered = data.replace(b"a processor", b"a machine") if name == "environment" else data.replace(b"a", b"b", 1)
    assert altered != data
    path.write_bytes(altered)
    with pytest.raises(SnapshotError, match=rf"{name}\.json: expected [0-9a-f]{{64}}, found [0-9a-f]{{64}}"):
        read_frozen("nano-depth", tree)


@pytest.mark.parametrize(
    "name", ["environment", "math-00-nano-math-0128-forward-tensors", "math-00-nano-math-0128-forward"]
)
def test_a_missing_file_is_refused(frozen, tree, name):
    """The index says what must be there."""
    (frozen.folder / f"{name}.json").unlink()
    with pytest.raises(SnapshotError, match=rf"missing \['{name}\.json'\], unlisted \[\]"):
        read_frozen("nano-depth", tree)


@pytest.mark.parametrize("left_out", ["environment", "math-00-nano-math-0128-forward-tensors"])
def test_an_index_that_lists_less_is_refused(frozen, tree, left_out):
    """Tensors can't be taken out of what is compared by taking them out of the index too."""
    path = frozen.folder / "index.json"
    content = json.loads(path.read_bytes())
    del content["units"][left_out]
    (frozen.folder / f"{left_out}.json").unlink()
    path.write_text(json.dumps(content))
    with pytest.raises(SnapshotError, match=r"index\.json: units: expected .*" + left_out):
        read_frozen("nano-depth", tree)


def resigned(run, loaded, name, change):
    """Change a record of the run and write an audit that lists it as it is now."""
    content = json.loads(run.file(name).read_bytes())
    change(content)
    run.file(name).write_bytes(msgspec.json.encode(content))
    audited(run, loaded)


@pytest.mark.parametrize("name", ["run.json", "ledger.json", "statistics.json"])
def test_a_record_that_does_not_follow_from_the_journals_cannot_be_frozen(run, tree, depth, name):
    """Acceptance makes the records again, whatever the audit says."""
    resigned(run, depth, name, lambda content: content.update(port=True))
    with pytest.raises(HarnessError, match=f"{name}|port"):
        accept(run.path, tree)
    assert not frozen_folder("nano-depth", tree).exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tier": "smoke"}, "expected a formal run, found a smoke run"),
        ({"passed": False}, "found passed: False"),
        ({"port": True}, "found a port: True"),
        ({"gates": ()}, "found gates registered: {}"),
    ],
    ids=["smoke", "failed", "port", "no gates"],
)
def test_another_run_cannot_be_frozen(run, tree, depth, changes, message):
    """Only a passed formal run of the registered protocol."""
    audited(run, depth, **changes)
    with pytest.raises(SnapshotError, match=message):
        accept(run.path, tree)


def test_a_journal_altered_after_the_audit_cannot_be_frozen(run, tree, depth):
    """By its file."""
    path = run.journal(depth.units("formal", depth.domains)[4])
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(SnapshotError, match=f"{path.name} altered after its audit"):
        accept(run.path, tree)


def test_an_environment_is_made_of_what_is_read_back(depth):
    """The hand-made one has every field of a real one, and its own checkpoint."""
    made = environment_of(depth)
    assert set(made.checkpoint) == {file.name for file in depth.profile.files}
    assert environment_of(depth, cpu="another").cpu == "another"
