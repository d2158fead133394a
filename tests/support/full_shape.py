"""DeepSeek-V2-Lite's shape with seeded random weights, made on the device: for timings, never for a result."""

import torch
import transformers

from harness.model.load import LoadedModel
from harness.model.process import now_us, process_identity
from harness.protocols.load import load_protocol
from harness.records.protocol import Placement

from .random_profiles import YARN

SHAPE = {
    "vocab_size": 102400,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "n_shared_experts": 2,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "routed_scaling_factor": 1.0,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "topk_method": "greedy",
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "norm_topk_prob": False,
    "max_position_embeddings": 163840,
    "rms_norm_eps": 1e-6,
    "rope_parameters": YARN,
    "tie_word_embeddings": False,
    "bos_token_id": 100000,
    "eos_token_id": 100001,
    "pad_token_id": 100001,
}
PLACE = Placement(
    id="whole",
    device_map="single",
    gpu_memory="none",
    cpu_memory="none",
    offload_device="none",
    resident=(),
    offloaded=(),
    allocator="",
)


def random_model(device: str, layers: int = 27) -> LoadedModel:
    """BF16 weights from seed 0, 15.7 billion with all 27 layers, eager attention and grouped_mm experts."""
    config = transformers.DeepseekV2Config(**(SHAPE | {"num_hidden_layers": layers}))
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager")
    model.set_experts_implementation("grouped_mm")
    execution = load_protocol("deepseek-depth").protocol.execution
    return LoadedModel(model.eval(), torch.device(device), PLACE, execution, process_identity(now_us()), 0)
