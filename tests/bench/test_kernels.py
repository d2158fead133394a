"""Which tokens of nano's long cells change with threads and CPU kernels: a report, never a verdict.

Run with `pytest tests/bench/test_kernels.py -m bench -s`. Each way runs in its own process, as replays do.
"""

import secrets
from pathlib import Path

import pytest

from harness.journal.assemble import read_environment, read_units
from harness.journal.folder import RunFolder
from harness.protocols.load import load_protocol
from harness.run.child import replace_request, run_apart, with_threads
from harness.run.request import Options, make_request

CAPABILITY = "ATEN_CPU_CAPABILITY"
WAYS = (("none", 1), ("none", 2), ("default", 1), ("avx2", 1), ("avx512", 1))


@pytest.mark.bench
def test_report_tokens_by_threads_and_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints, for each way, how many of the long cells have the first way's IDs, and the kernels that were in use."""
    loaded = load_protocol("nano-behavior")
    options = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)
    base = make_request(loaded, "replay", f"bench-{secrets.token_hex(3)}", options)
    first: dict[tuple[str, str], tuple[int, ...]] = {}
    for capability, threads in WAYS:
        monkeypatch.delenv(CAPABILITY, raising=False)
        if capability != "none":
            monkeypatch.setenv(CAPABILITY, capability)
        folder = RunFolder(tmp_path / f"{capability}-{threads}")
        run_apart(replace_request(base, execution=with_threads(base, threads)), folder, forbidden=tmp_path)
        cells = {
            (key.source_id, cell.condition): cell.generated_ids
            for key, journal in read_units(folder, loaded).items()
            for cell in journal.evidence.cells
        }
        first = first or cells
        same = sum(cells[key] == first[key] for key in first)
        environment = read_environment(folder)
        print(
            f"\n{CAPABILITY}={capability} threads={environment.threads} kernels={environment.cpu_capability}: "
            f"{same}/{len(first)} cells have the first way's IDs"
        )
