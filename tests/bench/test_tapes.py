"""Drawing nano units under a tape against bare `generate` sampling of the same batches; and the sampler by itself.

Time: the first task of each domain at the smoke budget, pairs of calls one right after the other, medians of their
ratios. The goal is 1.0, and it is not asserted. The sampler at the registered vocabulary, four rows, beside softmax and
`torch.multinomial` over the same warped logits.
"""

import secrets
import statistics
import time
import warnings

import pytest
import torch
from transformers import GenerationConfig

from harness.decode.icdf import InverseCdf
from harness.prompts.build import padded
from harness.protocols.load import load_protocol
from harness.run.engine import open_engine
from harness.run.prepare import prepare
from harness.run.progress import Progress, quiet
from harness.run.request import Options, make_request
from harness.tapes.synthetic import VOCABULARY

PROTOCOL, GOAL, PAIRS = "nano-task-crn", 1.0, 15


@pytest.fixture(scope="module")
def ways():
    """The units, and for each a call through the harness and a bare one."""
    loaded = load_protocol(PROTOCOL)
    name = f"bench-{secrets.token_hex(3)}"
    asked = make_request(loaded, "smoke", name, Options(None, (), None, None, port=False))
    tokenizer, batches = prepare(loaded, asked)
    engine = open_engine(loaded, asked)
    keys = [key for key in loaded.units(asked.grid, asked.domains) if (key.index, key.replicate) == (0, "T0")]
    progress = Progress(quiet, "bench", len(keys), len(loaded.protocol.conditions), engine.budget)

    def harness(key):
        return engine.make_unit(key, batches[key.source_id], tokenizer, progress)[0]

    def bare(key):
        ids, mask = padded(batches[key.source_id].prompts, loaded.profile.special_ids.pad)
        special = loaded.profile.special_ids
        config = GenerationConfig(
            do_sample=True,
            temperature=0.3,
            top_p=0.95,
            top_k=0,
            max_new_tokens=engine.budget,
            eos_token_id=special.eos,
            pad_token_id=special.pad,
        )
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")
            return engine.model.model.generate(
                torch.tensor(ids), attention_mask=torch.tensor(mask), generation_config=config
            )

    yield keys, harness, bare
    engine.close()


def timed(call, *arguments):
    """Seconds of one call: wall and processor."""
    wall, processor = time.perf_counter(), time.process_time()
    call(*arguments)
    return time.perf_counter() - wall, time.process_time() - processor


@pytest.mark.bench
def test_a_unit_under_a_tape_beside_generate(ways):
    """Ratio of wall and of processor time, medians of pairs."""
    keys, harness, bare = ways
    for key in keys:
        harness(key), bare(key)
    pairs = [(timed(harness, key), timed(bare, key)) for _ in range(PAIRS) for key in keys]
    wall, processor = (statistics.median(one[at] / other[at] for one, other in pairs) for at in (0, 1))
    print(f"\n{len(pairs)} pairs: time ratio {wall:.3f}, of processor time {processor:.3f}; goal {GOAL}")


@pytest.mark.bench
def test_the_sampler_beside_multinomial():
    """Milliseconds a step of four rows at 102,400 columns: the whole sampler, and what the library does instead."""
    contract = load_protocol("deepseek-task-crn").protocol.decode.sampler
    sampler = InverseCdf(contract)
    logits = torch.randn(4, VOCABULARY, generator=torch.Generator().manual_seed(0)) * 3

    def library():
        scores = sampler._top_p(None, sampler._temperature(None, logits))
        return torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1)

    ways = {"sampler": lambda: sampler.draw(logits, 0.4), "warpers, softmax, multinomial": library}
    ways["multinomial alone"] = lambda: torch.multinomial(torch.softmax(logits, dim=-1), num_samples=1)
    found = {name: statistics.median(timed(call)[0] for _ in range(30)) * 1e3 for name, call in ways.items()}
    print("\n" + ", ".join(f"{name} {value:.1f} ms" for name, value in found.items()))
