"""How a study decodes, as plain data: greedily by `generate`, or drawn under tapes by the own loop."""

from typing import Any

from harness.authoring.answers import Answers, SamplingAnswer, undrawable
from harness.errors import ProtocolError
from harness.model.official import GENERATION_CONFIG, Official
from harness.protocols.check_study import GREEDY, GREEDY_PLACED, GREEDY_REPLAYED
from harness.protocols.check_taped_study import AT_LEAST, CROSS_PROCESS, RULE, SAME_PROCESS, tapes_named_by
from harness.tapes.tape import Tape


def _chosen(sampling: SamplingAnswer, official: Official) -> tuple[float, float]:
    """The author's numbers, or the model's own where they can be drawn with; ProtocolError names the flag to give."""
    heat = official.temperature if sampling.temperature is None else sampling.temperature
    nucleus = official.top_p if sampling.top_p is None else sampling.top_p
    for name, (bounds, found) in undrawable(heat, nucleus).items():
        where, todo = f"init: {name}, by the model's {GENERATION_CONFIG}", f"Give {name}; nothing was written."
        raise ProtocolError(where, expected=bounds, found=str(found), todo=todo)
    return heat, nucleus


def decoding_content(answers: Answers, official: Official, rows: int) -> dict[str, Any]:
    """What of protocol.toml says how tokens are chosen: `decode` and, under tapes, what is made of one draw again.

    `rows`: conditions of a source, which are decoded in one batch.
    """
    shared: dict[str, Any] = {"rows_per_batch": rows, "generator_seed": 0}
    shared |= {"official_temperature": official.temperature, "official_top_p": official.top_p}
    if answers.sampling is None:
        return {"decode": _greedy() | shared}
    required = answers.dtype == "float32"
    return {
        "loop_equivalence": "required" if required else "recorded",
        "decode": _taped(answers, answers.sampling, official) | shared,
        "same_process_replay": {"grid": "smoke_again", "replicate": "T0", "fields": [*SAME_PROCESS]},
    }


def _greedy() -> dict[str, Any]:
    return {
        "strategy": "greedy",
        "do_sample": False,
        "num_beams": 1,
        "use_cache": True,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "cache": "dynamic",
    }


def _taped(answers: Answers, sampling: SamplingAnswer, official: Official) -> dict[str, Any]:
    heat, nucleus = _chosen(sampling, official)
    tapes = [Tape(tapes_named_by(answers.id), label) for label in _labels(sampling)]
    return {
        "strategy": "tape",
        "pairing": "shared uniform numbers",
        "finished_rows": "pad_masked",
        "use_cache": True,
        "cache": "dynamic",
        "sampler": {
            "rule": RULE,
            "temperature": heat,
            "top_p": nucleus,
            "min_tokens_to_keep": 1,
            "device": "cpu",
        },
        "register": {
            "rule": "tape-r08",
            "origin": "ours",
            "tapes": [{"label": one.label, "display_seed": one.display_seed, "sha256": one.sha256} for one in tapes],
        },
    }


def _labels(sampling: SamplingAnswer) -> list[str]:
    return [f"T{index}" for index in range(sampling.tapes)]


def grids_content(answers: Answers) -> dict[str, Any]:
    """Grids with their replicates, and over which fields runs made apart are compared."""
    few = min(answers.smoke, answers.formal)
    replicates = [GREEDY] if answers.sampling is None else _labels(answers.sampling)
    smoke = replicates[:AT_LEAST]
    sizes = {
        "smoke": (answers.smoke, smoke, answers.smoke_tokens),
        "formal": (answers.formal, replicates, answers.tokens),
        "independent": (few, smoke, answers.tokens),
    }
    if answers.sampling is not None:
        sizes["smoke_again"] = (answers.smoke, smoke[:1], answers.smoke_tokens)
    placed, replayed = (GREEDY_PLACED, GREEDY_REPLAYED) if answers.sampling is None else (SAME_PROCESS, CROSS_PROCESS)
    return {
        "grids": {
            name: {"per_domain": sources, "replicates": under, "max_new_tokens": tokens}
            for name, (sources, under, tokens) in sizes.items()
        },
        "tier_grids": {"smoke": "smoke", "formal": "formal", "replay": "independent"},
        "placement_equivalence": {"grid": "smoke", "left": "resident", "right": "offloaded", "fields": [*placed]},
        "independent_replay": {"grid": "independent", "left": "resident", "right": "resident", "fields": [*replayed]},
    }
