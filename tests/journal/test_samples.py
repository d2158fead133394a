"""A sampled unit's journal and run: each alteration refused, no other kind taken, assembled in the grid's order."""

import json
import shutil

import msgspec
import pytest
from pregate_support.books import Said
from pregate_support.sampled_runs import drawn_for, land_samples, sampled_builder
from pregate_support.traces import OBSERVED, environment_of

from harness.canon import canonical_bytes, digest
from harness.checks.whole import records_follow
from harness.errors import JournalError
from harness.evidence import RunEvidence
from harness.journal.assemble import assemble, read_run, read_units
from harness.journal.folder import RunFolder, read_journal, write_journal
from harness.ledgers.close import close_run
from harness.protocols.grids import RowKey
from harness.protocols.load import load_protocol
from harness.records.depth import TraceJournal
from harness.records.run import Journal, UnitEvidence
from harness.records.sampling import SampledBatch, SampledEvidence, SampledJournal, SampledRun

replace = msgspec.structs.replace
EVIDENCE = [name for name in SampledEvidence.__struct_fields__ if name not in ("cells", "sampling")]
WHOLE = RowKey(None, "whole")
RECORDS = ("run.json", "ledger.json", "statistics.json")


@pytest.fixture(scope="module")
def samples():
    """The nano protocol of Round 07's shape."""
    return load_protocol("nano-cross-source-sampling")


@pytest.fixture(scope="module")
def landed_samples(samples, tmp_path_factory):
    """Its formal grid, made by hand, not yet closed. Read only."""
    return land_samples(tmp_path_factory.mktemp("samples") / "formal-1", samples)


@pytest.fixture
def folder(landed_samples, tmp_path):
    """A copy, to be closed or damaged."""
    shutil.copytree(landed_samples.path, tmp_path / "formal-1")
    return RunFolder(tmp_path / "formal-1")


@pytest.fixture(scope="module")
def unit(samples):
    """One batch."""
    key = samples.units("formal", samples.domains)[-1]
    return key, drawn_for(samples, key, "formal", environment_of(samples))


@pytest.fixture
def altered(unit, alterable, tmp_path):
    """Its journal, to be altered leaf by leaf."""
    key, evidence = unit
    written = RunFolder(tmp_path)
    write_journal(written, key, evidence, OBSERVED)
    path = written.journal(key)
    return alterable(json.loads(path.read_bytes()), tmp_path / path.name)


def accepted(altered, prefix):
    """The leaves below a prefix whose change isn't refused by an error that names the unit's file."""
    found = []
    for leaf in altered.leaves(prefix):
        path = altered.write(leaf)
        try:
            read_journal(path, SampledJournal)
        except JournalError as error:
            if path.name in str(error):
                continue
        found.append(leaf)
    return found


def test_a_journal_is_read_back(unit, tmp_path):
    """Evidence and observation as they were landed, with the evidence's digest, how it was drawn among it."""
    key, evidence = unit
    folder = RunFolder(tmp_path)
    write_journal(folder, key, evidence, OBSERVED)
    journal = read_journal(folder.journal(key), SampledJournal)
    assert (journal.evidence, journal.observation) == (evidence, OBSERVED)
    assert journal.evidence_sha256 == digest(evidence)
    assert folder.journal(key).read_bytes() == canonical_bytes(journal)


@pytest.mark.parametrize("field", EVIDENCE)
def test_an_altered_unit_field_is_refused(altered, field):
    """Every number and text of the field, one at a time: the unit's file is named."""
    assert list(altered.leaves(("evidence", field)))
    assert accepted(altered, ("evidence", field)) == []


@pytest.mark.parametrize("field", SampledBatch.__struct_fields__)
def test_an_altered_draw_is_refused(altered, field):
    """Every seed, shape, count, parameter and processor."""
    assert list(altered.leaves(("evidence", "sampling", field)))
    assert accepted(altered, ("evidence", "sampling", field)) == []


def test_an_altered_cell_is_refused(altered):
    """Every leaf of every cell."""
    leaves = list(altered.leaves(("evidence", "cells", "*")))
    assert len(leaves) > 4 * 20
    assert accepted(altered, ("evidence", "cells", "*")) == []


def test_the_observation_is_no_evidence(altered):
    """Times and processes can change without changing what is digested."""
    one = read_journal(altered.write(("observation", "wall_ns")), SampledJournal)
    other = read_journal(altered.write(("observation", "process", "pid")), SampledJournal)
    assert one.evidence == other.evidence


@pytest.mark.parametrize("kind", [Journal, TraceJournal])
def test_a_sampled_journal_is_read_as_no_other_kind(altered, kind):
    """A greedy unit has no `sampling`, a trace no budget: the field is named."""
    path = altered.write(("observation", "wall_ns"))
    with pytest.raises(JournalError, match=rf"{path.name}.*(unknown field|sampling)"):
        read_journal(path, kind)


def test_a_greedy_journal_is_no_sampled_one(unit, tmp_path):
    """What doesn't say how it was drawn is refused by the field that is missing."""
    key, evidence = unit
    plain = UnitEvidence(**{name: getattr(evidence, name) for name in UnitEvidence.__struct_fields__})
    folder = RunFolder(tmp_path)
    write_journal(folder, key, plain, OBSERVED)
    with pytest.raises(JournalError, match=rf"{key.name}.json.*sampling"):
        read_journal(folder.journal(key), SampledJournal)


def test_a_greedy_journal_in_a_sampled_run_is_refused(samples, folder, unit):
    """The protocol decides what its journals are, not the file."""
    key, evidence = unit
    plain = UnitEvidence(**{name: getattr(evidence, name) for name in UnitEvidence.__struct_fields__})
    write_journal(folder, key, plain, OBSERVED)
    with pytest.raises(JournalError, match=rf"{key.name}.json.*sampling"):
        read_units(folder, samples)


def test_a_run_is_assembled_in_the_grids_order(samples, folder):
    """Source by source, replicate by replicate; the run has gold, baseline and tasks; its record is read back."""
    run = assemble(folder, samples)
    keys = samples.units("formal", samples.domains)
    assert [(unit.source_id, unit.replicate) for unit in run.units] == [(key.source_id, key.replicate) for key in keys]
    assert isinstance(run, SampledRun)
    assert {len(run.gold), len(run.tasks), len(run.baseline.cells)} == {4, 64}
    assert close_run(folder, samples) == run == read_run(folder, samples.protocol)


@pytest.mark.parametrize("change", ["lost", "stranger"])
def test_a_run_that_is_not_the_grid_is_refused(samples, folder, change):
    """A journal too few, or one of another grid's replicate, is named."""
    key = samples.units("formal", samples.domains)[0]
    path = folder.journal(key)
    if change == "lost":
        path.unlink()
    else:
        shutil.copyfile(path, path.with_name(path.name.replace("R0", "R9")))
    words = {"lost": rf"missing .*{path.name}", "stranger": r"not of this grid .*-R9.json"}
    with pytest.raises(JournalError, match=words[change]):
        assemble(folder, samples)


def test_the_records_follow_from_journals_and_verdicts(samples, folder):
    """Made again from the files alone, byte for byte."""
    close_run(folder, samples)
    assert records_follow(RunEvidence(samples, folder), WHOLE) == ()


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_does_not_follow_is_named(samples, folder, name):
    """One byte of each of the three."""
    close_run(folder, samples)
    folder.file(name).write_bytes(folder.file(name).read_bytes() + b" ")
    (found,) = records_follow(RunEvidence(samples, folder), WHOLE)
    assert found.startswith(f"whole {name}: expected ")


def test_another_signed_draw_changes_every_record(samples, folder):
    """A journal with other tokens and fitting digests: run, ledger and statistics no longer follow."""
    close_run(folder, samples)
    key = samples.units("formal", samples.domains)[0]
    builder, old = sampled_builder(samples), read_journal(folder.journal(key), SampledJournal).evidence
    cell = builder.cell(samples.protocol.conditions[0], Said("another text", eos=False))
    write_journal(folder, key, replace(old, cells=(cell, *old.cells[1:])), OBSERVED)
    found = records_follow(RunEvidence(samples, folder), WHOLE)
    assert [one.split(":")[0] for one in found] == [f"whole {name}" for name in RECORDS]


def test_a_lost_shared_verdict_stops_the_books(samples, folder):
    """An execution that many cells share is gone: named, and nothing is made without it."""
    close_run(folder, samples)
    lost = min((folder.path / "sandbox").glob("*.json"))
    lost.unlink()
    with pytest.raises(JournalError, match=rf"sandbox/{lost.name}: expected the verdict on this cell's program"):
        records_follow(RunEvidence(samples, folder), WHOLE)


def test_one_execution_a_task(folder):
    """What is landed has every cell of a task say the same program: four tasks, four executions, 64 cells."""
    assert len(list((folder.path / "sandbox").glob("*-shared-*.json"))) == 4
    assert len(list((folder.path / "sandbox").glob("*.json"))) == 4
