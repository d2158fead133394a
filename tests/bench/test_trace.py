"""Tracing a nano batch against the same forward that keeps its hidden states and hashes nothing: ratios, no verdict.

Time: interleaved rounds in this process, medians, the ratio of medians; the goal is 1.25. Memory: each way in processes
of its own on a longer batch, the peak of resident bytes over what was resident before, by the system's high-water mark.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from harness.canon import canonical_bytes, digest
from harness.files import write_atomic
from harness.model.load import load_model
from harness.places import places
from harness.prompts.build import padded
from harness.protocols.load import load_protocol
from harness.records.depth import TargetTokens
from harness.run.prepare import prepare
from harness.run.request import Options, make_request
from harness.trace.batch import EdgeRows
from harness.trace.forward import plain_forward, positions, trace_batch

ROUNDS, GOAL, TARGET = 15, 1.25, 16
PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (0, 4), (0, 6), (1, 3), (1, 5), (1, 7)]
EDGES = [EdgeRows(f"edge-{left}-{right}", left, right) for left, right in PAIRS]
LONG = 1000  # tokens a row of the memory batch


def load():
    """The nano model under the protocol's own placement, and the protocol."""
    loaded = load_protocol("nano-behavior")
    placement = next(one for one in loaded.protocol.placements if one.id == loaded.protocol.placement)
    checkpoint = places().models / "nano" / "checkpoint"
    return loaded, load_model(loaded.profile, loaded.protocol.execution, placement, checkpoint)


def nano_batch(loaded):
    """The smoke grid's first source: eight real prompts padded on the left; the target is each prompt's last tokens."""
    request = make_request(loaded, "smoke", "bench", Options(None, (), None, None, port=False))
    _, batches = prepare(loaded, request)
    batch = batches[loaded.units(request.grid, request.domains)[0].source_id].prompts
    return padded(batch, loaded.profile.special_ids.pad)


def long_batch():
    """Eight rows of seeded IDs."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(4, 2000, (8, LONG), generator=generator).tolist(), [[1] * LONG] * 8


def trace(model, ids, mask):
    """The whole trace: hidden and router line, both scopes, ten edges, the logits' digest."""
    ends = [sum(row) for row in mask]
    targets = [TargetTokens(start=end - TARGET, end=end, crossing=0) for end in ends]
    return trace_batch(model, ids, mask, targets=targets, edges=EDGES)


def keep(model, ids, mask):
    """The library's forward that keeps all hidden states."""
    flags = torch.tensor(mask)
    with torch.inference_mode():
        return model.model(
            input_ids=torch.tensor(ids),
            attention_mask=flags,
            position_ids=positions(flags),
            use_cache=False,
            output_hidden_states=True,
        )


WAYS = {"trace": trace, "hidden_states": keep, "plain_with_logits_sha256": plain_forward}


def record_bytes(traced):
    """Canonical bytes of a source's hidden line, router line and edges."""
    edges = [[one.edge, one.stages, one.gates] for one in traced.edges]
    return len(canonical_bytes([traced.hidden, traced.gates, edges]))


def seconds(call, *arguments):
    """Wall time and processor time (all threads) of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call(*arguments)
    return time.perf_counter() - wall, time.process_time() - cpu


def resident(field):
    """VmRSS or VmHWM of this process in bytes."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def peak(way):
    """Run in a fresh process: bytes above what was resident before, at the peak of one call."""
    _, model = load()
    ids, mask = long_batch()
    WAYS[way](model, [row[:40] for row in ids], [row[:40] for row in mask])
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    before = resident("VmRSS")
    WAYS[way](model, ids, mask)
    return resident("VmHWM") - before


def peak_apart(way, root):
    """The same, of a fresh interpreter whose allocator gives freed memory back at once: a peak is what was needed."""
    program = (
        f"import sys; sys.path.insert(0, {str(root)!r})\nfrom tests.bench.test_trace import peak; print(peak({way!r}))"
    )
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
    return int(done.stdout.split()[-1])


@pytest.mark.bench
def test_a_trace_against_a_forward_that_keeps_hidden_states(capsys, record_property, pytestconfig):
    """Medians over interleaved rounds after a warm-up; peaks of fresh processes; both ways' figures are shown."""
    loaded, model = load()
    ids, mask = nano_batch(loaded)
    traces = [trace(model, ids, mask) for _ in range(2)]
    assert digest(traces[0].hidden) == digest(traces[1].hidden)
    times = [{name: seconds(way, model, ids, mask) for name, way in WAYS.items()} for _ in range(ROUNDS)]
    model.close()
    wall = {name: statistics.median(one[name][0] for one in times) for name in WAYS}
    cpu = {name: statistics.median(one[name][1] for one in times) for name in WAYS}
    peaks = {
        name: statistics.median(peak_apart(name, pytestconfig.rootpath) for _ in range(3))
        for name in ("trace", "hidden_states")
    }
    found = {
        "tokens": sum(map(sum, mask)),
        "wall_s": wall,
        "processor_s": cpu,
        "time_ratio": wall["trace"] / wall["hidden_states"],
        "time_goal": GOAL,
        "peak_bytes_over_resident": peaks,
        "peak_tokens": 8 * LONG,
        "memory_ratio": peaks["trace"] / peaks["hidden_states"],
        "record_bytes": record_bytes(traces[0]),
        "rounds": ROUNDS,
    }
    for name in ("time_ratio", "memory_ratio"):
        record_property(name, f"{found[name]:.4g}")
    write_atomic(places().reports / "bench" / "trace.json", json.dumps(found, indent=1).encode())
    with capsys.disabled():
        print(
            f"\ntrace {wall['trace'] * 1e3:.0f} ms, a forward that keeps hidden states "
            f"{wall['hidden_states'] * 1e3:.0f} ms: ratio {found['time_ratio']:.2f} (goal {GOAL}; medians of {ROUNDS} "
            f"interleaved rounds, {found['tokens']} tokens)\n"
            f"processor time {cpu['trace'] * 1e3:.0f} ms and {cpu['hidden_states'] * 1e3:.0f} ms\n"
            f"peak over resident {peaks['trace'] / 2**20:.0f} MiB and {peaks['hidden_states'] / 2**20:.0f} MiB: ratio "
            f"{found['memory_ratio']:.2f} (fresh processes, {8 * LONG} tokens, medians of 3)"
        )
