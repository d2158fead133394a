"""Ways to decode the same rows side by side: tokens, milliseconds a step, tokens a second, and the least bytes a step.

`measure` times every way that the device has; a way that fails gives its error's text and the others go on.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch
from transformers import GenerationConfig, LogitsProcessorList

from harness.decode.graph import Execute, ModuleStep, choose_best, execute_rows
from harness.decode.icdf import InverseCdf
from harness.decode.lean import LeanStep
from harness.decode.loop import LoopContract, choose_argmax, decode_rows
from harness.decode.tape_device import DeviceTape
from harness.decode.watch import StepWatch
from harness.model.load import LoadedModel
from harness.model.rng import rng_states

from .taped import SAMPLER, TAPE

LOOK = 16
ALL = ("experts", "attention", "norms")


@dataclass
class Rows:
    """Left-padded IDs and mask, and what ends a row."""

    ids: list
    mask: list
    contract: LoopContract


def random_rows(count, width, contract, seed=5):
    """Rows of left padding 0, 1, 2..., IDs below 90 % of the vocabulary's names."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(10, contract.pad - 10 if contract.pad > 1000 else 2000, (count, width), generator=generator)
    mask = [[0] * row + [1] * (width - row) for row in range(count)]
    ids = [[contract.pad] * row + one[row:] for row, one in enumerate(ids.tolist())]
    return Rows(ids, mask, contract)


def by_generate(model: LoadedModel, rows: Rows, tick, *, cache):
    """The library's call, watched as the harness watches it; a static cache without compilation."""
    contract = rows.contract
    static = {"cache_implementation": "static", "disable_compile": True} if cache == "static" else {}
    config = GenerationConfig(
        do_sample=False,
        max_new_tokens=contract.max_new_tokens,
        eos_token_id=contract.eos,
        pad_token_id=contract.pad,
        **static,
    )
    ids, mask = (torch.tensor(one, device=model.device) for one in (rows.ids, rows.mask))
    watch = LogitsProcessorList([StepWatch(tick)])
    with torch.inference_mode():
        found = model.model.generate(ids, attention_mask=mask, generation_config=config, logits_processor=watch)
    return [
        row[: row.index(contract.eos) + 1] if contract.eos in row else row for row in found[:, ids.shape[1] :].tolist()
    ]


def by_loop(model: LoadedModel, rows: Rows, tick):
    """The loop over a growing cache."""
    found = decode_rows(model, (rows.ids, rows.mask), contract=rows.contract, choose=choose_argmax, tick=tick)
    return [list(row) for row in found.rows]


def by_executor(model: LoadedModel, rows: Rows, tick, *, step, captured, choose=None):
    """The executor; `step(model)` makes its step."""
    how = Execute(captured=captured, look=LOOK if captured else 1)
    arguments = {"contract": rows.contract, "step": step(model), "choose": choose or choose_best, "how": how}
    found = execute_rows(model, (rows.ids, rows.mask), **arguments, tick=tick)
    return [list(row) for row in found.looped.rows]


def lean(*kernels):
    """A maker of a lean step, made once a model: it copies some weights."""
    made = {}

    def make(model):
        if id(model) not in made:
            made[id(model)] = LeanStep(model, kernels)
        return made[id(model)]

    return make


def ways(*, device):
    """Name to call(model, rows, tick) -> IDs a row, in the order in which they are shown."""
    found = {
        "generate, dynamic cache": lambda *one: by_generate(*one, cache="dynamic"),
        "generate, static cache": lambda *one: by_generate(*one, cache="static"),
        "loop, dynamic cache": by_loop,
        "modules, uncaptured": lambda *one: by_executor(*one, step=ModuleStep, captured=False),
    }
    if device == "cpu":
        steps = {"lean, torch": lean(), "lean, all experts": lean("all_experts")}
        return found | {name: partial(by_executor, step=step, captured=False) for name, step in steps.items()}
    steps = {"modules": ModuleStep, "lean, torch": lean()}
    steps |= {f"lean, {'+'.join(ALL[:count])}": lean(*ALL[:count]) for count in (1, 2, 3)}
    last = steps[f"lean, {'+'.join(ALL)}"]

    def captured(step):
        return lambda *one: by_executor(*one, step=step, captured=True)

    found |= {f"{name}, captured": captured(step) for name, step in steps.items()}
    found["lean, all, uncaptured"] = lambda *one: by_executor(*one, step=last, captured=False)
    found["lean, all, taped, captured"] = taped(last, captured=True)
    found["lean, all, taped, uncaptured"] = taped(last, captured=False)
    return found


def taped(step, *, captured):
    """The executor under a tape, the sampler inside the step."""

    def call(model, rows, tick):
        budget, sampler = rows.contract.max_new_tokens, InverseCdf(SAMPLER)
        tape = DeviceTape(sampler, TAPE, "code/0000", rows=len(rows.ids), budget=budget, device=model.device)
        return by_executor(model, rows, tick, step=step, captured=captured, choose=tape)

    return call


def wait(model):
    """Until the device is idle."""
    if model.device.type == "cuda":
        torch.cuda.synchronize()


def timed(model: LoadedModel, rows: Rows, call: Callable):
    """IDs, whole seconds, and milliseconds a step between the ticks: prompt, compilation and capture aside."""
    marks = []
    wait(model)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ids = call(model, rows, lambda step: marks.append((step, time.perf_counter())))
    wait(model)
    return ids, time.perf_counter() - started, between(marks)


def between(marks):
    """Milliseconds a step of each stretch: ticks that come in one burst end one stretch together."""
    ends = [
        mark for mark, after in zip(marks, [*marks[1:], (0, float("inf"))], strict=True) if after[1] - mark[1] > 2e-4
    ]
    pairs = pairwise(ends)
    return [1000 * (late - early) / (after - before) for (before, early), (after, late) in pairs]


def cut(rows: Rows, budget):
    """The same rows under another budget."""
    return Rows(rows.ids, rows.mask, LoopContract(rows.contract.eos, rows.contract.pad, budget))


def measure(model: LoadedModel, rows: Rows, *, budget, repeats, deadline, note):
    """Each way's figures by name, or its error. After `deadline` (perf_counter) ways are left out by name.

    `budget` and `repeats` give a way's tokens and measured runs, by its name.
    """
    found, tokens = {}, {}
    for name, call in ways(device=model.device.type).items():
        if time.perf_counter() > deadline:
            found[name] = {"error": "no time was left"}
            continue
        try:
            timed(model, cut(rows, 12), call)
            before = rng_states()
            runs = [timed(model, cut(rows, budget(name)), call) for _ in range(repeats(name))]
            tokens[name] = runs[0][0]
            found[name] = figures(runs) | {"generators_untouched": rng_states() == before}
        except Exception as error:  # noqa: BLE001  # one way's failure is a row of the table
            found[name] = {"error": f"{type(error).__name__}: {error}"[:600]}
        if model.device.type == "cuda":
            torch.cuda.empty_cache()
        note(name, found[name])
    return found, tokens


def figures(runs):
    """Medians of one way's runs. Tokens a second are of the whole call."""
    steps = [one for _, _, stretches in runs for one in stretches]
    whole = statistics.median(seconds for _, seconds, _ in runs)
    emitted = sum(map(len, runs[0][0]))
    return {
        "ms_step": statistics.median(steps),
        "ms_step_mean": statistics.mean(steps),
        "whole_s": whole,
        "tokens_per_s": emitted / whole,
        "steps": max(map(len, runs[0][0])),
        "repeats": len(runs),
        "same_tokens_each_time": all(one[0] == runs[0][0] for one in runs),
    }


def agreement(tokens, one, other):
    """Rows whose tokens are all the same, and tokens in common from the start, row by row."""
    if one not in tokens or other not in tokens:
        return {"error": "a side is missing"}
    pairs = list(zip(tokens[one], tokens[other], strict=True))
    common = [
        next((at for at, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), min(map(len, pair)))
        for pair in pairs
    ]
    return {"rows": len(pairs), "exact": sum(a == b for a, b in pairs), "common_prefix": common}


def copy_bandwidth(device, size=4 << 30, repeats=20):
    """Bytes a second of a device-to-device copy, read and written, median."""
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device=device)
    target, found = torch.empty_like(source), []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        found.append(2 * size / (begin.elapsed_time(end) / 1000))
    return statistics.median(found)


def experts_hit(model: LoadedModel, rows: Rows, tokens=32):
    """Distinct experts a MoE layer and step over `tokens` steps, mean, from what the gates gave."""
    seen = []
    moe = [layer.mlp.gate for layer in model.model.model.layers if hasattr(layer.mlp, "gate")]
    handles = [gate.register_forward_hook(lambda _, __, output: seen.append(output[2])) for gate in moe]
    try:
        by_executor(model, cut(rows, tokens), lambda step: None, step=ModuleStep, captured=False)
    finally:
        for handle in handles:
            handle.remove()
    steps = seen[len(moe) :]  # the first forward is the prompt's
    return statistics.mean(len(set(one.flatten().tolist())) for one in steps)


def least_bytes(model: LoadedModel, rows: Rows, hit):
    """Weights that a step must read, and the compressed keys and values of half the budget's columns."""
    config = model.model.config
    weights = {name: one.numel() * one.element_size() for name, one in model.model.named_parameters()}
    routed = sum(size for name, size in weights.items() if ".experts." in name)
    rest = sum(weights.values()) - routed - weights["model.embed_tokens.weight"]
    columns = len(rows.ids[0]) + rows.contract.max_new_tokens / 2
    width = (config.kv_lora_rank + config.qk_rope_head_dim) * next(model.model.parameters()).element_size()
    cached = len(rows.ids) * columns * width * config.num_hidden_layers
    return {
        "all_weights": sum(weights.values()),
        "weights": rest + routed * hit / config.n_routed_experts,
        "cache": cached,
        "experts_hit": hit,
    }
