"""The ledgers of each kind of protocol by condition and domain, and the comparisons over edges, as sections.

Which sections there are follows from the type of the statistics; every number is one of them.
"""

from collections.abc import Iterator

from harness.ledgers.book import AnyLedger, AnyStatistics
from harness.records.completion import CompletionEdgeRow, CompletionGroup, CompletionStatistics
from harness.records.depth_ledger import DepthStatistics
from harness.records.ledger import EdgeRow, EdgeSummary, Mean, Statistics
from harness.records.sampling_ledger import NoSampledStatistics, SampledLedger, SampledStatistics
from harness.records.task_ledger import NoTaskStatistics, TaskStatistics
from harness.report.depth import depth_sections
from harness.report.figures import Dots, dotted, drawn
from harness.report.page import Block, Chart, Note, Section, folded
from harness.report.sampling import sampling_sections
from harness.report.tasks import task_sections
from harness.report.words import table_of

NOT_HERE = ("domain", "condition", "diagnostics", "kind", "edge", "classes")


def result_sections(book: AnyLedger, made: AnyStatistics) -> Iterator[Section]:
    """Ledgers and comparisons of a run, in the order in which they are read."""
    match made:
        case Statistics():
            yield _behavior(made)
            yield _edges([(one.edge, one.units) for one in made.by_edge], _behavior_edges(made))
        case CompletionStatistics():
            yield _completion(made)
            whole = [(one.edge, one.units) for one in made.edges if not one.domain]
            yield _edges(whole, _completion_edges(made))
        case SampledStatistics() if isinstance(book, SampledLedger):
            yield from sampling_sections(made)
            yield Section("edges", "Edge comparisons", (_edge_rows(book.edges),))
        case TaskStatistics():
            yield from task_sections(made)
        case DepthStatistics():
            yield from depth_sections(made)
        case NoSampledStatistics() | NoTaskStatistics():
            yield Section("ledgers", "Ledgers", (Note(f"There are no statistics of this run: {made.reason}."),))


def _behavior(made: Statistics) -> Section:
    conditions = [((one.domain, one.condition), one.cells) for one in made.by_condition]
    domains = [((one.domain,), one.cells) for one in made.by_domain]
    blocks = (
        table_of("Cells by condition and domain", ("domain", "condition"), conditions),
        table_of("Cells by domain", ("domain",), domains),
    )
    return Section("ledgers", "Ledgers by condition and domain", blocks)


def _completion(made: CompletionStatistics) -> Section:
    def rows(*, domain: bool, condition: bool) -> list[tuple[tuple[str, ...], CompletionGroup]]:
        chosen = [one for one in made.groups if bool(one.domain) is domain and bool(one.condition) is condition]
        return [((one.domain or "all", one.condition or "all"), one) for one in chosen]

    heads = ("domain", "condition")
    blocks: list[Block] = [
        Note("Stopping, task terminal, evaluable and correct are four accounts; none stands for another."),
        table_of("Cells by condition and domain", heads, rows(domain=True, condition=True), without=NOT_HERE),
        table_of("Cells by domain", heads, rows(domain=True, condition=False), without=NOT_HERE),
        table_of("Cells by condition", heads, rows(domain=False, condition=True), without=NOT_HERE),
        table_of("All cells", heads, rows(domain=False, condition=False), without=NOT_HERE),
    ]
    return Section("ledgers", "Ledgers by condition and domain", tuple(blocks))


def _edges(whole: list[tuple[str, EdgeSummary]], blocks: tuple[Block, ...]) -> Section:
    rows = [
        Dots(f"{edge} (n {one.similarity.n})", (one.similarity.mean,), one.similarity.mean)
        for edge, one in whole
        if isinstance(one.similarity, Mean)
    ]
    draw, height = dotted(rows, measure="mean similarity of generated IDs, 1 where all are equal")
    said = f"{len(rows)} edges, the mean of 1 - token distance / longer length over the units of each; 1 is equality."
    title = "Similarity along the edges"
    svg = drawn(draw, key="edges", title=title, description=said, height=height)
    behind = table_of("Edges over all units", ("edge",), [((edge,), one) for edge, one in whole])
    return Section("edges", "Edge comparisons", (Chart(title, said, svg, behind), *blocks))


def _behavior_edges(made: Statistics) -> tuple[Block, ...]:
    rows = [((one.edge, one.domain), one.units) for one in made.by_edge_and_domain]
    return (table_of("Edges by domain", ("edge", "domain"), rows),)


def _completion_edges(made: CompletionStatistics) -> tuple[Block, ...]:
    rows = [((one.edge, one.domain), one.units) for one in made.edges if one.domain]
    pairs = [((one.edge, one.domain or "all"), one) for one in made.edges]
    return (
        table_of("Edges by domain", ("edge", "domain"), rows),
        table_of(
            "Completion classes on both sides, LEFT | RIGHT, in units", ("edge", "domain"), pairs,
            without=("edge", "kind", "domain", "units"),
        ),
    )  # fmt: skip


def _edge_rows(rows: tuple[CompletionEdgeRow | EdgeRow, ...]) -> Block:
    made = [((row.source_id, row.replicate, row.edge), row) for row in rows]
    caption = f"Each of {len(rows)} comparisons of two cells under one seed; tokens by Levenshtein distance"
    without = ("domain", "index", "source_id", "replicate", "edge", "kind", "left", "right")
    return folded(table_of(caption, ("source", "replicate", "edge"), made, without=without))
