"""The sampler: filtered IDs, the gap, clamps, ties, edges (R08 4.3)."""

import math

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from harness.decode.icdf import LARGEST, SMALLEST, InverseCdf, last_survivor
from harness.decode.synthetic import synthetic_outcomes
from harness.errors import DecodeError
from harness.model.rng import rng_states
from harness.records.tapes import EdgeDistance, NoEdge
from harness.tapes.synthetic import CASES, VOCABULARY, synthetic_differences
from harness.tapes.tape import uniform

from .samplers import LOGITS, R08, RULES, SAMPLERS, ULP, US, V1, contract, one, row, spread

# Temperature and top-p: the registered ones, SmolLM2's, and some that filter nothing, half or nearly all.
OTHERS = [(0.3, 0.95), (0.2, 0.9), (0.7, 0.8), (1.0, 1.0), (0.05, 0.5), (1.5, 0.999), (0.6, 0.2), (10.0, 0.05)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("temperature", "top_p"), OTHERS, ids=str)
def test_the_synthetic_table_holds(rule, temperature, top_p):
    """R08 5.1: CDF edges and filtered IDs, under the registered warpers and those of any other model."""
    sampler = InverseCdf(msgspec.structs.replace(contract(rule), temperature=temperature, top_p=top_p))
    assert synthetic_differences(rule, synthetic_outcomes(sampler)) == ()


@pytest.mark.parametrize(("temperature", "top_p"), OTHERS, ids=str)
def test_what_survives_top_p_is_the_cases_own(temperature, top_p):
    """Survivors have their shares and nothing else is kept; a tail that a case asks for is there."""
    sampler = InverseCdf(msgspec.structs.replace(contract(), temperature=temperature, top_p=top_p))
    for case in CASES:
        if case.level == "probabilities":
            continue
        logits = torch.tensor([case.dense(temperature, top_p)])
        warped = sampler.warp(logits)
        shares = torch.tensor([weight for _, weight in case.weights])
        places = [token for token, _ in case.weights]
        assert warped.kept[0, places].all()
        assert float(warped.probabilities.sum() - warped.probabilities[0, places].sum()) == 0.0
        torch.testing.assert_close(warped.probabilities[0, places], shares / shares.sum())
        before = 1.0 - float((logits.double() / temperature).softmax(-1)[0, places].sum())
        assert case.tail == "where_needed" or (before > 1e-4) is (top_p < 1)


@given(logits=LOGITS, u=US)
def test_the_distribution_is_the_librarys(logits, u):
    """Scores through the two registered warpers in a list of their own; float32 softmax; nothing else."""
    scores = torch.tensor([logits], dtype=torch.float32)
    warpers = LogitsProcessorList([TemperatureLogitsWarper(0.3), TopPLogitsWarper(0.95, min_tokens_to_keep=1)])
    warped = warpers(torch.zeros(1, 1, dtype=torch.long), scores)
    found = R08.warp(scores)
    assert torch.equal(found.probabilities, warped.softmax(-1))
    assert torch.equal(found.kept, torch.isfinite(warped))
    cdf = warped.softmax(-1).cumsum(-1)
    cdf[:, -1] = 1.0
    u32 = torch.clamp(torch.tensor(u).float(), SMALLEST, LARGEST)
    assert one(R08, logits, u).token == int(torch.searchsorted(cdf[0], u32, right=False))


@given(logits=LOGITS, u=US)
@example(logits=[0.0] * 39 + [-30.0], u=1.0)
@example(logits=[0.0] * 39 + [-30.0], u=uniform(0))
def test_outside_the_gap_no_filtered_id_is_drawn(logits, u):
    """The gap flag says that the drawn ID was filtered, and it is raised where u exceeds the survivors' sum alone."""
    drawn = one(R08, logits, u)
    warped = R08.warp(torch.tensor([logits]))
    total = float(warped.probabilities.cumsum(-1)[0, last_survivor(warped.kept)])
    in_gap = float(R08.uniform(u)) > total and not bool(warped.kept[0, -1])
    assert drawn.gap is in_gap is (not bool(warped.kept[0, drawn.token]))
    if in_gap:
        assert drawn.token == len(logits) - 1


@given(logits=LOGITS, u=US)
def test_v1_never_draws_a_filtered_id(logits, u):
    """And it is r08's draw wherever that has no gap."""
    drawn, published = one(V1, logits, u), one(R08, logits, u)
    assert bool(V1.warp(torch.tensor([logits])).kept[0, drawn.token])
    assert not drawn.gap
    assert published.gap or drawn.token == published.token


WEIGHTS = st.lists(st.integers(0, 2**20), min_size=2, max_size=30).filter(any)


@given(weights=WEIGHTS, short=st.integers(0, 2**22), z=st.integers(0, 2**64 - 1))
def test_a_gap_of_any_width(weights, short, z):
    """Probabilities that sum to less than 1 by any amount: r08 flags the last ID, v1 stays with the survivors."""
    total = sum(weights)
    warped = row([one / total * (1 - short * ULP) for one in weights])
    u = uniform(z)
    survivors = [token for token, weight in enumerate(weights) if weight]
    reached = float(warped.probabilities.cumsum(-1)[0, survivors[-1]])
    (published,), (drawn,) = R08.draw_from(warped, u), V1.draw_from(warped, u)
    beyond = float(R08.uniform(u)) > reached
    assert published.gap is (beyond and survivors[-1] < len(weights) - 1)
    assert drawn.token in survivors
    assert not drawn.gap
    if beyond:
        assert (published.token, drawn.token) == (len(weights) - 1, survivors[-1])


def test_a_real_softmax_has_the_gap():
    """Over the registered vocabulary, from logits alone: some rows' float32 sum falls short, and u = 1 finds it."""
    found = []
    for seed in range(12):
        logits = spread(seed, 0.3)
        logits[0, -1] = -30.0
        (published,), (drawn,) = R08.draw(logits, 1.0), V1.draw(logits, 1.0)
        assert published.gap is (published.token == VOCABULARY - 1)
        assert not drawn.gap
        assert drawn.token < VOCABULARY - 1
        found.append(published.gap)
    assert True in found
    assert False in found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("token", [0, 1, 50_000, 99_999, VOCABULARY - 1])
def test_one_survivor_is_drawn_at_every_u(rule, token):
    """Also at both clamps, at the first and at the last column; no edge could have given another ID."""
    logits = torch.full((1, VOCABULARY), -5.0)
    logits[0, token] = 20.0
    for u in (0.0, 2.0**-65, 0.5, 1 - ULP, 1.0):
        (drawn,) = SAMPLERS[rule].draw(logits, u)
        assert (drawn.token, drawn.gap, drawn.edge) == (token, False, NoEdge())


@pytest.mark.parametrize("rule", RULES)
def test_leading_filtered_ids_are_passed_over(rule):
    """A thousand zero-probability IDs before the first survivor, u at the lower clamp and below."""
    logits = torch.full((1, VOCABULARY), -30.0)
    logits[0, 1000:1016] = 3.0
    assert [SAMPLERS[rule].draw(logits, u)[0].token for u in (0.0, 2.0**-65, 1 / 16)] == [1000] * 3
    assert SAMPLERS[rule].draw(logits, 1.0)[0].token == 1015


def test_the_clamps():
    """4.3: the neighbours inside the open interval; everything between is only rounded to float32."""
    assert (float(SMALLEST), float(LARGEST)) == (2.0**-149, 1 - ULP)
    assert R08.uniform(0.0) == SMALLEST
    assert R08.uniform(uniform(0)) == 2.0**-65
    for u in (1.0, uniform(2**64 - 1), 1 - ULP / 2, 1 - 2.0**-40):
        assert R08.uniform(u) == LARGEST
    assert R08.uniform(1 - ULP) == LARGEST
    assert R08.uniform(0.3) == torch.tensor(0.3)


@given(u=US)
def test_a_clamped_u_is_in_the_open_interval(u):
    """And it is the nearest float32 but at the end."""
    found = R08.uniform(u)
    assert found.dtype == torch.float32
    assert 0 < float(found) < 1
    assert float(found) == float(np.float32(u)) or np.float32(u) == 1


@pytest.mark.parametrize("u", [-0.1, 1.1, math.nan])
def test_what_is_no_u_is_misuse(u):
    """Before anything is drawn."""
    with pytest.raises(RuntimeError, match=r"u is in \[0, 1\]"):
        R08.uniform(u)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_logit_that_is_not_finite_is_refused(value):
    """The row is named: it has no distribution, and nothing stands in for it."""
    logits = spread(0, 1.0, columns=50).repeat(3, 1)
    logits[1, 7] = value
    with pytest.raises(DecodeError, match="sampler, row 1 of 3: expected finite logits, found 1 rows") as caught:
        R08.draw(logits, 0.5)
    assert caught.value.kind == "non_finite"


def test_ties_at_the_boundary_are_counted():
    """32 equal scores: 5 % removes one of them, and only the sort says which. 16 equal ones lose none."""
    assert one(R08, [0.0] * 32, 0.5).boundary_tie
    assert int(R08.warp(torch.zeros(1, 32)).kept.sum()) == 31
    assert not one(R08, [0.0] * 16, 0.5).boundary_tie
    assert not one(R08, [0.0] * 16 + [-30.0] * 9, 0.5).boundary_tie
    assert [drawn.boundary_tie for drawn in R08.draw(torch.tensor([[0.0] * 32, [0.0] * 31 + [0.1]]), 0.5)] == [
        True,
        True,
    ]


@given(logits=st.lists(st.sampled_from([-2.0, 0.0, 0.25]), min_size=2, max_size=60))
def test_a_tie_is_an_equal_score_on_both_sides(logits):
    """By hand from the survivors."""
    drawn, kept = one(R08, logits, 0.5), R08.warp(torch.tensor([logits])).kept[0].tolist()
    surviving = {value for value, keeps in zip(logits, kept, strict=True) if keeps}
    filtered = {value for value, keeps in zip(logits, kept, strict=True) if not keeps}
    assert drawn.boundary_tie is bool(surviving & filtered)


@given(logits=LOGITS, u=US)
def test_the_edge_distance_is_the_nearest_other_ids(logits, u):
    """Against all edges of the CDF: the nearest value at which the drawn ID would change."""
    for sampler in SAMPLERS.values():
        drawn = one(sampler, logits, u)
        cdf = sampler.cumulative(sampler.warp(torch.tensor([logits])))[0].tolist()
        inner = {value for value in cdf if 0 < value < 1}
        value = float(sampler.uniform(u))
        if isinstance(drawn.edge, NoEdge):
            assert inner == set()
        else:
            assert drawn.edge == EdgeDistance(distance=min(abs(value - edge) for edge in inner))


def test_an_edge_at_u_is_at_distance_zero():
    """right=False gives it to the lower ID."""
    drawn = one(R08, [0.0] * 16, 0.25)
    assert (drawn.token, drawn.edge) == (3, EdgeDistance(distance=0.0))
    assert one(R08, [0.0] * 16, 0.25 + 2.0**-25).token == 4


def test_rows_do_not_depend_on_each_other():
    """Each row's draw alone and in the batch, at one u; and half-precision logits go to float32 first."""
    logits = torch.cat([spread(seed, scale, columns=4000) for seed, scale in enumerate((0.2, 1.0, 3.0, 9.0))])
    together = R08.draw(logits, 0.37)
    assert together == tuple(R08.draw(logits[place : place + 1], 0.37)[0] for place in range(4))
    half = logits.bfloat16()
    assert R08.draw(half, 0.37) == R08.draw(half.float(), 0.37)


def test_the_logits_are_left_alone():
    """A draw changes no tensor that it was given."""
    logits = spread(3, 1.0, columns=500)
    copy = logits.clone()
    R08.draw(logits, 0.9)
    assert torch.equal(logits, copy)


def test_no_generator_is_asked():
    """Python's, NumPy's and torch's states are the same before and after draws."""
    before = rng_states()
    for step in range(20):
        R08.draw(spread(1, 1.0, columns=100), uniform(step << 59))  # `spread` has a generator of its own
    synthetic_outcomes(V1)
    assert rng_states() == before


def test_every_case_of_the_table_is_drawn():
    """One outcome each, in order."""
    assert [one.case for one in synthetic_outcomes(R08)] == [case.name for case in CASES]
