"""Seeds by rule: the published base seeds, run seeds by other means, and what each part of an identity changes."""

import hashlib
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProtocolError
from harness.protocols import seeds as seeds_module
from harness.protocols.seeds import (
    MODULUS,
    SINGLE_SOURCE_ID,
    base_seed,
    batch_seeds,
    check_seeds,
    run_seed,
    seed_contract,
    seed_value,
    single_source_seeds,
)

CROSS_SOURCE = "llm-atlas-deepseek-chat-cross-source-sampling-v1"
PUBLISHED = {"R0": 2_101_325_316, "R1": 2_511_573_438, "R2": 1_677_220_094, "R3": 2_412_346_607}
# The first 8 bytes of `printf 'ID/run\0SEED\0SOURCE' | sha256sum`.
HASHED = {
    (2_101_325_316, "HumanEval/31"): 0x9269BB104D26AE9B,
    (2_412_346_607, "gsm8k/test/1251"): 0xFFB3F49C1DCEE00A,
    (2_511_573_438, "tnews/test/4855"): 0x0F57E375706EC4D7,
}
OURS = (0x43255B2F, 0x2C2850BA, 0x5CB63569, 0x628B57BC, 0x09E334E7, 0x0F581DE2, 0x773E6203, 0x0A2C86E5)


@pytest.fixture
def contract():
    """Round 07's."""
    return seed_contract(CROSS_SOURCE, 4, origin="published")


def test_the_published_base_seeds_follow_from_the_rule(contract):
    """R07 5: R0 to R3, by their published values."""
    assert {one.replicate: one.seed for one in contract.base_seeds} == PUBLISHED
    assert [one.index for one in contract.base_seeds] == [0, 1, 2, 3]


@pytest.mark.parametrize(("identity", "hashed"), HASHED.items(), ids=str)
def test_a_run_seed_is_the_formulas(identity, hashed):
    """R07 5: first 8 bytes, big-endian, modulo 2**63 - 1; two of the three are beyond the modulus."""
    assert run_seed(CROSS_SOURCE, *identity) == hashed % (2**63 - 1)


@pytest.mark.parametrize(
    ("hashed", "seed"), [(2**63 - 2, 2**63 - 2), (2**63 - 1, 0), (2**63, 1), (2**64 - 1, 1), (0, 0)], ids=str
)
def test_the_modulus_is_not_a_mask(monkeypatch, hashed, seed):
    """2**63 - 1 itself gives 0: no bit is cut off."""

    class Hash:
        def digest(self):
            return hashed.to_bytes(8, "big") + b"\xff" * 24

    monkeypatch.setattr(seeds_module.hashlib, "sha256", lambda _: Hash())
    assert run_seed("any", 1, "any") == seed


@given(st.text(min_size=1), st.integers(0, 2**32 - 1), st.text(min_size=1))
def test_a_run_seed_fits_a_signed_word(registered_id, base, source_id):
    """0 <= seed < 2**63 - 1, so that no generator's seeding wraps it."""
    assert 0 <= run_seed(registered_id, base, source_id) < MODULUS


@pytest.mark.parametrize(
    "other",
    [
        ("llm-atlas-deepseek-chat-cross-source-sampling-v2", 1, "a/1"),
        (CROSS_SOURCE, 2, "a/1"),
        (CROSS_SOURCE, 1, "a/2"),
        (CROSS_SOURCE, 1, "1\0a/1"),
        (CROSS_SOURCE, 11, "a/1"),
    ],
    ids=["id", "base", "source", "separator", "digits"],
)
def test_each_part_of_an_identity_changes_the_run_seed(other):
    """Protocol, base seed and source; nothing runs into its neighbour."""
    assert run_seed(*other) != run_seed(CROSS_SOURCE, 1, "a/1")


def test_a_batch_has_the_seeds_of_its_replicate_and_source(contract):
    """The record holds both, the run seed as 16 hex digits, and the integer comes back from them."""
    seeds = batch_seeds(contract, CROSS_SOURCE, source_id="HumanEval/31", replicate="R0")
    assert (seeds.rule, seeds.base, seeds.run) == ("run-seed-r07", PUBLISHED["R0"], "1269bb104d26ae9c")
    assert seed_value(seeds) == run_seed(CROSS_SOURCE, PUBLISHED["R0"], "HumanEval/31")


def test_a_replicate_without_a_seed_is_refused(contract):
    """Nothing is derived for a replicate that isn't registered."""
    with pytest.raises(ProtocolError, match="replicate: expected one of R0, R1, R2, R3, found R4"):
        batch_seeds(contract, CROSS_SOURCE, source_id="a", replicate="R4")


def test_registered_seeds_are_held_against_the_rule(contract):
    """They pass under their own ID, and under no other."""
    check_seeds(contract, CROSS_SOURCE)
    with pytest.raises(ProtocolError, match="R0: expected 1126521647, found 2101325316"):
        check_seeds(contract, SINGLE_SOURCE_ID)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda s: (*s[:3], msgspec.structs.replace(s[3], seed=7)), "R3: expected 2412346607", id="seed"),
        pytest.param(lambda s: (*s[:3], msgspec.structs.replace(s[3], replicate="R0")), "replicate", id="replicate"),
        pytest.param(lambda s: (*s[:3], msgspec.structs.replace(s[0], replicate="R3")), "index", id="same-seed"),
        pytest.param(lambda s: (s[1], s[1]), "replicate: expected one or more, each once", id="twice"),
        pytest.param(lambda _: (), "replicate: expected one or more, each once, found", id="none"),
    ],
)
def test_other_registered_seeds_are_refused(contract, change, message):
    """A seed of one's own, one seed for two replicates, or none."""
    changed = msgspec.structs.replace(contract, base_seeds=change(contract.base_seeds))
    with pytest.raises(ProtocolError, match=message):
        check_seeds(changed, CROSS_SOURCE)


def test_the_single_source_seeds_are_ours():
    """Round 06 published none: eight by Round 07's rule under an ID of ours, and the record says whose they are."""
    contract = single_source_seeds()
    assert contract.origin == "ours"
    assert tuple(one.seed for one in contract.base_seeds) == OURS
    assert SINGLE_SOURCE_ID.startswith("pregate-")
    assert not set(OURS) & set(PUBLISHED.values())
    check_seeds(contract, SINGLE_SOURCE_ID)


def test_no_two_batches_of_a_grid_share_a_seed(contract):
    """4 sources x 8 replicates and 16 x 4, all different, not even in the 32 bits that torch's CPU generator takes."""
    sources = [f"domain/{number:04d}" for number in range(16)]
    values = [
        seed_value(batch_seeds(seeds, registered, source_id=source, replicate=one.replicate))
        for seeds, registered, count in ((single_source_seeds(), SINGLE_SOURCE_ID, 4), (contract, CROSS_SOURCE, 16))
        for source, one in product(sources[:count], seeds.base_seeds)
    ]
    assert len(values) == 4 * 8 + 16 * 4
    assert len({value % 2**32 for value in values}) == len(values)


def test_base_seeds_are_four_bytes_of_a_hash():
    """The derivation in other words."""
    hashed = hashlib.sha256(b"an-id/seed/10").hexdigest()
    assert f"{base_seed('an-id', 10):08x}" == hashed[:8]
