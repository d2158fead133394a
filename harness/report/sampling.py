"""Statistics of a sampled run as sections (R07 9): seeds within a source, measures, matrices, contrasts as dots.

A dot is a source. There is no interval and nothing is pooled over sources: a few sources are no benchmark.
"""

from collections.abc import Iterator

from harness.records.sampling_ledger import ContrastSummary, SampledStatistics, SourceMatrix
from harness.report.figures import Dots, chart, dotted
from harness.report.page import Block, Note, Section, Table, folded, table
from harness.report.words import number, table_of, word

IDENTITY = ("domain", "index", "source_id", "condition", "similarities", "measure", "sources")


def sampling_sections(made: SampledStatistics) -> Iterator[Section]:
    """By source, by domain, matrices, contrasts, directions that an earlier round showed."""
    yield _ledgers(made)
    yield Section("contrasts", "Contrasts within a source", tuple(_contrasts(made)))
    yield Section("matrices", "Matrices: source by condition", tuple(_matrix(one) for one in made.matrices))


def _ledgers(made: SampledStatistics) -> Section:
    measures = [((one.domain, one.condition, of.measure), of) for one in made.by_domain for of in one.measures]
    sources = [((one.source_id, one.condition), one) for one in made.by_source]
    blocks: tuple[Block, ...] = (
        Note(f"Rows under one seed are {made.pairing}: they share the seed and the calls, and no draw."),
        table_of(
            "Measures by condition and domain; micro over outputs, macro over sources of equal weight",
            ("domain", "condition", "measure"), measures, without=IDENTITY,
        ),
        folded(
            table_of(
                "Each source under each condition, over its seeds", ("source", "condition"), sources, without=IDENTITY
            )
        ),
    )  # fmt: skip
    return Section("ledgers", "Ledgers by condition and domain", blocks)


def _contrasts(made: SampledStatistics) -> Iterator[Block]:
    yield Note("A dot is one source: a difference of its own cell means. The bar marks the median of the dots.")
    for measure in dict.fromkeys(one.measure for one in made.contrasts):
        chosen = [one for one in made.contrasts if one.measure == measure]
        rows = [Dots(f"{one.domain}: {one.contrast} (n {len(one.dots)})", one.dots, one.median) for one in chosen]
        title = f"Contrasts of {measure.replace('_', ' ')}"
        said = f"{len(rows)} rows, a contrast in a domain each; a dot is a source's own difference, the bar the median."
        drawing = dotted(rows, measure=measure.replace("_", " "))
        yield chart(f"contrast-{measure}", title, said, drawing, _contrast_table(title, chosen))
    carried = [((one.id, one.domain), one) for one in made.carried_over]
    if carried:
        yield table_of(
            "Directions that an earlier round showed: in how many sources they hold", ("direction", "domain"), carried,
            without=("id", "domain"),
        )  # fmt: skip


def _contrast_table(title: str, chosen: list[ContrastSummary]) -> Table:
    rows = [
        (
            one.domain, one.contrast,
            ", ".join(f"{source}: {number(dot)}" for source, dot in zip(one.sources, one.dots, strict=True)),
            number(one.median), f"{number(one.minimum)} to {number(one.maximum)}",
            word(one.positive), word(one.zero), word(one.negative),
        )
        for one in chosen
    ]  # fmt: skip
    head = ("domain", "contrast", "a dot a source", "median", "range", "positive", "zero", "negative")
    return table(title, head, rows, heads=2)


def _matrix(one: SourceMatrix) -> Table:
    rows = [(source, *map(number, means)) for source, means in zip(one.sources, one.means, strict=True)]
    caption = f"{one.domain}: {one.measure.replace('_', ' ')}, the mean of each source over its seeds"
    return table(caption, ("source", *one.conditions), rows)
