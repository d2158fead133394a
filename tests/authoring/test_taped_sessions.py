"""Sessions over a study that is drawn under tapes, what its runs leave, and planted faults in what was drawn."""

import json
import shutil

import msgspec
import pytest

from harness.canon import canonical_bytes, digest, ids_sha256
from harness.checks.generation import rng_untouched
from harness.checks.taped_run import (
    finished_rows,
    shared_uniforms,
    synthetic_cdf,
    tape_account,
    taped_contract,
    taped_steps,
    tapes_part,
)
from harness.claims.view import judged_view
from harness.errors import JournalError
from harness.evidence import RunEvidence
from harness.export.rows import rows
from harness.journal.assemble import assemble, read_run, read_units
from harness.journal.folder import RunFolder
from harness.ledgers.study import study_ledger
from harness.places import Places
from harness.protocols.grids import RowKey
from harness.report.make import write_report
from harness.verify.run import verify

from ..support.mini import make_tree, run_gates  # noqa: TID252 - the tests are no package of that name
from .test_taped_study import APART, GATES

UNITS, CELLS, WHOLE = "units", "cells", "whole"


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A small tree without the studies: they lie elsewhere."""
    return make_tree(tmp_path_factory.mktemp("drawn-tree") / "tree")


@pytest.fixture(scope="session")
def formal(tree, drawn):
    """A formal session of the Qwen2 study, which makes its smoke run first. Read only."""
    return run_gates(tree, "-m", "formal", "--run", "reports/qwen2-drawn/formal-1", protocol=str(drawn("qwen2")))


def gates_of(folder):
    """A judged run's gates: rows that hold, of those that are registered."""
    audit = json.loads((folder / "audit.json").read_bytes())
    return {gate["id"]: (gate["passed"], gate["registered"]) for gate in audit["gates"]}


@pytest.fixture(scope="session")
def smoke(formal):
    """The smoke run that the formal one stands on."""
    assert formal.code == 0, formal.output[-3000:]
    return next(formal.folder.parent.glob("smoke-*"))


def test_a_smoke_session_passes(smoke):
    """A model with a PAD of its own and two EOS: every row of every gate holds, the loop's among them."""
    gates = gates_of(smoke)
    assert all(passed == registered > 0 for passed, registered in gates.values())
    assert {*GATES, *APART} <= set(gates)
    assert gates["loop_equivalence"] == gates["same_process_replay"] == (gates["normal_return"][0] // 2,) * 2


def test_a_formal_session_passes_and_verifies(tree, formal):
    """Three tapes, a placement with layers on disk, a fresh process under the same tapes; and the folder verifies."""
    assert formal.code == 0, formal.output[-3000:]
    gates = {gate["id"]: gate["passed"] for gate in formal.audit["gates"]}
    assert gates["normal_return"] == 2 * 2 * 3 * 4
    assert gates["placement_equivalence"] == gates["independent_replay"] == 2 * 1 * 2 * 4
    verification = verify(formal.folder, Places(tree))
    assert [one for one in verification.lines if one.state in ("fails", "not checkable")] == []
    said = json.loads((formal.folder / "claims.json").read_bytes())["permitted"]
    account = next(one for one in said if one["id"] == "account")
    assert account["status"] == "SUPPORTED"
    assert "drawn under 3 fixed tapes" in account["statement"]


def test_a_row_says_what_was_drawn(formal, tree):
    """Ledger, table and page have each cell's tape and how many of its numbers the cell consumed."""
    view = judged_view(formal.folder, Places(tree))
    table = {(one["source_id"], one["replicate"], one["condition"]): one for one in rows(view)}
    assert {row.replicate for row in view.ledger.cells} == {"T0", "T1", "T2"}
    for row in view.ledger.cells:
        cell = table[row.source_id, row.replicate, row.condition]
        assert (cell["tape_sha256"], cell["tape_consumed"]) == (row.tape.tape_sha256, row.tape.consumed)
        assert row.tape.consumed == row.length
        assert cell["judge_outcome"] == row.answer.outcome
    whole = next(one.cells for one in view.statistics.groups if (one.domain, one.condition) == ("t", "plain"))
    assert whole.natural_eos.of == 2 * 3
    page = write_report(formal.folder, Places(tree)).read_text(encoding="utf-8")
    assert "tape: consumed" in page
    (formal.folder / "report.html").unlink()


@pytest.fixture
def copied(smoke, tmp_path):
    """A copy of the smoke run's folder, for a test to damage."""
    target = tmp_path / smoke.parent.name / smoke.name
    shutil.copytree(smoke, target)
    return RunFolder(target)


def resealed(run, change, *, every=False):
    """Change the evidence of the first journal, or of all, and assemble the run again from the journals."""
    for path in sorted((run.path / "journal").glob("*.json"))[: None if every else 1]:
        journal = json.loads(path.read_bytes())
        change(journal["evidence"])
        journal["evidence_sha256"] = digest(journal["evidence"])
        path.write_bytes(canonical_bytes(journal))


def other_tape(evidence):
    """The unit says that another tape was read."""
    evidence["tape"]["sha256"] = "0" * 64


def other_number(evidence):
    """A row is said to have read another number in its first step."""
    evidence["tape"]["rows"][1]["consumed"]["first_z"][0] = "0" * 16


def other_hash(evidence):
    """A row is said to have consumed other numbers."""
    evidence["tape"]["rows"][0]["consumed"]["sha256"] = "0" * 64


def one_more(evidence):
    """A row is said to have consumed a number more than it has tokens."""
    evidence["tape"]["rows"][0]["consumed"]["count"] += 1


def other_temperature(evidence):
    """The unit says that another sampler drew it."""
    evidence["tape"]["sampler"]["temperature"] = 0.8


def other_cache(evidence):
    """The unit says that another cache came back."""
    evidence["tape"]["cache"] = "StaticCacheOfMine"


def not_finite(evidence):
    """A row step without finite logits."""
    evidence["checks"]["finite"] -= 1


def drawn_from(evidence):
    """A generator that was drawn from."""
    evidence["rng_after"]["torch_cpu"]["sha256"] = "0" * 64


def attended(evidence):
    """A row that had ended is said to have been attended to further."""
    row = evidence["tape"]["rows"][0]
    row["attended"] += 1


FAULTS = {
    other_tape: (taped_contract, UNITS),
    other_temperature: (taped_contract, UNITS),
    other_cache: (taped_contract, UNITS),
    other_number: (tape_account, CELLS),
    one_more: (tape_account, CELLS),
    other_hash: (shared_uniforms, UNITS),
    attended: (finished_rows, CELLS),
    not_finite: (taped_steps, UNITS),
    drawn_from: (rng_untouched, UNITS),
}


def differences(folder, loaded, check, rows):
    """What the check finds in the journals as they lie, over all units or cells."""
    units = [journal.evidence for journal in read_units(folder, loaded).values()]
    run = msgspec.structs.replace(read_run(folder, loaded.protocol), units=tuple(units))
    evidence = RunEvidence(loaded, folder)
    evidence.__dict__["run"] = run
    keys = loaded.units("smoke", evidence.spec.domains)
    names = [one.id for one in loaded.protocol.conditions] if rows == CELLS else [""]
    listed = [RowKey(None, "whole")] if rows == WHOLE else [RowKey(key, name) for key in keys for name in names]
    return [line for row in listed for line in check(evidence, row)]


@pytest.fixture(scope="module")
def loaded(formal, tree):
    """The study as its run has it."""
    return judged_view(formal.folder, Places(tree)).loaded


@pytest.mark.parametrize("change", FAULTS)
def test_a_draw_that_is_not_its_tapes_fails(copied, loaded, change):
    """Resealed, so that only the check over what was drawn can tell."""
    check, rows = FAULTS[change]
    assert differences(copied, loaded, check, rows) == []
    resealed(copied, change)
    assert differences(copied, loaded, check, rows) != []


def test_tapes_that_give_the_same_fail(copied, loaded):
    """Every cell under T1 has T0's tokens: nothing shows that the numbers had a say."""
    assert differences(copied, loaded, tapes_part, WHOLE) == []
    first = {}

    def same(evidence):
        evidence["cells"] = first.setdefault(evidence["source_id"], evidence["cells"])

    resealed(copied, same, every=True)
    assert differences(copied, loaded, tapes_part, WHOLE) != []


def test_a_sampler_that_draws_otherwise_fails(copied, loaded):
    """What the run's sampler drew of known distributions is held against what they owe."""
    assert differences(copied, loaded, synthetic_cdf, WHOLE) == []
    path = copied.file("synthetic.json")
    record = json.loads(path.read_bytes())
    record["sampler"]["temperature"] = 0.8
    path.write_bytes(canonical_bytes(record))
    assert any("sampler" in line for line in differences(copied, loaded, synthetic_cdf, WHOLE))


def test_a_prompt_that_is_not_the_manifests_is_not_taken_up(copied, loaded):
    """R08 5.2, for a study as for a task: no unit is resumed before its prompts were seen to be the registered ones."""

    def other(evidence):
        cell = evidence["cells"][0]
        cell["prompt_ids"][2] += 1
        cell["prompt_sha256"] = ids_sha256(cell["prompt_ids"])

    resealed(copied, other)
    with pytest.raises(JournalError, match="prompt of plain: expected"):
        read_units(copied, loaded)


def test_a_row_that_no_condition_has_makes_no_ledger(copied, loaded):
    """A tape's account must be each condition's once."""

    def other(evidence):
        evidence["tape"]["rows"][0]["condition"] = evidence["tape"]["rows"][1]["condition"]

    resealed(copied, other)
    with pytest.raises(JournalError, match="tape rows: expected"):
        study_ledger(loaded.protocol, assemble(copied, loaded), {})
