"""Choosing tokens under a tape (R08 4): all rows of a unit read the same u_t in the same step, each for its own CDF.

Shared is the place on the probability scale, not the token.
"""

from dataclasses import dataclass

import torch

from harness.decode.icdf import Drawn, InverseCdf
from harness.decode.loop import Live, LoopedRows
from harness.errors import DecodeError
from harness.records.tapes import EdgeDistance, NoEdge, RowTape, StepDraw
from harness.tapes.consumed import Consumption
from harness.tapes.tape import Tape, uniform


@dataclass(slots=True)
class _RowAccount:
    """What one row drew and consumed."""

    draws: list[StepDraw]
    consumption: Consumption

    def take(self, step: int, z: int, drawn: Drawn) -> None:
        """One draw of the row."""
        self.consumption.take(z)
        self.draws.append(
            StepDraw(step=step, token=drawn.token, gap=drawn.gap, boundary_tie=drawn.boundary_tie, edge=drawn.edge)
        )


class TapeChooser:
    """Chooses for the rows of one source under one tape, and keeps what they consumed. Use one object a batch."""

    def __init__(self, sampler: InverseCdf, tape: Tape, source_id: str, *, rows: int) -> None:
        self._sampler, self._tape, self._source_id = sampler, tape, source_id
        self._rows = [_RowAccount([], Consumption()) for _ in range(rows)]

    def __call__(self, logits: torch.Tensor, step: int, live: Live) -> torch.Tensor:
        """Draw for the live rows at u_step. DecodeError (`non_finite`) names the step; finished rows get 0, unused."""
        z = self._tape.z(self._source_id, step)
        rows = [row for row, is_live in enumerate(live) if is_live]
        drawn = self._draw(logits[rows], uniform(z), step)
        chosen = [0] * len(live)
        for row, one in zip(rows, drawn, strict=True):
            self._rows[row].take(step, z, one)
            chosen[row] = one.token
        return torch.tensor(chosen, dtype=torch.long)

    def note(self, row: int, step: int, drawn: Drawn) -> None:
        """A draw that was made elsewhere at u_step: the row consumed the step's z."""
        self._rows[row].take(step, self._tape.z(self._source_id, step), drawn)

    def _draw(self, logits: torch.Tensor, u: float, step: int) -> tuple[Drawn, ...]:
        try:
            return self._sampler.draw(logits, u)
        except DecodeError as error:
            raise DecodeError(
                f"step {step}, {error.where}",
                kind=error.kind,
                expected=error.expected,
                found=error.found,
                todo=error.todo,
            ) from error

    def draws(self, row: int) -> tuple[StepDraw, ...]:
        """A row's draws, step by step."""
        return tuple(self._rows[row].draws)

    def row_tapes(self, looped: LoopedRows, conditions: tuple[str, ...]) -> tuple[RowTape, ...]:
        """The account of each row of the finished batch; `conditions` in row order."""
        rows = zip(conditions, self._rows, looped.finish, looped.attended, strict=True)
        return tuple(
            RowTape(
                condition=condition,
                tape=self._tape.label,
                tape_sha256=self._tape.sha256,
                sampler=self._sampler.contract,
                consumed=account.consumption.record(),
                gaps=sum(one.gap for one in account.draws),
                gap_steps=tuple(one.step for one in account.draws if one.gap),
                boundary_ties=sum(one.boundary_tie for one in account.draws),
                nearest_edge=nearest_of(account.draws),
                finish=finish,
                attended=attended,
            )
            for condition, account, finish, attended in rows
        )


def nearest_of(draws: list[StepDraw]) -> EdgeDistance | NoEdge:
    """The smallest distance among draws that have an edge."""
    distances = [one.edge.distance for one in draws if isinstance(one.edge, EdgeDistance)]
    return EdgeDistance(distance=min(distances)) if distances else NoEdge()
