"""Contrasts within a task over a domain's primary block (R08 7.1 and 7.2), and where the two rows of each part.

Everything here takes one `Primary`: one domain, one tape, every task once. Values are right minus left, integers;
main effects and interaction are fractions until they are written, and have no band.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from harness.ledgers.bootstrap import indices_sha256, percentiles, resampled_sums, resampled_tasks
from harness.ledgers.counts import count, mean, total
from harness.ledgers.task_groups import Primary
from harness.ledgers.task_measures import OUTCOMES, succeeded, value_of
from harness.records.protocol import TaskCrnProtocol
from harness.records.taped import SecondaryContrast, TaskContrast
from harness.records.task_ledger import (
    Band,
    Diverged,
    Resampling,
    SecondaryContrastSummary,
    TaskContrastSummary,
    TaskOutcome,
    TaskPairSummary,
    Transitions,
)

Column = tuple[str, TaskOutcome]


def contrast_summaries(protocol: TaskCrnProtocol, block: Primary) -> tuple[Resampling, tuple[TaskContrastSummary, ...]]:
    """The block's matrix of resamples, and every primary contrast of every outcome with its band under it."""
    rule, columns = protocol.bootstrap, _columns(protocol, block)
    indices = resampled_tasks(rule, len(block.tasks))
    sums = resampled_sums(indices, np.array(list(columns.values()), dtype=np.int64).T)
    drawn = dict(zip(columns, sums.T, strict=True))
    made = []
    for contrast in protocol.contrasts:
        for outcome in OUTCOMES:
            left, right = (contrast.left, outcome), (contrast.right, outcome)
            found = percentiles(rule, drawn[right] - drawn[left], len(block.tasks))
            band = Band(name=rule.name, percentiles=rule.percentiles, values=found)
            made.append(_summary(block, contrast, outcome, _minus(columns[right], columns[left]), band))
    resampling = Resampling(
        domain=block.domain.name,
        tasks=block.tasks,
        resamples=rule.resamples,
        indices_sha256=indices_sha256(indices),
    )
    return resampling, tuple(made)


def _columns(protocol: TaskCrnProtocol, block: Primary) -> dict[Column, tuple[int, ...]]:
    """A value a task for each condition and outcome, in the order of the tasks."""
    return {
        (condition.id, outcome): tuple(value_of(outcome, block.rows[task, condition.id]) for task in block.tasks)
        for condition in protocol.conditions
        for outcome in OUTCOMES
    }


def _minus(right: Sequence[int], left: Sequence[int]) -> tuple[int, ...]:
    return tuple(one - other for one, other in zip(right, left, strict=True))


def _summary(
    block: Primary, contrast: TaskContrast, outcome: TaskOutcome, values: tuple[int, ...], band: Band
) -> TaskContrastSummary:
    return TaskContrastSummary(
        domain=block.domain.name,
        contrast=contrast.id,
        left=contrast.left,
        right=contrast.right,
        outcome=outcome,
        tasks=block.tasks,
        values=values,
        sum=sum(values),
        n=len(values),
        mean=float(Fraction(sum(values), len(values))),
        positive=count(value > 0 for value in values),
        zero=count(value == 0 for value in values),
        negative=count(value < 0 for value in values),
        band=band,
    )


def secondary_summaries(protocol: TaskCrnProtocol, block: Primary) -> Iterator[SecondaryContrastSummary]:
    """Main effects and interaction of every outcome, in the protocol's order (R08 7.1)."""
    columns = _columns(protocol, block)
    for contrast in protocol.secondary:
        for outcome in OUTCOMES:
            values = _combined(contrast, outcome, columns, len(block.tasks))
            yield SecondaryContrastSummary(
                domain=block.domain.name,
                contrast=contrast.id,
                outcome=outcome,
                tasks=block.tasks,
                values=tuple(map(float, values)),
                n=len(values),
                mean=float(sum(values, Fraction(0)) / len(values)),
                minimum=float(min(values)),
                maximum=float(max(values)),
                positive=count(value > 0 for value in values),
                zero=count(value == 0 for value in values),
                negative=count(value < 0 for value in values),
            )


def _combined(
    contrast: SecondaryContrast, outcome: TaskOutcome, columns: Mapping[Column, Sequence[int]], tasks: int
) -> list[Fraction]:
    plus = [columns[condition, outcome] for condition in contrast.plus]
    minus = [columns[condition, outcome] for condition in contrast.minus]
    return [
        Fraction(sum(one[task] for one in plus) - sum(one[task] for one in minus), contrast.divisor)
        for task in range(tasks)
    ]


def pair_summaries(protocol: TaskCrnProtocol, block: Primary) -> Iterator[TaskPairSummary]:
    """Success on both sides of each contrast, and the step in which its rows part, a task each."""
    for contrast in protocol.contrasts:
        pairs = [block.pairs[task, contrast.id] for task in block.tasks]
        left, right = (
            [succeeded(block.rows[task, side]) for task in block.tasks] for side in (contrast.left, contrast.right)
        )
        yield TaskPairSummary(
            domain=block.domain.name,
            contrast=contrast.id,
            left=contrast.left,
            right=contrast.right,
            tasks=block.tasks,
            transitions=transitions(left, right),
            diverged=count(isinstance(pair.divergence, Diverged) for pair in pairs),
            first_divergence=tuple(
                pair.divergence.step if isinstance(pair.divergence, Diverged) else None for pair in pairs
            ),
            shared_before=total(pair.comparison.common_prefix_tokens for pair in pairs),
            similarity=mean([pair.comparison.similarity for pair in pairs]),
        )


def transitions(left: Sequence[bool], right: Sequence[bool]) -> Transitions:
    """The four transitions of success, task by task; they add up to the tasks."""
    both = list(zip(left, right, strict=True))
    return Transitions(
        zero_to_zero=count(one == (False, False) for one in both),
        zero_to_one=count(one == (False, True) for one in both),
        one_to_zero=count(one == (True, False) for one in both),
        one_to_one=count(one == (True, True) for one in both),
    )
