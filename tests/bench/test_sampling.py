"""Sampling nano batches through the harness against bare `generate` calls, and where the sampled tokens are the same.

Time: the first source of each domain under R0, in the same process, with the same seeds, processors and rows; medians
over interleaved rounds, and ratios. The goal is 1.05: what is read back of seeds, states and draws may cost 5 %,
and it is not asserted. Tokens: the whole replay grid, each way in a process of its own, as replays are.
"""

import json
import secrets
import statistics
import time
import warnings

import pytest
import torch

from harness.compare import common_prefix
from harness.files import write_atomic
from harness.journal.assemble import read_environment, read_units
from harness.journal.folder import RunFolder
from harness.places import places
from harness.prompts.build import padded
from harness.protocols.load import load_protocol
from harness.protocols.seeds import batch_seeds, seed_value
from harness.run.child import replace_request, run_apart, with_threads
from harness.run.engine import open_engine
from harness.run.prepare import prepare
from harness.run.progress import Progress, quiet
from harness.run.request import Options, make_request

PROTOCOL, GOAL = "nano-cross-source-sampling", 1.05
ROUNDS = {"smoke": 15, "formal": 5}
CAPABILITY = "ATEN_CPU_CAPABILITY"
WAYS = [("unset", 1), *((capability, threads) for threads in (1, 2) for capability in ("default", "avx2", "avx512"))]


def request_of(loaded, tier):
    """What a run of the tier would be asked for."""
    return make_request(loaded, tier, f"bench-{secrets.token_hex(3)}", Options(None, (), None, None, port=False))


@pytest.fixture(scope="module", params=ROUNDS)
def ways(request):
    """The tier, its engine, and for each of four units a call through the harness and a bare one."""
    loaded = load_protocol(PROTOCOL)
    asked = request_of(loaded, request.param)
    tokenizer, batches = prepare(loaded, asked)
    engine = open_engine(loaded, asked)
    keys = [key for key in loaded.units(asked.grid, asked.domains) if (key.index, key.replicate) == (0, "R0")]
    progress = Progress(quiet, "bench", len(keys), len(loaded.protocol.conditions), engine.budget)

    def harness(key):
        return engine.make_unit(key, batches[key.source_id], tokenizer, progress)[0]

    def bare(key):
        return bare_call(engine, batches[key.source_id], seed_of(loaded, key))

    yield request.param, keys, harness, bare
    engine.close()


def seed_of(loaded, key):
    """The run seed of a unit."""
    protocol = loaded.protocol
    names = {"source_id": key.source_id, "replicate": key.replicate}
    return seed_value(batch_seeds(protocol.decode.seeds, protocol.registered_id, **names))


def bare_call(engine, batch, seed):
    """R07 5's seeding and transformers' own call on the same padded rows, under the same adopted config."""
    ids, mask = (torch.tensor(rows) for rows in padded(batch.prompts, engine.loaded.profile.special_ids.pad))
    model = engine.model.model
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        return model.generate(ids, attention_mask=mask, generation_config=model.generation_config)[:, ids.shape[1] :]


def seconds(call, key):
    """Wall time and processor time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call(key)
    return time.perf_counter() - wall, time.process_time() - cpu


def one_round(keys, harness, bare, *, turned):
    """(harness, bare) of each unit, each (wall, processor); the two calls of a unit follow each other, either first."""
    pairs = []
    for key in keys:
        found = [seconds(way, key) for way in ((bare, harness) if turned else (harness, bare))]
        pairs.append(found[::-1] if turned else found)
    return pairs


def medians(rounds, clock):
    """Median over rounds of each way's seconds, summed over the units; and the median ratio of a unit's two calls."""
    sums = [statistics.median(sum(pair[way][clock] for pair in one) for one in rounds) for way in (0, 1)]
    return *sums, statistics.median(pair[0][clock] / pair[1][clock] for one in rounds for pair in one)


@pytest.mark.bench
def test_the_harness_against_bare_sampling(ways, capsys, record_property):
    """Both ways emit the same tokens; medians over interleaved rounds after one warm-up of each."""
    tier, keys, harness, bare = ways
    units = [harness(key) for key in keys]
    for unit, rows in zip(units, [bare(key).tolist() for key in keys], strict=True):
        pairs = zip(unit.cells, rows, strict=True)
        assert all(list(cell.generated_ids) == row[: cell.length] for cell, row in pairs)
    rounds = [one_round(keys, harness, bare, turned=number % 2 == 1) for number in range(ROUNDS[tier])]
    (wall, bare_wall, ratio), (_, _, processor) = medians(rounds, 0), medians(rounds, 1)
    found = {
        "harness_s": wall,
        "generate_s": bare_wall,
        "ratio_of_medians": wall / bare_wall,
        "median_ratio": ratio,
        "median_processor_ratio": processor,
        "goal": GOAL,
        "units": len(units),
        "draws": sum(unit.sampling.draws for unit in units),
        "rounds": ROUNDS[tier],
    }
    for name, value in found.items():
        record_property(name, f"{value:.4g}")
    write_atomic(places().reports / "bench" / f"sampling-{tier}.json", json.dumps(found, indent=1).encode())
    with capsys.disabled():
        print(
            f"\n{tier}: harness {wall:.3f} s, generate {bare_wall:.3f} s, ratio of medians {wall / bare_wall:.3f}; "
            f"median ratio of {len(units) * ROUNDS[tier]} pairs of calls {ratio:.3f}, of processor time "
            f"{processor:.3f} (goal {GOAL}, not asserted); {len(units)} batches of 4 rows, {found['draws']} draws, "
            f"{ROUNDS[tier]} interleaved rounds"
        )


def drawn(request, folder, loaded):
    """Generate a grid in a fresh process: its environment, and each cell's IDs by identity."""
    run_apart(request, folder, forbidden=folder.path.parent)
    cells = {
        (key.source_id, key.replicate, cell.condition): cell.generated_ids
        for key, journal in read_units(folder, loaded).items()
        for cell in journal.evidence.cells
    }
    return read_environment(folder), cells


def parting(first, cells):
    """Cells that part from the first way's: identity, first step, and both lengths."""
    return [
        {"cell": " ".join(name), "step": common_prefix(first[name], ids), "lengths": [len(first[name]), len(ids)]}
        for name, ids in cells.items()
        if ids != first[name]
    ]


@pytest.mark.bench
def test_report_sampled_tokens_by_threads_and_kernels(tmp_path, monkeypatch, capsys):
    """For each way, how many of the replay grid's cells have the first way's IDs, the kernels used, and what parts."""
    loaded = load_protocol(PROTOCOL)
    base = request_of(loaded, "replay")
    first, found = {}, []
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # two threads that spin on a busy machine do little else
    for capability, threads in WAYS:
        monkeypatch.delenv(CAPABILITY, raising=False)
        if capability != "unset":
            monkeypatch.setenv(CAPABILITY, capability)
        request = replace_request(base, execution=with_threads(base, threads))
        environment, cells = drawn(request, RunFolder(tmp_path / f"{capability}-{threads}"), loaded)
        first = first or cells
        assert set(cells) == set(first)
        parts = parting(first, cells)
        way = {"capability": capability, "kernels": environment.cpu_capability, "threads": environment.threads}
        found.append(way | {"equal": len(first) - len(parts), "of": len(first), "parts": parts})
        with capsys.disabled():
            print(
                f"\n{CAPABILITY}={capability} kernels={environment.cpu_capability} threads={environment.threads}: "
                f"{len(first) - len(parts)}/{len(first)} cells have the first way's IDs {parts or ''}"
            )
    write_atomic(places().reports / "bench" / "sampling-kernels.json", json.dumps(found, indent=1).encode())
