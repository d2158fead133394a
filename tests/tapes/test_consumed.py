"""What a row consumed: noted as it is used, made again from identity, and every fault of it named."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canon import canonical_bytes, digest
from harness.records.tapes import ConsumedValues
from harness.tapes.consumed import Consumption, consumption_differences, registered_consumption
from harness.tapes.tape import Tape, uniform

TAPE, SOURCE, COUNT = Tape("example-v1", "T0"), "pool/0001", 20
ZS = [TAPE.z(SOURCE, step) for step in range(COUNT)]


def consumed(zs):
    """The account of a row that consumed these values."""
    consumption = Consumption()
    for z in zs:
        consumption.take(z)
    return consumption.record()


def test_the_hash_is_over_eight_bytes_each():
    """DECISIONS, sampling: big-endian bytes in order, nothing between them."""
    joined = b"".join(z.to_bytes(8, "big") for z in ZS)
    assert consumed(ZS).sha256 == hashlib.sha256(joined).hexdigest()


def test_the_first_eight_are_kept():
    """Each z as 16 hex digits, u as an exact binary64."""
    found = consumed(ZS)
    assert found.count == COUNT
    assert [int(z, 16) for z in found.first_z] == ZS[:8]
    assert {len(z) for z in found.first_z} == {16}
    assert [float.fromhex(u) for u in found.first_u] == [TAPE.u(SOURCE, step) for step in range(8)]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9])
def test_fewer_are_kept_where_fewer_were_consumed(count):
    """A row that ends early has an account too."""
    found = consumed(ZS[:count])
    assert (found.count, len(found.first_z), len(found.first_u)) == (count, min(count, 8), min(count, 8))
    assert found == registered_consumption(TAPE, SOURCE, count)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12))
def test_the_account_is_canonical_and_reads_back(zs):
    """No 64-bit integer and no float is left in it, and u goes with its z."""
    found = consumed(zs)
    assert msgspec.json.decode(canonical_bytes(found), type=ConsumedValues, strict=True) == found
    assert [uniform(int(z, 16)).hex() for z in found.first_z] == list(found.first_u)


def test_what_was_registered_has_no_difference():
    """The control of the faults below."""
    assert consumption_differences(consumed(ZS), TAPE, SOURCE, COUNT) == ()


FAULTS = {
    "another source": ([TAPE.z("pool/0002", step) for step in range(COUNT)], {"first_z", "first_u", "sha256"}),
    "another tape": (
        [Tape("example-v1", "T1").z(SOURCE, step) for step in range(COUNT)],
        {"first_z", "first_u", "sha256"},
    ),
    "first step skipped": ([TAPE.z(SOURCE, step + 1) for step in range(COUNT)], {"first_z", "first_u", "sha256"}),
    "late step skipped": ([TAPE.z(SOURCE, step + (step > 12)) for step in range(COUNT)], {"sha256"}),
    "two steps swapped": ([*ZS[:12], ZS[13], ZS[12], *ZS[14:]], {"sha256"}),
    "one bit": ([*ZS[:-1], ZS[-1] ^ 1], {"sha256"}),
    "the step of EOS not consumed": (ZS[:-1], {"count", "sha256"}),
    "one value too many": ([*ZS, TAPE.z(SOURCE, COUNT)], {"count", "sha256"}),
}


@pytest.mark.parametrize(("zs", "fields"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(zs, fields):
    """By field, with what was expected and found."""
    differences = consumption_differences(consumed(zs), TAPE, SOURCE, COUNT)
    assert {one.split(":")[0] for one in differences} == fields
    assert all("expected" in one and "found" in one for one in differences)


@pytest.mark.parametrize("field", ConsumedValues.__struct_fields__)
def test_every_field_is_compared(field):
    """One altered field, one difference."""
    good = consumed(ZS)
    bad = msgspec.structs.replace(good, **{field: {"count": 19, "sha256": "0" * 64}.get(field, ("0",) * 8)})
    assert [one.split(":")[0] for one in consumption_differences(bad, TAPE, SOURCE, COUNT)] == [field]
    assert digest(bad) != digest(good)
