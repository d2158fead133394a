"""One unit by the executor over a fixed cache: its rows under a tape, or greedily, and how its steps really ran."""

from dataclasses import dataclass
from typing import Any

from harness.decode.graph import Execute, ExecutedRows, ModuleStep, Step, choose_best, execute_rows
from harness.decode.icdf import InverseCdf
from harness.decode.lean import LeanStep
from harness.decode.loop import LoopContract, Rows
from harness.decode.tape_device import DeviceTape
from harness.decode.taped import TapedCall, TapedRows
from harness.decode.watch import Tick
from harness.model.load import LoadedModel
from harness.records.graph import GraphBatch, GraphExecution, GraphRan
from harness.records.run import StepChecks


@dataclass(slots=True)
class Executor:
    """A registered executor on a loaded model: its step, made once, and how steps are run.

    A step holds the model's tensors, so that the executor is closed before the model is.
    """

    made: Step | None
    how: Execute

    @property
    def step(self) -> Step:
        """The step; misuse once it was released."""
        if self.made is None:
            raise RuntimeError("the executor was closed")
        return self.made

    def close(self) -> None:
        """Release the step's tensors, for every engine that shares this executor."""
        self.made = None

    def settings(self) -> dict[str, Any]:
        """What it executes with, read back from step and run."""
        return {
            "executor": "graph",
            "step": self.step.name,
            "captured": self.how.captured,
            "look": self.how.look,
        }


def make_executor(loaded: LoadedModel, graph: GraphExecution, *, captured: bool) -> Executor:
    """The step that is registered; ModelError where the lean one isn't of this model or placement."""
    step: Step = ModuleStep(loaded) if graph.step == "modules" else LeanStep(loaded, graph.kernels)
    return Executor(step, Execute(captured=captured, look=graph.look))


def decode_executed(  # noqa: PLR0913
    loaded: LoadedModel,
    padded: tuple[Rows, Rows],
    *,
    sampler: InverseCdf,
    call: TapedCall,
    executor: Executor,
    tick: Tick,
) -> TapedRows:
    """Draw all rows of a unit at the tape's u inside the step. DecodeError (`out_of_memory`, `non_finite`)."""
    rows, budget = len(call.conditions), call.contract.max_new_tokens
    tape = DeviceTape(sampler, call.tape, call.source_id, rows=rows, budget=budget, device=loaded.device)
    found = execute_rows(
        loaded, padded, contract=call.contract, step=executor.step, choose=tape, how=executor.how, tick=tick
    )
    batch = GraphBatch(
        label=call.tape.label,
        sha256=call.tape.sha256,
        sampler=sampler.contract,
        columns=found.columns,
        cache=found.looped.cache,
        cached=found.looped.cached,
        rows=tape.row_tapes(found, call.conditions),
        ran=_ran(executor, found),
    )
    return TapedRows(found.looped.rows, _checks(found), batch)


def decode_greedily(
    loaded: LoadedModel, padded: tuple[Rows, Rows], *, contract: LoopContract, executor: Executor, tick: Tick
) -> tuple[tuple[tuple[int, ...], ...], StepChecks]:
    """The same step with argmax: rows as `decode_greedy` gives them, and what was checked."""
    found = execute_rows(
        loaded, padded, contract=contract, step=executor.step, choose=choose_best, how=executor.how, tick=tick
    )
    return found.looped.rows, _checks(found)


def _ran(executor: Executor, found: ExecutedRows) -> GraphRan:
    return GraphRan(step=executor.step.name, captured=found.captured, replays=found.replays, look=executor.how.look)


def _checks(found: ExecutedRows) -> StepChecks:
    checks = found.looped.checks
    return StepChecks(steps=checks.steps, rows_checked=checks.rows_checked, finite=checks.finite, argmax=found.argmax)
