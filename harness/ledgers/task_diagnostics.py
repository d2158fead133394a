"""The diagnostic tasks under every tape (R08 7.3): tasks described under each tape, tapes described for each task.

Four tasks x four tapes are four tasks and four tapes, never sixteen of anything: no count here is over both, and none
enters a number of the primary block.
"""

from collections.abc import Iterator, Sequence

from harness.ledgers.counts import count
from harness.ledgers.task_groups import Diagnostic
from harness.ledgers.task_measures import OUTCOMES, value_of
from harness.records.protocol import TaskCrnProtocol
from harness.records.taped import TaskContrast
from harness.records.task_ledger import (
    Direction,
    SelectedTape,
    SelectedTask,
    Spread,
    TapeContrast,
    TapeDiagnostics,
    TapeDirections,
    TaskOutcome,
    TaskRow,
)


def tape_diagnostics(protocol: TaskCrnProtocol, block: Diagnostic) -> TapeDiagnostics:
    """A domain's diagnostics: by tape, by task, and the primary contrasts under each tape."""
    contrasts = [
        tape_contrast(block, contrast, outcome, tape)
        for contrast in protocol.contrasts
        for outcome in OUTCOMES
        for tape in block.tapes
    ]
    return TapeDiagnostics(
        domain=block.domain.name,
        tasks=block.tasks,
        tapes=block.tapes,
        by_tape=tuple(_by_tape(protocol, block)),
        by_task=tuple(_by_task(protocol, block)),
        contrasts=tuple(contrasts),
        directions=tuple(
            _directions(contrasts, contrast, outcome) for contrast in protocol.contrasts for outcome in OUTCOMES
        ),
    )


def spread(values: Sequence[int]) -> Spread:
    """Sum, extremes and range of a few values; none is misuse."""
    if not values:
        raise RuntimeError("spread takes at least one value")
    least, most = min(values), max(values)
    return Spread(values=tuple(values), sum=sum(values), n=len(values), minimum=least, maximum=most, range=most - least)


def _by_tape(protocol: TaskCrnProtocol, block: Diagnostic) -> Iterator[SelectedTape]:
    for tape in block.tapes:
        for condition in protocol.conditions:
            rows = [block.rows[task, tape, condition.id] for task in block.tasks]
            yield SelectedTape(tape=tape, condition=condition.id, **_spreads(rows))


def _by_task(protocol: TaskCrnProtocol, block: Diagnostic) -> Iterator[SelectedTask]:
    for task in block.tasks:
        for condition in protocol.conditions:
            rows = [block.rows[task, tape, condition.id] for tape in block.tapes]
            yield SelectedTask(source_id=task, condition=condition.id, **_spreads(rows))


def _spreads(rows: Sequence[TaskRow]) -> dict[TaskOutcome, Spread]:
    return {outcome: spread([value_of(outcome, row) for row in rows]) for outcome in OUTCOMES}


def tape_contrast(block: Diagnostic, contrast: TaskContrast, outcome: TaskOutcome, tape: str) -> TapeContrast:
    """One primary contrast under one tape, right minus left, a value a diagnostic task."""
    values = [
        value_of(outcome, block.rows[task, tape, contrast.right])
        - value_of(outcome, block.rows[task, tape, contrast.left])
        for task in block.tasks
    ]
    return TapeContrast(
        contrast=contrast.id,
        outcome=outcome,
        tape=tape,
        values=tuple(values),
        sum=sum(values),
        n=len(values),
        direction=direction(sum(values)),
        positive=count(value > 0 for value in values),
        zero=count(value == 0 for value in values),
        negative=count(value < 0 for value in values),
    )


def direction(value: int) -> Direction:
    """The sign in a word."""
    return "positive" if value > 0 else "negative" if value < 0 else "zero"


def _directions(made: Sequence[TapeContrast], contrast: TaskContrast, outcome: TaskOutcome) -> TapeDirections:
    found = tuple(one.direction for one in made if (one.contrast, one.outcome) == (contrast.id, outcome))
    return TapeDirections(contrast=contrast.id, outcome=outcome, directions=found, agree=len(set(found)) == 1)
