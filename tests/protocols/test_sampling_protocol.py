"""The sampling protocols: the clauses' numbers, and that one that disagrees with itself is refused."""

from typing import Any

import msgspec
import pytest

from harness.errors import ProtocolError
from harness.protocols.check import check_gates, check_protocol
from harness.protocols.grids import denominators, executed_grid, is_executed
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.base import convert
from harness.records.protocol import AnyProtocol, FrozenBaseline, GateGrid, OwedBaseline

replace = msgspec.structs.replace
CROSS = ("nano-cross-source-sampling", "deepseek-cross-source-sampling")
SINGLE = ("nano-single-source-sampling", "deepseek-single-source-sampling")
REPLAYED = (
    "run_seed", "prompt_sha256", "generated_ids", "text", "eos", "truncated", "torch_cpu_before", "torch_cuda_before",
)  # fmt: skip


@pytest.fixture(params=CROSS)
def cross(request) -> LoadedProtocol:
    """Each protocol of Round 07."""
    return load_protocol(request.param)


@pytest.fixture(params=SINGLE)
def single(request) -> LoadedProtocol:
    """Each protocol of Round 06."""
    return load_protocol(request.param)


@pytest.fixture(scope="module")
def sampling() -> LoadedProtocol:
    """The registered one of Round 07, to be changed."""
    return load_protocol("deepseek-cross-source-sampling")


def cells(loaded: LoadedProtocol) -> dict[str, tuple[int, int]]:
    """(cells, tokens at most) of every grid over all four domains."""
    protocol = loaded.protocol
    return {name: (denominators(protocol, name, 4).cells, grid.max_new_tokens) for name, grid in protocol.grids.items()}


def test_the_grids_of_round_7(cross: LoadedProtocol):
    """R07 7: 128 short outputs, 64 of them drawn again at once, 256 formal ones, 64 in a fresh process."""
    short = 16 if cross.protocol.id.startswith("deepseek") else cross.protocol.grids["smoke"].max_new_tokens
    budget = 512 if cross.protocol.id.startswith("deepseek") else cross.protocol.grids["formal"].max_new_tokens
    assert cells(cross) == {
        "smoke": (128, short),
        "smoke_again": (64, short),
        "formal": (256, budget),
        "replay": (64, budget),
    }
    assert short < budget


def test_the_grids_of_round_6(single: LoadedProtocol):
    """R07 0: 4 sources x 8 seeds x 8 conditions."""
    assert cells(single)["formal"][0] == 256
    protocol = single.protocol
    assert (len(protocol.conditions), len(protocol.grids["formal"].replicates)) == (8, 8)
    assert (protocol.contrasts, protocol.carried_over) == ((), ())


def test_the_contract_of_clause_2(cross: LoadedProtocol):
    """Temperature .3, top-p .95, top-k 0; what the rows of a batch may be called; four conditions in their order."""
    decode = cross.protocol.decode
    assert (decode.do_sample, decode.temperature, decode.top_p, decode.top_k) == (True, 0.3, 0.95, 0)
    assert (decode.official_temperature, decode.official_top_p) == (0.3, 0.95)
    assert decode.pairing == "batch-seed aligned"
    assert [one.id for one in cross.protocol.conditions] == ["s0_eos", "s1_eos", "s0_period", "s1_period"]


def test_what_a_replay_compares(cross: LoadedProtocol):
    """R07 7.1 (3): five fields in one process; 7.3: eight across processes. R07 10: the same-seed placement gate."""
    assert cross.protocol.same_process_replay.fields == (
        "run_seed", "prompt_sha256", "generated_ids", "text", "stop_state",
    )  # fmt: skip
    assert cross.protocol.independent_replay.fields == REPLAYED
    assert "run_seed" in cross.protocol.placement_equivalence.fields
    assert cross.protocol.placement_equivalence.grid == "smoke"


def test_rules_of_the_rounds(cross: LoadedProtocol):
    """R07 8 and 10: `terminal-r07`, an execution cache, no resume; programs are executed in the formal grid alone."""
    found = cross.protocol.evaluators
    assert (found.numeric, found.code, found.terminal) == ("numeric-r05", "code-r05", "terminal-r07")
    assert (cross.protocol.resume, cross.protocol.execution_cache) == (False, True)
    assert [name for name in cross.protocol.grids if executed_grid(cross.protocol, name)] == ["formal"]
    assert [domain.name for domain in cross.protocol.domains if is_executed(domain)] == ["code"]


def test_baselines_of_the_families():
    """nano: an accepted run by three digests. DeepSeek: owed."""
    for nano, deepseek in (CROSS, SINGLE):
        assert isinstance(load_protocol(nano).protocol.baseline, FrozenBaseline)
        assert isinstance(load_protocol(deepseek).protocol.baseline, OwedBaseline)


@pytest.mark.parametrize(
    ("gate", "tier", "count"),
    [
        ("seed_identity", "smoke", 32), ("seed_identity", "formal", 64), ("draw_shape", "formal", 64),
        ("replicates_part", "smoke", 1), ("same_process_replay", "smoke", 64), ("placement_equivalence", "formal", 128),
        ("independent_replay", "formal", 64), ("completion_state", "formal", 256), ("sandbox_verdicts", "formal", 64),
        ("frozen_snapshots", "formal", 64), ("frozen_verdicts", "formal", 16),
    ],
)  # fmt: skip
def test_registered_denominators(cross: LoadedProtocol, gate: str, tier: str, count: int):
    """R07 7: each gate's rows; the fresh process's 64 are never 256."""
    (found,) = [one for one in cross.protocol.gates if one.id == gate]
    assert found.tiers[tier].count == count


def test_what_clause_11_forbids(cross: LoadedProtocol):
    """Eleven conclusions at least, pass@4 and common random numbers among them."""
    assert len(cross.protocol.prohibited) >= 11
    words = " ".join(one.text for one in cross.protocol.prohibited)
    assert "pass@" in words
    assert "batch-seed aligned" in words


def decode(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The contract with changed fields."""
    return {"decode": replace(protocol.decode, **changes)}


def seeds(protocol: Any, change: Any) -> dict[str, Any]:
    """The contract with base seeds that `change` makes of the registered ones."""
    contract = protocol.decode.seeds
    return decode(protocol, seeds=replace(contract, base_seeds=tuple(change(contract.base_seeds))))


def grid(protocol: Any, name: str, **changes: Any) -> dict[str, Any]:
    """One grid with changed fields."""
    return {"grids": {**protocol.grids, name: replace(protocol.grids[name], **changes)}}


def again(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The same-process rule with changed fields."""
    return {"same_process_replay": replace(protocol.same_process_replay, **changes)}


def contrast(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The first contrast with changed fields."""
    return {"contrasts": (replace(protocol.contrasts[0], **changes), *protocol.contrasts[1:])}


FAULTS = {
    "another seed": (
        lambda p: seeds(p, lambda s: (replace(s[0], seed=s[0].seed + 1), *s[1:])),
        "seeds of .*: R0: expected 2101325316, found 2101325317",
    ),
    "another ID": (lambda p: {"registered_id": "other-v1"}, "seeds of other-v1: R0"),
    "a replicate twice": (
        lambda p: seeds(p, lambda s: (*s[:3], replace(s[3], replicate="R0"))),
        "replicate: expected one or more, each once",
    ),
    "a seed twice": (lambda p: seeds(p, lambda s: (*s, replace(s[0], replicate="R4"))), "index: expected one or more"),
    "two replicates with each other's seed": (
        lambda p: seeds(p, lambda s: (replace(s[1], replicate="R0"), replace(s[0], replicate="R1"), *s[2:])),
        "seeds of .*: index 1: expected replicate R1, found R0",
    ),
    "no seed": (lambda p: seeds(p, lambda _: ()), "replicate: expected one or more"),
    "a replicate without a seed": (
        lambda p: grid(p, "formal", replicates=("R0", "R9")),
        r"grids.formal.replicates: expected one of \['R0', 'R1', 'R2', 'R3'\], found R9",
    ),
    "a seed less": (lambda p: seeds(p, lambda s: s[:3]), r"grids.formal.replicates: .*found R3"),
    "unknown grid of the replay": (lambda p: again(p, grid="none"), "same_process_replay.grid: .*found none"),
    "replay at another budget": (
        lambda p: again(p, grid="replay"),
        r"same_process_replay.grid: expected .* 16\), found",
    ),
    "replay of two replicates": (lambda p: again(p, grid="smoke"), r"same_process_replay.grid: .*\('R0', 'R1'\)"),
    "replay of another replicate": (lambda p: again(p, replicate="R1"), r"same_process_replay.grid: .*\('R1',\)"),
    "replay of fewer sources": (lambda p: grid(p, "smoke_again", per_domain=1), "same_process_replay.grid: expected"),
    "replay at fewer tokens": (lambda p: grid(p, "smoke_again", max_new_tokens=8), "same_process_replay.grid"),
    "replay of what smoke hasn't": (
        lambda p: {
            **again(p, replicate="R2"),
            "grids": {**p.grids, "smoke_again": replace(p.grids["smoke_again"], replicates=("R2",))},
        },
        "same_process_replay.replicate: .*found R2",
    ),
    "contrast of an unknown condition": (
        lambda p: contrast(p, plus=("s1_bos",)),
        "contrasts.system_main: expected one of .*found s1_bos",
    ),
    "contrast of one side": (lambda p: contrast(p, minus=()), "contrasts.system_main: expected two sides"),
    "contrast without a plus": (lambda p: contrast(p, plus=()), "contrasts.system_main: expected two sides"),
    "contrast of a condition with itself": (
        lambda p: contrast(p, minus=("s0_eos", "s1_eos")),
        "contrasts.system_main: expected two sides, each name once",
    ),
    "contrast over nothing": (
        lambda p: contrast(p, divisor=0),
        "contrasts.system_main: expected a divisor above 0, found 0",
    ),
    "negative divisor": (lambda p: contrast(p, divisor=-2), "expected a divisor above 0, found -2"),
    "contrast twice": (lambda p: {"contrasts": (*p.contrasts, p.contrasts[0])}, "contrasts: expected unique names"),
    "direction of an unknown contrast": (
        lambda p: {"carried_over": (replace(p.carried_over[0], contrast="other"), *p.carried_over[1:])},
        "carried_over.period_shortens: .*found other",
    ),
    "direction twice": (
        lambda p: {"carried_over": (*p.carried_over, p.carried_over[0])},
        "carried_over: expected unique names",
    ),
    "half a batch": (lambda p: decode(p, rows_per_batch=2), "decode.rows_per_batch: expected 4, found 2"),
    "replay at the smoke budget": (
        lambda p: {"independent_replay": replace(p.independent_replay, grid="smoke_again")},
        "grids.smoke_again.max_new_tokens: expected 512, the formal grid's, found 16",
    ),
    "placements at the formal budget": (
        lambda p: {"placement_equivalence": replace(p.placement_equivalence, grid="formal")},
        "placement_equivalence.grid: expected smoke, the smoke grid, found formal",
    ),
    "empty ladder": (lambda p: {"placement_ladder": ()}, "expected each placement once"),
    "no limit": (
        lambda p: {"sandbox": replace(p.sandbox, pids=0)},
        "sandbox.pids: expected a limit above 0, found 0",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_protocol_that_disagrees_with_itself_is_refused(fault: str, sampling: LoadedProtocol):
    """Each requirement fails once, by the name of what it is about; the registered protocol has none."""
    change, message = FAULTS[fault]
    check_protocol(sampling.protocol)
    with pytest.raises(ProtocolError, match=message):
        check_protocol(replace(sampling.protocol, **change(sampling.protocol)))


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    ("gate_id", "tier"),
    [("same_process_replay", "smoke"), ("seed_identity", "formal"), ("independent_replay", "formal")],
)
def test_a_gate_count_off_by_one_is_refused(gate_id: str, tier: str, by: int, sampling: LoadedProtocol):
    """The denominators of these rounds' gates follow from their grids too."""
    protocol = sampling.protocol
    gate = next(gate for gate in protocol.gates if gate.id == gate_id)
    at = gate.tiers[tier]
    off = replace(gate, tiers={**gate.tiers, tier: GateGrid(grid=at.grid, count=at.count + by)})
    gates = tuple(off if one.id == gate_id else one for one in protocol.gates)
    message = f"gates.{gate_id}.tiers.{tier}.count: expected {at.count}, found {at.count + by}"
    with pytest.raises(ProtocolError, match=message):
        check_gates(replace(protocol, gates=gates), sampling.manifest, sampling.profile)


def test_only_a_gate_made_apart_has_another_grid(sampling: LoadedProtocol):
    """The same-process gate judges its own grid; a gate of the run itself may not."""
    protocol = sampling.protocol
    gate = next(gate for gate in protocol.gates if gate.id == "seed_identity")
    moved = replace(gate, tiers={**gate.tiers, "smoke": GateGrid(grid="smoke_again", count=16)})
    gates = tuple(moved if one.id == "seed_identity" else one for one in protocol.gates)
    with pytest.raises(ProtocolError, match=r"gates.seed_identity.tiers.smoke.grid: expected smoke, the tier's own"):
        check_gates(replace(protocol, gates=gates), sampling.manifest, sampling.profile)


WORDS = {
    "a strategy": (("decode", "strategy"), "beam"),
    "a name for the pairing": (("decode", "pairing"), "common random numbers"),
    "a rule for seeds": (("decode", "seeds", "rule"), "run-seed-r08"),
    "a terminal rule": (("evaluators", "terminal"), "terminal-r05"),
    "a measure": (("carried_over", 0, "measure"), "fixed_budget_success"),
    "a direction": (("carried_over", 0, "direction"), "none"),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_rule_that_is_not_known_is_refused(word: str, sampling: LoadedProtocol):
    """Each registered rule is one that the harness has for sampling."""
    path, value = WORDS[word]
    plain = holder = msgspec.json.decode(msgspec.json.encode(sampling.protocol))
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    with pytest.raises(ProtocolError, match=rf"\.{path[-1]}.*found .*{value}"):
        convert(plain, AnyProtocol, where="protocol", error=ProtocolError, todo="")


@pytest.mark.parametrize("name", ["row_determinism", "forward"])
def test_what_other_families_register_is_no_part(name: str, sampling: LoadedProtocol):
    """A sampling protocol with another family's field is refused."""
    plain = msgspec.to_builtins(sampling.protocol) | {name: {}}
    with pytest.raises(ProtocolError, match=name):
        convert(plain, AnyProtocol, where="protocol", error=ProtocolError, todo="")
