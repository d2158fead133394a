"""The converted checkpoint itself, where it is: digests, shape, special IDs, and that it loads as registered."""

import os
from pathlib import Path

import msgspec
import pytest

from harness.model.identity import check_shape, check_special_ids, checkpoint_digests, file_deviations
from harness.model.load import load_model, require_map
from harness.model.placement import placement_facts
from harness.places import places
from harness.prompts.tokenizer import locate_tokenizer
from harness.protocols.load import load_protocol

pytestmark = pytest.mark.smollm2


@pytest.fixture(scope="module")
def folder():
    """The checkpoint's folder."""
    return Path(os.environ["HARNESS_SMOLLM2"])


@pytest.fixture(scope="module")
def trained():
    """A protocol on it."""
    return load_protocol("smollm2-behavior")


def test_it_is_the_registered_one(trained, folder):
    """Every file, shape and special ID."""
    assert file_deviations(trained.profile, checkpoint_digests(trained.profile, folder)) == ()
    check_shape(trained.profile, folder)
    check_special_ids(trained.profile, folder)


def test_its_tokenizer_has_the_boundaries_as_single_tokens(trained, folder):
    """And a text with digits, spaces and Chinese comes back whole, in tokens that tile it."""
    tokenizer = locate_tokenizer(trained, folder, places())
    for one in trained.protocol.boundaries:
        assert tokenizer.encode(one.token) == (one.id,)
    text = " 12 345.6\n\tdef f(x):\n        return x  # 今天\n"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.spans(text)[-1][1] == len(text)


@pytest.mark.parametrize("place", ["smollm2-resident", "smollm2-disk"])
def test_it_loads_under_both_placements(trained, folder, place):
    """No weight is missing; the tied output stays with the embedding; ten layers are really away in one of the two."""
    placement = next(one for one in trained.protocol.placements if one.id == place)
    execution = msgspec.structs.replace(trained.protocol.execution, threads=1)
    loaded = load_model(trained.profile, execution, placement, folder)
    try:
        facts = placement_facts(loaded.model, placement.id, trained.profile, loaded.device)
        require_map(placement, facts.device_map)
        assert sum(one.numel() for one in loaded.model.parameters()) == 134_515_008
        assert sorted(facts.offloaded) == sorted(placement.offloaded)
        assert facts.offloaded_moe_layers == ()
    finally:
        loaded.close()
