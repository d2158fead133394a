"""The depth ledger (R05 depth 7-9): a row for each cell and edge, joined to the baseline by identity or refused."""

import dataclasses

import msgspec
import numpy as np
import pytest

from harness.canon import canonical_bytes, digest, sha256_hex
from harness.errors import JournalError
from harness.ledgers.book import ledger_of, ledger_type, statistics_of
from harness.ledgers.depth import depth_ledger
from harness.records.base import decode_json
from harness.records.depth_ledger import At, DepthLedger, Nowhere
from harness.records.ledger import Comparison

replace = msgspec.structs.replace
# tokens of each source's text, and what its cells' ends cut
SOURCES = {("english", 0): 3, ("english", 1): 5, ("math", 0): 4, ("math", 1): 2}
STAGES = ("embedding", "layer_00", "layer_01", "layer_02", "final_norm")
GATES = ("layer_01", "layer_02")


@pytest.fixture(scope="module")
def units(traces):
    """Four sources of two domains; mathematics 0 is cut once in two cells and twice in a third."""
    cut = {("math", 0): {"s0_x": 1, "s1_x": 1, "s1_bos": 2}}
    return tuple(
        traces.trace(domain, index, tokens=tokens, crossing=cut.get((domain, index)))
        for (domain, index), tokens in SOURCES.items()
    )


@pytest.fixture(scope="module")
def run(traces, units, say):
    """Their run; what the baseline said differs in one cell of mathematics 1, which was cut, and of English 0."""
    said = {("math/0001", "s1_eos"): say("okay", eos=False), ("english/0000", "s0_x"): say("o")}
    return traces.depth_run(units, said=said)


@pytest.fixture(scope="module")
def book(traces, run):
    """Its ledger."""
    return depth_ledger(traces.protocol, run)


def test_the_ledger_names_what_it_is_of(traces, book, run):
    """The run and the baseline by digest, and the protocol's identity."""
    assert (book.run_sha256, book.baseline_run_sha256) == (digest(run), sha256_hex(b"baseline run"))
    assert (book.protocol, book.registered_id) == ("nano-depth", traces.protocol.registered_id)
    assert (book.grid, book.port, book.domains) == ("smoke", False, ("english", "math"))
    assert book.result_name == traces.protocol.result_name
    assert book.protocol_digest == run.protocol_digest


def test_cells_stand_in_the_protocols_order(traces, book):
    """Domain, index, condition; each once."""
    conditions = [one.id for one in traces.protocol.conditions]
    wanted = [(domain, index, one) for domain, index in SOURCES for one in conditions]
    assert [(row.domain, row.index, row.condition) for row in book.cells] == wanted
    assert {row.replicate for row in book.cells} == {"forward"}
    assert [row.source_id for row in book.cells[::8]] == ["english/0000", "english/0001", "math/0000", "math/0001"]


def test_a_cells_row_has_its_counts(book):
    """Prompt 8 + text + 2 tokens, 3 more with a system text; 2 gates x 2 experts a target token."""
    found = {(row.source_id, row.condition): row for row in book.cells}
    for (domain, index), tokens in SOURCES.items():
        for system, longer in (("s0", 0), ("s1", 3)):
            row = found[f"{domain}/{index:04d}", f"{system}_eos"]
            assert (row.prompt_tokens, row.target_tokens) == (8 + longer + tokens + 2, tokens)
            assert row.route_decisions == tokens * 2 * 2
    cut = {name: row.crossing_tokens for (source, name), row in found.items() if source == "math/0000"}
    assert {name: tokens for name, tokens in cut.items() if tokens} == {"s0_x": 1, "s1_x": 1, "s1_bos": 2}


def test_edges_stand_in_the_protocols_order(traces, book):
    """Domain, index, edge, with the registered sides and kind."""
    edges = [(one.id, one.kind, one.left, one.right) for one in traces.protocol.edges]
    assert [(row.edge, row.kind, row.left, row.right) for row in book.edges] == edges * 4
    assert [(row.domain, row.index) for row in book.edges[::10]] == list(SOURCES)


def test_an_edges_row_has_the_recorded_stages_and_gates(book, units):
    """As they were traced, in the order of the forward."""
    for row in book.edges:
        unit = next(one for one in units if one.source_id == row.source_id)
        recorded = next(one for one in unit.edges if one.edge == row.edge)
        assert (row.stages, row.gates) == (recorded.stages, recorded.gates)
        assert tuple(one.stage for one in row.stages) == STAGES
        assert tuple(one.gate for one in row.gates) == GATES


def test_an_edge_stands_beside_the_outputs_of_the_baseline(book, traces):
    """R05 depth: generated IDs of the same two cells, compared as everywhere; EOS counts as a token."""
    found = {(row.source_id, row.edge): row.output for row in book.edges}
    same = Comparison(ids_exact=True, common_prefix_tokens=3, distance=0, longest=3, similarity=1.0)
    assert found["math/0001", "system_bos"] == same
    # "ok" + EOS against "okay" without: two letters in place of EOS.
    assert found["math/0001", "system_eos"] == Comparison(
        ids_exact=False, common_prefix_tokens=2, distance=2, longest=4, similarity=0.5
    )
    # "ok" + EOS against "o" + EOS: one letter less.
    assert found["english/0000", "x_s0"] == Comparison(
        ids_exact=False, common_prefix_tokens=1, distance=1, longest=3, similarity=1.0 - 1 / 3
    )
    differing = {key for key, one in found.items() if not one.ids_exact}
    assert differing == {
        ("math/0001", "system_eos"), ("math/0001", "bos_s1"), ("math/0001", "x_s1"), ("math/0001", "period_s1"),
        ("english/0000", "system_x"), ("english/0000", "x_s0"),
    }  # fmt: skip
    assert len(found) == 40


@pytest.mark.parametrize("order", [slice(None, None, -1), slice(1, None, 2)], ids=["reversed", "odd ones first"])
def test_nothing_is_joined_by_its_position(traces, run, book, order):
    """Units, cells, edges and the baseline's cells in another order: the same rows under another run digest."""

    def moved(items):
        return (*items[order], *[one for one in items if one not in items[order]])

    units = tuple(replace(unit, cells=moved(unit.cells), edges=moved(unit.edges)) for unit in moved(run.units))
    baseline = replace(run.baseline, cells=moved(run.baseline.cells))
    found = depth_ledger(traces.protocol, replace(run, units=units, baseline=baseline))
    assert replace(found, run_sha256=book.run_sha256) == book


def as_left(traces, domain, index, keep):
    """Lines in which every condition has the same numbers as s0_eos, but those of stages and gates not in `keep`."""
    lines = traces.lines(domain, index, tokens=3)
    cells = {}
    for condition, line in lines.items():
        start = 8 if condition.startswith("s0") else 11
        own = {
            name: {key: array.copy() for key, array in getattr(line, name).items()}
            for name in ("hidden", "routes", "weights")
        }
        for name, arrays in own.items():
            for key, array in arrays.items():
                if key in keep:
                    array[start : start + 3] = getattr(lines["s0_eos"], name)[key][8:11]
        cells[condition] = dataclasses.replace(line, **own)
    return cells


def first_row(traces, lines, edge="bos_s0"):
    """The edge's row in a smoke run of one source with these lines."""
    small = traces.with_grid("smoke", per_domain=1, replicates=("forward",))
    run = small.depth_run((small.trace("code", 0, lines=lines),))
    return next(row for row in depth_ledger(small.protocol, run).edges if row.edge == edge)


ALL = set(STAGES) | set(GATES)
FIRST = [
    (ALL, Nowhere(reason="every row of every stage is exact"), Nowhere(reason="every ordered route is exact")),
    (ALL - {"layer_02"}, At(name="layer_02"), At(name="layer_02")),
    (ALL - {"final_norm"}, At(name="final_norm"), Nowhere(reason="every ordered route is exact")),
    (ALL - {"layer_01", "final_norm"}, At(name="layer_01"), At(name="layer_01")),
    ({"embedding"}, At(name="layer_00"), At(name="layer_01")),
]


@pytest.mark.parametrize(("keep", "stage", "gate"), FIRST, ids=lambda one: getattr(one, "name", None))
def test_the_first_that_differs(traces, keep, stage, gate):
    """By depth: the first stage with a row, and the first gate with an ordered route, that isn't exact."""
    row = first_row(traces, as_left(traces, "code", 0, keep))
    assert (row.first_differing_stage, row.first_differing_gate) == (stage, gate)


def test_one_row_is_enough_to_differ(traces):
    """One bit of one number of one target row; -0 isn't 0."""
    lines = as_left(traces, "code", 0, ALL)
    for line in lines.values():
        line.hidden["layer_01"][:, 2] = 0.0
    lines["s0_bos"].hidden["layer_01"][9, 2] = -0.0
    row = first_row(traces, lines)
    assert row.first_differing_stage == At(name="layer_01")
    assert {one.stage: one.exact_rows for one in row.stages}["layer_01"] == 2


def test_two_experts_in_another_order_differ(traces):
    """The ordered route is another, the set isn't: the gate differs."""
    lines = as_left(traces, "code", 0, ALL)
    routes = lines["s0_bos"].routes["layer_02"]
    routes[9] = routes[9][::-1]
    row = first_row(traces, lines)
    assert row.first_differing_gate == At(name="layer_02")
    assert [(one.ordered_exact, one.set_exact, one.tokens) for one in row.gates] == [(3, 3, 3), (2, 3, 3)]


def test_outside_the_target_nothing_is_compared(traces):
    """Other numbers before and after the target leave the edge exact."""
    lines = as_left(traces, "code", 0, ALL)
    outside = np.r_[0:8, 11:13]
    for array in lines["s0_bos"].hidden.values():
        array[outside] += 1
    assert isinstance(first_row(traces, lines).first_differing_stage, Nowhere)


@pytest.fixture(scope="module")
def dense(traces):
    """A builder whose model has no gate."""
    shape = replace(traces.shape, dense_layers=3, routed_experts=0, experts_per_token=0)
    return dataclasses.replace(traces, shape=shape).with_grid("smoke", per_domain=1, replicates=("forward",))


def test_a_dense_model_has_no_gate(dense):
    """Nowhere with a reason of its own, no gates and no route decisions; stages as ever."""
    book = depth_ledger(dense.protocol, dense.depth_run((dense.trace("code", 0),)))
    assert {row.first_differing_gate for row in book.edges} == {Nowhere(reason="the model has no gate")}
    assert {row.first_differing_stage for row in book.edges} == {At(name="layer_00")}
    assert {(row.gates, len(row.stages)) for row in book.edges} == {((), 5)}
    assert {row.route_decisions for row in book.cells} == {0}


def with_unit(run, at, **changes):
    """The run with fields of one unit changed."""
    units = list(run.units)
    units[at] = replace(units[at], **changes)
    return replace(run, units=tuple(units))


EDGE_FAULTS = {
    "missing": (lambda edges: edges[1:], "found 0"),
    "twice": (lambda edges: (*edges, edges[0]), "found 2"),
    "another name": (lambda edges: (replace(edges[0], edge="other"), *edges[1:]), "found 0"),
    "another side": (lambda edges: (replace(edges[0], right="s1_x"), *edges[1:]), "found 0"),
    "right to left": (
        lambda edges: (replace(edges[0], left=edges[0].right, right=edges[0].left), *edges[1:]),
        "found 0",
    ),
}


@pytest.mark.parametrize("fault", EDGE_FAULTS)
def test_an_edge_that_is_not_there_once_is_refused(traces, run, fault):
    """By source and edge: A stays A."""
    damage, found = EDGE_FAULTS[fault]
    changed = with_unit(run, 2, edges=damage(run.units[2].edges))
    message = f"^unit math/0000: edge system_eos: expected once, left to right, {found}"
    with pytest.raises(JournalError, match=message):
        depth_ledger(traces.protocol, changed)


CELL_FAULTS = {
    "missing": lambda cells: cells[1:],
    "twice": lambda cells: (*cells, cells[0]),
    "in place of another": lambda cells: (cells[1], *cells[1:]),
    "unknown": lambda cells: (replace(cells[0], condition="s9_eos"), *cells[1:]),
}


@pytest.mark.parametrize("fault", CELL_FAULTS)
def test_cells_that_are_not_the_conditions_are_refused(traces, run, fault):
    """Each condition exactly once; both lists are shown."""
    changed = with_unit(run, 0, cells=CELL_FAULTS[fault](run.units[0].cells))
    with pytest.raises(JournalError, match=r"^unit english/0000, forward: conditions: expected \['s0_eos'"):
        depth_ledger(traces.protocol, changed)


UNIT_FAULTS = {
    "missing": lambda units: units[1:],
    "twice": lambda units: (*units, units[0]),
    "another index": lambda units: (replace(units[0], index=7), *units[1:]),
    "another domain": lambda units: (replace(units[0], domain="code"), *units[1:]),
    "another replicate": lambda units: (replace(units[0], replicate="greedy"), *units[1:]),
}


@pytest.mark.parametrize("fault", UNIT_FAULTS)
def test_a_run_that_is_not_the_grid_is_refused(traces, run, fault):
    """Exactly the grid's units over its domains: nothing is left out and nothing made up."""
    with pytest.raises(JournalError, match=r"^run record: units of grid smoke: expected 4 units, each once"):
        depth_ledger(traces.protocol, replace(run, units=UNIT_FAULTS[fault](run.units)))


HEAD_FAULTS = {
    "protocol": ({"protocol": "nano-behavior"}, "run record: protocol: expected nano-depth, found nano-behavior"),
    "grid": ({"grid": "other"}, "run record: grid: expected one of"),
    "domain": ({"domains": ("english", "other")}, "run record: domains"),
    "domain twice": ({"domains": ("english", "math", "math")}, "run record: domains"),
}


@pytest.mark.parametrize("fault", HEAD_FAULTS)
def test_another_head_is_refused(traces, run, fault):
    """Protocol, grid and domains are the registered ones."""
    changes, message = HEAD_FAULTS[fault]
    with pytest.raises(JournalError, match=f"^{message}"):
        depth_ledger(traces.protocol, replace(run, **changes))


def other_cell(cells, at=0, **changes):
    """The baseline's cells with one changed."""
    return (*cells[:at], replace(cells[at], **changes), *cells[at + 1 :])


WHERE = "^unit english/0000 s0_eos: join with nano-behavior"
JOIN_FAULTS = {
    "a cell less": (lambda b: {"cells": b.cells[1:]}, "expected one cell, found 0"),
    "a cell twice": (lambda b: {"cells": (*b.cells, b.cells[0])}, "expected one cell, found 2"),
    "two replicates": (
        lambda b: {"cells": (*b.cells, replace(b.cells[0], replicate="R1"))},
        "expected one cell, found 2",
    ),
    "another source": (
        lambda b: {"cells": other_cell(b.cells, source_id="english/0009")},
        "expected one cell, found 0",
    ),
    "another condition": (lambda b: {"cells": other_cell(b.cells, condition="s9_eos")}, "expected one cell, found 0"),
    "another prompt": (
        lambda b: {"cells": other_cell(b.cells, prompt_sha256="0" * 64)},
        f": prompt_sha256: expected {'0' * 64}, found [0-9a-f]{{64}}",
    ),
    "another text": (
        lambda b: {"source_texts": b.source_texts | {"english/0000": "0" * 64}},
        f": source_text_sha256: expected {'0' * 64}, found [0-9a-f]{{64}}",
    ),
    "no text": (lambda b: {"source_texts": {}}, ": source_text_sha256: expected none, found [0-9a-f]{64}"),
}


@pytest.mark.parametrize("fault", JOIN_FAULTS)
def test_a_cell_that_is_not_the_baselines_is_refused(traces, run, fault):
    """R05 depth: joined only by source text, condition and prompt; source, condition and baseline are named."""
    change, message = JOIN_FAULTS[fault]
    baseline = replace(run.baseline, **change(run.baseline))
    with pytest.raises(JournalError, match=f"{WHERE}.*{message}"):
        depth_ledger(traces.protocol, replace(run, baseline=baseline))


def test_a_trace_of_another_text_is_refused(traces, run):
    """The trace's side altered: the same refusal."""
    with pytest.raises(JournalError, match=f"{WHERE}: source_text_sha256: expected [0-9a-f]{{64}}, found {'1' * 64}"):
        depth_ledger(traces.protocol, with_unit(run, 0, source_text_sha256="1" * 64))


def test_the_record_comes_back_from_its_bytes(traces, book, run):
    """At and Nowhere keep apart in JSON; the same run gives the same bytes."""
    data = canonical_bytes(book)
    assert decode_json(data, DepthLedger, where="ledger", error=JournalError, todo="") == book
    assert canonical_bytes(depth_ledger(traces.protocol, run)) == data


def test_a_book_is_of_its_protocols_kind(traces, run, book, two_sources, protocol):
    """`ledger_of` and `statistics_of` take a depth run for a depth protocol, and no other for either."""
    assert ledger_type(traces.protocol) is DepthLedger
    assert ledger_of(traces.protocol, run, {}) == book
    assert statistics_of(traces.protocol, book).ledger_sha256 == digest(book)
    for wrong, other in ((traces.protocol, two_sources), (protocol, run)):
        with pytest.raises(JournalError, match=f"^run record: expected a run of {wrong.id}, found (Depth)?Run"):
            ledger_of(wrong, other, {})
    with pytest.raises(RuntimeError, match="nano-behavior has no DepthLedger"):
        statistics_of(protocol, book)
