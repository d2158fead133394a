"""Hooks on a loaded model for one forward: every stage's and every gate's output, handed to `work` as it comes.

A hook returns None, always: anything else would replace the module's output. What it sees is copied before the forward
goes on, padding left out. torch and modules are known here; conditions, texts and files are not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from harness.errors import ModelError
from harness.trace.batch import Batch
from harness.trace.device import compare_rows, row_moments
from harness.trace.edges import RowComparisons
from harness.trace.encoding import Matrix, RowMoments
from harness.trace.gates import GateOutput, GateRule, unknown_contract
from harness.trace.host import Fetch, as_matrix, as_numbers, fetch
from harness.trace.line import Line, Place
from harness.trace.stages import DeviceStage, HostStage, Stage, between, gate_result, hidden_tasks
from harness.trace.work import Work

Hook = Callable[[Any, Any, Any], None]
STAGE, GATE = "stage", "gate"


class Capture:
    """One forward's hooks. `seen` lists what came, `stage <name>` or `gate <name>`, in the order of the forward."""

    def __init__(self, line: Line, batch: Batch, work: Work) -> None:
        self.seen: list[str] = []
        self._line, self._batch, self._work = line, batch, work
        self._live: dict[torch.device, torch.Tensor] = {}

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Hooks on every stage and gate, taken off again however the forward ends."""
        handles = [place.module.register_forward_hook(self.stage_hook(place)) for place in self._line.stages]
        if self._line.rule is not None:
            rule = self._line.rule
            handles += [place.module.register_forward_hook(self.gate_hook(place, rule)) for place in self._line.gates]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def require_all(self) -> None:
        """ModelError unless each stage and gate came once, in the layers' order, a gate before its layer's stage."""
        gates = {place.name for place in self._line.gates}
        wanted = []
        for place in self._line.stages:
            wanted += [f"{GATE} {place.name}"] if place.name in gates else []
            wanted.append(f"{STAGE} {place.name}")
        if self.seen != wanted:
            raise ModelError(
                "trace",
                expected=f"one output of each of {len(wanted)} stages and gates, in the order of the layers",
                found=f"{len(self.seen)} outputs: {', '.join(self.seen)}",
                todo="The model doesn't call its modules as the trace's contract says.",
            )

    def stage_hook(self, place: Place) -> Hook:
        """The hook of a hidden stage; a layer may return its hidden state alone or first in a tuple."""

        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            hidden = output[0] if isinstance(output, tuple) and output else output
            stage = self._stage(place, self._live_rows(hidden, place, dimensions=3))
            tasks = hidden_tasks(stage, self._batch, self._work.threads)
            self._work.submit(f"{STAGE} {place.name}", tasks)
            self.seen.append(f"{STAGE} {place.name}")

        return hook

    def gate_hook(self, place: Place, rule: GateRule) -> Hook:
        """The hook of a gate; ModelError `unknown gate contract` for an output of no known form."""

        def hook(module: Any, _inputs: Any, output: Any) -> None:
            parts = [
                None if part is None else fetch(self._live_rows(part, place, dimensions=2))
                for part in gate_parts(place.path, module, output)
            ]
            task = partial(gate_result, place.name, partial(_gate_output, parts), rule, self._batch, place.path)
            self._work.submit(f"{GATE} {place.name}", [task])
            self.seen.append(f"{GATE} {place.name}")

        return hook

    def _stage(self, place: Place, rows: torch.Tensor) -> Stage:
        """On a CUDA device the sums are enqueued behind the forward's own work, before its numbers are copied."""
        if rows.device.type != "cuda":
            return HostStage(place.name, partial(_hidden, fetch(rows), place.name))
        chosen, pairs = between(self._batch.edges)
        targets = [self._batch.cuts[row].target for row in chosen]
        sums = fetch(row_moments(rows))
        compared = [fetch(one) for one in compare_rows(rows, targets, pairs)] if pairs else []
        return DeviceStage(
            name=place.name,
            numbers=partial(_hidden, fetch(rows), place.name),
            sums=partial(_moments, sums, rows.shape[1]),
            comparisons=partial(_comparisons, compared),
            batch=self._batch,
        )

    def _live_rows(self, tensor: Any, place: Place, *, dimensions: int) -> torch.Tensor:
        """The live rows of an output [rows, width, columns], or of a gate's with rows x width as one."""
        rows = len(self._batch.cuts)
        leading = (rows, self._batch.width)
        flat = (rows * self._batch.width,)
        shape = tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else ()
        if shape[:-1] not in ((leading,) if dimensions == 3 else (leading, flat)):
            raise ModelError(
                place.path,
                expected=f"a tensor over {rows} x {self._batch.width} tokens",
                found=f"{type(tensor).__name__} {list(shape)}",
                todo="The module's output isn't what the trace's contract says.",
            )
        return torch.index_select(tensor.reshape(-1, shape[-1]), 0, self._places(tensor.device))

    def _places(self, device: torch.device) -> torch.Tensor:
        if device not in self._live:
            self._live[device] = torch.tensor(self._batch.live, dtype=torch.long, device=device)
        return self._live[device]


def gate_parts(
    where: str, module: Any, output: Any
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Logits, weights and expert IDs of a gate's output, whichever it shows (see `harness.trace.gates`)."""
    if isinstance(output, torch.Tensor) and output.is_floating_point():
        return output, None, None
    parts = list(output) if isinstance(output, tuple) else []
    if [_kind(part) for part in parts] == ["float", "float", "integer"]:
        return parts[0], parts[1], parts[2]
    if [_kind(part) for part in parts] == ["integer", "float", "nothing"] and type(module).__name__ == "MoEGate":
        return None, parts[1], parts[0]
    described = ", ".join(map(_kind, parts)) or _kind(output)
    raise unknown_contract(where, f"{type(module).__name__} returning ({described})")


def _kind(part: Any) -> str:
    if isinstance(part, torch.Tensor):
        return "float" if part.is_floating_point() else "integer"
    return "nothing" if part is None else type(part).__name__


def _hidden(fetched: Fetch, name: str) -> Matrix:
    return as_matrix(fetched(), name)


def _moments(sums: Fetch, columns: int) -> RowMoments:
    mean, deviations, minimum, maximum = sums().numpy()
    return RowMoments(columns, mean, deviations, minimum, maximum)


def _comparisons(compared: list[Fetch]) -> RowComparisons:
    sums, exact = (one().numpy() for one in compared)
    dot, left, right, difference = sums
    return RowComparisons(exact.sum(axis=-1).tolist(), dot, left, right, difference)


def _gate_output(parts: list[Fetch | None]) -> GateOutput:
    logits, weights, experts = (None if part is None else part() for part in parts)
    return GateOutput(
        logits=as_numbers(logits),
        weights=as_numbers(weights),
        experts=as_numbers(experts),
        weight_bytes=4 if weights is None else weights.element_size(),
    )
