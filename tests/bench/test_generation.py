"""Generation through the harness against a bare `generate` call on the same batch: a ratio, never a verdict.

On nano, and on a trained model where its checkpoint is. The target is 1.05: watching every step, hashing generators and
records may cost 5 %. It is stated and not asserted.
"""

import json
import os
import statistics
import time
import warnings
from pathlib import Path

import pytest
import torch

from harness.files import write_atomic
from harness.places import places
from harness.prompts.build import padded
from harness.protocols.load import load_protocol
from harness.run.engine import open_engine
from harness.run.prepare import prepare
from harness.run.progress import Progress, quiet
from harness.run.request import Options, make_request

ROUNDS = 5
TARGET = 1.05


TRAINED = (pytest.mark.smollm2, pytest.mark.inputs)


@pytest.fixture(scope="module", params=["nano-behavior", pytest.param("smollm2-behavior", marks=TRAINED)])
def smoke(request):
    """Protocol, engine, tokenizer, and the smoke grid's first unit with its batch."""
    loaded = load_protocol(request.param)
    trained = request.param.startswith("smollm2")
    checkpoint = Path(os.environ["HARNESS_SMOLLM2"]) if trained else None
    inputs = (Path(os.environ["HARNESS_INPUTS"]),) if trained else ()
    request = make_request(loaded, "smoke", "bench", Options(checkpoint, inputs, None, None, port=False))
    tokenizer, batches = prepare(loaded, request)
    engine = open_engine(loaded, request)
    key = loaded.units(request.grid, request.domains)[0]
    yield loaded, engine, tokenizer, key, batches[key.source_id]
    engine.close()


def bare(engine, batch, pad):
    """Transformers' own call on the same padded rows, under the same config."""
    ids, mask = (torch.tensor(rows) for rows in padded(batch.prompts, pad))
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = engine.model.model
        return model.generate(ids, attention_mask=mask, generation_config=model.generation_config)[:, ids.shape[1] :]


def seconds(call):
    """Wall time of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@pytest.mark.bench
def test_the_harness_against_a_bare_call(smoke, capsys, record_property):
    """Interleaved A B A B after one warm-up of each; medians, and the ratio of the medians."""
    loaded, engine, tokenizer, key, batch = smoke
    pad, budget = loaded.profile.special_ids.pad, loaded.protocol.grids["smoke"].max_new_tokens
    progress = Progress(quiet, "bench", ROUNDS, len(batch.prompts.cells), budget)

    def harness():
        return engine.make_unit(key, batch, tokenizer, progress)

    def library():
        return bare(engine, batch, pad)

    evidence, _ = harness()
    rows = library().tolist()
    assert [list(cell.generated_ids) for cell in evidence.cells] == [
        row[: cell.length] for row, cell in zip(rows, evidence.cells, strict=True)
    ]
    times = [(seconds(harness), seconds(library)) for _ in range(ROUNDS)]
    one, other = (statistics.median(column) for column in zip(*times, strict=True))
    tokens = sum(cell.length for cell in evidence.cells)
    found = {"harness_s": one, "generate_s": other, "ratio": one / other, "target": TARGET, "rounds": ROUNDS}
    found |= {"harness_tokens_per_s": tokens / one, "generate_tokens_per_s": tokens / other}
    for name, value in found.items():
        record_property(name, f"{value:.4g}")
    write_atomic(
        places().reports / "bench" / f"generation-{loaded.protocol.id}.json", json.dumps(found, indent=1).encode()
    )
    with capsys.disabled():
        print(
            f"\nharness {one:.3f} s, generate {other:.3f} s, ratio {one / other:.3f} (target {TARGET}, not asserted); "
            f"{evidence.checks.steps} steps of {len(batch.prompts.cells)} rows, {tokens} tokens: {tokens / one:.1f} "
            f"and {tokens / other:.1f} tokens/s, median of {ROUNDS}"
        )
