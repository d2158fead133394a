"""The trace on DeepSeek-V2-Lite's shape with seeded random weights on a GPU, against the same forward alone: ratios.

8 rows x 256 tokens, of which 200 are the target. The peer keeps all hidden states, as the library does, and hashes
none.
"""

import json
import statistics
import time

import pytest
import torch

from harness.canon import canonical_bytes, digest
from harness.files import write_atomic
from harness.places import places
from harness.records.depth import TargetTokens
from harness.trace.batch import EdgeRows, lay_out
from harness.trace.capture import Capture
from harness.trace.forward import _forward, plain_forward, positions, trace_batch
from harness.trace.line import find_line
from harness.trace.work import Work, thread_count

ROUNDS, WIDTH, TARGET = 9, 256, 200
PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (0, 4), (0, 6), (1, 3), (1, 5), (1, 7)]
EDGES = [EdgeRows(f"edge-{left}-{right}", left, right) for left, right in PAIRS]


def batch():
    """Seven rows of left padding 0 to 6, and the same target at each row's end."""
    generator = torch.Generator().manual_seed(5)
    rows = torch.randint(0, 100000, (8, WIDTH), generator=generator)
    rows[:, -TARGET:] = rows[0, -TARGET:]
    mask = [[0] * row + [1] * (WIDTH - row) for row in range(8)]
    targets = [TargetTokens(start=WIDTH - row - TARGET, end=WIDTH - row, crossing=0) for row in range(8)]
    return rows.tolist(), mask, targets


def keep(model, ids, mask):
    """The library's forward that keeps its hidden states and hashes nothing."""
    flags = torch.tensor(mask, device=model.device)
    with torch.inference_mode():
        return model.model(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=flags,
            position_ids=positions(flags),
            use_cache=False,
            output_hidden_states=True,
        )


def trace_alone(model, ids, mask, targets):
    """The trace without the digest of its logits, which only the check of the hooks needs."""
    laid, line = lay_out(ids, mask, targets, EDGES), find_line(model.model)
    with Work() as work:
        capture = Capture(line, laid, work)
        with capture.hooks():
            _forward(model, ids, mask)
        return work.finish()


def seconds(call, *arguments):
    """Wall time of a call, the device idle before and after, and the peak of its allocator above the start."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, started = torch.cuda.memory_allocated(), time.perf_counter()
    call(*arguments)
    torch.cuda.synchronize()
    return time.perf_counter() - started, torch.cuda.max_memory_allocated() - before


@pytest.mark.bench
@pytest.mark.cuda
def test_the_full_shape_on_a_gpu(capsys):
    """Medians over interleaved rounds after a warm-up; the digests of two traces are the same."""
    from pregate_support.full_shape import random_model

    model = random_model("cuda:0")
    ids, mask, targets = batch()
    ways = {
        "hidden_states": (keep, model, ids, mask),
        "forward": (_forward, model, ids, mask),
        "trace": (trace_alone, model, ids, mask, targets),
        "trace_with_logits_sha256": (lambda: trace_batch(model, ids, mask, targets=targets, edges=EDGES),),
        "forward_with_logits_sha256": (plain_forward, model, ids, mask),
    }
    traces = [trace_batch(model, ids, mask, targets=targets, edges=EDGES) for _ in range(3)]
    assert len({digest(one.hidden) for one in traces}) == 1
    assert traces[0].logits_sha256 == plain_forward(model, ids, mask).logits_sha256
    rounds = [{name: seconds(*way) for name, way in ways.items()} for _ in range(ROUNDS)]
    wall = {name: statistics.median(one[name][0] for one in rounds) for name in ways}
    peak = {name: statistics.median(one[name][1] for one in rounds) for name in ways}
    edges = [[one.edge, one.stages, one.gates] for one in traces[0].edges]
    found = {
        "device": torch.cuda.get_device_name(),
        "parameters": sum(one.numel() for one in model.model.parameters()),
        "threads_of_the_pool": thread_count(),
        "wall_s": wall,
        "time_ratio": wall["trace"] / wall["hidden_states"],
        "time_ratio_with_logits_sha256": wall["trace_with_logits_sha256"] / wall["forward_with_logits_sha256"],
        "peak_bytes": peak,
        "memory_ratio": peak["trace"] / peak["hidden_states"],
        "record_bytes": len(canonical_bytes([traces[0].hidden, traces[0].gates, edges])),
        "rounds": ROUNDS,
    }
    write_atomic(places().reports / "bench" / "trace_full_shape.json", json.dumps(found, indent=1).encode())
    with capsys.disabled():
        print("\n" + json.dumps(found, indent=1))
