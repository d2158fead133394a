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
from harness.claims.judge import claims_of
from harness.claims.load import load_claims
from harness.claims.view import judged_view
from harness.claims.writeup import check_text
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


@pytest.fixture(scope="module")
def findings(formal, tree):
    """`findings(text)`: what a write-up of the formal run may not say: of 48 cells, 4 sources, 3 tapes."""
    view = judged_view(formal.folder, Places(tree))
    registration = load_claims(view.loaded)
    claims = claims_of(view, registration)
    return lambda text: [(one.what, one.found) for one in check_text(text, view, claims, registration)]


@pytest.fixture(scope="module")
def counted(formal, tree):
    """The run's statistics: cells by (domain, condition), comparisons by edge over all domains."""
    made = judged_view(formal.folder, Places(tree)).statistics
    edges = {one.edge: one for one in made.edges if not one.domain}
    return {(one.domain, one.condition): one.cells for one in made.groups}, edges


@pytest.mark.parametrize(
    "text",
    [
        "48/48 cells succeeded.",
        "48 of 48 judged cells succeed.",
        "Success: 48/48.",
        "48 cells succeeded.",
        "All cells succeeded.",
        "The success rate is 100%.",
        "100% of the cells succeeded.",
        "The answer was right in 48/48 cells.",
        "The model answered correctly in 48 of 48 cells.",
        "全部格都成功。",
        "48 格成功。",
        "Drawn under 4 tapes.",
        "The outputs were drawn under twelve fixed tapes.",
        "在 4 条磁带下抽样。",
        "3 of 3 tapes gave a success.",
        "48 sources were drawn.",
        "12 of 12 sources gave a prompt.",
        "All 24 sources returned.",
        "一共 12 条来源。",
        "Under T0, 47/48 cells were cut.",
        "Under T1 all cells returned and ended by EOS.",
    ],
)
def test_a_write_up_counts_what_it_says(findings, counted, text):
    """Successes by that word, sources that are no cells, tapes that there are, and nothing of one tape alone."""
    groups, _ = counted
    assert groups["", ""].succeeded.count < groups["", ""].succeeded.of == 48
    assert groups["", ""].budget_truncated.count == 47
    assert [what for what, _ in findings(text)] == ["figure"]


@pytest.mark.parametrize(
    "text",
    [
        "{0.succeeded.count}/48 cells succeeded.",
        "Success: {0.succeeded.count} of 48.",
        "The success rate is {1}%.",
        "In the domain t 100% of the cells succeeded.",
        "4 sources under 4 conditions and 3 tapes, 2 sources in each domain.",
        "Drawn under three tapes, {0.natural_eos.count} of 48 cells ended by EOS.",
        "Under tapes T0 to T2, {0.natural_eos.count} of 48 cells ended by EOS.",
        "16 cells were drawn under T2, and 16 cells under each other tape.",
        "16/16 cells were successfully generated again in a fresh process.",
    ],
)
def test_a_write_up_may_say_what_the_run_has(findings, counted, text):
    """The control of the sentences above."""
    groups, _ = counted
    whole = groups["", ""]
    assert findings(text.format(whole, 100 * whole.succeeded.count / whole.succeeded.of)) == []


def test_a_write_up_gives_a_comparison_its_own_counts(findings, counted):
    """By the edge's name or its two conditions; and which side succeeds isn't which tokens are equal."""
    _, edges = counted
    sides = {"x_plain": "plain with plain_x", "system_text": "plain with system"}
    for name, other in (("x_plain", "system_text"), ("system_text", "x_plain")):
        own, wrong = edges[name].units.ids_exact, edges[other].units.ids_exact
        assert own.count != wrong.count
        for form in ("{}/12 comparisons of {} have equal tokens.", "For {1}, {0}/12 comparisons have equal tokens."):
            for words in (name, sides[name]):
                assert findings(form.format(own.count, words)) == []
                assert [what for what, _ in findings(form.format(wrong.count, words))] == ["figure"]
        assert [what for what, _ in findings(f"{name}: {wrong.count}/12 comparisons have equal tokens.")] == ["figure"]
        pairs = edges[name].succeeded
        said = {
            "Both sides succeed": pairs.both.count,
            "Neither side succeeds": pairs.neither.count,
            "The left side alone succeeds": pairs.left_only.count,
        }
        for words, count in said.items():
            assert findings(f"{words} in {count}/12 comparisons of {name}.") == []
            taken = {*said.values(), pairs.right_only.count}
            wrong_side = next(number for number in taken if number != count)
            assert [what for what, _ in findings(f"{words} in {wrong_side}/12 comparisons of {name}.")] == ["figure"]


def test_a_name_before_a_comma_or_colon_is_the_figures(findings, counted):
    """Of a domain or a condition: "under plain, 3/12" says nothing that system alone has."""
    groups, _ = counted
    own = {count.natural_eos.count for (domain, name), count in groups.items() if name == "plain"}
    of_domain = {count.succeeded.count for (domain, _), count in groups.items() if domain == "qa"}
    foreign = next(
        one.natural_eos.count
        for (domain, name), one in groups.items()
        if name and one.natural_eos.of == 12 and one.natural_eos.count not in own
    )
    for form in ("Under plain, {}/12 cells ended by EOS.", "plain: {}/12 cells ended by EOS."):
        assert findings(form.format(groups["", "plain"].natural_eos.count)) == []
        assert [what for what, _ in findings(form.format(foreign))] == ["figure"]
    other = groups["t", ""].succeeded
    assert other.count not in of_domain
    assert [what for what, _ in findings(f"In the domain qa, {other.count}/24 cells succeeded.")] == ["figure"]


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
