"""Statistics of a trace as sections (R05 depth 8-10): curves over stages and gates, and the tables behind them.

A trace is an association along the depth: a curve says where rows part, and explains no output.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.records.depth_ledger import DepthEdgeStatistics, DepthStatistics, GateSummary, StageSummary
from harness.records.ledger import Count, Mean, Undefined
from harness.report.figures import chart, curves
from harness.report.page import Block, Chart, Note, Section, Table, folded, table
from harness.report.words import table_of, word

StageValue = tuple[str, Callable[[StageSummary], Count | float]]
GateValue = tuple[str, Callable[[GateSummary], Count | Mean | Undefined]]
STAGES: tuple[StageValue, ...] = (
    ("cosine", lambda one: one.cosine),
    ("relative L2", lambda one: one.relative_l2),
    ("exact rows", lambda one: one.exact_rows),
)
GATES: tuple[GateValue, ...] = (
    ("load total variation", lambda one: one.load_total_variation),
    ("weighted load total variation", lambda one: one.weighted_load_total_variation),
    ("ordered routes exact", lambda one: one.ordered_exact),
    ("route sets exact", lambda one: one.set_exact),
)


def depth_sections(made: DepthStatistics, comparisons: Block) -> Iterator[Section]:
    """What was traced, edges (`comparisons`: each one of the ledger), curves over stages, curves over gates."""
    yield _ledger(made)
    yield Section("edges", "Edge comparisons", (*_edges(made), comparisons))
    yield Section("stages", f"Depth curves over {made.hidden_stages} stages", tuple(_stage_charts(made)))
    yield Section("gates-depth", f"Depth curves over {made.gates} gates", tuple(_gate_charts(made)))


def _ledger(made: DepthStatistics) -> Section:
    scale = table_of("What was traced", ("scale",), [(("all sources",), made.scale)])
    boundary = table_of("Tokens that the ends of a source cut", ("boundary",), [(("all cells",), made.boundary)])
    return Section("ledgers", "Ledgers", (scale, boundary))


def _edges(made: DepthStatistics) -> Iterator[Block]:
    yield Note("Rows and tokens are those of the source's own text. Output: the generated IDs of the same two cells.")
    yield table_of(
        "Edges over all sources", ("edge",), [((one.edge,), one.units) for one in made.by_edge],
        without=("stages", "gates"),
    )  # fmt: skip
    rows = [((one.edge, one.domain), one.units) for one in made.by_edge_and_domain]
    yield table_of("Edges by domain", ("edge", "domain"), rows, without=("stages", "gates"))
    for one in made.by_edge_and_domain:
        yield _along(one.edge, one.domain, one.units.stages, one.units.gates)


def _along(edge: str, domain: str, stages: Sequence[StageSummary], gates: Sequence[GateSummary]) -> Table:
    rows = [("stage", one.stage, *(word(read(one)) for _, read in STAGES), *["-"] * len(GATES)) for one in stages]
    rows += [("gate", one.gate, *["-"] * len(STAGES), *(word(read(one)) for _, read in GATES)) for one in gates]
    head = ("line", "place", *(name for name, _ in STAGES), *(name for name, _ in GATES))
    return folded(table(f"{edge}, {domain}: along the depth", head, rows, heads=2))


def _kinds(made: DepthStatistics) -> Iterator[tuple[str, list[DepthEdgeStatistics]]]:
    for kind in ("system", "direct"):
        if chosen := [one for one in made.by_edge if one.kind == kind]:
            yield kind, chosen


def _rows(made: DepthStatistics) -> int:
    return made.by_edge[0].units.embedding_exact_rows.of


def _stage_charts(made: DepthStatistics) -> Iterator[Block]:
    for measure, read in STAGES:
        for kind, chosen in _kinds(made):
            places = [one.stage for one in chosen[0].units.stages]
            found: Found = {edge.edge: [read(one) for one in edge.units.stages] for edge in chosen}
            yield _chart(f"{measure}, {kind} edges, all sources", measure, places, found, rows=_rows(made))


def _gate_charts(made: DepthStatistics) -> Iterator[Block]:
    for measure, read in GATES:
        for kind, chosen in _kinds(made):
            places = [one.gate for one in chosen[0].units.gates]
            found: Found = {edge.edge: [read(one) for one in edge.units.gates] for edge in chosen}
            yield _chart(f"{measure}, {kind} edges, all sources", measure, places, found, rows=_rows(made))


Read = Count | Mean | Undefined | float
Found = dict[str, list[Read]]


def _chart(title: str, measure: str, places: Sequence[str], found: Found, *, rows: int) -> Chart:
    over = _over(found, rows)
    said = f"{len(found)} lines, an edge each, at {len(places)} places from the embedding down; each value over {over}."
    drawing = curves(
        places, {edge: [_height(one) for one in values] for edge, values in found.items()}, measure=measure
    )
    made = [(place, *(word(values[at]) for values in found.values())) for at, place in enumerate(places)]
    key = "depth-" + title.lower().replace(", ", "-").replace(" ", "-")
    return chart(key, title, said, drawing, table(title, ("place", *found), made))


def _height(value: Read) -> float:
    """Where a value stands: a count as its share, nothing where there is none."""
    match value:
        case Count():
            return value.count / value.of if value.of else float("nan")
        case Mean():
            return value.mean
        case Undefined():
            return float("nan")
    return value


def _over(found: Found, rows: int) -> str:
    """What the values of a chart are over: sources for a mean of sources, rows of the target for all else."""
    first = next(iter(found.values()))[0]
    return f"{first.n} sources" if isinstance(first, Mean) else f"{rows} rows"
