"""The lean step against the model's own modules; its kernels against torch on a GPU."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from harness.decode.all_experts import AllExperts
from harness.decode.graph import Execute, choose_best, execute_rows
from harness.decode.lean import LeanStep, add_norm, require_lean
from harness.decode.loop import LoopContract
from harness.errors import ModelError

from .rows import MIXED, decode, ignore


@pytest.mark.parametrize("kernels", [(), ("all_experts",)])
def test_the_loops_tokens(shared, loaded, mixed, kernels):
    """Rows that end apart, 128 tokens, float32 on the CPU: the same tokens in another order of rounding."""
    ids = loaded.profile.special_ids
    contract = LoopContract(eos=ids.eos, pad=ids.pad, max_new_tokens=128)
    step, how = LeanStep(shared, kernels), Execute(captured=False, look=16)
    found = execute_rows(shared, mixed, contract=contract, step=step, choose=choose_best, how=how, tick=ignore)
    wanted = decode(shared, loaded, mixed, 128)
    assert [len(row) for row in found.looped.rows] == list(MIXED.values())
    assert dataclasses.replace(found.looped, cache="") == dataclasses.replace(wanted, cache="")
    assert step.name == f"lean, kernels {'+'.join(kernels) or 'none'}"


@pytest.mark.parametrize("layer", [1, 5])
def test_all_experts_are_the_modules(shared, layer):
    """A MoE layer of the embedded model, routed and shared experts: the module's output up to its rounding."""
    mlp = shared.model.model.layers[layer].mlp
    hidden = torch.randn(8, 128, generator=torch.Generator().manual_seed(layer))
    with torch.inference_mode():
        found, wanted = AllExperts(mlp)(hidden), mlp(hidden[:, None])[:, 0]
        fewer = AllExperts(mlp)(hidden[2:5])
    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-6)
    assert torch.allclose(fewer, wanted[2:5], rtol=1e-4, atol=1e-6)


def test_an_expert_that_was_not_chosen_is_not_silent(shared):
    """Its weight 0 times an infinite output isn't a number: the check of finite logits finds it."""
    mlp = shared.model.model.layers[1].mlp
    step = AllExperts(mlp)
    hidden = torch.randn(1, 128, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        unchosen = next(one for one in range(32) if one not in mlp.gate(hidden)[2].flatten().tolist())
        step._entry[unchosen * 96 : (unchosen + 1) * 96] = float("inf")
        assert not torch.isfinite(step(hidden)).all()


def test_experts_are_computed_once(shared):
    """Triton's chosen experts and all of them are two answers to one question."""
    with pytest.raises(RuntimeError, match="one of the two"):
        LeanStep(shared, ("experts", "all_experts"))


def test_another_model_is_refused(shared, monkeypatch):
    """A query projection in two stages is another formula; a closed model is misuse."""
    monkeypatch.setattr(shared.model.config, "q_lora_rank", 8)
    with pytest.raises(ModelError, match="q_lora_rank"):
        require_lean(shared)
    with pytest.raises(RuntimeError, match="closed"):
        require_lean(dataclasses.replace(shared, model=None))


def test_weights_in_several_pieces_are_refused(shared, monkeypatch):
    """Kernels read a tensor by its shape alone: one that is a view of another would be read in another order."""
    own = dict(shared.model.named_parameters())
    own["lm_head.weight"] = own["lm_head.weight"].t()
    monkeypatch.setattr(shared.model, "named_parameters", lambda *_, **__: iter(own.items()))
    with pytest.raises(ModelError, match=r"not in one piece: lm_head\.weight"):
        require_lean(shared)


def test_a_norm_over_parts():
    """Parts are added in float32, the sum is rounded once."""
    hidden, parts = torch.tensor([[3.0, 0.0]]), torch.tensor([[[0.0, 2.0], [0.0, 2.0]]])
    total, normed = add_norm(hidden, parts, torch.tensor([1.0, 2.0]), 0.0)
    assert total.tolist() == [[3.0, 4.0]]
    assert torch.allclose(normed, torch.tensor([[3.0, 8.0]]) / 12.5**0.5)


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [1, 4, 8])
def test_experts_on_a_gpu(rows):
    """BF16 experts of the full shape against float32 torch; a finished row's places aren't written."""
    from pregate_support.full_shape import random_model

    from harness.decode.expert_kernels import mlp_parts, route

    model = random_model("cuda", layers=2)
    mlp = model.model.model.layers[1].mlp
    hidden = torch.randn(rows, 2048, device="cuda", dtype=torch.bfloat16)
    live = torch.ones(rows, dtype=torch.bool, device="cuda")
    with torch.inference_mode():
        ids, weights = route(mlp.gate, hidden, live)
        _, wanted, wanted_ids = mlp.gate(hidden)
        assert [set(row) for row in ids.tolist()] == [set(row) for row in wanted_ids.tolist()]
        assert torch.allclose(weights.sum(1), wanted.sum(1), rtol=1e-4)
        found = mlp_parts(mlp, hidden, live).sum(1)
        theirs = mlp(hidden[:, None])[:, 0].float()
        assert float((found - theirs).norm() / theirs.norm()) < 1e-2
        live[0] = False
        assert route(mlp.gate, hidden, live)[0][0].tolist() == [-1] * 6
        again = mlp_parts(mlp, hidden, live).sum(1)
        assert torch.equal(again[1:], found[1:])


@pytest.mark.cuda
@pytest.mark.parametrize("kernels", [("norms",), ("attention",), ("experts",), ("norms", "attention", "experts")])
def test_a_step_on_a_gpu(kernels):
    """Logits of a two-layer full shape near those without kernels; a finite difference, and captured as uncaptured."""
    from pregate_support.executors import random_rows
    from pregate_support.full_shape import random_model

    model = random_model("cuda", layers=2)
    rows = random_rows(8, 40, LoopContract(eos=102399, pad=100001, max_new_tokens=24))
    seen = SimpleNamespace(logits=[])

    class Watched:
        name = "watched"

        def __init__(self, step):
            self.step, self.begin = step, step.begin

        def __call__(self, batch):
            seen.logits.append(self.step(batch).clone())
            return seen.logits[-1]

    def run(step, *, captured):
        how = Execute(captured=captured, look=4)
        both = (rows.ids, rows.mask)
        options = {"contract": rows.contract, "step": step, "choose": choose_best, "how": how, "tick": ignore}
        return execute_rows(model, both, **options).looped

    run(Watched(LeanStep(model, ())), captured=False)
    base = seen.logits[0]
    seen.logits = []
    step = LeanStep(model, kernels)
    plain = run(Watched(step), captured=False)
    assert float((seen.logits[0] - base).norm() / base.norm()) < 3e-2
    assert run(step, captured=True) == plain
