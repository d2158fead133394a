"""Small seeded models of other families through the same trace: their gates by contract, dense ones by hidden line."""

import warnings

import pytest
import torch
import transformers

from harness.errors import ModelError
from harness.model.load import LoadedModel
from harness.trace.forward import plain_forward
from harness.trace.gates import RULES
from harness.trace.line import find_line

from .conftest import make_rows

COMMON = {
    "vocab_size": 60,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 8, "num_experts": 6}
DEEPSEEK = COMMON | {
    "first_k_dense_replace": 1,
    "n_routed_experts": 6,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 8,
    "kv_lora_rank": 8,
    "q_lora_rank": None,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "topk_method": "greedy",
    "routed_scaling_factor": 2.0,
}
SHARED = {"decoder_sparse_step": 2, "shared_expert_intermediate_size": 8}
QWEN3 = {"norm_topk_prob": True, "head_dim": 8, "mlp_only_layers": [1]}
EVERY = ["layer_00", "layer_01", "layer_02"]
MODELS = {
    "deepseek_v2": ("DeepseekV2", DEEPSEEK, ["layer_01", "layer_02"]),
    "mixtral": ("Mixtral", COMMON | {"num_local_experts": 6, "num_experts_per_tok": 2}, EVERY),
    "olmoe": ("Olmoe", COMMON | MOE, EVERY),
    "qwen2_moe": ("Qwen2Moe", COMMON | MOE | SHARED, ["layer_01"]),
    "qwen3_moe": ("Qwen3Moe", COMMON | MOE | QWEN3, ["layer_00", "layer_02"]),
    "llama": ("Llama", COMMON, []),
    "qwen2": ("Qwen2", COMMON, []),
}


def make(family, values, dtype):
    """A model with seeded random weights, as a loaded one."""
    torch.manual_seed(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = getattr(transformers, f"{family}Config")(**values)
        model = getattr(transformers, f"{family}ForCausalLM")(config).to(dtype).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("gate.weight"):  # some routers start at zero: all experts alike
            torch.nn.init.normal_(parameter, std=0.5)
    return LoadedModel(model, torch.device("cpu"), None, None, None, 0)


@pytest.fixture(autouse=True)
def same_generator():
    """The generator afterwards as before."""
    with torch.random.fork_rng():
        yield


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("family", "values", "gates"), MODELS.values(), ids=MODELS)
def test_another_family_is_traced(family, values, gates, dtype):
    """Five stages, its own gates, logits unchanged by the hooks; the choice is checked against its raw logits."""
    loaded, rows = make(family, values, dtype), make_rows(60)
    traced = rows.trace(loaded)
    assert [one.stage for one in traced.hidden[0]] == ["embedding", "layer_00", "layer_01", "layer_02", "final_norm"]
    assert [one.gate for one in traced.gates[0]] == gates
    assert {one.full.dtype for row in traced.hidden for one in row} == {str(dtype).removeprefix("torch.")}
    assert [sum(one.full.load) for one in traced.gates[3]] == [23 * 2] * len(gates)
    assert traced.logits_sha256 == plain_forward(loaded, rows.ids, rows.mask).logits_sha256


def test_every_rule_has_a_model_here():
    """No family is claimed without a forward of it."""
    assert set(RULES) <= set(MODELS)


class LogitsAlone(torch.nn.Module):
    """A gate as transformers before 5 has it: a linear layer, the choice made outside."""

    def __init__(self, gate):
        super().__init__()
        self.gate = gate

    def forward(self, hidden):
        """Logits only."""
        return self.gate(hidden)[0]


class MoEGate(LogitsAlone):
    """A gate as DeepSeek's own code has it: the choice alone."""

    def forward(self, hidden):
        """Expert IDs, weights, and no loss."""
        _, weights, experts = self.gate(hidden)
        return experts, weights, None


class Block(torch.nn.Module):
    """A MoE block whose gate module shows less than what its experts get."""

    def __init__(self, block, form):
        super().__init__()
        self.inner, self.gate = block, form(block.gate)

    def forward(self, hidden):
        """The block's own output; the gate is called to be seen."""
        self.gate(hidden)
        return self.inner(hidden)


@pytest.mark.parametrize("form", [LogitsAlone, MoEGate])
@pytest.mark.parametrize("name", ["deepseek_v2", "mixtral", "qwen3_moe"])
def test_older_forms_give_the_same_routes(form, name):
    """The same router behind a module that shows less: routes as by the native one, logits as before."""
    family, values, _ = MODELS[name]
    loaded, rows = make(family, values, torch.float32), make_rows(60)
    native = rows.trace(loaded)
    for layer in loaded.model.model.layers:
        if hasattr(layer.mlp, "gate"):
            layer.mlp = Block(layer.mlp, form)
    found = rows.trace(loaded)
    routes = [[one.full.routes_sha256 for one in row] for row in found.gates]
    assert routes == [[one.full.routes_sha256 for one in row] for row in native.gates]
    assert found.logits_sha256 == native.logits_sha256


def test_experts_under_another_name_are_refused():
    """A family whose router the contract doesn't know is never taken for a dense one."""
    loaded = make("Llama", COMMON, torch.float32)
    layer = loaded.model.model.layers[1]
    layer.mlp.router = torch.nn.Linear(16, 6)
    with pytest.raises(
        ModelError, match=r"model\.layers\.1: unknown gate contract: .*LlamaDecoderLayer with mlp\.router"
    ):
        find_line(loaded.model)


def test_a_config_with_experts_and_no_gate_is_refused():
    """The modules say dense, the config doesn't."""
    loaded = make("Llama", COMMON, torch.float32)
    loaded.model.config.num_experts = 8
    with pytest.raises(ModelError, match=r"config: unknown gate contract: .*'num_experts': 8.* and no gate module"):
        find_line(loaded.model)


def test_a_family_without_a_rule_is_refused():
    """A gate by the right name in a model whose rule nobody stated."""
    loaded = make(*MODELS["mixtral"][:2], torch.float32)
    loaded.model.config.model_type = "phimoe"
    with pytest.raises(ModelError, match=r"layers\.0\.mlp\.gate: unknown gate contract: .*type 'phimoe'"):
        find_line(loaded.model)


def test_a_model_of_another_build_is_refused():
    """No decoder layers where they are expected: what it has is named."""
    with pytest.raises(ModelError, match=r"expected modules model\.embed_tokens.*found 0, 1"):
        find_line(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)))
