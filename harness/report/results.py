"""The ledgers of each kind of protocol by condition and domain, and the comparisons over edges, as sections.

Which sections there are follows from the type of the statistics; every number is one of them.
"""

from collections.abc import Iterator, Sequence

from harness.ledgers.book import AnyLedger, AnyStatistics
from harness.records.base import Record
from harness.records.completion import CompletionGroup, CompletionStatistics
from harness.records.depth_ledger import DepthStatistics
from harness.records.ledger import EdgeSummary, Mean, NotObserved, Statistics
from harness.records.sampling_ledger import NoSampledStatistics, SampledStatistics
from harness.records.study_ledger import StudyGroup, StudyStatistics
from harness.records.task_ledger import NoTaskStatistics, TaskLedger, TaskPairRow, TaskStatistics
from harness.report.cells import anchor
from harness.report.depth import depth_sections
from harness.report.figures import Dots, chart, dotted
from harness.report.page import Block, Link, Note, Section, Value, folded
from harness.report.sampling import sampling_sections
from harness.report.tasks import task_sections
from harness.report.words import table_of

IDENTITY = (
    *("domain", "index", "source_id", "replicate", "edge", "contrast", "kind", "left", "right", "role"),
    *("stages", "gates", "sha256"),
)
ELSEWHERE = ("numeric", "code", "answer", "gain", "diagnostics", "classes")
Group = CompletionGroup | StudyGroup


def result_sections(book: AnyLedger, made: AnyStatistics) -> Iterator[Section]:
    """Ledgers and comparisons of a run, in the order in which they are read."""
    match made:
        case Statistics():
            yield _behavior(made)
            whole = [(one.edge, one.units) for one in made.by_edge]
            yield _edges(whole, (*_behavior_edges(made), comparisons(book)))
        case CompletionStatistics():
            yield _ledgers(made.groups)
            whole = [(one.edge, one.units) for one in made.edges if not one.domain]
            yield _edges(whole, (*_class_edges(made), comparisons(book)))
        case SampledStatistics():
            yield from sampling_sections(made)
            yield Section("edges", "Edge comparisons", (comparisons(book),))
        case TaskStatistics():
            yield from task_sections(made)
            yield Section("edges", "Pairs of cells", (comparisons(book),))
        case DepthStatistics():
            yield from depth_sections(made, comparisons(book))
        case StudyStatistics():
            yield _ledgers(made.groups)
            whole = [(one.edge, one.units) for one in made.edges if not one.domain]
            yield _edges(whole, (*_class_edges(made), comparisons(book)))
        case NoSampledStatistics() | NoTaskStatistics():
            yield Section("ledgers", "Ledgers", (Note(f"There are no statistics of this run: {made.reason}."),))
            yield Section("edges", "Comparisons of two cells", (comparisons(book),))


def comparisons(book: AnyLedger) -> Block:
    """Each registered comparison of two cells, with links to both; prefix, distance and longest are in tokens."""
    rows = book.pairs if isinstance(book, TaskLedger) else book.edges
    made: list[tuple[tuple[Value, ...], Record]] = []
    for row in rows:
        named = row.contrast if isinstance(row, TaskPairRow) else row.edge
        sides = [Link(side, anchor(row.domain, row.index, row.replicate, side)) for side in (row.left, row.right)]
        made.append(((row.source_id, row.replicate, named, *sides), row))
    caption = f"Each of {len(rows)} comparisons of two cells of one unit; lengths in tokens"
    heads = ("source", "replicate", "comparison", "left", "right")
    return folded(table_of(caption, heads, made, without=IDENTITY))


def _behavior(made: Statistics) -> Section:
    conditions = [((one.domain, one.condition), one.cells) for one in made.by_condition]
    domains = [((one.domain,), one.cells) for one in made.by_domain]
    blocks = (
        table_of("Cells by condition and domain", ("domain", "condition"), conditions),
        table_of("Cells by domain", ("domain",), domains),
    )
    return Section("ledgers", "Ledgers by condition and domain", blocks)


def _ledgers(groups: Sequence[Group]) -> Section:
    """Groups of accounted cells: one table an account, of those that have it."""
    whole = [one for one in groups if one.domain and one.condition]
    sums = [one for one in groups if not (one.domain and one.condition)]
    blocks: list[Block] = [
        Note("Stopping, task terminal, evaluable and correct are four accounts; none stands for another.")
    ]
    for named, part in (("by condition and domain", whole), ("by domain, by condition, all", sums)):
        keys = [(one.domain or "all", one.condition or "all") for one in part]
        for caption, records in _accounts(part):
            rows = [(key, one) for key, one in zip(keys, records, strict=True) if not isinstance(one, NotObserved)]
            made = table_of(f"{caption}, {named}", ("domain", "condition"), rows, without=ELSEWHERE)
            blocks.append(made if part is whole else folded(made))
    return Section("ledgers", "Ledgers by condition and domain", tuple(blocks))


def _accounts(groups: Sequence[Group]) -> Iterator[tuple[str, list[Record]]]:
    """The accounts of the groups, one table each."""
    yield "Stopping, task terminal, evaluable", [one.cells for one in groups]
    yield "Mathematics, of all mathematics cells", [one.cells.numeric for one in groups]
    yield "Programs, of all code cells", [one.cells.code for one in groups]
    studied = [one.cells for one in groups if isinstance(one, StudyGroup)]
    if studied:
        yield "Text judges and functions, of all cells of their domains", [one.answer for one in studied]
    gains = [one.cells.gain for one in groups if isinstance(one, CompletionGroup)]
    if gains:
        yield "Gain over the baseline's budget", [*gains]


def _edges(whole: list[tuple[str, EdgeSummary]], blocks: tuple[Block, ...]) -> Section:
    rows = [
        Dots(f"{edge} (n {one.similarity.n})", (one.similarity.mean,), one.similarity.mean)
        for edge, one in whole
        if isinstance(one.similarity, Mean)
    ]
    said = f"{len(rows)} edges, the mean of 1 - token distance / longer length over the units of each; 1 is equality."
    drawing = dotted(rows, measure="mean similarity of generated IDs, 1 where all are equal")
    behind = table_of("Edges over all units", ("edge",), [((edge,), one) for edge, one in whole])
    return Section(
        "edges", "Edge comparisons", (chart("edges", "Similarity along the edges", said, drawing, behind), *blocks)
    )


def _behavior_edges(made: Statistics) -> tuple[Block, ...]:
    rows = [((one.edge, one.domain), one.units) for one in made.by_edge_and_domain]
    return (table_of("Edges by domain", ("edge", "domain"), rows),)


def _class_edges(made: CompletionStatistics | StudyStatistics) -> tuple[Block, ...]:
    rows = [((one.edge, one.domain), one.units) for one in made.edges if one.domain]
    pairs = [((one.edge, one.domain or "all"), one) for one in made.edges]
    return (
        table_of("Edges by domain", ("edge", "domain"), rows),
        table_of(
            "Completion classes on both sides, LEFT | RIGHT, in units", ("edge", "domain"), pairs,
            without=("edge", "kind", "domain", "units"),
        ),
    )  # fmt: skip
