"""Counts over a depth ledger: rows and tokens pooled over sources, never means of means; every group of its size."""

import dataclasses
import json
import math
import re

import msgspec
import numpy as np
import pytest

from harness.canon import canonical_bytes, digest
from harness.errors import JournalError
from harness.ledgers.depth import depth_ledger
from harness.ledgers.depth_statistics import depth_statistics, edge_summary, gate_summary, stage_summary
from harness.records.base import decode_json
from harness.records.depth import GateEdge, StageEdge
from harness.records.depth_ledger import At, BoundarySummary, DepthStatistics, Nowhere, ScaleIdentity
from harness.records.ledger import Count, Mean, Total, Undefined

replace = msgspec.structs.replace
SOURCES = {("english", 0): 3, ("english", 1): 11, ("math", 0): 4, ("math", 1): 2}
TOKENS = sum(SOURCES.values())
LOUD = {("english", 1): 0.1, ("math", 0): 30.0}  # what a source's states are multiplied by
STAGES = ("embedding", "layer_00", "layer_01", "layer_02", "final_norm")
GATES = ("layer_01", "layer_02")


@pytest.fixture(scope="module")
def lines(traces):
    """The arrays of four sources of other lengths; states of one are small, of another large and far apart."""
    found = {}
    for (domain, index), tokens in SOURCES.items():
        cells = traces.lines(domain, index, tokens=tokens)
        factor = LOUD.get((domain, index), 1.0)
        for condition, line in cells.items():
            for name in STAGES[1:]:
                line.hidden[name] *= factor
                line.hidden[name] += factor * 0.02 * len(condition)
        found[domain, index] = cells
    return found


@pytest.fixture(scope="module")
def run(traces, lines, say):
    """The run of those arrays; four cells of one source are cut at an end, one of them at both."""
    cut = {("math", 0): {"s0_x": 1, "s1_x": 1, "s0_eos": 1, "s1_bos": 2}}
    units = tuple(
        traces.trace(domain, index, tokens=tokens, lines=lines[domain, index], crossing=cut.get((domain, index)))
        for (domain, index), tokens in SOURCES.items()
    )
    return traces.depth_run(units, said={("math/0001", "s1_eos"): say("no")})


@pytest.fixture(scope="module")
def book(traces, run):
    """Its ledger."""
    return depth_ledger(traces.protocol, run)


@pytest.fixture(scope="module")
def statistics(traces, book):
    """Its statistics."""
    return depth_statistics(traces.protocol, book)


def pooled(lines, edge, name, places):
    """Left and right target rows of a stage, of all sources one below the other, in float64."""
    sides = []
    for side in (edge.left, edge.right):
        start = 8 if side.startswith("s0") else 11
        rows = [lines[place][side].hidden[name][start : start + SOURCES[place]] for place in places]
        sides.append(np.concatenate(rows).astype(np.float64))
    return sides


def slow_cosine(left, right):
    """Mean over rows, row by row."""
    cosines = [
        float(np.dot(a, b)) / math.sqrt(float(np.dot(a, a)) * float(np.dot(b, b)))
        for a, b in zip(left, right, strict=True)
    ]
    return math.fsum(cosines) / len(cosines)


def slow_relative_l2(left, right):
    """Of the matrices as a whole."""
    return float(np.linalg.norm(right - left) / np.linalg.norm(left))


def summaries(statistics):
    """(edge ID, the sources that it is over, its summary): all together, and each domain."""
    for one in statistics.by_edge:
        yield one.edge, list(SOURCES), one.units
    for one in statistics.by_edge_and_domain:
        yield one.edge, [place for place in SOURCES if place[0] == one.domain], one.units


@pytest.mark.parametrize("stage", STAGES)
def test_rows_are_pooled(traces, lines, statistics, stage):
    """Cosine and relative L2 of every edge are those of all its sources' rows in one matrix."""
    edges = {edge.id: edge for edge in traces.protocol.edges}
    checked = 0
    for name, places, found in summaries(statistics):
        (one,) = [each for each in found.stages if each.stage == stage]
        left, right = pooled(lines, edges[name], stage, places)
        assert one.cosine == pytest.approx(slow_cosine(left, right), rel=1e-12)
        assert one.relative_l2 == pytest.approx(slow_relative_l2(left, right), rel=1e-12, abs=1e-15)
        equal = [a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True)]
        assert one.exact_rows == Count(count=sum(equal), of=len(left))
        checked += 1
    assert checked == 10 + 20


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_mean_of_means_would_be_another_number(traces, book, statistics, stage):
    """The sources of this run tell the two apart, on every edge: else the test above would show nothing."""
    for one in statistics.by_edge:
        rows = [next(each for each in row.stages if each.stage == stage) for row in book.edges if row.edge == one.edge]
        (found,) = [each for each in one.units.stages if each.stage == stage]
        assert abs(math.fsum(each.cosine for each in rows) / 4 - found.cosine) > 1e-6
        assert abs(math.fsum(each.relative_l2 for each in rows) / 4 - found.relative_l2) > 1e-6


def test_gates_are_pooled_by_tokens(book, statistics):
    """Exact routes of all tokens; total variations as the mean over sources, each with its number."""
    for one in statistics.by_edge:
        rows = [row for row in book.edges if row.edge == one.edge]
        for at, found in enumerate(one.units.gates):
            edges = [row.gates[at] for row in rows]
            assert found.gate == GATES[at]
            assert found.ordered_exact == Count(count=sum(each.ordered_exact for each in edges), of=TOKENS)
            assert found.set_exact == Count(count=sum(each.set_exact for each in edges), of=TOKENS)
            for name in ("load_total_variation", "weighted_load_total_variation"):
                mean = math.fsum(getattr(each, name) for each in edges) / 4
                assert getattr(found, name) == Mean(mean=mean, n=4)


def test_groups_are_all_there_in_order(traces, statistics):
    """Every edge over all sources, and every edge in every domain."""
    edges = [(one.id, one.kind) for one in traces.protocol.edges]
    assert [(one.edge, one.kind) for one in statistics.by_edge] == edges
    wanted = [(*edge, domain) for edge in edges for domain in ("english", "math")]
    assert [(one.edge, one.kind, one.domain) for one in statistics.by_edge_and_domain] == wanted
    assert (statistics.hidden_stages, statistics.gates) == (5, 2)


def test_a_domain_has_its_own_denominators(statistics):
    """Fourteen tokens of English, six of mathematics, twenty together; two and two units, and four."""
    for one in statistics.by_edge_and_domain:
        tokens = {"english": 14, "math": 6}[one.domain]
        assert {each.exact_rows.of for each in one.units.stages} == {tokens}
        assert {each.ordered_exact.of for each in one.units.gates} == {tokens}
        assert one.units.output_ids_exact.of == 2
    assert {one.units.output_ids_exact.of for one in statistics.by_edge} == {4}


def test_outputs_are_counted_beside_the_depth(statistics):
    """One cell of one source said something else: its four edges have three of four outputs exact."""
    found = {one.edge: one.units.output_ids_exact for one in statistics.by_edge}
    differing = {"system_eos", "bos_s1", "x_s1", "period_s1"}
    assert found == {name: Count(count=3 if name in differing else 4, of=4) for name in found}


def test_the_embedding_is_exact_on_every_edge(statistics):
    """R05 depth 8: ten edges x twenty tokens, and twenty on each edge."""
    assert statistics.embedding_exact_rows == Count(count=10 * TOKENS, of=10 * TOKENS)
    assert {
        (one.units.embedding_exact_rows.count, one.units.embedding_exact_rows.of) for one in statistics.by_edge
    } == {(TOKENS, TOKENS)}


def test_an_embedding_that_differs_is_counted(traces, lines):
    """Two rows of one cell: its four edges lose two each, of the same number."""
    changed = {place: dict(cells) for place, cells in lines.items()}
    line = changed["math", 0]["s0_eos"]
    hidden = line.hidden | {"embedding": line.hidden["embedding"].copy()}
    hidden["embedding"][8:10] += 1
    changed["math", 0]["s0_eos"] = dataclasses.replace(line, hidden=hidden)
    units = tuple(
        traces.trace(domain, index, tokens=tokens, lines=changed[domain, index])
        for (domain, index), tokens in SOURCES.items()
    )
    found = depth_statistics(traces.protocol, depth_ledger(traces.protocol, traces.depth_run(units)))
    assert found.embedding_exact_rows == Count(count=10 * TOKENS - 8, of=10 * TOKENS)
    by_edge = {one.edge: one.units.embedding_exact_rows.count for one in found.by_edge}
    short = {name for name, count in by_edge.items() if count == TOKENS - 2}
    assert short == {"system_eos", "bos_s0", "x_s0", "period_s0"}


def test_the_scale_identity(statistics):
    """R05 depth 7.3: 20 target tokens x 8 conditions x 2 gates x top-2 = 640, each counted on its own."""
    assert statistics.scale == ScaleIdentity(
        target_tokens=Total(sum=20, n=4), conditions=8, gates=2, top_k=2, route_decisions=640
    )


def test_tokens_that_an_end_cuts(statistics):
    """R05 depth 7.2: five tokens of four variants, over all 32."""
    assert statistics.boundary == BoundarySummary(
        crossing_tokens=Total(sum=5, n=32), crossing_cells=Count(count=4, of=32)
    )


@pytest.mark.parametrize(("layers", "dense", "experts", "top_k"), [(2, 0, 3, 3), (4, 1, 9, 1), (3, 2, 6, 5)])
def test_the_scale_identity_of_other_models(traces, layers, dense, experts, top_k):
    """Layers, gates and top-k follow from what was counted, whatever the model."""
    shape = replace(traces.shape, layers=layers, dense_layers=dense, routed_experts=experts, experts_per_token=top_k)
    builder = dataclasses.replace(traces, shape=shape).with_grid("smoke", per_domain=1, replicates=("forward",))
    run = builder.depth_run((builder.trace("code", 0, tokens=5),))
    found = depth_statistics(builder.protocol, depth_ledger(builder.protocol, run))
    assert (found.hidden_stages, found.gates) == (layers + 2, layers - dense)
    assert found.scale == ScaleIdentity(
        target_tokens=Total(sum=5, n=1),
        conditions=8,
        gates=layers - dense,
        top_k=top_k,
        route_decisions=5 * 8 * (layers - dense) * top_k,
    )


@pytest.fixture(scope="module")
def dense(traces):
    """A builder of a model without gates, one source a domain."""
    shape = replace(traces.shape, dense_layers=3, routed_experts=0, experts_per_token=0)
    return dataclasses.replace(traces, shape=shape).with_grid("smoke", per_domain=1, replicates=("forward",))


def test_a_dense_model_has_no_routes(dense):
    """top-k 0, no gates, no route decisions; where a gate would be named, Nowhere says why."""
    run = dense.depth_run((dense.trace("code", 0, tokens=5),))
    found = depth_statistics(dense.protocol, depth_ledger(dense.protocol, run))
    assert found.scale == ScaleIdentity(
        target_tokens=Total(sum=5, n=1), conditions=8, gates=0, top_k=0, route_decisions=0
    )
    assert (found.gates, found.hidden_stages) == (0, 5)
    for one in found.by_edge:
        assert one.units.gates == ()
        assert one.units.lowest_ordered_exact == Nowhere(reason="the model has no gate")
        assert isinstance(one.units.lowest_cosine, At)
    data = canonical_bytes(found)
    assert decode_json(data, DepthStatistics, where="statistics", error=JournalError, todo="") == found


def test_the_lowest_is_the_lowest(statistics):
    """Of the pooled curve: no stage or gate of an edge is below the named one."""
    for _, _, found in summaries(statistics):
        cosines = {one.stage: one.cosine for one in found.stages}
        exact = {one.gate: one.ordered_exact.count for one in found.gates}
        assert cosines[found.lowest_cosine.name] == min(cosines.values())
        assert exact[found.lowest_ordered_exact.name] == min(exact.values())
    assert len({found.lowest_cosine.name for _, _, found in summaries(statistics)}) > 1


def stage(name="layer_00", *, rows=2, exact=0, cosine=0.5, difference=1.0, left=4.0):
    """A stage of an edge with `cosine` in every row."""
    return StageEdge(
        stage=name,
        rows=rows,
        exact_rows=exact,
        cosine=cosine,
        relative_l2=math.sqrt(difference / left),
        cosine_sum=cosine * rows,
        difference_squared=difference,
        left_squared=left,
    )


def gate(name="layer_01", *, tokens=2, ordered=1, as_set=1, load=0.25, weighted=0.5):
    """A gate of an edge."""
    return GateEdge(
        gate=name,
        tokens=tokens,
        ordered_exact=ordered,
        set_exact=as_set,
        load_total_variation=load,
        weighted_load_total_variation=weighted,
    )


def rows_of(book, *pairs):
    """Rows of one edge with these stages and gates."""
    return [replace(book.edges[0], stages=stages, gates=gates) for stages, gates in pairs]


TIES = [
    ((0.5, 0.4, 0.4, 0.6), (3, 1, 1), "layer_00", "layer_02"),
    ((0.3, 0.4, 0.3, 0.3), (1, 1, 1), "embedding", "layer_01"),
    ((1.0, 1.0, 1.0, 0.9), (2, 1, 0), "final_norm", "layer_03"),
    ((0.1, -0.5, 0.0, -0.5), (0, 2, 0), "layer_00", "layer_01"),
]


@pytest.mark.parametrize(("cosines", "ordered", "lowest", "least"), TIES)
def test_of_equal_ones_the_first_by_depth_is_the_lowest(book, cosines, ordered, lowest, least):
    """A tie is broken by depth, whatever the order of anything else."""
    stages = tuple(
        stage(name, cosine=one)
        for name, one in zip(("embedding", "layer_00", "layer_01", "final_norm"), cosines, strict=True)
    )
    gates = tuple(gate(f"layer_{at:02d}", tokens=9, ordered=one) for at, one in enumerate(ordered, 1))
    found = edge_summary(rows_of(book, (stages, gates)))
    assert (found.lowest_cosine, found.lowest_ordered_exact) == (At(name=lowest), At(name=least))


def test_the_lowest_is_sought_after_pooling(book):
    """A short source whose lowest stage is another doesn't decide it."""
    short = ((stage("a", rows=1, cosine=0.1), stage("b", rows=1, cosine=0.9)), ())
    long = ((stage("a", rows=9, cosine=0.8), stage("b", rows=9, cosine=0.5)), ())
    found = edge_summary(rows_of(book, short, long))
    assert [one.cosine for one in found.stages] == pytest.approx([0.73, 0.54])
    assert found.lowest_cosine == At(name="b")


def test_an_edge_without_stages_or_rows_has_no_lowest(book):
    """Nowhere, with its reason."""
    for found in (edge_summary(rows_of(book, ((), ()))), edge_summary([])):
        assert found.lowest_cosine == Nowhere(reason="no stage")
        assert found.lowest_ordered_exact == Nowhere(reason="the model has no gate")


def test_a_stage_is_pooled_by_its_sums():
    """(0.5 * 2 + 1 * 6) / 8 rows; sqrt((1 + 8) / (4 + 32)); counts of rows."""
    found = stage_summary([stage(exact=1), stage(rows=6, exact=5, cosine=1.0, difference=8.0, left=32.0)])
    assert (found.cosine, found.relative_l2) == (0.875, 0.5)
    assert found.exact_rows == Count(count=6, of=8)


def test_a_gate_is_pooled_by_its_tokens():
    """Counts over tokens, total variations over sources."""
    found = gate_summary([gate(), gate(tokens=6, ordered=2, as_set=5, load=0.75, weighted=0.0)])
    assert (found.ordered_exact, found.set_exact) == (Count(count=3, of=8), Count(count=6, of=8))
    assert found.load_total_variation == Mean(mean=0.5, n=2)
    assert found.weighted_load_total_variation == Mean(mean=0.25, n=2)


def test_the_order_of_sources_changes_no_sum():
    """Sums are exact before they're rounded once."""
    edges = [stage(rows=3, cosine=0.1 * at, difference=0.1**at, left=7.0**at) for at in range(1, 9)]
    assert stage_summary(edges) == stage_summary(edges[::-1])
    gates = [gate(load=0.1 * at, weighted=0.07 * at) for at in range(9)]
    assert gate_summary(gates) == gate_summary(gates[::-1])


def test_no_sources_have_no_mean(book):
    """Absence is a type."""
    (found,) = edge_summary(rows_of(book, ((), (gate(),)))).gates
    assert found.load_total_variation == Mean(mean=0.25, n=1)
    assert isinstance(Undefined(reason="no rows"), Undefined)


def test_a_left_side_of_zeros_that_is_not_moved_has_no_difference():
    """0 of 0 is 0: nothing differs."""
    zero = replace(stage(exact=2), left_squared=0.0, difference_squared=0.0, relative_l2=0.0)
    assert stage_summary([zero]).relative_l2 == 0.0


def changed(book, rows, at, **changes):
    """The ledger with fields of one row changed."""
    listed = list(getattr(book, rows))
    listed[at] = replace(listed[at], **changes)
    return replace(book, **{rows: tuple(listed)})


def test_a_source_whose_cells_disagree_is_refused(traces, book):
    """R05 depth 7.2: the target is the source's, the same in each of its cells; source and condition are named."""
    message = "^ledger: target tokens of english/0001 s1_x: expected 11, found 12"
    at = next(at for at, row in enumerate(book.cells) if (row.source_id, row.condition) == ("english/0001", "s1_x"))
    with pytest.raises(JournalError, match=message):
        depth_statistics(traces.protocol, changed(book, "cells", at, target_tokens=12))


def test_two_sources_of_one_length_are_two(traces):
    """Lengths are summed by source: equal ones aren't one."""
    units = tuple(traces.trace("code", index, tokens=4) for index in range(2))
    found = depth_statistics(traces.protocol, depth_ledger(traces.protocol, traces.depth_run(units)))
    assert found.scale.target_tokens == Total(sum=8, n=2)


@pytest.mark.parametrize("by", [-1, 1, 319])
def test_route_decisions_that_are_no_multiple_are_refused(traces, book, by):
    """R05 depth 7.3: a decision too few or too many isn't rounded away."""
    decisions = book.cells[0].route_decisions + by
    with pytest.raises(JournalError, match=rf"^ledger: route decisions: expected a multiple of 320, found {640 + by}"):
        depth_statistics(traces.protocol, changed(book, "cells", 0, route_decisions=decisions))


def test_twice_the_decisions_are_twice_the_experts(traces, book):
    """What was counted decides: the identity isn't copied from the model's config."""
    cells = tuple(replace(row, route_decisions=2 * row.route_decisions) for row in book.cells)
    assert depth_statistics(traces.protocol, replace(book, cells=cells)).scale.top_k == 4


@pytest.mark.parametrize("line", ["stages", "gates"])
@pytest.mark.parametrize("damage", ["shorter", "another name", "another order"])
def test_edges_of_other_stages_or_gates_are_refused(traces, book, line, damage):
    """Every edge has the same line: else one stage would be pooled with another."""
    listed = getattr(book.edges[3], line)
    field = line[:-1]
    altered = {
        "shorter": listed[:-1],
        "another name": (replace(listed[0], **{field: "other"}), *listed[1:]),
        "another order": listed[::-1],
    }[damage]
    with pytest.raises(JournalError, match=f"^ledger: {line}: expected the same on every edge, found 2 lists"):
        depth_statistics(traces.protocol, changed(book, "edges", 3, **{line: altered}))


def lost(rows):
    """Without the last row."""
    return rows[:-1]


def in_its_place(rows):
    """The last row replaced by the first of its kind."""
    row = rows[-1]
    name = "condition" if hasattr(row, "condition") else "edge"
    first = next(one for one in rows if getattr(one, name) == getattr(row, name) and one.domain == row.domain)
    return (*rows[:-1], first)


def in_addition(rows):
    """The first row once more."""
    return (*rows, rows[0])


def renamed(rows):
    """The last row of a condition or edge that isn't registered."""
    name = "condition" if hasattr(rows[-1], "condition") else "edge"
    return (*rows[:-1], replace(rows[-1], **{name: "other"}))


def moved(rows):
    """The last row in another domain of the run."""
    return (*rows[:-1], replace(rows[-1], domain="english"))


def of_another_domain(rows):
    """The last row in a domain that the run doesn't have."""
    return (*rows[:-1], replace(rows[-1], domain="code"))


def made_up(rows):
    """A row more, of a condition or edge that isn't registered."""
    name = "condition" if hasattr(rows[-1], "condition") else "edge"
    return (*rows, replace(rows[-1], **{name: "other"}))


SIZES = [lost, in_its_place, in_addition, renamed, moved, of_another_domain, made_up]


@pytest.mark.parametrize("rows", ["cells", "edges"])
@pytest.mark.parametrize("damage", SIZES)
def test_a_group_of_the_wrong_size_is_refused(traces, book, rows, damage):
    """No row too few makes a denominator smaller, none too many a larger one, and no other row makes up for it."""
    with pytest.raises(JournalError, match=r"^ledger: .*expected \d+ rows, found \d+"):
        depth_statistics(traces.protocol, replace(book, **{rows: damage(getattr(book, rows))}))


@pytest.mark.parametrize("damage", SIZES)
def test_a_group_of_a_dense_models_cells_is_refused_too(traces, dense, damage):
    """Where no route decisions would show it."""
    builder = dataclasses.replace(traces, shape=dense.shape)
    units = tuple(builder.trace(domain, index) for domain, index in SOURCES)
    book = depth_ledger(builder.protocol, builder.depth_run(units))
    with pytest.raises(JournalError, match=r"^ledger: .*expected \d+ rows, found \d+"):
        depth_statistics(builder.protocol, replace(book, cells=damage(book.cells)))


def test_a_stage_or_gate_without_rows_is_refused():
    """A curve over no tokens has no value: it's said, and no division by zero ends the session."""
    with pytest.raises(JournalError, match="layer_00: expected target rows, found 0"):
        stage_summary([replace(stage(), rows=0, exact_rows=0)])


def test_a_left_side_of_zeros_that_is_moved_is_refused():
    """The relative difference has no value: 0 would say that nothing differs."""
    with pytest.raises(JournalError, match="layer_00: expected a left side that isn't zero throughout"):
        stage_summary([replace(stage(), left_squared=0.0)])


HEADS = {
    "protocol": ({"protocol": "other"}, "ledger: protocol: expected nano-depth, found other"),
    "grid": ({"grid": "other"}, "run record: grid"),
    "domains": ({"domains": ("english",)}, "ledger: different cells: expected 16 rows, found 32"),
    "unknown domain": ({"domains": ("english", "other")}, "run record: domains"),
}


@pytest.mark.parametrize("head", HEADS)
def test_another_head_is_refused(traces, book, head):
    """Counts are made only with the protocol and the domains that give their denominators."""
    changes, message = HEADS[head]
    with pytest.raises(JournalError, match=f"^{message}"):
        depth_statistics(traces.protocol, replace(book, **changes))


def test_the_record_comes_back_from_its_bytes(statistics, book):
    """Digests lead to ledger and run."""
    data = canonical_bytes(statistics)
    assert decode_json(data, DepthStatistics, where="statistics", error=JournalError, todo="") == statistics
    assert (statistics.ledger_sha256, statistics.run_sha256) == (digest(book), book.run_sha256)


def names(value):
    """Every key of a JSON value."""
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)


def test_nothing_relates_a_gate_to_an_output_or_sums_a_curve_up(statistics):
    """R05 depth 12: no effect, mediation, correlation, slope, area or accumulation anywhere; counts and curves only."""
    plain = json.loads(canonical_bytes(statistics))
    forbidden = r"effect|mediat|cause|correl|slope|area|cumul|monoton|accuracy|rate|score|interval"
    assert not {name for name in names(plain) if re.search(forbidden, name)}
