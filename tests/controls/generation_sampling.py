"""Faults in the drawing itself, as code that is appended to a tree's conftest: `HEAD`, then one fault.

Smoke draws in this order: code R0, code R0 again, code R1, mathematics R0, mathematics R0 again, mathematics R1. `call`
counts these from 1; `decode(rows)` draws as the harness does.
"""

HEAD = """
import copy
import random
from dataclasses import replace

import msgspec
import torch

import harness.decode.sampled as sampled
import harness.run.engine as engine
import harness.run.produce as produce

calls = []
original = engine.decode_sampled

def in_call(model, change=lambda config: None, before=lambda: None, after=lambda output: None):
    # `generate` with another config, something before it, something done to its output
    generate = type(model).generate
    def planted(*one, generation_config, **two):
        other = copy.deepcopy(generation_config)
        change(other)
        before()
        output = generate(model, *one, generation_config=other, **two)
        after(output)
        return output
    model.generate = planted

def fault(decode, model, rows, call):
    return decode(rows)

def patched(loaded, rows, **named):
    calls.append(0)
    try:
        return fault(lambda rows: original(loaded, rows, **named), loaded.model, rows, len(calls))
    finally:
        vars(loaded.model).pop("generate", None)

engine.decode_sampled = patched
"""
LATE_SEED = """
seed = sampled.seed_generators

def late(value):
    seed(value)
    torch.rand(1)

sampled.seed_generators = late
"""
SEEDED_ONCE = """
seed, seeded = sampled.seed_generators, []

def once(value):
    if not seeded:
        seed(value)
    seeded.append(value)

sampled.seed_generators = once
"""
TOP_K = """
def fault(decode, model, rows, call):
    in_call(model, lambda config: setattr(config, "top_k", 50))
    return decode(rows)
"""
TEMPERATURE = """
def fault(decode, model, rows, call):
    in_call(model, lambda config: setattr(config, "temperature", 1.0))
    return decode(rows)
"""
GREEDY = """
def fault(decode, model, rows, call):
    in_call(model, lambda config: setattr(config, "do_sample", False))
    return decode(rows)
"""
GREEDY_THAT_DRAWS = """
draw = torch.multinomial

def greedy(weights, num_samples, **named):
    draw(weights, num_samples=num_samples, **named)
    return weights.argmax(dim=-1, keepdim=True)

torch.multinomial = greedy
"""
FOREIGN = """
def fault(decode, model, rows, call):
    if call == 3:
        in_call(model, before=lambda: torch.rand(1))
    return decode(rows)
"""
PYTHON = """
def fault(decode, model, rows, call):
    if call == 3:
        in_call(model, before=random.random)
    return decode(rows)
"""
ANOTHER_ID = """
def fault(decode, model, rows, call):
    def other(output):
        output[2, -8] = 300 if output[2, -8] != 300 else 301
    in_call(model, after=other)
    return decode(rows)
"""
NO_PROBABILITY = """
draw = torch.multinomial

def least(weights, num_samples, **named):
    draw(weights, num_samples=num_samples, **named)
    return weights.argmin(dim=-1, keepdim=True)

torch.multinomial = least
"""
NOT_FINITE = """
def fault(decode, model, rows, call):
    def spoil(module, arguments, logits):
        logits = logits.clone()
        logits[3, -1, 7] = float("nan")
        return logits
    hook = model.lm_head.register_forward_hook(spoil)
    try:
        return decode(rows)
    finally:
        hook.remove()
"""
SPLIT_CALL = """
generate = sampled.generate_rows

def halves(loaded, ids, mask, watch):
    return torch.cat([generate(loaded, ids[at:at + 2], mask[at:at + 2], watch) for at in (0, 2)])

sampled.generate_rows = halves
"""
SPLIT = """
def fault(decode, model, rows, call):
    one, two = (decode(sampled.PaddedRows(rows.ids[at:at + 2], rows.mask[at:at + 2])) for at in (0, 2))
    longer = max(one, two, key=lambda half: half.checks.steps)
    summed = ("rows_checked", "finite", "argmax")
    total = {name: getattr(one.checks, name) + getattr(two.checks, name) for name in summed}
    drawable = one.sampling.drawable + two.sampling.drawable
    sampling = msgspec.structs.replace(longer.sampling, drawable=drawable, **rows_said)
    checks = msgspec.structs.replace(longer.checks, **total)
    return replace(longer, rows=one.rows + two.rows, checks=checks, sampling=sampling)
"""
SPLIT_AS_IT_IS = SPLIT + "rows_said = {}\n"
SPLIT_UNSAID = SPLIT + 'rows_said = {"rows": 4}\n'
SHUFFLE = """
def fault(decode, model, rows, call):
    if call in shuffled:
        drawn = decode(sampled.PaddedRows(rows.ids[::-1], rows.mask[::-1]))
        return replace(drawn, rows=drawn.rows[::-1])
    return decode(rows)
"""
SHUFFLED_ONCE = SHUFFLE + "shuffled = (1, 3, 4, 6)\n"
SHUFFLED = SHUFFLE + "shuffled = range(9)\n"
SAME_SEEDS = """
seeds_of = engine.batch_seeds
engine.batch_seeds = lambda *one, **two: seeds_of(*one, **(two | {"replicate": "R0"}))
"""
SAME_SEEDS_UNSAID = """
seeds_of, first = engine.batch_seeds, {}

def noted(*one, **two):
    first["seeds"] = seeds_of(*one, **(two | {"replicate": "R0"}))
    return seeds_of(*one, **two)

engine.batch_seeds = noted
value = sampled.seed_value
sampled.seed_value = lambda seeds: value(first["seeds"])
"""
COPIED = """
make, made = produce._make, {}

def once(work, engine, key):
    identity = key.source_id, key.replicate
    if engine is not work.again:
        made[identity] = make(work, engine, key)
    evidence, observation = made[identity]
    return msgspec.structs.replace(evidence, grid=engine.request.grid), observation

produce._make = once
"""
