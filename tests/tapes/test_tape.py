"""Tapes against the published digests, and z and u as functions of identity alone."""

import hashlib
import random
import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProtocolError
from harness.tapes.tape import Tape, uniform

REGISTERED = "llm-atlas-deepseek-chat-task-bootstrap-crn-v1"
PUBLISHED = {  # R08 4.2
    "T0": ("9952ffeec840649d2654d35b9a86c97db3737b70826c366e3f5a7633ec26d0c4", 2_572_353_518),
    "T1": ("17cfff7e5b3b6d011f4d1b8076637d4bdfb0ebd8a6021beb2a0011a8f6d520c6", 399_507_326),
    "T2": ("1828258525ea1b450d6de0ba0d9ff12f737b048b1cef554d7dd2ba90d25e5f4d", 405_284_229),
    "T3": ("21e5b3dbe506f1b7e9d483318195fc5cb4990c518850a52d40b5eff225491bd2", 568_701_915),
}
SOURCE = "HumanEval/31"
Z64 = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(("label", "published"), PUBLISHED.items(), ids=PUBLISHED)
def test_the_published_tapes(label, published):
    """Digest and display seed of the registered ID."""
    tape = Tape(REGISTERED, label)
    assert (tape.sha256, tape.display_seed) == published


def test_z_is_the_documents_formula():
    """R08 4.2, written out in bytes."""
    identity = b"llm-atlas-deepseek-chat-task-bootstrap-crn-v1\x00uniform\x00T2\x00gsm8k/test/0144\x0017"
    (z,) = struct.unpack(">Q", hashlib.sha256(identity).digest()[:8])
    assert Tape(REGISTERED, "T2").z("gsm8k/test/0144", 17) == z


def test_u_is_the_uniform_of_z():
    """In the open interval here, where 4,096 values of four tapes are seen; no two are equal."""
    tapes = [Tape(REGISTERED, label) for label in PUBLISHED]
    values = [(tape.z(SOURCE, step), tape.u(SOURCE, step)) for tape in tapes for step in range(1024)]
    assert all(u == uniform(z) and 0 < u < 1 for z, u in values)
    assert len({z for z, _ in values}) == len(values)


def test_order_of_reading_changes_nothing():
    """Steps read backwards, shuffled and twice give the same values, and no generator is asked."""
    tape, state = Tape(REGISTERED, "T0"), random.getstate()
    steps = list(range(64))
    forward = {step: tape.z(SOURCE, step) for step in steps}
    backward = {step: tape.z(SOURCE, step) for step in reversed(steps)}
    assert forward == backward == {step: Tape(REGISTERED, "T0").z(SOURCE, step) for step in [*steps[::3], *steps]}
    assert random.getstate() == state


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((Tape(REGISTERED, "T1"), SOURCE, 3), id="tape"),
        pytest.param((Tape(REGISTERED, "T0"), "HumanEval/44", 3), id="source"),
        pytest.param((Tape(REGISTERED, "T0"), SOURCE, 4), id="step"),
        pytest.param((Tape("pregate-nano-x-v1", "T0"), SOURCE, 3), id="protocol"),
    ],
)
def test_every_part_of_the_identity_counts(other):
    """Another tape, source, step or protocol has another value."""
    tape, source, step = other
    assert tape.z(source, step) != Tape(REGISTERED, "T0").z(SOURCE, 3)


@given(z=Z64)
def test_uniform_is_binary64_of_the_formula(z):
    """(z + 1/2) / 2**64 with at most the rounding of z and of the sum: half a unit in the last place each."""
    exact = Fraction(2 * z + 1, 2**65)
    found = Fraction(uniform(z))
    assert abs(found - exact) <= exact * Fraction(1, 2**52)
    assert 0 < found <= 1


@given(one=Z64, other=Z64)
def test_uniform_keeps_order(one, other):
    """A larger z never has a smaller u."""
    low, high = sorted((one, other))
    assert uniform(low) <= uniform(high)


@pytest.mark.parametrize(
    ("z", "u"),
    [
        (0, 2.0**-65),
        (1, 1.5 * 2.0**-64),
        (2**63, 0.5),
        (2**64 - 1, 1.0),
        (2**64 - 1024, 1.0),
        (2**64 - 2048, 1 - 2.0**-53),
    ],
)
def test_both_ends_of_u(z, u):
    """The smallest is positive, the largest z rounds to exactly 1: the clamp of 4.3 is needed at that end."""
    assert uniform(z) == u


@pytest.mark.parametrize("label", ["T", "t0", "T00", "T01", "T-1", "0", "T0 ", "T0\n", ""])
def test_another_label_is_refused(label):
    """Labels are the protocol's."""
    with pytest.raises(ProtocolError, match="expected T0, T1"):
        Tape(REGISTERED, label)


def test_a_nul_is_refused():
    """It separates the parts, so `a` + `b NUL c` would be `a NUL b` + `c`."""
    with pytest.raises(ProtocolError, match="registered_id: expected no NUL"):
        Tape("a\0b", "T0")
    with pytest.raises(ProtocolError, match="source_id: expected no NUL"):
        Tape(REGISTERED, "T0").z("a\0b", 0)


@pytest.mark.parametrize("z", [-1, 2**64])
def test_what_is_no_z_is_misuse(z):
    """64 bits, unsigned."""
    with pytest.raises(RuntimeError, match="64-bit"):
        uniform(z)


def test_a_negative_step_is_misuse():
    """Steps count from 0."""
    with pytest.raises(RuntimeError, match="count from 0"):
        Tape(REGISTERED, "T0").z(SOURCE, -1)
