"""`generate`, the loop and the executor over a fixed cache, side by side: figures, never a verdict of time.

On the CPU: nano, interleaved rounds, ratios to `generate`. With HARNESS_CUDA: DeepSeek-V2-Lite's shape with seeded
random weights, 8 and 4 rows, 512 tokens, beside the limit that reading the weights sets. HARNESS_BENCH_TOKENS,
HARNESS_BENCH_ROWS (comma-separated) and HARNESS_BENCH_SECONDS change the latter's size.
"""

import json
import os
import statistics
import time
from pathlib import Path

import pytest
import torch

from harness.decode.loop import LoopContract
from harness.files import write_atomic
from harness.model.load import load_model
from harness.places import places
from harness.protocols.load import load_protocol

ROUNDS, TOKENS, WIDTH = 20, 64, 256
SLOW, FEWER = ("generate, static cache", "loop, dynamic cache"), 128  # of a full shape's slow ways, so many tokens
GENERATE = "generate, dynamic cache"
LAST = "lean, experts+attention+norms, captured"
EQUAL = [("modules, captured", "modules, uncaptured"), (LAST, "lean, all, uncaptured")]
EQUAL += [("lean, all, taped, captured", "lean, all, taped, uncaptured")]


@pytest.fixture(scope="module")
def nano():
    """The embedded model."""
    loaded = load_protocol("nano-behavior")
    place = next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)
    model = load_model(
        loaded.profile, loaded.protocol.execution, place, places().models / loaded.profile.id / "checkpoint"
    )
    yield model
    model.close()


@pytest.mark.bench
@pytest.mark.parametrize("count", [4, 8])
def test_executors_on_nano(nano, count, capsys):
    """Medians over interleaved rounds of each way's ratio to `generate` in the same round; the same tokens in all."""
    from pregate_support import executors

    rows = executors.random_rows(count, 96, LoopContract(eos=2047, pad=1, max_new_tokens=TOKENS))
    every = executors.ways(device="cpu")
    tokens = {name: call(nano, rows, lambda step: None) for name, call in every.items()}
    seconds = {name: [] for name in every}
    for number in range(ROUNDS):
        for name in list(every) if number % 2 else list(reversed(every)):
            seconds[name].append(executors.timed(nano, rows, every[name])[1])
    base = seconds[GENERATE]
    found = {
        name: {
            "ratio_to_generate": statistics.median(b / own for b, own in zip(base, all_, strict=True)),
            "exact_rows": executors.agreement(tokens, name, GENERATE)["exact"],
        }
        for name, all_ in seconds.items()
    }
    assert all(one["exact_rows"] == count for one in found.values())
    write_atomic(places().reports / "bench" / f"executors-nano-{count}.json", json.dumps(found, indent=1).encode())
    with capsys.disabled():
        for name, one in found.items():
            print(
                f"\n{count} rows  {name:28} {one['ratio_to_generate']:.2f} x generate, {one['exact_rows']} rows exact",
                end="",
            )


def shown(count, found, limit_ms):
    """The table of one batch size."""
    lines = [f"{count} rows, limit {limit_ms:.2f} ms"]
    base = found.get(GENERATE, {})
    for name, one in found.items():
        if "error" in one:
            lines.append(f"{name:44} {one['error'][:160]}")
            continue
        ratio = one["tokens_per_s"] / base["tokens_per_s"] if "tokens_per_s" in base else float("nan")
        lines.append(
            f"{name:44} {one['ms_step']:7.2f} ms  {one['tokens_per_s']:7.1f} tok/s  {ratio:5.2f} x generate  "
            f"{one['ms_step'] / limit_ms:5.2f} x limit"
        )
    return lines


def full_shape(executors, model, count, tokens, deadline, note):
    """One batch size's figures, with equality of tokens and the limit."""
    rows = executors.random_rows(count, WIDTH, LoopContract(eos=102399, pad=100001, max_new_tokens=tokens))
    bandwidth = executors.copy_bandwidth("cuda")
    least = executors.least_bytes(model, rows, executors.experts_hit(model, rows))
    limit_ms = 1000 * (least["weights"] + least["cache"]) / bandwidth
    found, ids = executors.measure(
        model,
        rows,
        budget=lambda name: min(tokens, FEWER) if name in SLOW else tokens,
        repeats=lambda name: 3 if name.endswith(", captured") else 1,
        deadline=deadline,
        note=note,
    )
    equal = {f"{one} = {other}": executors.agreement(ids, one, other) for one, other in EQUAL}
    beside = {name: executors.agreement(ids, name, GENERATE) for name in ids if name != GENERATE}
    lines = shown(count, found, limit_ms)
    return {
        "rows": count,
        "copy_bytes_per_s": bandwidth,
        "least": least,
        "limit_ms": limit_ms,
        "ways": found,
        "captured_is_uncaptured": equal,
        "beside_generate": beside,
        "table": lines,
    }


@pytest.mark.bench
@pytest.mark.cuda
def test_executors_at_full_shape(capsys):
    """Every token of a captured step is its uncaptured form's."""
    from pregate_support import executors
    from pregate_support.full_shape import random_model

    until = time.perf_counter() + float(os.environ.get("HARNESS_BENCH_SECONDS", "420"))
    tokens = int(os.environ.get("HARNESS_BENCH_TOKENS", "512"))
    counts = [int(one) for one in os.environ.get("HARNESS_BENCH_ROWS", "8,4").split(",")]
    target = Path(os.environ.get("OUT", str(places().reports / "bench"))) / "executors.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    model, found = random_model("cuda:0"), {"device": torch.cuda.get_device_name(), "tokens": tokens, "sizes": []}

    def said(name, one):
        print(name, one, flush=True)

    with capsys.disabled():
        for count in counts:
            found["sizes"].append(full_shape(executors, model, count, tokens, until, said))
            target.write_text(json.dumps(found, indent=1), encoding="utf-8")
            print("\n".join(found["sizes"][-1]["table"]), flush=True)
            print(json.dumps(found["sizes"][-1]["captured_is_uncaptured"]), flush=True)
    for one in found["sizes"]:
        for name, equal in one["captured_is_uncaptured"].items():
            assert equal.get("exact") == one["rows"], (name, equal)
