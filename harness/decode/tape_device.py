"""Choosing under a tape on the device, inside a step that may be captured: u of every step lies there from the start.

The sampler's own operations on the device of the logits. Where that isn't the CPU, exp and the order of sums are the
device's, so that a draw is another contract's than the CPU's. What the account needs is kept and read once.
"""

import torch

from harness.decode.fixed import FixedBatch
from harness.decode.graph import ExecutedRows
from harness.decode.icdf import Drawn, InverseCdf, nearest_edge
from harness.decode.tape import TapeChooser
from harness.records.tapes import RowTape
from harness.tapes.tape import Tape, uniform


class DeviceTape:
    """A `DeviceChoose` for the rows of one source under one tape. Use one object a batch."""

    def __init__(  # noqa: PLR0913
        self, sampler: InverseCdf, tape: Tape, source_id: str, *, rows: int, budget: int, device: torch.device
    ) -> None:
        self._sampler, self._account = sampler, TapeChooser(sampler, tape, source_id, rows=rows)
        values = [sampler.uniform(uniform(tape.z(source_id, step))) for step in range(budget)]
        self._u = torch.stack(values).to(device)
        self._flags = torch.zeros(2, rows, budget, dtype=torch.bool, device=device)  # gap, boundary tie
        self._ends = torch.zeros(2, rows, budget, dtype=torch.float64, device=device)  # lower, upper

    def __call__(self, logits: torch.Tensor, best: torch.Tensor, batch: FixedBatch) -> torch.Tensor:
        """Draw for all rows at u_step; a finished row's draw is not used."""
        del best
        warped = self._sampler.warp_scores(logits)
        cdf = self._sampler.cumulative(warped)
        u = self._u.index_select(0, batch.inputs.step).expand(len(cdf), 1).contiguous()
        # Where a row has no distribution the search may end beyond the last ID: the finite flags judge that row.
        tokens = torch.searchsorted(cdf, u, right=False).clamp(max=cdf.shape[-1] - 1)
        padded = torch.nn.functional.pad(cdf, (1, 0))
        column = batch.inputs.step.expand(len(cdf), 1)
        self._flags[0].scatter_(1, column, ~warped.kept.gather(1, tokens))
        self._flags[1].scatter_(1, column, warped.ties[:, None])
        self._ends[0].scatter_(1, column, padded.gather(1, tokens).double())
        self._ends[1].scatter_(1, column, padded.gather(1, tokens + 1).double())
        return tokens[:, 0]

    def row_tapes(self, executed: ExecutedRows, conditions: tuple[str, ...]) -> tuple[RowTape, ...]:
        """The account of each row of the finished batch; `conditions` in row order."""
        (gaps, ties), (lower, upper), u = self._flags.tolist(), self._ends.tolist(), self._u.tolist()
        for row, tokens in enumerate(executed.looped.rows):
            for step, token in enumerate(tokens):
                edge = nearest_edge(lower[row][step], upper[row][step], u[step])
                self._account.note(row, step, Drawn(token, gaps[row][step], ties[row][step], edge))
        return self._account.row_tapes(executed.looped, conditions)
