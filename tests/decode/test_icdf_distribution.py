"""The sampler against float64, and the distribution that many u give (R08 4.3)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given

from harness.tapes.tape import Tape

from .reference import reference
from .samplers import LOGITS, R08, RULES, SAMPLERS, US, V1, one, spread


@given(logits=LOGITS, u=US)
def test_agreement_with_float64(logits, u):
    """Outside the stated band around CDF edges, wherever float64 itself is sure of how many top-p removes."""
    expected = reference(np.array(logits, dtype=np.float32))
    assume(expected.sure)
    kept = R08.warp(torch.tensor([logits])).kept[0].numpy()
    assert expected.same_support(kept)
    for sampler in SAMPLERS.values():
        drawn = one(sampler, logits, u)
        assert drawn.gap or expected.accepts(drawn.token, u, kept)


@pytest.mark.parametrize(("scale", "exact"), [(0.3, 20), (1.0, 36), (2.0, 40), (5.0, 40)])
def test_agreement_with_float64_over_the_vocabulary(scale, exact):
    """102,400 columns, from 75 thousand survivors to a handful, all within a band of a ten-thousandth.

    `exact` of 40 draws at least are the reference's own. Where float64 can't say what the boundary removes either, the
    supports differ by as many IDs as the band holds of the smallest survivor, and the draws are held to the sampler's.
    """
    tape = Tape("example-v1", "T0")
    logits = spread(7, scale)
    expected, warped = reference(logits[0].numpy()), R08.warp(logits)
    kept = warped.kept[0].numpy()
    smallest = float(warped.probabilities[warped.kept].min())
    assert np.count_nonzero(kept != expected.kept) <= expected.band / smallest + 1
    assert expected.same_support(kept) or not expected.sure
    assert expected.band < 1e-4
    same = 0
    for step in range(40):
        u = tape.u(f"{scale}", step)
        (drawn,) = R08.draw_from(warped, u)
        assert drawn.gap or expected.accepts(drawn.token, u, kept)
        same += drawn.token == expected.draw(u, kept)
    assert same >= exact


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0])
def test_many_u_give_the_warped_distribution(rule, scale):
    """On an even grid of n values of u: each ID is drawn n p times, give or take one and the band of float32."""
    sampler, count = SAMPLERS[rule], 20_000
    logits = spread(11, scale, columns=60)
    warped = sampler.warp(logits)
    cdf = sampler.cumulative(warped).expand(count, -1).contiguous()
    grid = torch.stack([sampler.uniform((place + 0.5) / count) for place in range(count)])
    tokens = torch.searchsorted(cdf, grid[:, None], right=False)[:, 0]
    drawn = torch.bincount(tokens, minlength=60).double()
    expected = warped.probabilities[0].double() * count
    assert float((drawn - expected).abs().max()) <= 1 + count * 1e-6
    assert int(drawn[~warped.kept[0]].sum()) == 0
    for place in range(0, count, 997):
        assert sampler.draw_from(warped, (place + 0.5) / count)[0].token == int(tokens[place])


def test_many_u_of_a_tape_give_the_warped_distribution():
    """4,096 steps of a tape, fixed for ever: the largest distance of the two CDFs is below that of 1 in 1,000 tapes.

    Kolmogorov's bound 1.95 / sqrt(n); the tape is fixed, so this test never changes its mind.
    """
    tape, count = Tape("llm-atlas-deepseek-chat-task-bootstrap-crn-v1", "T0"), 4096
    warped = V1.warp(spread(5, 0.5, columns=40))
    tokens = [V1.draw_from(warped, tape.u("HumanEval/31", step))[0].token for step in range(count)]
    empirical = np.cumsum(np.bincount(tokens, minlength=40)) / count
    exact = np.cumsum(warped.probabilities[0].double().numpy())
    assert np.abs(empirical - exact).max() < 1.95 / math.sqrt(count)
