"""Tiny random chat models of other architectures, made in a second: their templates, BOS and experts differ.

`llama`: BOS at the start, answers end in EOS, dense. `qwen2`: no BOS, turns end in EOS, a template in its own file, two
EOS in its config, tied embeddings, dense. `mixtral`: as llama, with experts, and no system message allowed.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

INSTRUCT = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}REFUSE"
    "{% elif message['role'] == 'user' %}{{ '[Q] ' + message['content'] + ' [A] ' }}"
    "{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'So: ' }}{% endif %}"
)
SYSTEM = "{{ message['content'] + '\n' }}"
REFUSAL = "{{ raise_exception('no system message here') }}"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = {
    "llama": {"bos_token": "<s>", "eos_token": "</s>", "pad_token": None},
    "qwen2": {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    "mixtral": {"bos_token": "<s>", "eos_token": "</s>", "pad_token": None},
}
ADDED = {"qwen2": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]}
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
KINDS = ("llama", "qwen2", "mixtral")


def make_checkpoint(folder: Path, kind: str) -> Path:
    """A whole checkpoint folder of one kind, with random weights that are the same every time."""
    import torch

    folder.mkdir(parents=True)
    ids = write_tokenizer(folder, kind)
    config, model_type = _model(kind, ids)
    state = torch.get_rng_state()
    torch.manual_seed(0)
    model = model_type(config)
    torch.set_rng_state(state)
    eos = [ids["eos"], ids["pad"]] if kind == "qwen2" else ids["eos"]
    model.generation_config.update(bos_token_id=ids["bos"], eos_token_id=eos, pad_token_id=ids["pad"])
    model.save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path, kind: str) -> dict[str, int | None]:
    """tokenizer.json, tokenizer_config.json and, for qwen2, chat_template.jinja; the special IDs."""
    backend = Tokenizer(models.BPE(vocab={one: at for at, one in enumerate(_alphabet())}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(ADDED.get(kind, ["<s>", "</s>"]))
    backend.save(str(folder / "tokenizer.json"))
    words: dict[str, Any] = dict(SPECIAL[kind])
    if kind == "qwen2":
        (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    else:
        words["chat_template"] = INSTRUCT.replace("REFUSE", REFUSAL if kind == "mixtral" else SYSTEM)
    (folder / "tokenizer_config.json").write_text(json.dumps(words), encoding="utf-8")
    ids = {name: backend.token_to_id(words[f"{name}_token"] or "") for name in ("bos", "eos", "pad")}
    return ids | {"pad": ids["eos"] if ids["pad"] is None else ids["pad"]}


def _alphabet() -> list[str]:
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _model(kind: str, ids: dict[str, int | None]) -> tuple[Any, Any]:
    import transformers

    own = {"bos_token_id": ids["bos"], "eos_token_id": ids["eos"], "pad_token_id": ids["pad"]}
    shared = SIZES | {"vocab_size": 260, "num_key_value_heads": 2, "max_position_embeddings": 2048} | own
    if kind == "llama":
        return transformers.LlamaConfig(**shared), transformers.LlamaForCausalLM
    if kind == "qwen2":
        return transformers.Qwen2Config(**shared, tie_word_embeddings=True), transformers.Qwen2ForCausalLM
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    return transformers.MixtralConfig(**shared, **experts), transformers.MixtralForCausalLM
