"""The task protocols of Round 08: the clauses' numbers and published values, and that one at odds with itself fails."""

from typing import Any

import msgspec
import pytest

from harness.errors import ProtocolError
from harness.protocols.check import check_gates, check_protocol
from harness.protocols.grids import denominators, executed_grid, gate_rows, grid_places, is_executed
from harness.protocols.load import LoadedProtocol, load_protocol
from harness.records.base import convert
from harness.records.protocol import GateGrid, RegisteredProtocol
from harness.tapes.tape import Tape

replace = msgspec.structs.replace
NAMES = ("nano-task-crn", "deepseek-task-crn")
DIAGNOSTIC = (0, 8, 16, 24)
ELEVEN = (
    "protocol", "model_revision", "generation_contract", "tape", "prompt_sha256", "uniforms_sha256", "generated_ids",
    "text", "eos", "truncated", "rng_before",
)  # fmt: skip
PUBLISHED = {
    "T0": (2572353518, "9952ffeec840649d2654d35b9a86c97db3737b70826c366e3f5a7633ec26d0c4"),
    "T1": (399507326, "17cfff7e5b3b6d011f4d1b8076637d4bdfb0ebd8a6021beb2a0011a8f6d520c6"),
    "T2": (405284229, "1828258525ea1b450d6de0ba0d9ff12f737b048b1cef554d7dd2ba90d25e5f4d"),
    "T3": (568701915, "21e5b3dbe506f1b7e9d483318195fc5cb4990c518850a52d40b5eff225491bd2"),
}


@pytest.fixture(params=NAMES)
def tasks(request) -> LoadedProtocol:
    """Each protocol of Round 08."""
    return load_protocol(request.param)


@pytest.fixture(scope="module")
def task() -> LoadedProtocol:
    """The registered one, to be changed."""
    return load_protocol("deepseek-task-crn")


def test_the_grids_of_round_8(tasks: LoadedProtocol):
    """R08 5: 64 short outputs, 32 of them drawn again at once, 352 formal ones, 64 in a fresh process."""
    counts = {name: denominators(tasks.protocol, name, 2) for name in tasks.protocol.grids}
    assert {name: (one.sources, one.units, one.cells) for name, one in counts.items()} == {
        "smoke": (8, 16, 64),
        "smoke_again": (8, 8, 32),
        "formal": (64, 88, 352),
        "replay": (16, 16, 64),
    }
    budgets = {name: grid.max_new_tokens for name, grid in tasks.protocol.grids.items()}
    assert budgets == {"smoke": 16, "smoke_again": 16, "formal": 512, "replay": 512}


def test_formal_is_two_blocks(tasks: LoadedProtocol):
    """R08 1 and 5.2: 32 tasks a domain under T0, and four of them under three more tapes: 256 and 96 cells."""
    primary, diagnostic = tasks.protocol.grid_blocks["formal"]
    assert (primary.role, primary.indices, primary.replicates) == ("primary", tuple(range(32)), ("T0",))
    assert (diagnostic.role, diagnostic.indices) == ("diagnostic", DIAGNOSTIC)
    assert diagnostic.replicates == ("T1", "T2", "T3")
    sizes = [2 * 4 * len(one.indices) * len(one.replicates) for one in (primary, diagnostic)]
    assert sizes == [256, 96]


def test_units_run_in_the_registered_order(tasks: LoadedProtocol):
    """DECISIONS: code then mathematics, ranks ascending, T0 then T1 to T3."""
    units = tasks.units("formal", tasks.domains)
    assert [unit.domain for unit in units] == ["code"] * 44 + ["math"] * 44
    assert [(unit.index, unit.replicate) for unit in units[:6]] == [
        (0, "T0"), (0, "T1"), (0, "T2"), (0, "T3"), (1, "T0"), (2, "T0"),
    ]  # fmt: skip
    assert [unit.index for unit in units[:44]] == sorted(unit.index for unit in units[:44])
    assert len(set(units)) == 88
    assert grid_places(tasks.protocol, "replay") == tuple((index, "T0") for index in range(0, 32, 4))


def test_smoke_judges_every_prompt_of_the_formal_grid(tasks: LoadedProtocol):
    """R08 5.1: 64 tasks x 4 conditions, each prompt once, whatever the tapes."""
    gate = next(gate for gate in tasks.protocol.gates if gate.id == "registered_prompts")
    assert gate.tiers == {"smoke": GateGrid(grid="formal", count=256)}
    units = tasks.units("formal", tasks.domains)
    rows = gate_rows(tasks.protocol, tasks.profile, gate, units)
    assert len({row.name for row in rows}) == len(rows) == 256
    assert rows[0].name == f"{units[0].source_id}:s0_eos"


def test_the_published_tapes_are_registered(task: LoadedProtocol):
    """R08 4.2: display seeds and digests of the document, which follow from its own ID."""
    found = {one.label: (one.display_seed, one.sha256) for one in task.protocol.decode.register.tapes}
    assert found == PUBLISHED
    assert task.protocol.registered_id == "llm-atlas-deepseek-chat-task-bootstrap-crn-v1"
    assert task.protocol.decode.register.origin == "published"


def test_nano_has_tapes_of_its_own():
    """Another ID, so no value in common."""
    nano = load_protocol("nano-task-crn").protocol
    assert nano.decode.register.origin == "ours"
    assert not {one.sha256 for one in nano.decode.register.tapes} & {digest for _, digest in PUBLISHED.values()}


def test_the_published_tasks_are_selected(task: LoadedProtocol):
    """R08 3: the first and the last of each domain; freezing held all 64 against the document."""
    listed = {(one.domain, one.index): one.source_id for one in task.manifest.sources}
    assert (listed["code", 0], listed["code", 31]) == ("HumanEval/31", "HumanEval/102")
    assert (listed["math", 0], listed["math", 31]) == ("gsm8k/test/1069", "gsm8k/test/0964")
    assert len(listed) == 64


def test_the_registered_placement_is_the_documents(task: LoadedProtocol):
    """R08 2: embedding and layers 0 to 23 resident, the rest on the CPU, 28 and 80 GiB."""
    protocol = task.protocol
    placed = next(one for one in protocol.placements if one.id == protocol.placement)
    assert (placed.gpu_memory, placed.cpu_memory) == ("28GiB", "80GiB")
    assert placed.resident == ("model.embed_tokens", *(f"model.layers.{layer}" for layer in range(24)))
    assert placed.offloaded == (*(f"model.layers.{layer}" for layer in (24, 25, 26)), "model.norm", "lm_head")


def test_contracts_of_round_8(tasks: LoadedProtocol):
    """R08 2, 4.3, 5.3, 7: the sampler, four contrasts right minus left, the band's seed and percentiles, replays."""
    protocol = tasks.protocol
    sampler = protocol.decode.sampler
    assert (sampler.rule, sampler.temperature, sampler.top_p) == ("icdf-r08", 0.3, 0.95)
    assert (sampler.min_tokens_to_keep, sampler.device) == (1, "cpu")
    assert {one.id: (one.left, one.right) for one in protocol.contrasts} == {
        "period_at_s0": ("s0_eos", "s0_period"),
        "period_at_s1": ("s1_eos", "s1_period"),
        "system_at_eos": ("s0_eos", "s1_eos"),
        "system_at_period": ("s0_period", "s1_period"),
    }
    rule = protocol.bootstrap
    assert (rule.seed, rule.resamples, rule.percentiles) == (1364512825, 10000, (2.5, 50.0, 97.5))
    assert protocol.independent_replay.fields == ELEVEN
    assert (protocol.resume, protocol.execution_cache) == (True, False)
    assert [one.id for one in protocol.conditions] == ["s0_eos", "s1_eos", "s0_period", "s1_period"]
    assert all(is_executed(domain) == (domain.name == "code") for domain in protocol.domains)
    assert [executed_grid(protocol, grid) for grid in ("smoke", "formal", "replay")] == [False, True, False]


@pytest.mark.parametrize(("name", "required"), [("nano-task-crn", True), ("deepseek-task-crn", False)])
def test_loop_equivalence_is_a_gate_where_it_is_required(name: str, required: bool):
    """In BF16 at full size the comparison is recorded; in float32 it must hold."""
    protocol = load_protocol(name).protocol
    gates = {gate.id for gate in protocol.gates}
    assert (protocol.loop_equivalence == "required", "loop_equivalence" in gates) == (required, required)
    assert "loop_recorded" in gates


def tapes(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The first tape with changed fields."""
    register = protocol.decode.register
    first = replace(register.tapes[0], **changes)
    return decode(protocol, register=replace(register, tapes=(first, *register.tapes[1:])))


def decode(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The contract with changed fields."""
    return {"decode": replace(protocol.decode, **changes)}


def sampler(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The sampler with changed fields."""
    return decode(protocol, sampler=replace(protocol.decode.sampler, **changes))


def block(protocol: Any, grid: str, at: int = 0, **changes: Any) -> dict[str, Any]:
    """One block of a grid with changed fields."""
    blocks = list(protocol.grid_blocks[grid])
    blocks[at] = replace(blocks[at], **changes)
    return {"grid_blocks": {**protocol.grid_blocks, grid: tuple(blocks)}}


def contrast(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The first contrast with changed fields."""
    return {"contrasts": (replace(protocol.contrasts[0], **changes), *protocol.contrasts[1:])}


def secondary(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The first secondary contrast with changed fields."""
    return {"secondary": (replace(protocol.secondary[0], **changes), *protocol.secondary[1:])}


def bootstrap(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The rule of the bands with changed fields."""
    return {"bootstrap": replace(protocol.bootstrap, **changes)}


def warpers(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The sampler's warpers with changed fields, named as official ones too."""
    official = {f"official_{name}": value for name, value in changes.items()}
    return decode(protocol, sampler=replace(protocol.decode.sampler, **changes), **official)


def again(protocol: Any, **changes: Any) -> dict[str, Any]:
    """The same-process rule with changed fields."""
    return {"same_process_replay": replace(protocol.same_process_replay, **changes)}


def register(protocol: Any, change: Any) -> dict[str, Any]:
    """The tapes that `change` makes of the registered ones."""
    own = protocol.decode.register
    return decode(protocol, register=replace(own, tapes=tuple(change(own.tapes))))


FAULTS = {
    "another display seed": (lambda p: tapes(p, display_seed=1), "tape T0.display_seed: expected 2572353518, found 1"),
    "another digest": (lambda p: tapes(p, sha256="0" * 64), "tape T0.sha256: expected 9952ff"),
    "another ID": (lambda p: {"registered_id": "other-v1"}, "tape T0.sha256: expected"),
    "tapes in another order": (lambda p: register(p, lambda own: own[::-1]), "register.tapes: expected"),
    "no tape": (lambda p: register(p, lambda own: ()), "register.tapes: expected"),
    "a tape less": (lambda p: register(p, lambda own: own[:3]), "grids.formal.replicates: .*found T3"),
    "another temperature": (lambda p: sampler(p, temperature=1.0), "sampler.temperature: expected 0.3, found 1.0"),
    "another top-p": (lambda p: sampler(p, top_p=0.9), "sampler.top_p: expected 0.95, found 0.9"),
    "no mass": (lambda p: warpers(p, top_p=0.0), r"sampler.top_p: expected above 0, at most 1.0, found 0.0"),
    "more than all": (lambda p: warpers(p, top_p=1.5), r"sampler.top_p: expected above 0, at most 1.0, found 1.5"),
    "no temperature": (lambda p: warpers(p, temperature=0.0), r"sampler.temperature: expected above 0"),
    "two IDs kept": (lambda p: sampler(p, min_tokens_to_keep=2), "min_tokens_to_keep: expected 1, found 2"),
    "another rule than the name": (lambda p: sampler(p, rule="icdf-v1"), "sampler: expected icdf-v1, found icdf-r08"),
    "no cache": (lambda p: decode(p, use_cache=False), "decode.use_cache: expected True"),
    "half a batch": (lambda p: decode(p, rows_per_batch=2), "decode.rows_per_batch: expected 4, found 2"),
    "a grid without blocks": (
        lambda p: {"grid_blocks": {name: one for name, one in p.grid_blocks.items() if name != "replay"}},
        "grid_blocks: expected .*replay",
    ),
    "blocks of no grid": (
        lambda p: {"grid_blocks": {**p.grid_blocks, "other": p.grid_blocks["smoke"]}},
        "grid_blocks: expected .*found .*other",
    ),
    "no block": (lambda p: {"grid_blocks": {**p.grid_blocks, "replay": ()}}, "grid_blocks.replay: expected one block"),
    "a rank outside": (lambda p: block(p, "smoke", indices=(0, 32)), r"ranks below 32, found \[32\]"),
    "a negative rank": (lambda p: block(p, "smoke", indices=(-1, 0)), r"ranks below 32, found \[-1\]"),
    "ranks in another order": (lambda p: block(p, "smoke", indices=(8, 0, 16, 24)), "ascending ranks"),
    "a rank twice": (lambda p: block(p, "smoke", indices=(0, 0, 8)), "ranks, each once"),
    "a tape outside": (lambda p: block(p, "smoke", replicates=("T0", "T2")), r"expected one of \['T0', 'T1'\]"),
    "a tape twice": (lambda p: block(p, "smoke", replicates=("T0", "T0")), "replicates, each once"),
    "a tape that no block has": (lambda p: block(p, "smoke", replicates=("T0",)), r"none under \['T1'\]"),
    "blocks that overlap": (
        lambda p: block(p, "formal", 1, replicates=("T0", "T1", "T2", "T3")),
        "no place in two blocks, found .*0, 'T0'",
    ),
    "a primary block of fewer tasks": (
        lambda p: block(p, "formal", indices=tuple(range(31))),
        "primary block of formal: expected",
    ),
    "no primary block": (lambda p: block(p, "formal", role="diagnostic"), "primary block of formal"),
    "two primary blocks": (lambda p: block(p, "formal", 1, role="primary"), "primary block of formal"),
    "a primary block elsewhere": (lambda p: block(p, "replay", role="primary"), r"expected \['check'\], found .*pri"),
    "a check in the formal grid": (lambda p: block(p, "formal", 1, role="check"), "expected .*primary.*found .*check"),
    "replay of an unknown grid": (lambda p: again(p, grid="none"), "same_process_replay.grid: .*found none"),
    "replay of another tape": (lambda p: again(p, replicate="T1"), "grid: expected smoke's places"),
    "replay of what smoke hasn't": (lambda p: again(p, replicate="T3"), "same_process_replay.replicate: .*found T3"),
    "replay at another budget": (lambda p: again(p, grid="replay"), "same_process_replay.grid: expected smoke's"),
    "contrast of an unknown condition": (lambda p: contrast(p, left="s0_bos"), "contrasts.period_at_s0: .*s0_bos"),
    "contrast of a condition with itself": (lambda p: contrast(p, right="s0_eos"), "found s0_eos twice"),
    "contrast twice": (lambda p: contrast(p, id="period_at_s1"), "expected unique names"),
    "secondary of one side": (lambda p: secondary(p, minus=()), "secondary.boundary_main: expected two sides"),
    "secondary of a foreign condition": (lambda p: secondary(p, plus=("s0_bos",)), "secondary.boundary_main: .*s0_bos"),
    "secondary over nothing": (lambda p: secondary(p, divisor=0), "expected a divisor above 0, found 0"),
    "secondary under a primary's name": (lambda p: secondary(p, id="period_at_s0"), "expected unique names"),
    "percentiles in another order": (lambda p: bootstrap(p, percentiles=(97.5, 2.5)), "expected ascending"),
    "a percentile above 100": (lambda p: bootstrap(p, percentiles=(2.5, 101.0)), "expected ascending"),
    "no percentile": (lambda p: bootstrap(p, percentiles=()), "percentiles: expected one or more"),
    "no resample": (lambda p: bootstrap(p, resamples=0), "resamples: expected above 0"),
    "a seed too long": (lambda p: bootstrap(p, seed=2**32), "seed: expected 32 bits"),
    "an equivalence that no gate judges": (
        lambda p: {"loop_equivalence": "required"},
        "gates under loop_equivalence: expected .*loop_equivalence",
    ),
    "replay at the smoke budget": (
        lambda p: {"independent_replay": replace(p.independent_replay, grid="smoke")},
        "grids.smoke.max_new_tokens: expected 512, the formal grid's, found 16",
    ),
    "placements at the formal budget": (
        lambda p: {"placement_equivalence": replace(p.placement_equivalence, grid="formal")},
        "placement_equivalence.grid: expected smoke, the smoke grid, found formal",
    ),
    "a smoke cell that formal doesn't have": (
        lambda p: block(p, "smoke", indices=(0, 1)),
        r"grid_blocks.smoke: expected places of formal, found \[\(1, 'T1'\)\]",
    ),
    "no limit": (lambda p: {"sandbox": replace(p.sandbox, pids=0)}, "sandbox.pids: expected a limit above 0, found 0"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_protocol_that_disagrees_with_itself_is_refused(fault: str, task: LoadedProtocol):
    """Each requirement fails once, by the name of what it is about; the registered protocol has none."""
    change, message = FAULTS[fault]
    check_protocol(task.protocol)
    with pytest.raises(ProtocolError, match=message):
        check_protocol(replace(task.protocol, **change(task.protocol)))


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    ("gate_id", "tier"),
    [
        ("registered_prompts", "smoke"),
        ("same_process_replay", "smoke"),
        ("tape_account", "formal"),
        ("sandbox_verdicts", "formal"),
        ("independent_replay", "formal"),
    ],
)
def test_a_gate_count_off_by_one_is_refused(gate_id: str, tier: str, by: int, task: LoadedProtocol):
    """Denominators follow from blocks: 256 prompts, 32 and 64 replayed cells, 352 accounts, 176 programs."""
    protocol = task.protocol
    gate = next(gate for gate in protocol.gates if gate.id == gate_id)
    at = gate.tiers[tier]
    off = replace(gate, tiers={**gate.tiers, tier: GateGrid(grid=at.grid, count=at.count + by)})
    gates = tuple(off if one.id == gate_id else one for one in protocol.gates)
    message = f"gates.{gate_id}.tiers.{tier}.count: expected {at.count}, found {at.count + by}"
    with pytest.raises(ProtocolError, match=message):
        check_gates(replace(protocol, gates=gates), task.manifest, task.profile)


def test_a_part_that_checks_the_loop_is_no_protocol(task: LoadedProtocol):
    """What is derived from a task protocol can't be registered by a file."""
    plain = msgspec.to_builtins(task.protocol) | {"kind": "loop_check"}
    with pytest.raises(ProtocolError, match="loop_check"):
        convert(plain, RegisteredProtocol, where="protocol", error=ProtocolError, todo="")


def test_tapes_are_those_of_the_registered_id(tasks: LoadedProtocol):
    """Whatever the folder is called."""
    for one in tasks.protocol.decode.register.tapes:
        assert Tape(tasks.protocol.registered_id, one.label).sha256 == one.sha256
