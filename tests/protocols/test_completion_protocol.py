"""The completion protocols: the clauses' numbers, and that one that disagrees with itself is refused."""

from typing import Any

import msgspec
import pytest

from harness.errors import ProtocolError
from harness.protocols.check import check_gates, check_protocol
from harness.protocols.grids import denominators, is_executed
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.protocol import BehaviorProtocol, FrozenBaseline, GateGrid, OwedBaseline
from harness.records.sandbox import RecordedImage, RegisteredImage

replace = msgspec.structs.replace
IDS = ("nano-completion", "deepseek-completion")
INHERITED = (
    "model", "execution", "software", "decode", "prompt", "boundaries", "conditions", "edges", "inputs", "selection",
    "domains",
)  # fmt: skip


@pytest.fixture(params=IDS)
def either(request) -> LoadedProtocol:
    """Each completion protocol."""
    return load_protocol(request.param)


@pytest.fixture
def completion() -> LoadedProtocol:
    """The registered one, to be changed."""
    return load_protocol("deepseek-completion")


def before(loaded: LoadedProtocol) -> BehaviorProtocol:
    """The behaviour protocol of the same family."""
    found = load_protocol(loaded.protocol.baseline.protocol).protocol
    assert isinstance(found, BehaviorProtocol)
    return found


@pytest.mark.parametrize("name", INHERITED)
def test_what_is_inherited_is_the_same(either: LoadedProtocol, name: str):
    """R05 1: model, files, sources, conditions, batch and greedy decoding are Round 04's, field by field."""
    assert getattr(either.protocol, name) == getattr(before(either), name)


def test_the_same_prompts(either: LoadedProtocol):
    """R05 1 and 2: every source and every prompt hash of the manifest is the baseline's."""
    sources = {one.source_id: one for one in load_protocol(either.protocol.baseline.protocol).manifest.sources}
    assert {one.source_id: one for one in either.manifest.sources} == sources


def test_one_budget_and_the_ladder_of_runs(either: LoadedProtocol):
    """R05 2: 512 tokens in every grid; 32 cells in smoke, 128 in the formal run, 32 in the independent one."""
    protocol = either.protocol
    assert {grid.max_new_tokens for grid in protocol.grids.values()} == {512}
    cells = {tier: denominators(protocol, grid, 4).cells for tier, grid in protocol.tier_grids.items()}
    assert cells == {"smoke": 32, "formal": 128, "replay": 32}


@pytest.mark.parametrize(
    ("gate", "tier", "count"),
    [
        ("baseline_prompts", "smoke", 32), ("baseline_prompts", "formal", 128),
        ("baseline_prefix", "smoke", 32), ("baseline_prefix", "formal", 128),
        ("completion_state", "smoke", 32), ("completion_state", "formal", 128),
        ("placement_equivalence", "formal", 32), ("independent_replay", "formal", 32),
        ("sandbox_verdicts", "formal", 32), ("paired_comparison", "formal", 160),
    ],
)  # fmt: skip
def test_registered_denominators(either: LoadedProtocol, gate: str, tier: str, count: int):
    """R05 2, 3, 6, 7: each gate's rows; the independent run is 32 and never 128."""
    (found,) = [one for one in either.protocol.gates if one.id == gate]
    assert found.tiers[tier].count == count


def test_fields_that_must_agree(either: LoadedProtocol):
    """R05 3: hash, IDs, text and EOS between placements; R05 10: IDs, text, EOS and truncation in the replay."""
    assert either.protocol.placement_equivalence.fields == ("prompt_sha256", "generated_ids", "text_escaped", "eos")
    replay = set(either.protocol.independent_replay.fields)
    assert {"prompt_sha256", "generated_ids", "text_escaped", "eos", "truncated"} <= replay


def test_the_contract_of_clause_6(either: LoadedProtocol):
    """Every flag, in bytes and ms."""
    contract = either.protocol.sandbox
    assert (contract.network, contract.read_only, contract.user) == ("none", True, "65534:65534")
    assert (contract.cap_drop, contract.no_new_privileges) == (("ALL",), True)
    assert contract.memory_bytes == contract.memory_swap_bytes == 256 * 2**20
    assert (contract.pids, contract.nano_cpus, contract.wall_timeout_ms) == (64, 500_000_000, 5000)
    assert (contract.tmpfs_bytes, contract.tmpfs_options) == (16 * 2**20, ("noexec", "nosuid"))


def test_rules_of_the_round(either: LoadedProtocol):
    """The published evaluators; no resume, and no result taken from a cache."""
    found = either.protocol.evaluators
    assert (found.numeric, found.code, found.terminal) == ("numeric-r05", "code-r05", "terminal-r05")
    assert (either.protocol.resume, either.protocol.execution_cache) == (False, False)


def test_only_code_is_executed(either: LoadedProtocol):
    """Its gold fields say so."""
    assert [domain.name for domain in either.protocol.domains if is_executed(domain)] == ["code"]


def test_baseline_and_image_of_each_family():
    """nano: an accepted run by three digests, any image. DeepSeek: owed, and the published digest."""
    nano, deepseek = (load_protocol(name).protocol for name in IDS)
    assert isinstance(nano.baseline, FrozenBaseline)
    assert isinstance(nano.sandbox.image, RecordedImage)
    assert isinstance(deepseek.baseline, OwedBaseline)
    assert isinstance(deepseek.sandbox.image, RegisteredImage)
    assert deepseek.sandbox.image.digest.sha256.startswith("25976e9d34a0")


def test_what_clause_8_forbids(either: LoadedProtocol):
    """Nine conclusions, and that 32 replayed cells are 128."""
    words = " ".join(one.text for one in either.protocol.prohibited)
    assert len(either.protocol.prohibited) >= 9
    assert "512 tokens \u8db3\u4ee5\u4ee3\u8868" in words
    assert "128 \u683c" in words


def sandbox(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The contract with changed fields."""
    return {"sandbox": replace(protocol.sandbox, **changes)}


FAULTS = {
    "ladder": (lambda p: {"placement_ladder": ("gpu29", "gpu27")}, "placement_ladder: .*found gpu27"),
    "ladder twice": (lambda p: {"placement_ladder": (*p.placement_ladder, "gpu28")}, "expected each placement once"),
    "empty ladder": (lambda p: {"placement_ladder": ()}, "expected each placement once"),
    "two budgets": (
        lambda p: {"grids": {**p.grids, "smoke": replace(p.grids["smoke"], max_new_tokens=128)}},
        "expected one budget for all",
    ),
    "placement grid": (
        lambda p: {"placement_equivalence": replace(p.placement_equivalence, grid="formal")},
        "placement_equivalence.grid: expected smoke, the smoke grid, found formal",
    ),
    "memory": (lambda p: sandbox(p, memory_bytes=0, memory_swap_bytes=0), "sandbox.memory_bytes: expected a limit"),
    "swap": (lambda p: sandbox(p, memory_swap_bytes=-1), "sandbox.memory_swap_bytes: expected 268435456 or more"),
    "default swap": (lambda p: sandbox(p, memory_swap_bytes=0), "sandbox.memory_swap_bytes"),
    "pids": (lambda p: sandbox(p, pids=-1), "sandbox.pids: expected a limit above 0, found -1"),
    "cpus": (lambda p: sandbox(p, nano_cpus=0), "sandbox.nano_cpus"),
    "time": (lambda p: sandbox(p, wall_timeout_ms=0), "sandbox.wall_timeout_ms"),
    "tmpfs": (lambda p: sandbox(p, tmpfs_bytes=0), "sandbox.tmpfs_bytes"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_protocol_that_disagrees_with_itself_is_refused(fault: str, completion: LoadedProtocol):
    """One budget, one ladder, a sandbox that is one: a limit of 0 or below would be none."""
    change, message = FAULTS[fault]
    with pytest.raises(ProtocolError, match=message):
        check_protocol(replace(completion.protocol, **change(completion.protocol)))


@pytest.mark.parametrize("gate_id", ["sandbox_verdicts", "frozen_verdicts", "baseline_prefix", "completion_state"])
def test_a_gate_count_off_by_one_is_refused(gate_id: str, completion: LoadedProtocol):
    """The denominators of this round's gates follow from the grid too."""
    protocol = completion.protocol
    gate = next(gate for gate in protocol.gates if gate.id == gate_id)
    at = gate.tiers["formal"]
    off = replace(gate, tiers={**gate.tiers, "formal": GateGrid(grid=at.grid, count=at.count + 1)})
    gates = tuple(off if one.id == gate_id else one for one in protocol.gates)
    message = f"gates.{gate_id}.tiers.formal.count: expected {at.count}, found {at.count + 1}"
    with pytest.raises(ProtocolError, match=message):
        check_gates(replace(protocol, gates=gates), completion.manifest, completion.profile)
