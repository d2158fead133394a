"""A trace's journal and run: read back, each alteration refused, no other kind taken, assembled in the grid's order."""

import json
import shutil

import msgspec
import pytest
from pregate_support.books import SMALL, Builder, Said
from pregate_support.traces import OBSERVED, depth_builder, land_traces

from harness.canon import canonical_bytes, digest, ids_sha256
from harness.errors import HarnessError, JournalError
from harness.journal.assemble import (
    assemble,
    baseline_name,
    read_baseline,
    read_run,
    read_spec,
    read_units,
    verified_journal,
    verify_units,
)
from harness.journal.folder import RunFolder, journals, read_journal, write_journal, write_record
from harness.ledgers.close import close_run
from harness.protocols.load import load_protocol
from harness.records.depth import DepthRun, TraceBaseline, TraceCell, TraceEvidence, TraceJournal
from harness.records.run import Baseline, Journal

replace = msgspec.structs.replace
EVIDENCE = [name for name in TraceEvidence.__struct_fields__ if name not in ("cells", "edges")]
CELL = [name for name in TraceCell.__struct_fields__ if name != "edits"]
NAMED = ("prompt_ids", "prompt_sha256", "left_padding")
IDENTITY = [
    "protocol_digest", "environment_sha256", "placement_sha256", "grid", "domain", "index", "source_id",
    "source_text_sha256", "replicate",
]  # fmt: skip
# The smallest model with a gate, and one target token: every leaf of its journal is altered below.
TINY = replace(SMALL, layers=1, dense_layers=0, routed_experts=3, experts_per_token=1, hidden_size=2)


@pytest.fixture(scope="module")
def tiny(depth, tmp_path_factory):
    """The first journal of a run of the smallest model: its content and its file."""
    folder = land_traces(tmp_path_factory.mktemp("tiny") / "run", depth, shape=TINY, tokens=1)
    path = next(journals(folder))
    return json.loads(path.read_bytes()), path


@pytest.fixture
def altered(tiny, alterable, tmp_path):
    """That journal, to be altered leaf by leaf."""
    content, path = tiny
    return alterable(content, tmp_path / path.name)


def accepted(altered, prefix, *, named=False):
    """The leaves below a prefix whose change isn't refused by an error with the unit's file (and the condition)."""
    found = []
    for leaf in altered.leaves(prefix):
        path = altered.write(leaf)
        cell = altered.content["evidence"]["cells"][leaf[2]]["condition"] if named else ""
        try:
            read_journal(path, TraceJournal)
        except JournalError as error:
            if path.name in str(error) and cell in str(error):
                continue
        found.append(leaf)
    return found


def test_a_journal_is_read_back(depth, tmp_path):
    """Evidence and observation as they were landed, with the evidence's digest."""
    key = depth.units("smoke", depth.domains)[0]
    unit = depth_builder(depth).trace(key.domain, key.index)
    folder = RunFolder(tmp_path)
    write_journal(folder, key, unit, OBSERVED)
    journal = read_journal(folder.journal(key), TraceJournal)
    assert (journal.evidence, journal.observation) == (unit, OBSERVED)
    assert journal.evidence_sha256 == digest(unit)
    assert folder.journal(key).read_bytes() == canonical_bytes(journal)


@pytest.mark.parametrize("field", EVIDENCE)
def test_an_altered_unit_field_is_refused(altered, field):
    """Every number and text of the field, one at a time: the unit's file is named."""
    assert list(altered.leaves(("evidence", field)))
    assert accepted(altered, ("evidence", field)) == []


@pytest.mark.parametrize("field", CELL)
def test_an_altered_cell_field_is_refused(altered, field):
    """Every number, digest and statistic of the field in every cell, one at a time."""
    prefix = ("evidence", "cells", "*", field)
    assert list(altered.leaves(prefix))
    assert accepted(altered, prefix, named=field in NAMED) == []


def test_an_altered_edit_is_refused_by_its_condition(altered):
    """An edit that no longer fits its prompt; its official ID, which nothing repeats, by the digest alone."""
    leaves = list(altered.leaves(("evidence", "cells", "*", "edits")))
    assert len(leaves) == 3 * 6
    assert [leaf for leaf in leaves if accepted(altered, leaf, named=leaf[-1] != "official")] == []


def test_an_altered_edge_is_refused(altered):
    """Every name, count and statistic of every edge's stages and gates."""
    leaves = list(altered.leaves(("evidence", "edges")))
    # Name and sides; three stages of eight fields; one gate of six.
    assert len(leaves) == 10 * (3 + 3 * 8 + 6)
    assert accepted(altered, ("evidence", "edges")) == []


@pytest.mark.parametrize("field", ["evidence_sha256", "schema"])
def test_an_altered_envelope_is_refused(altered, field):
    """The digest itself, and the format's number."""
    with pytest.raises(JournalError, match=field):
        read_journal(altered.write((field,)), TraceJournal)


def test_the_observation_is_no_evidence(altered):
    """Times and processes can change without changing what is digested."""
    before = read_journal(altered.write(("observation", "wall_ns")), TraceJournal)
    after = read_journal(altered.write(("observation", "process", "str_hash")), TraceJournal)
    assert (before.evidence, before.evidence_sha256) == (after.evidence, after.evidence_sha256)


PROMPTS = {
    "another ID": lambda cell: cell | {"prompt_ids": [*cell["prompt_ids"][:-1], 5]},
    "another hash": lambda cell: cell | {"prompt_sha256": "0" * 64},
    "shorter": lambda cell: cell | {"prompt_ids": cell["prompt_ids"][:-1]},
}


@pytest.mark.parametrize("change", PROMPTS)
def test_a_signed_prompt_that_is_not_its_hash_is_refused(altered, change):
    """With an evidence digest that fits: the cell's own hash still gives it away, by condition."""
    cells = altered.content["evidence"]["cells"]
    evidence = altered.content["evidence"] | {"cells": [*cells[:3], PROMPTS[change](cells[3]), *cells[4:]]}
    content = altered.content | {"evidence": evidence, "evidence_sha256": digest(evidence)}
    altered.path.write_text(json.dumps(content))
    with pytest.raises(JournalError, match=f"{altered.path.name}: .* s1_bos: prompt_sha256"):
        read_journal(altered.path, TraceJournal)


def signed(path, change):
    """Change the evidence of a journal and give it a digest that fits."""
    content = json.loads(path.read_bytes())
    change(content["evidence"])
    content["evidence_sha256"] = digest(content["evidence"])
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("field", IDENTITY)
def test_a_signed_alteration_is_refused_by_the_run(traced, depth, field):
    """With a digest that fits again, the run knows better: protocol, grid, source, environment, placement."""
    spec = read_spec(traced)
    key = depth.units(spec.grid, spec.domains)[0]

    def change(evidence):
        value = evidence[field]
        evidence[field] = value + 1 if isinstance(value, int) else f"{value}x"

    signed(traced.journal(key), change)
    for check in (
        lambda: verified_journal(traced, key, depth, spec),
        lambda: verify_units(traced, (key,), depth),
        lambda: assemble(traced, depth),
    ):
        with pytest.raises(JournalError, match=f"{key.name}.json: {field}"):
            check()


ROWS = {
    "another order": lambda cells: cells[::-1],
    "one lost": lambda cells: cells[:-1],
    "one twice": lambda cells: [*cells[:-1], cells[0]],
    "one unknown": lambda cells: [*cells[:-1], cells[-1] | {"condition": "s9_none"}],
}


@pytest.mark.parametrize("rows", ROWS)
def test_signed_rows_that_are_not_the_conditions_are_refused(traced, depth, rows):
    """Rows are the conditions in the protocol's order; both lists are shown."""
    key = depth.units("smoke", depth.domains)[0]
    signed(traced.journal(key), lambda evidence: evidence.update(cells=ROWS[rows](evidence["cells"])))
    with pytest.raises(JournalError, match=rf"{key.name}\.json: rows: expected .*s0_eos"):
        assemble(traced, depth)


def generated(path, key):
    """A journal of a generation over the same source, at the place of a trace's."""
    behavior = load_protocol("nano-behavior")
    unit = Builder(behavior.protocol).unit(key.domain, key.index, {"*": Said("ok")})
    journal = Journal(schema=1, evidence=unit, evidence_sha256=digest(unit), observation=OBSERVED)
    write_record(path, journal)


def test_a_generations_journal_in_a_traces_folder_is_refused(traced, depth):
    """Another kind of journal, whole and signed: by its file and what isn't a trace's."""
    key = depth.units("smoke", depth.domains)[2]
    generated(traced.journal(key), key)
    with pytest.raises(JournalError, match=rf"{key.name}\.json: field \$\.evidence"):
        assemble(traced, depth)


def test_a_traces_journal_in_a_generations_folder_is_refused(landed, depth):
    """The other way round."""
    path = landed.journal(depth.units("smoke", depth.domains)[0])
    with pytest.raises(JournalError, match=rf"{path.name}: field \$\.evidence"):
        read_journal(path, Journal)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema":1}'],
    ids=["empty", "torn", "list", "null", "bytes", "short"],
)
def test_what_is_no_journal_is_refused(traced, depth, data):
    """A torn or foreign file is a JournalError with the file's name."""
    path = traced.journal(depth.units("smoke", depth.domains)[0])
    path.write_bytes(data)
    with pytest.raises(JournalError, match=path.name):
        assemble(traced, depth)


def test_a_run_assembles_in_the_grids_order(landed, depth):
    """A DepthRun: units by domain and rank, whatever the disk's order; the baseline is part of it, no gold is."""
    run = assemble(landed, depth)
    assert isinstance(run, DepthRun)
    assert [unit.source_id for unit in run.units] == [key.source_id for key in depth.units("smoke", depth.domains)]
    assert run.baseline == read_baseline(landed, TraceBaseline)
    assert not landed.file("gold.json").exists()
    assert (run.protocol, run.grid, run.port, run.domains) == ("nano-depth", "smoke", False, depth.domains)
    assert run.placement.id == "nano-resident"
    assert run.environment_sha256 == run.units[0].environment_sha256
    assert list(read_units(landed, depth)) == list(depth.units("smoke", depth.domains))


def test_the_same_evidence_gives_the_same_bytes(traced, landed, depth):
    """Files landed in another order, by another process at another time."""
    before = canonical_bytes(assemble(landed, depth))
    for path in reversed(list(journals(traced))):
        content = json.loads(path.read_bytes())
        content["observation"]["wall_ns"] += 1
        content["observation"]["process"] |= {"pid": 9, "str_hash": "f" * 16}
        path.unlink()
        path.write_text(json.dumps(content))
    assert canonical_bytes(assemble(traced, depth)) == before


def test_a_closed_run_is_read_back(traced, depth):
    """run.json, ledger.json and statistics.json follow from the journals; closing again changes no byte."""
    names = ("run.json", "ledger.json", "statistics.json")
    run = close_run(traced, depth)
    assert read_run(traced, depth.protocol) == run == assemble(traced, depth)
    before = [traced.file(name).read_bytes() for name in names]
    close_run(traced, depth)
    assert [traced.file(name).read_bytes() for name in names] == before
    statistics = json.loads(before[2])
    assert statistics["scale"]["route_decisions"] == (3 + 4 + 5 + 6) * 8 * 2 * 2


def test_an_altered_run_record_is_refused(traced, depth):
    """One digest of one stage in run.json: the field is named."""
    close_run(traced, depth)
    path = traced.file("run.json")
    content = json.loads(path.read_bytes())
    content["units"][1]["cells"][2]["hidden"][3]["target"]["sha256"] = "0" * 64
    path.write_bytes(canonical_bytes(content))
    with pytest.raises(JournalError, match=r"run\.json.*cells\[2\]\.hidden\[3\]\.target\.sha256"):
        close_run(traced, depth)


@pytest.mark.parametrize("name", ["ledger.json", "statistics.json"])
def test_an_altered_ledger_is_refused(traced, depth, name):
    """What follows from the run can't be edited beside it."""
    close_run(traced, depth)
    content = json.loads(traced.file(name).read_bytes()) | {"grid": "formal"}
    traced.file(name).write_text(json.dumps(content))
    with pytest.raises(JournalError, match=f"{name}.*grid='smoke'.*found grid='formal'"):
        close_run(traced, depth)


def test_a_missing_unit_is_named(traced, depth):
    """A run isn't assembled from fewer units."""
    key = depth.units("smoke", depth.domains)[1]
    traced.journal(key).unlink()
    with pytest.raises(JournalError, match=f"missing .*{key.name}.*not of this grid none"):
        assemble(traced, depth)


def test_an_extra_unit_is_named(traced, depth):
    """A journal that the grid doesn't have isn't left aside: a generation's has another name."""
    key = depth.units("smoke", depth.domains)[1]
    shutil.copy(traced.journal(key), traced.path / "journal" / key.name.replace("forward", "greedy.json"))
    with pytest.raises(JournalError, match=r"missing none, not of this grid .*greedy"):
        assemble(traced, depth)


def test_two_swapped_units_are_refused(traced, depth):
    """A unit under another's name is refused by the field that gives it away."""
    one, other = (traced.journal(key) for key in depth.units("smoke", depth.domains)[:2])
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    with pytest.raises(JournalError, match=f"{one.name}: domain"):
        assemble(traced, depth)


@pytest.mark.parametrize("name", ["spec.json", "environment.json", "placement.json", "baseline.json"])
@pytest.mark.parametrize("data", [None, b"", b"[1]", b'{"x":1}'], ids=["missing", "empty", "list", "unknown"])
def test_a_damaged_record_is_refused(traced, depth, name, data):
    """Each by its own name."""
    traced.file(name).unlink() if data is None else traced.file(name).write_bytes(data)
    with pytest.raises(HarnessError, match=name):
        assemble(traced, depth)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"checkpoint": None}, "checkpoint"), ({"source_texts": None}, "source_texts"), ({"gold": {}}, "gold")],
    ids=["no checkpoint", "no texts", "a field more"],
)
def test_a_baseline_that_is_no_traces_is_refused(traced, depth, change, field):
    """A completion run's baseline has neither checkpoint nor source texts: it can't be joined."""
    path = traced.file("baseline.json")
    content = {name: one for name, one in (json.loads(path.read_bytes()) | change).items() if one is not None}
    path.write_bytes(canonical_bytes(content))
    with pytest.raises(JournalError, match=rf"baseline\.json.*`{field}`"):
        assemble(traced, depth)


def test_a_baseline_is_named_by_its_run(traced, landed, tmp_path):
    """Of either kind by the digest of its run; none where a run is held against none."""
    trace = read_baseline(landed, TraceBaseline)
    assert baseline_name(landed) == trace.run_sha256
    plain = {name: getattr(trace, name) for name in Baseline.__struct_fields__}
    write_record(traced.file("baseline.json"), Baseline(**plain | {"run_sha256": "a" * 64}))
    assert baseline_name(traced) == "a" * 64
    assert baseline_name(RunFolder(tmp_path / "nothing")) == "none"
    traced.file("baseline.json").write_bytes(b"{")
    with pytest.raises(JournalError, match=r"baseline\.json"):
        baseline_name(traced)


def test_a_journals_prompt_hash_is_over_its_ids(landed, depth):
    """What reading a journal holds the prompt against."""
    for journal in read_units(landed, depth).values():
        for cell in journal.evidence.cells:
            assert cell.prompt_sha256 == ids_sha256(cell.prompt_ids)
