"""The sources of every kind: each counts what it says, out of what its protocol registers."""

from types import SimpleNamespace

import msgspec
import pytest
from pregate_support.books import Builder, DepthBuilder, Said

from harness.claims import behavior, completion, depth, sampling, task
from harness.claims.load import load_claims
from harness.claims.source import gate_source
from harness.claims.vocabulary import KINDS, sources_of
from harness.errors import JournalError
from harness.ledgers.behavior import ledger
from harness.ledgers.depth import depth_ledger
from harness.ledgers.depth_statistics import depth_statistics
from harness.ledgers.sampling_statistics import sampled_statistics
from harness.ledgers.statistics import statistics
from harness.ledgers.task_statistics import task_statistics
from harness.protocols.folders import protocol_ids
from harness.protocols.grids import UnitKey
from harness.protocols.load import load_protocol
from harness.records.ledger import Count

from ..ledgers.sampled import HAND, sampled_ledger  # noqa: TID252 - the tests are no package of that name
from ..ledgers.tasks import Left, task_book  # noqa: TID252

NANO = [name for name in protocol_ids() if name.startswith("nano-")]


def counts(sources, view):
    """(count, of) of each source that reads statistics."""
    found = {name: one.count(view) for name, one in sources.items() if name.startswith("statistics.")}
    return {name.removeprefix("statistics."): (one.count, one.of) for name, one in found.items()}


@pytest.mark.parametrize("name", protocol_ids())
def test_a_protocol_is_of_a_kind_with_sources(name):
    """A kind without a module has an account of its gates alone, and no figure of its own."""
    loaded = load_protocol(name)
    assert type(loaded.protocol) in KINDS
    assert {f"audit.{gate.id}" for gate in loaded.protocol.gates} < set(sources_of(loaded))


@pytest.mark.parametrize("name", NANO)
def test_every_denominator_is_known_before_a_run(name):
    """Of each source over the formal grid; a gate's is the number that the protocol registers."""
    loaded = load_protocol(name)
    for source_name, source in sources_of(loaded).items():
        planned = source.planned(loaded, "formal", loaded.domains)
        gate = next((one for one in loaded.protocol.gates if source_name == f"audit.{one.id}"), None)
        if gate is not None:
            registered = gate.tiers["formal"].count if "formal" in gate.tiers else 0
            assert (planned.of, planned.exact) == (registered, True)
        else:
            assert planned.of > 0


def test_a_denominator_follows_the_domains():
    """A port with three of four domains has three quarters of the cells."""
    loaded = load_protocol("nano-completion")
    sources = sources_of(loaded)
    for name, of in (("statistics.natural_eos", 96), ("replay.cells", 24), ("statistics.numeric_strict", 32)):
        assert sources[name].planned(loaded, "formal", ("english", "code", "math")).of == of


def test_a_behaviour_run_is_counted():
    """Two sources of a hand-made smoke run."""
    loaded = load_protocol("nano-behavior")
    builder = Builder(loaded.protocol)
    math = builder.unit("math", 0, {"*": Said("so 12"), "s1_eos": Said("so 12", eos=False), "s0_bos": Said("none")})
    code = builder.unit("code", 0, {"*": Said("x = 1"), "s0_period": Said("x ="), "s1_x": Said("x", eos=False)})
    run = builder.run((code, math), domains=("code", "math"), gold={"math/0000": "12"})
    view = SimpleNamespace(statistics=statistics(loaded.protocol, ledger(loaded.protocol, run)))
    found = counts(behavior.SOURCES, view)
    assert found == {
        "natural_eos": (14, 16), "truncated": (2, 16), "ids_exact": found["ids_exact"],
        "last_number_match": (7, 8), "ast_parses": (7, 8),
    }  # fmt: skip
    assert 0 < found["ids_exact"][0] < found["ids_exact"][1] == 20
    for name, source in behavior.SOURCES.items():
        assert source.planned(loaded, "smoke", ("code", "math")).of == source.count(view).of, name


def test_a_sampled_run_is_counted():
    """Every source of the real grid, against the ledger's own rows."""
    loaded = load_protocol("nano-cross-source-sampling")
    book = sampled_ledger(loaded.protocol, HAND, domains=loaded.domains)
    view = SimpleNamespace(statistics=sampled_statistics(loaded.protocol, book))
    found = counts(sampling.SOURCES, view)
    assert found["natural_eos"] == (sum(row.stop == "natural_eos" for row in book.cells), 256)
    code = [row for row in book.cells if row.domain == "code"]
    passed = [row for row in code if getattr(row.code.verdict, "fixed_budget_pass", False)]
    assert found["code_fixed_budget"] == (len(passed), 64)
    assert found["observed_any_pass"] == (len({(row.source_id, row.condition) for row in passed}), 16)
    math = [row.numeric for row in book.cells if row.domain == "math"]
    strict = sum(getattr(one, "strict_complete_exact", False) for one in math)
    assert found["numeric_strict"] == (strict, 64)
    for name, source in sampling.SOURCES.items():
        assert source.planned(loaded, "formal", loaded.domains).of == source.count(view).of, name


def test_tasks_are_counted():
    """Of the primary block of the real grid: 64 tasks, four conditions, four contrasts of three outcomes."""
    loaded = load_protocol("nano-task-crn")
    found_in = msgspec.structs.replace(
        loaded.protocol, bootstrap=msgspec.structs.replace(loaded.protocol.bootstrap, resamples=20)
    )
    left = {
        ("code", 3, "T0", "s0_eos"): Left(outcome="assertion_failed"),
        ("math", 0, "T1", "s1_eos"): Left(answer="7"),
    }
    view = SimpleNamespace(statistics=task_statistics(found_in, task_book(found_in, left)))
    found = counts(task.SOURCES, view)
    assert (found["success"], found["banded"]) == ((255, 256), (24, 24))
    assert found["directions_agree"][1] == 24
    for name, source in task.SOURCES.items():
        assert source.planned(loaded, "formal", loaded.domains).of == source.count(view).of, name


def test_a_band_of_another_name_is_none(registration):
    """Each contrast's band must have the registered name; another protocol registers none."""
    loaded = load_protocol("nano-task-crn")
    assert load_claims(loaded).rules.bands == (loaded.protocol.bootstrap.name,)
    assert registration.rules.bands == ()
    bands = [SimpleNamespace(band=SimpleNamespace(name=name)) for name in ("ours", "95% CI", "ours")]
    numbers = SimpleNamespace(bootstrap=SimpleNamespace(name="ours"), contrasts=bands)
    assert [one.count for one in task._banded(numbers)] == [1, 0, 1]


@pytest.fixture(scope="module")
def trace():
    """A hand-made trace of two sources and its replay's view."""
    loaded = load_protocol("nano-depth")
    traces = DepthBuilder(loaded.protocol).with_grid("smoke", per_domain=1, replicates=("forward",))
    units = tuple(
        traces.trace(domain, 0, tokens=tokens, lines=traces.lines(domain, 0, tokens=tokens))
        for domain, tokens in (("english", 3), ("math", 4))
    )
    run = traces.depth_run(units, said={})
    keys = tuple(UnitKey(unit.domain, unit.index, unit.source_id, unit.replicate) for unit in units)
    stub = SimpleNamespace(protocol=traces.protocol, units=lambda _grid, _domains: keys)
    numbers = depth_statistics(traces.protocol, depth_ledger(traces.protocol, run))
    return SimpleNamespace(
        loaded=stub, run=run, replay=run, statistics=numbers, spec=SimpleNamespace(domains=("english", "math"))
    )


def test_a_trace_is_counted(trace):
    """Target rows over ten edges, and the digests of 16 cells in two scopes."""
    assert counts(depth.SOURCES, trace)["embedding_exact_rows"] == (70, 70)
    hidden, routes = (depth.SOURCES[f"replay.{name}"].count(trace) for name in ("hidden", "routes"))
    assert hidden == Count(count=16 * 5 * 2, of=16 * 5 * 2)
    assert routes == Count(count=16 * 2 * 2, of=16 * 2 * 2)


def test_one_other_digest_is_one_less(trace):
    """The control: a hidden stage of one cell in one scope."""
    unit = trace.run.units[0]
    stage = unit.cells[0].hidden[1]
    other = msgspec.structs.replace(stage, full=msgspec.structs.replace(stage.full, sha256="0" * 64))
    cell = msgspec.structs.replace(unit.cells[0], hidden=(unit.cells[0].hidden[0], other, *unit.cells[0].hidden[2:]))
    damaged = msgspec.structs.replace(unit, cells=(cell, *unit.cells[1:]))
    replay = msgspec.structs.replace(trace.run, units=(damaged, *trace.run.units[1:]))
    view = SimpleNamespace(**(vars(trace) | {"replay": replay}))
    found = depth.SOURCES["replay.hidden"].count(view)
    assert (found.count, found.of) == (159, 160)


@pytest.mark.parametrize(
    "sources", [behavior.SOURCES, completion.SOURCES, sampling.SOURCES, depth.SOURCES, task.SOURCES]
)
def test_statistics_of_another_kind_feed_nothing(sources, tmp_path):
    """A source over other statistics says so, and gives no zero."""
    view = SimpleNamespace(statistics=None, folder=SimpleNamespace(path=tmp_path))
    for name, source in sources.items():
        if name.startswith("statistics."):
            with pytest.raises(JournalError):
                source.count(view)


def test_a_gate_that_was_not_judged_feeds_nothing(tmp_path):
    """No account is no 0/0."""
    gate = load_protocol("nano-depth").protocol.gates[0]
    view = SimpleNamespace(gates={}, folder=SimpleNamespace(path=tmp_path))
    with pytest.raises(JournalError, match="wasn't judged"):
        gate_source(gate).count(view)
