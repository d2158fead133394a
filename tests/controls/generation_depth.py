"""Faults of a trace while it is made: one model in this process, traced under a planted fault, and a run made of it.

A fault of the code is in every process that runs it: in the run, in its replay, in the smoke run before. `plant` puts
the units so made into the runs that are named, with all digests renewed: a red gate isn't a stale digest's work.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.canon import sha256_hex
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.prompts.registered import SourceBatch
from harness.prompts.tokenizer import PromptTokenizer
from harness.protocols.load import load_protocol
from harness.records.depth import TargetTokens, TraceEvidence
from harness.run.engine import Engine, open_engine
from harness.run.prepare import prepare
from harness.run.progress import Progress, quiet
from harness.run.request import Options, make_request
from harness.snapshots.store import run_files

from .damage import DEPTH_CHECKS, Case, edit, forge_audit

Red = dict[str, list[str]]
Units = list[TraceEvidence]
Change = Callable[[SourceBatch], SourceBatch]
EVERYWHERE = ("smoke", "run", "replay")
NOT_REPLAYED = ("smoke", "run")


@dataclass(frozen=True)
class Tracer:
    """A loaded engine with the batches of the run's sources."""

    engine: Engine
    tokenizer: PromptTokenizer
    batches: dict[str, SourceBatch]
    progress: Progress

    @property
    def model(self) -> Any:
        """The model itself."""
        return self.engine.model.model

    def units(self, change: Change = lambda batch: batch) -> Units:
        """Both sources traced; `change` is made to what the tracer is given of each."""
        loaded = self.engine.loaded
        keys = loaded.units(loaded.protocol.tier_grids["formal"], loaded.domains)
        given = [(key, change(self.batches[key.source_id])) for key in keys]
        made = [self.engine.make_unit(key, batch, self.tokenizer, self.progress)[0] for key, batch in given]
        return [one for one in made if isinstance(one, TraceEvidence)]


def open_tracer(run: Path) -> Tracer:
    """The nano model as the depth run's protocol loads it. HARNESS_ROOT must be the run's tree."""
    tree = Places(run.parents[2])
    loaded = load_protocol(run.parent.name, tree)
    options = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)
    request = make_request(loaded, "formal", run.name, options, tree)
    return Tracer(open_engine(loaded, request), *prepare(loaded, request), Progress(quiet, "", 1, 1, 0))


def plant(case: Case, units: Units, runs: tuple[str, ...] = EVERYWHERE) -> None:
    """The runs are made of these units; a smoke run is judged as if it had passed with them."""
    for name in runs:
        part = {"run": "", "replay": "replay"}.get(name)
        whole = case if part is not None else Case(case.smoke, case.protocol)
        for at, unit in enumerate(units):
            edit(whole.journal(at, part or ""), lambda journal, unit=unit: _give(journal, unit))
        whole.seal(part or "")
        if name == "smoke":
            _judge_smoke(case)


def _give(journal: Any, unit: TraceEvidence) -> None:
    journal["evidence"] = msgspec.to_builtins(unit) | {"grid": journal["evidence"]["grid"]}


def _judge_smoke(case: Case) -> None:
    found = {
        "run_sha256": sha256_hex((case.smoke / "run.json").read_bytes()),
        "files": run_files(RunFolder(case.smoke)),
    }
    forge_audit(case.smoke, lambda audit: audit.update(found), reference=case.run / "smoke.json")


def red_gates(case: Case, *, frozen: bool = False) -> Red:
    """Every gate of the protocol that is red, with its red rows; `frozen`: the gates over frozen results too."""
    gates = [gate for gate in DEPTH_CHECKS if gate != "registration" and (frozen or not gate.startswith("frozen"))]
    reaches = {gate: case.registered(gate).reach for gate in gates}
    evidence = {reach: case.evidence(reach) for reach in sorted(set(reaches.values()))}
    return {gate: sorted(red) for gate in gates if (red := case.red_in(gate, evidence[reaches[gate]]))}


def with_targets(change: Callable[[TargetTokens], TargetTokens], rows: tuple[int, ...] = tuple(range(8))) -> Change:
    """The targets of some rows of the batch are other ones, for tracer and records alike."""

    def changed(batch: SourceBatch) -> SourceBatch:
        if batch.targets is None:
            raise RuntimeError("a trace has targets")
        cells = [change(one) if row in rows else one for row, one in enumerate(batch.targets.cells)]
        return replace(batch, targets=replace(batch.targets, cells=tuple(cells)))

    return changed


def moved(steps: int) -> Callable[[TargetTokens], TargetTokens]:
    """A target some tokens further on."""
    return lambda one: TargetTokens(start=one.start + steps, end=one.end + steps, crossing=one.crossing)


def uncrossed(one: TargetTokens) -> TargetTokens:
    """A target whose ends cut no token."""
    return TargetTokens(start=one.start, end=one.end, crossing=0)


def hook_that_returns(
    patch: pytest.MonkeyPatch, change: Callable[[Any], Any], *, kind: str = "stage_hook", place: str = "layer_04"
) -> None:
    """The trace's own hook of a stage or gate returns something, and so replaces the module's output."""
    from harness.trace.capture import Capture

    honest = getattr(Capture, kind)

    def planted(self: Any, at: Any, *more: Any) -> Any:
        inner = honest(self, at, *more)

        def hook(module: Any, inputs: Any, output: Any) -> Any:
            inner(module, inputs, output)
            return change(output) if at.name == place else None

        return hook

    patch.setattr(Capture, kind, planted)


def flipped_bit(patch: pytest.MonkeyPatch, stage: str, token: int) -> None:
    """One bit of one number of one token of the batch is another one in what the trace reads of a stage."""
    from harness.trace import capture

    honest = capture._hidden

    def planted(fetched: Any, name: str) -> Any:
        matrix = honest(fetched, name)
        if name != stage:
            return matrix
        stored = matrix.stored.copy()
        stored.view("u4")[token, 5] ^= 1
        return replace(matrix, stored=stored)

    patch.setattr(capture, "_hidden", planted)


def padding_counted(patch: pytest.MonkeyPatch, row: int) -> None:
    """The last padding of a row counts as a token."""
    from harness.run import tracing

    honest = tracing.padded

    def planted(batch: Any, pad_id: int) -> Any:
        ids, mask = honest(batch, pad_id)
        flags = list(mask[row])
        flags[flags.index(1) - 1] = 1
        return ids, (*mask[:row], tuple(flags), *mask[row + 1 :])

    patch.setattr(tracing, "padded", planted)


def other_line(patch: pytest.MonkeyPatch, line: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
    """The trace looks at other stages or gates."""
    from harness.trace import forward

    honest = forward.find_line

    def planted(model: Any) -> Any:
        found = honest(model)
        return replace(found, **{line: change(getattr(found, line))})

    patch.setattr(forward, "find_line", planted)


def swapped_edges(patch: pytest.MonkeyPatch) -> None:
    """Every edge is computed from right to left, and says that it was left to right."""
    from harness.run import tracing

    honest = tracing.EdgeRows
    patch.setattr(tracing, "EdgeRows", lambda edge, left, right: honest(edge, right, left))


def cache_back(patch: pytest.MonkeyPatch) -> None:
    """The model's forward gives a cache back, whatever it was asked."""
    from harness.trace import forward

    honest = forward._forward
    patch.setattr(forward, "_forward", lambda *given: (honest(*given)[0], True))


def drawn(patch: pytest.MonkeyPatch) -> None:
    """The trace draws from NumPy's generator."""
    import numpy as np

    from harness.run import tracing

    honest = tracing.trace_batch

    def planted(*given: Any, **named: Any) -> Any:
        np.random.rand()
        return honest(*given, **named)

    patch.setattr(tracing, "trace_batch", planted)


def cosines_halved(patch: pytest.MonkeyPatch) -> None:
    """The cosine of every stage on every edge is half of its rows' mean."""
    from harness.trace import edges

    honest = edges.StageEdge
    patch.setattr(edges, "StageEdge", lambda **fields: honest(**fields | {"cosine": fields["cosine"] / 2}))


def statistics_by_an_ulp(patch: pytest.MonkeyPatch) -> None:
    """The mean of every hidden tensor is the next number upwards."""
    import math

    from harness.trace import encoding

    honest = encoding.statistics

    def planted(moments: Any) -> Any:
        found = honest(moments)
        return msgspec.structs.replace(found, mean=math.nextafter(found.mean, math.inf))

    patch.setattr(encoding, "statistics", planted)


def other_route_facts(patch: pytest.MonkeyPatch, change: Callable[[Any], dict[str, Any]]) -> None:
    """What is kept of every gate's routes is otherwise in these fields."""
    from harness.trace import stages

    honest = stages.route_facts

    def planted(routes: Any, moments: Any) -> Any:
        found = honest(routes, moments)
        return msgspec.structs.replace(found, **change(found))

    patch.setattr(stages, "route_facts", planted)


@contextmanager
def permuted_experts(model: Any, *, weights_too: bool) -> Iterator[None]:
    """Two experts of layer 3 have each other's place in the gate; `weights_too`: they have changed places whole."""
    import torch

    layer = model.model.layers[3].mlp
    tensors = [layer.gate.weight, *(layer.experts.parameters() if weights_too else ())]
    kept = [tensor.detach().clone() for tensor in tensors]
    with torch.no_grad():
        for tensor, old in zip(tensors, kept, strict=True):
            tensor[[0, 1]] = old[[1, 0]]
        try:
            yield
        finally:
            for tensor, old in zip(tensors, kept, strict=True):
                tensor.copy_(old)
