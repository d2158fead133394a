"""A decoding contract as a generation config: built explicitly, adopted by the model, read back.

transformers fills what a config leaves open from the checkpoint's config and from defaults of its own, without a word;
so nothing is left open, and what is recorded is what a config says afterwards.
"""

import warnings
from typing import Any

from transformers import GenerationConfig

from harness.model.load import LoadedModel
from harness.records.decoding import DecodeContract
from harness.records.profile import SpecialIds
from harness.records.sampling import SampledContract

READ_BACK = (
    "do_sample",
    "num_beams",
    "use_cache",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "min_length",
    "suppress_tokens",
    "begin_suppress_tokens",
    "bad_words_ids",
    "sequence_bias",
    "exponential_decay_length_penalty",
    "min_p",
    "stop_strings",
    "max_time",
    "watermarking_config",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "penalty_alpha",
    "guidance_scale",
    "renormalize_logits",
    "cache_implementation",
)


# In a generation config's own list of what isn't default, but no setting of the contract: the grid has the budget.
NO_SETTING = ("max_new_tokens", "transformers_version")


def contract_config(
    contract: DecodeContract | SampledContract, ids: SpecialIds, max_new_tokens: int
) -> GenerationConfig:
    """The contract as an explicit generation config: nothing is left to a checkpoint's or a library's default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers warns that greedy ignores temperature: the contract says so
        return GenerationConfig(
            do_sample=contract.do_sample,
            num_beams=contract.num_beams,
            use_cache=contract.use_cache,
            temperature=contract.temperature,
            top_k=contract.top_k,
            top_p=contract.top_p,
            repetition_penalty=contract.repetition_penalty,
            max_new_tokens=max_new_tokens,
            bos_token_id=ids.bos_id,
            eos_token_id=ids.eos,
            pad_token_id=ids.pad,
        )


def adopt_config(loaded: LoadedModel, config: GenerationConfig) -> dict[str, Any]:
    """Make a config the model's own, so that no merge can bring another back; and read it back from the model."""
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    loaded.model.generation_config = config
    return read_back(loaded.model.generation_config)


def read_back(config: GenerationConfig) -> dict[str, Any]:
    """What a config says now: the settings of every contract, and whatever else isn't the library's default."""
    others = {name: value for name, value in config.to_diff_dict().items() if name not in (*READ_BACK, *NO_SETTING)}
    return {name: getattr(config, name, None) for name in READ_BACK} | others
