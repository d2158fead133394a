"""The executor over a fixed cache: one decode step, captured in a CUDA graph where asked, replayed until all ended.

An execution contract of its own: scores over the whole width round otherwise than over a cache that grows, so its
tokens are `generate`'s only where a gate shows it. Captured and uncaptured are the same step. The prompt's forward is
never captured and is `generate`'s own, over a cache that grows; what it cached is copied.

The host looks every `look` steps whether all rows have ended. Steps beyond the end are dropped, so that the result
doesn't depend on it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness.decode.fixed import FixedBatch, FixedCache, Layers
from harness.decode.loop import LoopContract, LoopedRows, Rows, forward_names, require_finite
from harness.decode.watch import Tick
from harness.errors import DecodeError
from harness.model.load import LoadedModel
from harness.model.memory import is_out_of_memory, out_of_memory
from harness.records.tapes import Finished, LoopChecks, NotFinished

WARM_UPS = 2  # kernels are compiled, workspaces and handles made, before anything is captured


class DeviceChoose(Protocol):
    """Chooses on the device: logits float32 [rows, vocabulary], their argmax, the batch -> int64 [rows] of IDs.

    Called inside a capture: fixed shapes, no read by the host. What is chosen for a finished row is not used.
    """

    def __call__(self, logits: torch.Tensor, best: torch.Tensor, batch: FixedBatch) -> torch.Tensor:
        """One ID a row."""


class Step(Protocol):
    """One forward of one token a row. `name` says which functions and kernels it is made of."""

    name: str

    def begin(self, layers: Layers, batch: FixedBatch) -> None:
        """Take over what the prompt's forward cached."""

    def __call__(self, batch: FixedBatch) -> torch.Tensor:
        """Logits float32 [rows, vocabulary] of the batch's inputs; the batch isn't changed, its cache's slot is."""


@dataclass(frozen=True, slots=True)
class Execute:
    """How steps are run: whether they are captured, and after how many the host looks."""

    captured: bool
    look: int


@dataclass(frozen=True, slots=True)
class ExecutedRows:
    """What the loop gives, and the row steps whose choice was the argmax; columns of the logits.

    `captured`: the steps after the prompt's were replays of a captured graph, `replays` of them.
    """

    looped: LoopedRows
    argmax: int
    columns: int
    captured: bool
    replays: int


class ModuleStep:
    """The model's own modules over a fixed cache, with the mask as added scores."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.name = f"modules, experts {getattr(loaded.model.config, '_experts_implementation', 'own')}"
        self._model, self._names = loaded.model, forward_names(loaded.model)
        self._cache: FixedCache | None = None

    def begin(self, layers: Layers, batch: FixedBatch) -> None:
        """A fixed cache with the prompt's columns filled."""
        self._cache = FixedCache(layers, batch.columns, batch.inputs.slot)

    def __call__(self, batch: FixedBatch) -> torch.Tensor:
        """The whole model's forward."""
        now = batch.inputs
        arguments = {"input_ids": now.ids, "attention_mask": now.bias, "position_ids": now.positions}
        output = self._model(**arguments, **{self._names.cache: self._cache}, use_cache=True, return_dict=True)
        return output.logits[:, -1].to(dtype=torch.float32, copy=True)  # type: ignore[no-any-return]


def choose_best(logits: torch.Tensor, best: torch.Tensor, batch: FixedBatch) -> torch.Tensor:
    """Greedy: the argmax."""
    del logits, batch
    return best


def execute_rows(  # noqa: PLR0913
    loaded: LoadedModel,
    padded: tuple[Rows, Rows],
    *,
    contract: LoopContract,
    step: Step,
    choose: DeviceChoose,
    how: Execute,
    tick: Tick,
) -> ExecutedRows:
    """Decode left-padded rows in one batch, never split, until all ended or the budget is reached.

    `padded`: IDs and mask, both int [rows, width], PAD with mask 0 on the left. Ticks come in bursts, one a step of the
    result. Raises DecodeError (`out_of_memory`, `non_finite`).
    """
    _require_use(loaded, contract, how)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the libraries' deprecations aren't this run's business
        try:
            run = _Run(loaded, padded, contract, step, choose)
            run.all_steps(how, tick)
            return run.result(tick)
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, DecodeError) or not is_out_of_memory(error):
                raise
            raise out_of_memory("generation", error) from error


def _require_use(loaded: LoadedModel, contract: LoopContract, how: Execute) -> None:
    if loaded.model is None:
        raise RuntimeError("the model was closed")
    if contract.max_new_tokens < 1:
        raise RuntimeError(f"a budget is at least one token, got {contract.max_new_tokens}")
    if how.look < 1:
        raise RuntimeError(f"the host looks after at least one step, got {how.look}")
    if how.captured and loaded.device.type != "cuda":
        raise RuntimeError(f"a step is captured on a CUDA device, not on {loaded.device.type}")


class _Run:
    """A batch from its prompt to its result."""

    def __init__(
        self,
        loaded: LoadedModel,
        padded: tuple[Rows, Rows],
        contract: LoopContract,
        step: Step,
        choose: DeviceChoose,
    ) -> None:
        ids, mask = (torch.tensor(one, dtype=torch.long, device=loaded.device) for one in padded)
        self._step, self._choose = step, choose
        self.batch = FixedBatch(mask, contract, loaded.model.get_input_embeddings().weight.dtype)
        logits, layers = prompt_forward(loaded.model, ids, mask, self.batch.prompt_positions())
        step.begin(layers, self.batch)
        self._vocabulary = logits.shape[-1]
        self._take(logits)
        self.taken, self._ticked = 1, 0
        self.captured, self._replays = False, 0

    def _take(self, logits: torch.Tensor) -> None:
        best = logits.argmax(dim=-1)
        self.batch.take(logits, best, self._choose(logits, best, self.batch))

    def _advance(self) -> None:
        self._take(self._step(self.batch))

    def all_steps(self, how: Execute, tick: Tick) -> None:
        """Steps until no row is live at a look, or the budget is spent."""
        left = self.batch.contract.max_new_tokens - 1
        advance = self._captured() if how.captured and left else self._advance
        while left and self._any_live(tick):
            burst = min(how.look, left)
            for _ in range(burst):
                advance()
            left -= burst
            self.taken += burst

    def _any_live(self, tick: Tick) -> bool:
        """The one place where the host waits for the device. While a row lives, every step taken counts."""
        live = bool(self.batch.inputs.live.any())
        if live:
            self._tick_to(self.taken, tick)
        return live

    def _tick_to(self, steps: int, tick: Tick) -> None:
        for step in range(self._ticked, steps):
            tick(step + 1)
        self._ticked = max(self._ticked, steps)

    def _captured(self) -> Callable[[], None]:
        """The step as a graph, after warm-ups on a side stream that leave the batch as it was."""
        saved, side = self.batch.inputs.saved(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self._advance()
                self.batch.inputs.restore(saved)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._advance()
        self.batch.inputs.restore(saved)
        self.captured = True

        def replay() -> None:
            graph.replay()
            self._replays += 1

        return replay

    def result(self, tick: Tick) -> ExecutedRows:
        """What was emitted, after the finite flags were judged."""
        batch, emitted = self.batch, self.batch.emitted
        rows = [ended(row, batch.contract.eos) for row in emitted.ids[:, : self.taken].tolist()]
        steps = max(map(len, rows))
        live = torch.arange(steps) < torch.tensor([len(row) for row in rows])[:, None]
        self._tick_to(steps, tick)
        require_finite(emitted.finite[:, :steps].cpu(), live)
        checked = int(live.sum())
        eos = batch.contract.eos
        looped = LoopedRows(
            rows=tuple(rows),
            finish=tuple(Finished(step=len(row) - 1) if row[-1] == eos else NotFinished() for row in rows),
            attended=tuple(batch.inputs.mask[:, : batch.width + steps - 1].sum(dim=1).tolist()),
            checks=LoopChecks(steps=steps, rows_checked=checked, finite=checked),
            cache=FixedCache.__name__,
            cached=int(batch.inputs.slot) - (self.taken - steps),
        )
        argmax = int((emitted.argmax[:, :steps].cpu() & live).sum())
        return ExecutedRows(looped, argmax, self._vocabulary, self.captured, self._replays)


def ended(row: list[int], eos: int) -> tuple[int, ...]:
    """A row's IDs up to and including its first EOS; all of them where it has none."""
    return tuple(row[: row.index(eos) + 1] if eos in row else row)


def prompt_forward(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor
) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
    """`generate`'s first forward: the last position's float32 logits [rows, vocabulary], and what each layer cached."""
    names = forward_names(model)
    kept = {"logits_to_keep": 1} if names.keeps else {}
    output = model(input_ids=ids, attention_mask=mask, position_ids=positions, **kept, use_cache=True, return_dict=True)
    layers = [(layer.keys, layer.values) for layer in getattr(output, names.cache).layers]
    return output.logits[:, -1].to(dtype=torch.float32, copy=True), layers
