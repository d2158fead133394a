"""Two checks on another kind of model: prompts in turns that each end in EOS, and a dense model that is offloaded."""

from types import SimpleNamespace

import msgspec
import pytest

from harness.checks.prompts import batch_alignment, single_id_contract
from harness.checks.whole import layer_offloaded, offload_wanted
from harness.protocols.grids import RowKey, UnitKey
from harness.protocols.load import load_protocol
from harness.records.run import Edit, PlacementFacts

LOADED = load_protocol("smollm2-behavior")
NANO = load_protocol("nano-behavior")
BOS, EOS, TEXT = 1, 2, 900
TURN = (BOS, TEXT, TEXT, EOS, TEXT)
OFFICIAL = (*TURN * 4, BOS, TEXT)
BOUNDARY = 13
SOURCE = LOADED.manifest.sources[0]
UNIT = UnitKey(SOURCE.domain, SOURCE.index, SOURCE.source_id, "greedy")


def put(ids, at, token):
    """The IDs with one replaced."""
    return (*ids[:at], token, *ids[at + 1 :])


def prompt_of(condition, boundary):
    """A cell's prompt as it should be."""
    edit = Edit(position=BOUNDARY, official=EOS, replaced=boundary.id)
    edited = bool(condition.edits)
    ids = put(OFFICIAL, BOUNDARY, boundary.id) if edited else OFFICIAL
    edits = (edit,) if edited else ()
    return SimpleNamespace(condition=condition.id, prompt_ids=ids, edits=edits, left_padding=0)


def evidence(**changed):
    """A unit's evidence of eight right prompts, with some prompt IDs replaced by condition."""
    boundaries = {one.name: one for one in LOADED.protocol.boundaries}
    cells = {one.id: prompt_of(one, boundaries[one.boundary]) for one in LOADED.protocol.conditions}
    for name, ids in changed.items():
        cells[name].prompt_ids = ids
    unit = SimpleNamespace(cells=tuple(cells.values()))
    return SimpleNamespace(loaded=LOADED, prompt=lambda _row, name: cells[name], batch=lambda _row: unit)


def row(condition):
    """The row of a cell."""
    return RowKey(UNIT, condition)


@pytest.mark.parametrize("condition", [one.id for one in LOADED.protocol.conditions])
def test_right_prompts_hold(condition):
    """Four EOS and five BOS in an official prompt are no fault of it."""
    assert single_id_contract(evidence(), row(condition)) == ()
    assert list(batch_alignment(evidence(), RowKey(UNIT, ""))) == []


def test_the_edit_of_another_turns_end_is_found():
    """One ID differs, and it is an EOS: only not the one-shot answer's."""
    (*found,) = single_id_contract(evidence(s0_x=put(OFFICIAL, 8, 104)), row("s0_x"))
    assert any("edited positions: expected [13], found [8]" in one for one in found)


def test_an_official_prompt_that_is_not_in_turns_is_found():
    """There is no boundary to compare with then."""
    found = single_id_contract(evidence(s0_eos=put(OFFICIAL, 3, TEXT)), row("s0_eos"))
    assert any("BOS and EOS in the official prompt: expected BOS at the start, 4 turns" in one for one in found)


@pytest.mark.parametrize(("name", "at"), [("s0_x", 2), ("s0_bos", 6), ("s1_eos", 7)])
def test_a_bos_where_no_turn_begins_is_found(name, at):
    """In an edited cell and in an official one."""
    ids = put(prompt_of(*condition_of(name)).prompt_ids, at, BOS)
    assert any("BOS positions" in one for one in batch_alignment(evidence(**{name: ids}), RowKey(UNIT, "")))


def condition_of(name):
    """A condition and its boundary."""
    condition = next(one for one in LOADED.protocol.conditions if one.id == name)
    return condition, next(one for one in LOADED.protocol.boundaries if one.name == condition.boundary)


def facts(*offloaded, moe=()):
    """Placement facts with these modules offloaded."""
    return PlacementFacts(
        id="any",
        dispatched=bool(offloaded),
        device_map={},
        parameter_bytes={},
        offloaded=offloaded,
        offloaded_moe_layers=moe,
    )


@pytest.mark.parametrize(
    ("loaded", "offloaded", "moe", "holds"),
    [
        (LOADED, ("model.layers.20", "model.norm"), (), True),
        (LOADED, ("model.norm",), (), False),
        (LOADED, (), (), False),
        (NANO, ("model.layers.4",), (4,), True),
        (NANO, ("model.layers.0",), (), False),
    ],
)
def test_a_layer_must_really_be_offloaded(loaded, offloaded, moe, holds):
    """Of a dense model any layer; of one with experts a layer that has them; a norm is none."""
    of = SimpleNamespace(loaded=loaded)
    assert layer_offloaded(of, facts(), facts(*offloaded, moe=moe)) is holds
    assert layer_offloaded(of, facts(*offloaded, moe=moe), facts()) is holds


def test_a_message_names_what_was_wanted():
    """A dense model has no MoE layer to offload."""
    assert offload_wanted(SimpleNamespace(loaded=LOADED)) == "a layer offloaded on one side"
    assert offload_wanted(SimpleNamespace(loaded=NANO)) == "an MoE layer offloaded on one side"


def test_a_dense_profile_says_so():
    """No routed experts, and all layers dense."""
    shape = LOADED.profile.shape
    assert (shape.routed_experts, shape.experts_per_token, shape.dense_layers) == (0, 0, shape.layers)
    assert msgspec.structs.asdict(LOADED.protocol.execution)["experts"] == "none"
