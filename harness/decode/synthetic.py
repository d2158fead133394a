"""The sampler on the synthetic table (R08 5.1): what it draws on distributions with known CDFs."""

import torch

from harness.decode.icdf import InverseCdf, Warped
from harness.records.tapes import SyntheticDraws, SyntheticOutcome
from harness.tapes.synthetic import CASES, SyntheticCase


def synthetic_draws(sampler: InverseCdf) -> SyntheticDraws:
    """What this sampler, under its contract, draws on the whole table."""
    return SyntheticDraws(schema=1, sampler=sampler.contract, outcomes=synthetic_outcomes(sampler))


def synthetic_outcomes(sampler: InverseCdf) -> tuple[SyntheticOutcome, ...]:
    """One outcome a case, in the table's order; `harness.tapes.synthetic.synthetic_differences` judges them."""
    return tuple(_outcome(sampler, case) for case in CASES)


def _outcome(sampler: InverseCdf, case: SyntheticCase) -> SyntheticOutcome:
    row = torch.tensor([case.dense(sampler.contract.temperature, sampler.contract.top_p)], dtype=torch.float32)
    warped = sampler.warp(row) if case.level == "logits" else Warped(row, row > 0, torch.tensor([False]))
    (drawn,) = sampler.draw_from(warped, case.u)
    return SyntheticOutcome(case=case.name, token=drawn.token, gap=drawn.gap)
