"""Sections of every kind of protocol, from statistics that were written by hand and from those of one real run."""

import dataclasses

import msgspec
import pytest

from harness.errors import JournalError
from harness.ledgers.behavior import ledger
from harness.ledgers.book import AnyStatistics
from harness.ledgers.sampling_statistics import sampled_statistics
from harness.ledgers.statistics import statistics
from harness.ledgers.task_statistics import task_statistics
from harness.protocols.load import load_protocol
from harness.records.depth_ledger import (
    At,
    BoundarySummary,
    DepthEdgeDomainStatistics,
    DepthEdgeStatistics,
    DepthEdgeSummary,
    DepthStatistics,
    GateSummary,
    Nowhere,
    ScaleIdentity,
    StageSummary,
)
from harness.records.ledger import Count, Mean, Total, Undefined
from harness.report.depth import depth_sections
from harness.report.ladder import ladder, state
from harness.report.page import Chart, Note, Section, Table
from harness.report.render import render
from harness.report.results import result_sections
from harness.report.tasks import task_sections

from ..ledgers.sampled import HAND, sampled_ledger  # noqa: TID252 - the tests are no package of that name
from ..ledgers.tasks import Left, task_book, task_protocol  # noqa: TID252

STAGES = ("embedding", "layer_00", "layer_01", "final_norm")
EDGES = (("system_eos", "system"), ("bos_s0", "direct"))


def tables(section: Section) -> list[Table]:
    """Every table of a section, also those behind its charts."""
    return [one.table if isinstance(one, Chart) else one for one in section.blocks if isinstance(one, Table | Chart)]


def words(sections: list[Section]) -> str:
    """All that tables say."""
    return "\n".join(f"{one.caption} {one.head} {one.rows}" for each in sections for one in tables(each))


@pytest.fixture(scope="module")
def sampled() -> tuple[object, AnyStatistics]:
    """A hand-made sampled ledger and its statistics."""
    protocol = load_protocol("nano-cross-source-sampling").protocol
    book = sampled_ledger(protocol, HAND, domains=("english", "code", "math"))
    return book, sampled_statistics(protocol, book)


@pytest.fixture(scope="module")
def tasks():
    """Statistics of tasks under tapes, with outcomes that differ by condition."""
    protocol = task_protocol()
    left = {("code", 0, "T0", "s0_period"): Left(outcome="timeout"), ("math", 1, "T0", "s1_eos"): Left(answer="13")}
    book = task_book(protocol, left)
    return book, task_statistics(protocol, book)


def depth_edges(rows: int = 5) -> DepthEdgeSummary:
    """Numbers along a depth of four stages and two gates."""
    return DepthEdgeSummary(
        embedding_exact_rows=Count(count=rows, of=rows), output_ids_exact=Count(count=1, of=2),
        lowest_cosine=At(name="final_norm"), lowest_ordered_exact=Nowhere(reason="none"),
        stages=tuple(
            StageSummary(stage=name, exact_rows=Count(count=rows - at, of=rows), cosine=1 - at / 8, relative_l2=at / 16)
            for at, name in enumerate(STAGES)
        ),
        gates=tuple(
            GateSummary(
                gate=name, ordered_exact=Count(count=1, of=rows), set_exact=Count(count=2, of=rows),
                load_total_variation=Mean(mean=0.25, n=2), weighted_load_total_variation=Undefined(reason="none"),
            )
            for name in STAGES[2:3]
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def depth(sampled) -> DepthStatistics:
    """Statistics of a trace."""
    head = {name: getattr(sampled[1], name) for name in DepthStatistics.__struct_fields__[:9]}
    return DepthStatistics(
        **head, hidden_stages=len(STAGES), gates=1,
        scale=ScaleIdentity(target_tokens=Total(sum=5, n=2), conditions=8, gates=1, top_k=2, route_decisions=80),
        boundary=BoundarySummary(crossing_tokens=Total(sum=1, n=16), crossing_cells=Count(count=1, of=16)),
        embedding_exact_rows=Count(count=10, of=10),
        by_edge=tuple(DepthEdgeStatistics(edge=name, kind=kind, units=depth_edges()) for name, kind in EDGES),
        by_edge_and_domain=tuple(
            DepthEdgeDomainStatistics(edge=name, kind=kind, domain="code", units=depth_edges()) for name, kind in EDGES
        ),
    )  # fmt: skip


def test_sampling_has_dots_and_matrices_and_no_interval(sampled):
    """A dot a source with its value, a matrix of cell means, micro beside macro."""
    book, made = sampled
    sections = list(result_sections(book, made))
    assert [one.id for one in sections] == ["ledgers", "contrasts", "matrices", "edges"]
    charts = [one for one in sections[1].blocks if isinstance(one, Chart)]
    assert sum(len(one.table.rows) for one in charts) == len(made.contrasts)
    dots = {(row[0], row[1], one.title): row[2] for one in charts for row in one.table.rows}
    for one in made.contrasts:
        said = dots[one.domain, one.contrast, f"Contrasts of {one.measure.replace('_', ' ')}"]
        assert [each.split(": ")[0] for each in said.split(", ")] == list(one.sources)
    assert len(tables(sections[2])) == len(made.matrices)
    said = words(sections)
    assert "micro n" in said
    assert not [one for one in ("interval", "band", "confidence", "p-value") if one in said]


def test_the_ladder_of_a_sampled_run(sampled):
    """Also of a grid without statistics: classes are counted from the ledger's rows."""
    made = ladder(sampled[0], ["s0_eos", "s1_eos", "s0_period", "s1_period"])
    rows = tables(made)[0].rows
    assert len(rows) == 12
    assert {state(one) for one in sampled[0].cells} <= {*tables(made)[0].head}


def test_a_band_stands_under_its_registered_name(tasks):
    """In the table's head, the chart's title and its words; every contrast has its n."""
    _, made = tasks
    section = next(one for one in task_sections(made) if one.id == "contrasts")
    charts = [one for one in section.blocks if isinstance(one, Chart)]
    assert len(charts) == 3
    for one in charts:
        assert one.table.head[-1] == made.bootstrap.name
        assert made.bootstrap.name in one.title
        assert made.bootstrap.name in one.description
    assert all(row[2].endswith(" over 4") for one in charts for row in one.table.rows)


def test_a_band_of_another_name_is_refused(tasks):
    """`95% confidence interval` isn't what was registered."""
    first, *others = tasks[1].contrasts
    band = msgspec.structs.replace(first.band, name="95% confidence interval")
    other = msgspec.structs.replace(tasks[1], contrasts=(msgspec.structs.replace(first, band=band), *others))
    with pytest.raises(JournalError, match=r"95% confidence interval"):
        list(task_sections(other))


def test_tasks_have_transitions_and_tape_diagnostics_apart(tasks):
    """Four transitions of all tasks each; diagnostics in sections of their own, a domain each."""
    book, made = tasks
    sections = list(result_sections(book, made))
    assert [one.id for one in sections] == ["ledgers", "contrasts", "transitions", "tapes-code", "tapes-math", "edges"]
    rows = tables(sections[2])[0].rows
    assert {cell.split("/")[1] for row in rows for cell in row[2:]} == {"4"}
    assert all(sum(int(cell.split("/")[0]) for cell in row[2:]) == 4 for row in rows)
    assert ladder(book, ["s0_eos"]).title == "How cells ended"


def test_depth_has_curves_over_stages_and_gates(depth):
    """A chart a measure and kind of edge; counts keep their denominators; an undefined value is a gap."""
    sections = list(depth_sections(depth, Note("each comparison")))
    assert [one.id for one in sections] == ["ledgers", "edges", "stages", "gates-depth"]
    assert [len(one.blocks) for one in sections[2:]] == [6, 8]
    exact = next(one for one in sections[2].blocks if one.title.startswith("exact rows, system"))
    assert exact.table.rows[1] == ("layer_00", "4/5")
    assert "each value over 5 rows" in exact.description
    assert "each value over 2 sources" in sections[3].blocks[0].description


def test_behaviour_counts_stops_numbers_and_syntax(builder_run):
    """Its ledger by condition and domain, and its ten edges."""
    book, made = builder_run
    sections = list(result_sections(book, made))
    assert [one.id for one in sections] == ["ledgers", "edges"]
    head = tables(sections[0])[0].head
    assert {"natural eos", "truncated", "number: last number match", "syntax: ast parses"} <= {*head}
    assert len(tables(sections[1])[0].rows) == 10


@pytest.fixture(scope="module")
def builder_run(reading):
    """A behaviour run of its smoke grid, by hand."""
    from pregate_support.books import Builder, Said

    loaded = load_protocol("nano-behavior")
    books = Builder(loaded.protocol)
    units = tuple(
        msgspec.structs.replace(books.unit(key.domain, key.index, {"*": Said("so 12")}), source_id=key.source_id)
        for key in loaded.units("smoke", loaded.domains)
    )
    run = books.run(units, domains=loaded.domains, gold={one.source_id: "12" for one in units if one.domain == "math"})
    book = ledger(loaded.protocol, run)
    return book, statistics(loaded.protocol, book)


def test_every_kind_is_a_page(hand_page, reading, sampled, tasks, depth, builder_run):
    """Rendered: IDs are unique, tables whole, charts named."""
    for made in (
        [*result_sections(*sampled)],
        [*result_sections(*tasks)],
        [*depth_sections(depth, Note("each comparison"))],
        [*result_sections(*builder_run)],
    ):
        page = dataclasses.replace(hand_page, results=tuple(made), cells=(), cell_maps=())
        tree = reading.parsed(render(page))
        ids = [one.get("id") for one in tree.iter() if isinstance(one.tag, str) and one.get("id")]
        assert len(ids) == len(set(ids))
        assert {one.id for one in made} <= set(ids)
        for row in tree.iter("tr"):
            assert len(row) == len(row.getparent().getparent().find("thead")[0])
