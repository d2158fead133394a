"""The depth protocols: the audit's numbers, and that one that disagrees with itself is refused."""

import json
from functools import cache
from typing import Any

import msgspec
import pytest

from harness.errors import ProtocolError
from harness.places import places
from harness.protocols.check import check_gates, check_protocol
from harness.protocols.folders import protocol_ids
from harness.protocols.grids import RowKey, UnitKey, denominators, digest_variant, gate_rows
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.protocols.stages import expected_gates, expected_route_decisions, expected_stages, layer_name, stage_names
from harness.records.base import convert
from harness.records.kinds import journal_type, run_type
from harness.records.protocol import AnyProtocol, DepthProtocol, FrozenBaseline, Gate, GateGrid, OwedBaseline
from harness.snapshots.store import read_frozen

replace = msgspec.structs.replace
IDS = ("nano-depth", "deepseek-depth")
FAMILY = {"nano-depth": "nano-completion", "deepseek-depth": "deepseek-completion"}
INHERITED = (
    "model", "execution", "software", "prompt", "boundaries", "conditions", "edges", "inputs", "selection", "domains"
)  # fmt: skip
THREE = ("english", "code", "math")
# What names the frozen protocols in every record that was made under them.
DIGESTS = {
    "nano-behavior": "0995f2ea3c828229bad3c481548d8e69b5bfd16a9fee767b1997760d053d9902",
    "nano-completion": "74d167e7a240b32166b7a2e716cafa12b69e3efa6b45c67c39717d9180bd4c64",
}


@cache
def loaded_once(protocol_id: str) -> LoadedProtocol:
    """A protocol of this tree; it's frozen, so that tests may share it."""
    return load_protocol(protocol_id)


@pytest.fixture(scope="module", params=IDS)
def either(request) -> LoadedProtocol:
    """Each depth protocol."""
    return loaded_once(request.param)


@pytest.fixture(scope="module")
def depth() -> LoadedProtocol:
    """The registered one, to be changed."""
    return loaded_once("deepseek-depth")


def rows(loaded: LoadedProtocol, gate_id: str, tier: str = "formal", domains: tuple[str, ...] | None = None):
    """The rows that a gate judges in a tier."""
    (gate,) = [one for one in loaded.protocol.gates if one.id == gate_id]
    units = loaded.units(gate.tiers[tier].grid, domains or loaded.domains)
    return gate_rows(loaded.protocol, loaded.profile, gate, units)


@pytest.mark.parametrize("protocol_id", DIGESTS)
def test_a_frozen_protocol_keeps_its_name(protocol_id: str):
    """The digest of an accepted protocol is the one that its frozen results and its successors name."""
    loaded = loaded_once(protocol_id)
    assert loaded.digest == DIGESTS[protocol_id]
    assert read_frozen(protocol_id).index.protocol_digest == DIGESTS[protocol_id]


@pytest.mark.parametrize("name", INHERITED)
def test_what_is_inherited_is_the_same(either: LoadedProtocol, name: str):
    """R05 depth 1: model, sources, conditions and edges are the completion round's, field by field."""
    before = loaded_once(FAMILY[either.protocol.id]).protocol
    assert getattr(either.protocol, name) == getattr(before, name)


def test_the_same_prompts(either: LoadedProtocol):
    """Every source and prompt hash of the manifest is the baseline's."""
    sources = {one.source_id: one for one in loaded_once(either.protocol.baseline.protocol).manifest.sources}
    assert {one.source_id: one for one in either.manifest.sources} == sources


def test_one_forward_a_source(either: LoadedProtocol):
    """R05 depth 7: prompt only, no cache, eight rows; 4, 16 and 4 sources, 32, 128 and 32 cells."""
    protocol = either.protocol
    assert isinstance(protocol, DepthProtocol)
    assert (protocol.forward.use_cache, protocol.forward.rows_per_batch) == (False, 8)
    assert protocol.forward.scopes == ("target", "full")
    assert {grid.max_new_tokens for grid in protocol.grids.values()} == {0}
    found = {tier: denominators(protocol, grid, 4) for tier, grid in protocol.tier_grids.items()}
    assert {tier: (one.sources, one.cells) for tier, one in found.items()} == {
        "smoke": (4, 32), "formal": (16, 128), "replay": (4, 32)
    }  # fmt: skip
    assert (protocol.resume, protocol.execution_cache) == (False, False)
    assert either.profile.shape.layers + 2 == len(expected_stages(either.profile.shape))


@pytest.mark.parametrize(
    ("protocol_id", "domains", "hidden", "routes"),
    [
        ("nano-depth", None, 512, 320),
        ("deepseek-depth", None, 1856, 1664),
        ("deepseek-depth", THREE, 1392, 1248),
        ("nano-depth", THREE, 384, 240),
    ],
)
def test_the_digests_of_the_replay(protocol_id, domains, hidden, routes):
    """R05 depth 10: sources x 8 conditions x stages (gates) x 2 scopes; without a domain all of them follow."""
    loaded = loaded_once(protocol_id)
    found = [len(rows(loaded, f"replay_{name}", domains=domains)) for name in ("hidden", "routes", "weights")]
    assert found == [hidden, routes, routes]
    if domains is None:
        gates = {gate.id: gate for gate in loaded.protocol.gates}
        counts = [gates[f"replay_{name}"].tiers["formal"].count for name in ("hidden", "routes", "weights")]
        assert counts == found


def test_the_shape_of_each_family():
    """R05 depth 7.1: 29 stages and 26 gates; nano has 8 and 5."""
    shapes = {name: loaded_once(name).profile.shape for name in IDS}
    counts = {name: (len(expected_stages(one)), len(expected_gates(one))) for name, one in shapes.items()}
    assert counts == {"nano-depth": (8, 5), "deepseek-depth": (29, 26)}
    assert expected_stages(shapes["deepseek-depth"])[:2] == ("embedding", "layer_00")
    assert expected_stages(shapes["deepseek-depth"])[-2:] == ("layer_26", "final_norm")
    assert expected_gates(shapes["deepseek-depth"])[0] == "layer_01"
    assert expected_gates(shapes["deepseek-depth"])[-1] == "layer_26"


def test_the_published_scale_identity():
    """R05 depth 7.3: 1,537 x 8 x 26 x 6 = 1,918,176."""
    shape = loaded_once("deepseek-depth").profile.shape
    assert expected_route_decisions(shape, target_tokens=1537, cells=8) == 1_918_176


def test_a_dense_model_has_no_gates():
    """No routed experts: the router line is empty, whatever the number of dense layers."""
    shape = replace(loaded_once("nano-depth").profile.shape, routed_experts=0)
    assert expected_gates(shape) == ()
    assert expected_route_decisions(shape, target_tokens=5, cells=8) == 0
    assert len(expected_stages(shape)) == 8


@pytest.mark.parametrize(("layer", "name"), [(0, "layer_00"), (9, "layer_09"), (26, "layer_26"), (100, "layer_100")])
def test_a_layer_has_one_name(layer: int, name: str):
    """Its stage's and its gate's; in names of two digits, so that they sort by depth."""
    assert layer_name(layer) == name
    assert stage_names(layer + 1)[layer + 1] == name


def test_the_rows_of_digests_are_every_digest_once(either: LoadedProtocol):
    """Source, condition, stage and scope: the product, in the order of the grid."""
    stages, conditions = expected_stages(either.profile.shape), [one.id for one in either.protocol.conditions]
    found = [(row.unit.source_id, row.item, row.variant) for row in rows(either, "replay_hidden")]
    wanted = [
        (unit.source_id, condition, f"{stage}.{scope}")
        for unit in either.units("replay", either.domains)
        for condition in conditions
        for stage in stages
        for scope in ("target", "full")
    ]
    assert found == wanted
    assert digest_variant("final_norm", "full") == "final_norm.full"


def test_routes_and_weights_have_the_same_rows(either: LoadedProtocol):
    """Each gate's two digests, over one list."""
    assert rows(either, "replay_routes") == rows(either, "replay_weights")
    variants = {row.variant.split(".")[0] for row in rows(either, "replay_routes")}
    assert variants == set(expected_gates(either.profile.shape))


@pytest.mark.parametrize("protocol_id", protocol_ids())
def test_no_two_rows_of_a_gate_share_a_name(protocol_id: str):
    """A row's name is its test's: two of one name would be one in every record. Of every protocol, tier and gate."""
    loaded = loaded_once(protocol_id)
    for gate in loaded.protocol.gates:
        for tier in gate.tiers:
            found = [row.name for row in rows(loaded, gate.id, tier)]
            assert len(set(found)) == len(found) > 0, (gate.id, tier)


def test_a_rows_name_has_its_parts():
    """Variant, source, condition; the one replicate of a greedy run or a trace isn't worth a word, another one is."""
    unit = UnitKey("math", 0, "gsm8k/test/1069", "forward")
    assert RowKey(unit, "s0_eos", "layer_01.full").name == "layer_01.full:gsm8k/test/1069:s0_eos"
    assert RowKey(unit, "").name == "gsm8k/test/1069"
    assert RowKey(UnitKey("math", 0, "a", "R1"), "s0_eos").name == "a:R1:s0_eos"
    assert unit.name == "math-00-gsm8k-test-1069-forward"


@pytest.mark.parametrize("kind", ["stage_digests", "gate_digests"])
def test_a_protocol_that_traces_nothing_has_no_digests(kind: str):
    """Its gates can't register any: the count would have to be 0."""
    loaded = loaded_once("nano-behavior")
    gate = Gate(id="any", clause="any", reach="run", rows=kind, tiers={"formal": GateGrid(grid="formal", count=0)})
    assert gate_rows(loaded.protocol, loaded.profile, gate, loaded.units("formal", loaded.domains)) == ()


def test_the_baseline_of_each_family():
    """nano: the accepted run of nano-behavior by three digests. DeepSeek: owed."""
    nano, deepseek = (loaded_once(name).protocol.baseline for name in IDS)
    index = json.loads((places().snapshots / "nano-behavior" / "formal" / "index.json").read_bytes())
    assert isinstance(nano, FrozenBaseline)
    assert (nano.protocol_digest, nano.run_sha256) == (index["protocol_digest"], index["run_sha256"])
    assert isinstance(deepseek, OwedBaseline)
    assert deepseek.protocol == "deepseek-behavior"


def test_what_the_audit_forbids(either: LoadedProtocol):
    """R05 depth 8, 9 and 12: no mediation, no monotone curve, no causal layer, no capability, no serving trace."""
    words = " ".join(one.text for one in either.protocol.prohibited)
    for word in ("mediation", "monotone", "causally special", "practically the same", "serving", "benchmark"):
        assert word in words
    assert "association" in either.protocol.result_name


def test_the_published_digests_are_references():
    """The two traces of the audit's file table, never pins."""
    published = [one.sha256[:8] for one in loaded_once("deepseek-depth").protocol.published]
    assert published == ["5678ed23", "17c367cc"]


def test_the_kind_decides_which_records_a_run_is_made_of():
    """One rule for each protocol of the tree."""
    kinds = {name: loaded_once(name).protocol for name in protocol_ids()}
    made = {name: (journal_type(one).__name__, run_type(one).__name__) for name, one in kinds.items()}
    records = {
        "behavior": ("Journal", "Run"),
        "completion": ("Journal", "CompletionRun"),
        "depth": ("TraceJournal", "DepthRun"),
        "cross-source-sampling": ("SampledJournal", "SampledRun"),
        "single-source-sampling": ("SampledJournal", "SampledRun"),
        "task-crn": ("TapedJournal", "TapedRun"),
        "task-crn-graph": ("GraphJournal", "GraphRun"),
    }
    on_smollm2 = ("behavior", "completion", "task-crn")
    families = {"nano": tuple(records), "deepseek": tuple(records), "smollm2": on_smollm2}
    assert made == {f"{family}-{kind}": records[kind] for family, named in families.items() for kind in named}


def forward(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The forward contract with changed fields."""
    return {"forward": replace(protocol.forward, **changes)}


def grid(protocol: Any, name: str, **changes: Any) -> dict[str, Any]:
    """One grid with changed fields."""
    return {"grids": {**protocol.grids, name: replace(protocol.grids[name], **changes)}}


FAULTS = {
    "cache": (lambda p: forward(p, use_cache=True), "forward.use_cache: expected False, found True"),
    "a token": (lambda p: grid(p, "smoke", max_new_tokens=1), "grids: expected max_new_tokens 0 for all, found .*1"),
    "a token everywhere": (
        lambda p: {"grids": {name: replace(one, max_new_tokens=1) for name, one in p.grids.items()}},
        "grids: expected max_new_tokens 0 for all",
    ),
    "less than none": (lambda p: grid(p, "replay", max_new_tokens=-1), "grids: expected max_new_tokens 0 for all"),
    "scopes in another order": (
        lambda p: forward(p, scopes=("full", "target")),
        r"forward.scopes: expected \('target', 'full'\), found \('full', 'target'\)",
    ),
    "no full scope": (lambda p: forward(p, scopes=("target",)), r"forward.scopes: .*found \('target',\)"),
    "no target scope": (lambda p: forward(p, scopes=("full",)), r"forward.scopes: .*found \('full',\)"),
    "no scope": (lambda p: forward(p, scopes=()), r"forward.scopes: .*found \(\)"),
    "a scope twice": (lambda p: forward(p, scopes=("target", "full", "full")), "forward.scopes"),
    "two replicates": (lambda p: grid(p, "formal", replicates=("a", "b")), r"grids: expected one replicate, found .*a"),
    "no replicate": (lambda p: grid(p, "smoke", replicates=()), "grids: expected one replicate"),
    "a row less": (lambda p: forward(p, rows_per_batch=7), "forward.rows_per_batch: expected 8, found 7"),
    "a row more": (lambda p: forward(p, rows_per_batch=9), "forward.rows_per_batch: expected 8, found 9"),
    "replay grid": (
        lambda p: {"independent_replay": replace(p.independent_replay, grid="none")},
        "pair rule grid: expected one of .*found none",
    ),
    "replay elsewhere": (
        lambda p: {"independent_replay": replace(p.independent_replay, right="gpu29")},
        "pair rule placement|independent_replay: expected gpu28",
    ),
    "edge": (lambda p: {"edges": (replace(p.edges[0], right="s9"), *p.edges[1:])}, "edges.system_eos: .*found s9"),
    "condition": (lambda p: {"conditions": p.conditions[:7]}, "edges.system_period: .*found s1_period"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_protocol_that_disagrees_with_itself_is_refused(fault: str, depth: LoadedProtocol):
    """R05 depth 7: nothing is generated, no cache, both scopes in their order, one replicate, a batch never split."""
    change, message = FAULTS[fault]
    check_protocol(depth.protocol)
    with pytest.raises(ProtocolError, match=f"^protocol deepseek-depth: ({message})"):
        check_protocol(replace(depth.protocol, **change(depth.protocol)))


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    "gate_id",
    [
        "replay_hidden",
        "replay_routes",
        "replay_weights",
        "target_tokens",
        "edge_trace",
        "scale_identity",
        "frozen_tensors",
    ],
)
def test_a_gate_count_off_by_one_is_refused(gate_id: str, by: int, depth: LoadedProtocol):
    """The denominators follow from grid and model shape."""
    protocol = depth.protocol
    gate = next(gate for gate in protocol.gates if gate.id == gate_id)
    at = gate.tiers["formal"]
    off = replace(gate, tiers={**gate.tiers, "formal": GateGrid(grid=at.grid, count=at.count + by)})
    gates = tuple(off if one.id == gate_id else one for one in protocol.gates)
    message = f"gates.{gate_id}.tiers.formal.count: expected {at.count}, found {at.count + by}"
    with pytest.raises(ProtocolError, match=message):
        check_gates(replace(protocol, gates=gates), depth.manifest, depth.profile)


def test_another_models_shape_is_refused(depth: LoadedProtocol):
    """A model of one layer more has other denominators than are registered."""
    shape = replace(depth.profile.shape, layers=28)
    with pytest.raises(ProtocolError, match=r"gates.replay_hidden.tiers.formal.count: expected 1920, found 1856"):
        check_gates(depth.protocol, depth.manifest, replace(depth.profile, shape=shape))


WORDS = {
    "a rule for targets": ("target", "tokens_touching", "tokens_touching"),
    "an encoding": ("tensor_encoding", "npy", "npy"),
    "an order of routes": ("route_order", "as_returned", "as_returned"),
    "positions": ("positions", "from_padding", "from_padding"),
    "a scope": ("scopes", ["target", "padding"], "padding"),
    "no seed": ("generator_seed", None, "null"),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_rule_that_is_not_known_is_refused(word: str, depth: LoadedProtocol):
    """Each registered rule is one that the harness has."""
    name, value, found = WORDS[word]
    plain = msgspec.to_builtins(depth.protocol)
    plain["forward"][name] = value
    with pytest.raises(ProtocolError, match=rf"field \$\.forward\.{name}.*found .*{found}"):
        convert(plain, AnyProtocol, where="protocol", error=ProtocolError, todo="")


@pytest.mark.parametrize("name", ["decode", "sampler", "placement_equivalence", "evaluators", "placement_ladder"])
def test_what_generates_is_no_part_of_a_trace(name: str, depth: LoadedProtocol):
    """A depth protocol that registers how tokens are drawn or judged is refused."""
    plain = msgspec.to_builtins(depth.protocol) | {name: {}}
    with pytest.raises(ProtocolError, match=f"unknown field `{name}`"):
        convert(plain, AnyProtocol, where="protocol", error=ProtocolError, todo="")
