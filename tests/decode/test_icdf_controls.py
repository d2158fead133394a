"""Samplers with one fault each: the synthetic table, which a gate holds, says so of every one."""

# ruff: noqa: D102 - an overridden method is described by its class

import dataclasses

import msgspec
import pytest
import torch

from harness.decode.icdf import InverseCdf, Warped, last_survivor
from harness.decode.synthetic import synthetic_outcomes
from harness.model.rng import rng_states
from harness.tapes.synthetic import synthetic_differences

from .samplers import RULES, contract, row


class NotClamped(InverseCdf):
    """U reaches 0 and 1."""

    def uniform(self, u):
        return torch.tensor(u, dtype=torch.float64).float()


class RightSided(InverseCdf):
    """With right=True: an edge belongs to the higher ID."""

    def search(self, cdf, u):
        return torch.searchsorted(cdf, u.expand(len(cdf), 1).contiguous(), right=True)[:, 0].clamp(max=cdf.shape[1] - 1)


class SortedOrder(InverseCdf):
    """Cumulative sum by descending probability, as samplers often have it, mapped back to IDs."""

    def draw_from(self, warped, u):
        order = warped.probabilities.argsort(dim=-1, descending=True, stable=True)
        ordered = Warped(warped.probabilities.gather(1, order), warped.kept.gather(1, order), warped.ties)
        places = super().draw_from(ordered, u)
        return tuple(dataclasses.replace(one, token=int(order[at, one.token])) for at, one in enumerate(places))


class TorchGenerator(InverseCdf):
    """The library's multinomial, u unused."""

    def search(self, cdf, u):
        del u
        return torch.multinomial(torch.diff(cdf, prepend=torch.zeros(len(cdf), 1)).clamp(min=0), 1)[:, 0]


class NoTopP(InverseCdf):
    """The tail stays in."""

    def warp(self, logits):
        scaled = logits.float() / self.contract.temperature
        return Warped(scaled.softmax(-1), torch.ones_like(scaled, dtype=torch.bool), torch.tensor([False]))


class NoTemperature(InverseCdf):
    """The official 0.3 left out."""

    def warp(self, logits):
        return super().warp(logits * self.contract.temperature)


class NothingForced(InverseCdf):
    """The last element isn't forced to 1, so a u beyond the sum names no ID at all; it is cut to the last."""

    def cumulative(self, warped):
        return warped.probabilities.cumsum(-1)

    def search(self, cdf, u):
        return super().search(cdf, u).clamp(max=cdf.shape[1] - 1)


class GapNotFlagged(InverseCdf):
    """The published rule, its gap kept silent."""

    def draw_from(self, warped, u):
        return tuple(dataclasses.replace(one, gap=False) for one in super().draw_from(warped, u))


class FirstPositive(InverseCdf):
    """With u near 0 it draws ID 0, whatever its probability."""

    def search(self, cdf, u):
        return super().search(cdf, torch.where(u < 2.0**-60, 0.0, u))


class CdfOfTheOtherRule(InverseCdf):
    """The rule r08 where v1 is registered, and the other way round."""

    def cumulative(self, warped):
        cdf = warped.probabilities.cumsum(-1)
        if self.contract.rule == "icdf-r08":
            return cdf.masked_fill(torch.arange(cdf.shape[-1]) >= last_survivor(warped.kept)[:, None], 1.0)
        cdf[:, -1] = 1.0
        return cdf


EVERY = (RightSided, SortedOrder, TorchGenerator, NoTopP, NoTemperature, NotClamped, FirstPositive, CdfOfTheOtherRule)
FAULTS = [*((rule, fault) for rule in RULES for fault in EVERY), ("icdf-r08", GapNotFlagged)]
NAMED = {
    RightSided: "first_edge",
    SortedOrder: "id_order_rising",
    NoTopP: "tail_filtered_low",
    NoTemperature: "temperature",
    NotClamped: "u_zero",
    FirstPositive: "u_smallest",
    CdfOfTheOtherRule: "gap_top",
    GapNotFlagged: "gap_inside",
}


@pytest.mark.parametrize(("rule", "fault"), FAULTS, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_a_faulty_sampler_is_named(rule, fault):
    """By a case that is about its fault."""
    differences = synthetic_differences(rule, synthetic_outcomes(fault(contract(rule))))
    assert differences
    if fault in NAMED:
        assert NAMED[fault] in {one.split(":")[0] for one in differences}


@pytest.mark.parametrize("rule", RULES)
def test_the_sound_sampler_is_not(rule):
    """The control of the controls."""
    assert synthetic_differences(rule, synthetic_outcomes(InverseCdf(contract(rule)))) == ()


@pytest.mark.parametrize("fault", [one for one in EVERY if one is not NoTemperature], ids=lambda one: one.__name__)
@pytest.mark.parametrize(("temperature", "top_p"), [(0.2, 0.9), (1.0, 0.5), (0.7, 0.05)], ids=str)
def test_a_faulty_sampler_is_named_under_another_contract(fault, temperature, top_p):
    """The cases are made for the contract, whatever it registers."""
    other = msgspec.structs.replace(contract("icdf-v1"), temperature=temperature, top_p=top_p)
    named = {one.split(":")[0] for one in synthetic_differences("icdf-v1", synthetic_outcomes(fault(other)))}
    assert NAMED.get(fault, next(iter(named), None)) in named


def test_u_not_clamped_at_the_upper_end_is_named():
    """Where the survivors sum to the largest float32 below 1, only the clamp keeps the draw among them."""
    found = synthetic_differences("icdf-r08", synthetic_outcomes(NotClamped(contract())))
    assert "clamped_into_survivors: expected (ID, gap) (3, False), found (7, True)" in found


def test_torchs_generator_is_seen_in_its_state():
    """R08 5.1: the states before and after differ, where the sound sampler leaves them."""
    warped = row([0.25, 0.0, 0.5, 0.25])
    states = [rng_states()]
    for sampler in (InverseCdf(contract()), TorchGenerator(contract())):
        sampler.draw_from(warped, 0.4)
        states.append(rng_states())
    assert states[1] == states[0]
    assert states[2].torch_cpu != states[1].torch_cpu


def test_the_forced_one_is_what_v1_adds():
    """A cut to the last ID in place of the forced 1 gives the published draw, and not v1's."""
    assert synthetic_differences("icdf-r08", synthetic_outcomes(NothingForced(contract()))) == ()
    assert synthetic_differences("icdf-v1", synthetic_outcomes(NothingForced(contract("icdf-v1")))) != ()
