from typing import Any

import msgspec
import pytest

from harness.errors import ProtocolError
from harness.protocols.check import check_gates, check_manifest, check_protocol
from harness.protocols.load import LoadedProtocol
from harness.records.protocol import GateGrid, Variant

replace = msgspec.structs.replace


def first(items: tuple[Any, ...], **fields: Any) -> tuple[Any, ...]:
    """The tuple with fields of its first record changed."""
    return (replace(items[0], **fields), *items[1:])


PROTOCOL_FAULTS = {
    "edits": (lambda p: {"conditions": first(p.conditions, edits=1)}, "conditions.s0_eos.edits: expected 0, found 1"),
    "boundary": (lambda p: {"conditions": first(p.conditions, boundary="y")}, "conditions.s0_eos.boundary"),
    "edge": (lambda p: {"edges": first(p.edges, left="s9_eos")}, "edges.system_eos"),
    "input": (lambda p: {"domains": first(p.domains, input="other")}, "domains.english.input"),
    "content": (
        lambda p: {"domains": first(p.domains, content="no place")},
        r"domains.english.content: expected \{text\}",
    ),
    "placement": (lambda p: {"placement": "gpu30"}, r"placement: expected one of .*gpu28.*gpu29.*, found gpu30"),
    "tier grid": (lambda p: {"tier_grids": {**p.tier_grids, "smoke": "none"}}, "tier_grids.smoke"),
    "twice": (lambda p: {"edges": (*p.edges, p.edges[0])}, "edges: expected unique names"),
    "rows": (lambda p: {"decode": replace(p.decode, rows_per_batch=7)}, "rows_per_batch: expected 8, found 7"),
    "one placement": (
        lambda p: {"placement_equivalence": replace(p.placement_equivalence, right="gpu29")},
        "expected two placements, found gpu29 twice",
    ),
    "no thread": (
        lambda p: {"execution": replace(p.execution, threads=0)},
        "execution.threads: expected from 1 to 1024, found 0",
    ),
    "threads below none": (lambda p: {"execution": replace(p.execution, threads=-2)}, "found -2"),
    "threads beyond all": (lambda p: {"execution": replace(p.execution, threads=10**9)}, "found 1000000000"),
    "a variant without a thread": (
        lambda p: {"row_determinism": replace(p.row_determinism, variants=(Variant(id="none", threads=0, workers=1),))},
        "row_determinism.none.threads: expected from 1 to 1024, found 0",
    ),
    "unknown pair": (
        lambda p: {"placement_equivalence": replace(p.placement_equivalence, right="gpu27")},
        "found gpu27",
    ),
    "replay elsewhere": (
        lambda p: {"independent_replay": replace(p.independent_replay, right="gpu28")},
        "independent_replay: expected gpu29",
    ),
}


@pytest.mark.parametrize("fault", PROTOCOL_FAULTS)
def test_a_protocol_that_disagrees_with_itself_is_refused(fault: str, loaded: LoadedProtocol):
    """Names resolve, edits follow from the boundary, a pair is two placements."""
    change, message = PROTOCOL_FAULTS[fault]
    with pytest.raises(ProtocolError, match=message):
        check_protocol(replace(loaded.protocol, **change(loaded.protocol)))


def swapped(sources: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first two sources with each other's index, so that ranks don't ascend."""
    return (replace(sources[1], index=0), replace(sources[0], index=1), *sources[2:])


MANIFEST_FAULTS = {
    "order": (lambda m: {"sources": swapped(m.sources)}, "english order: expected ascending ranks"),
    "rank": (lambda m: {"sources": first(m.sources, selection_rank="0" * 64)}, "english ranks"),
    "index": (
        lambda m: {"sources": first(m.sources, index=1)},
        r"english indices: expected 0..3, found \[1, 1, 2, 3\]",
    ),
    "prompts": (lambda m: {"sources": first(m.sources, prompts={})}, r"wikitext2/raw-validation/0443 prompts"),
    "protocol": (lambda m: {"protocol": "other"}, "protocol: expected deepseek-behavior, found other"),
    "denominators": (
        lambda m: {"denominators": {**m.denominators, "smoke": replace(m.denominators["smoke"], cells=31)}},
        "denominators: expected",
    ),
}


@pytest.mark.parametrize("fault", MANIFEST_FAULTS)
def test_a_manifest_that_is_not_the_grids_is_refused(fault: str, loaded: LoadedProtocol):
    """Sources stand in rank order with consecutive indices, all conditions and the grids' counts."""
    change, message = MANIFEST_FAULTS[fault]
    with pytest.raises(ProtocolError, match=message):
        check_manifest(loaded.protocol, replace(loaded.manifest, **change(loaded.manifest)))


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("gate_id", ["registration", "normal_return", "greedy_steps", "paired_comparison"])
def test_a_gate_count_off_by_one_is_refused(gate_id: str, by: int, loaded: LoadedProtocol):
    """A gate's denominator is its grid's number of rows, no more and no less."""
    protocol = loaded.protocol
    gate = next(gate for gate in protocol.gates if gate.id == gate_id)
    at = gate.tiers["smoke"]
    off = replace(gate, tiers={**gate.tiers, "smoke": GateGrid(grid=at.grid, count=at.count + by)})
    gates = tuple(off if one.id == gate_id else one for one in protocol.gates)
    message = f"gates.{gate_id}.tiers.smoke.count: expected {at.count}, found {at.count + by}"
    with pytest.raises(ProtocolError, match=message):
        check_gates(replace(protocol, gates=gates), loaded.manifest, loaded.profile)


def test_the_document_registers_one_denominator_for_each_grid(loaded: LoadedProtocol):
    """R04 3 and 4: 4 sources and 32 outputs in smoke, 16 and 128 in the formal grid, 32 in the long reproduction."""
    counts = {name: (one.sources, one.cells) for name, one in loaded.manifest.denominators.items()}
    assert counts == {"smoke": (4, 32), "formal": (16, 128), "long_repro": (4, 32)}
