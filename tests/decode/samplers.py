"""The registered samplers, and rows for them."""

import torch
from hypothesis import strategies as st

from harness.decode.icdf import InverseCdf, Warped
from harness.records.tapes import SamplerContract
from harness.tapes.synthetic import VOCABULARY
from harness.tapes.tape import uniform

RULES = ("icdf-r08", "icdf-v1")
ULP = 2.0**-24
LOGITS = st.integers(2, 40).flatmap(lambda size: st.lists(st.floats(-30, 30, width=32), min_size=size, max_size=size))
US = st.integers(0, 2**64 - 1).map(uniform)


def contract(rule="icdf-r08"):
    """The registered sampler under a rule."""
    return SamplerContract(rule=rule, temperature=0.3, top_p=0.95, min_tokens_to_keep=1, device="cpu")


R08, V1 = InverseCdf(contract("icdf-r08")), InverseCdf(contract("icdf-v1"))
SAMPLERS = {"icdf-r08": R08, "icdf-v1": V1}


def one(sampler, logits, u):
    """The draw of a single row."""
    (drawn,) = sampler.draw(torch.tensor([logits], dtype=torch.float32), u)
    return drawn


def row(probabilities):
    """A row at the level of probabilities, its zeros filtered."""
    tensor = torch.tensor([probabilities], dtype=torch.float32)
    return Warped(tensor, tensor > 0, torch.tensor([False]))


def spread(seed, scale, columns=VOCABULARY):
    """Logits of a whole vocabulary; a small scale leaves many survivors, a large one few."""
    return torch.randn(1, columns, generator=torch.Generator().manual_seed(seed)) * scale
