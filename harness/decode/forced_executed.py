"""The logits of one step by the executor over a fixed cache, with every token before it given.

The tokens are given where the executor chooses on the device, so that its steps are those of a run which had chosen
them by itself: the same columns, mask, cache and finished rows, captured or not.
"""

import torch

from harness.decode.executed import make_executor
from harness.decode.fixed import FixedBatch
from harness.decode.forced import Forced, given, no_tick, reached
from harness.decode.graph import execute_rows
from harness.decode.taped import loop_contract
from harness.errors import DecodeError
from harness.model.load import LoadedModel
from harness.records.graph import GraphExecution
from harness.records.profile import SpecialIds


class _DeviceForcing:
    """A `DeviceChoose`: gives the forced IDs, keeps the step's logits, and ends every row there."""

    def __init__(self, forced: Forced, ids: SpecialIds, device: torch.device) -> None:
        steps = [given(forced, step, ids.pad) for step in range(forced.step)]
        self._given = torch.tensor([*steps, [ids.eos] * len(forced.ids)], dtype=torch.long, device=device)
        self._step, self.logits = forced.step, torch.empty(0)

    def __call__(self, logits: torch.Tensor, best: torch.Tensor, batch: FixedBatch) -> torch.Tensor:
        """Int64 [rows]. The first call is the prompt's, before anything is captured."""
        del best
        if not self.logits.numel():
            self.logits = torch.zeros_like(logits)
        step = batch.inputs.step
        self.logits.copy_(torch.where((step == self._step)[:, None], logits, self.logits))
        return self._given.index_select(0, step.clamp(max=self._step))[0]


def executed_logits(  # noqa: PLR0913
    loaded: LoadedModel, forced: Forced, *, graph: GraphExecution, captured: bool, budget: int, ids: SpecialIds
) -> torch.Tensor:
    """Logits float32 [rows, vocabulary] of the step, on the model's device. `budget`: of the run, whose columns it is.

    ModelError: no such step of this model. DecodeError: `out_of_memory`, `non_finite`; `exception` where all rows end
    before the step.
    """
    if captured and loaded.device.type != "cuda":
        raise DecodeError(
            f"step {forced.step}",
            kind="exception",
            expected="a CUDA device, on which the side's steps were captured",
            found=loaded.device.type,
            todo="Make the step again on a machine that has one.",
        )
    executor, choose = make_executor(loaded, graph, captured=captured), _DeviceForcing(forced, ids, loaded.device)
    try:
        found = execute_rows(
            loaded,
            (forced.ids, forced.mask),
            contract=loop_contract(ids, budget),
            step=executor.step,
            choose=choose,
            how=executor.how,
            tick=no_tick,
        )
    finally:
        executor.close()
    return reached(choose.logits if found.looped.checks.steps > forced.step else None, forced.step)
