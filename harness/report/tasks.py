"""Statistics of tasks under tapes as sections (R08 7): contrasts with their band, transitions, tape diagnostics.

A band is percentiles over resamples of the fixed tasks: it stands under its registered name and no other.
"""

from collections.abc import Iterator

import msgspec

from harness.errors import JournalError
from harness.records.task_ledger import TapeDiagnostics, TaskContrastSummary, TaskPairSummary, TaskStatistics
from harness.report.figures import Dots, chart, dotted
from harness.report.page import Block, Note, Section, Table, table
from harness.report.words import number, table_of, word

IDENTITY = ("domain", "condition", "tape", "contrast", "outcome", "left", "right", "tasks", "values")


def task_sections(made: TaskStatistics) -> Iterator[Section]:
    """Conditions, contrasts with bands, transitions, and the diagnostics over tapes apart from them."""
    conditions = [((one.domain, one.condition), one) for one in made.conditions]
    yield Section(
        "ledgers", "Ledgers by condition and domain",
        (
            Note(f"Tasks under tape {made.primary_tape}. Cells of a unit share uniform numbers, not tokens."),
            table_of("Tasks by condition and domain", ("domain", "condition"), conditions, without=IDENTITY),
        ),
    )  # fmt: skip
    yield Section("contrasts", "Contrasts within a task", tuple(_contrasts(made)))
    yield Section("transitions", "Transitions of success", tuple(_transitions(made)))
    for one in made.diagnostics:
        yield Section(f"tapes-{one.domain}", f"Tape diagnostics: {one.domain}", tuple(_tapes(one)))


def _contrasts(made: TaskStatistics) -> Iterator[Block]:
    rule = made.bootstrap
    yield Note(
        f"{rule.name}: percentiles {_percentiles(rule.percentiles)} of the mean over {rule.resamples} resamples of the"
        " fixed tasks. It describes these tasks, and no others."
    )
    for outcome in dict.fromkeys(one.outcome for one in made.contrasts):
        chosen = [one for one in made.contrasts if one.outcome == outcome]
        for one in chosen:
            _require_name(one, rule.name)
        rows = [
            Dots(
                f"{one.domain}: {one.contrast} (n {one.n})", (), one.mean, (min(one.band.values), max(one.band.values))
            )
            for one in chosen
        ]
        title = f"Mean contrast of {outcome.replace('_', ' ')}, with the {rule.name}"
        said = (
            f"{len(rows)} rows, a contrast in a domain each: the bar is the mean over tasks, the broad line the"
            f" {rule.name}."
        )
        drawing = dotted(rows, measure=f"{outcome.replace('_', ' ')}, right minus left")
        yield chart(f"band-{outcome}", title, said, drawing, _contrast_table(title, chosen))
    secondary = [((one.domain, one.contrast, one.outcome), one) for one in made.secondary]
    heads = ("domain", "contrast", "outcome")
    yield table_of("Secondary contrasts: descriptive, without a band", heads, secondary, without=IDENTITY)


def _require_name(one: TaskContrastSummary, name: str) -> None:
    if one.band.name != name:
        where, todo = f"statistics: band of {one.domain} {one.contrast}", "Judge the run again."
        raise JournalError(where, expected=name, found=one.band.name, todo=todo)


def _percentiles(found: tuple[float, ...]) -> str:
    return " and ".join(number(one) for one in found)


def _contrast_table(title: str, chosen: list[TaskContrastSummary]) -> Table:
    rows = [
        (
            one.domain, one.contrast, f"{one.sum} over {one.n}", number(one.mean), word(one.positive), word(one.zero),
            word(one.negative), " to ".join(number(value) for value in one.band.values),
        )
        for one in chosen
    ]  # fmt: skip
    head = ("domain", "contrast", "sum over tasks", "mean", "positive", "zero", "negative", chosen[0].band.name)
    return table(title, head, rows, heads=2)


def _transitions(made: TaskStatistics) -> Iterator[Block]:
    yield Note("Tasks by success on the left and on the right of a contrast; each count is of all tasks of the domain.")
    rows = [((one.domain, f"{one.left} to {one.right}"), one.transitions) for one in made.pairs]
    yield table_of("Transitions, left to right", ("domain", "pair"), rows)
    parts = [((one.domain, one.contrast), _parting(one)) for one in made.pairs]
    yield table_of(
        "Where two rows part, and what they shared before; first divergence: the step, in each task that has one",
        ("domain", "contrast"), parts,
        without=(*IDENTITY, "transitions"),
    )  # fmt: skip


def _parting(one: TaskPairSummary) -> TaskPairSummary:
    """Only the steps that there are: `diverged` says in how many of the tasks."""
    return msgspec.structs.replace(
        one, first_divergence=tuple(step for step in one.first_divergence if step is not None)
    )


def _tapes(one: TapeDiagnostics) -> Iterator[Block]:
    yield Note(
        f"{len(one.tasks)} tasks ({', '.join(one.tasks)}) under {len(one.tapes)} tapes ({', '.join(one.tapes)}):"
        " counts are of tasks or of tapes, never of both."
    )
    without = ("tape", "condition", "source_id", "contrast", "outcome")
    by_tape = [((each.tape, each.condition), each) for each in one.by_tape]
    yield table_of("Each tape over its tasks", ("tape", "condition"), by_tape, without=without)
    by_task = [((each.source_id, each.condition), each) for each in one.by_task]
    yield table_of("Each task over its tapes", ("task", "condition"), by_task, without=without)
    contrasts = [((each.contrast, each.outcome, each.tape), each) for each in one.contrasts]
    yield table_of("Contrasts by tape", ("contrast", "outcome", "tape"), contrasts, without=without)
    directions = [((each.contrast, each.outcome), each) for each in one.directions]
    yield table_of("Directions over the tapes", ("contrast", "outcome"), directions, without=without)
