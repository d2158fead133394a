"""Whole sessions over studies of tiny models, what their runs leave, and planted faults in a study's own gates."""

import json
import shutil
import subprocess
import sys

import pytest

from harness.authoring.make import make_study
from harness.canon import canonical_bytes, digest, ids_sha256
from harness.checks.whole import assembled_run
from harness.claims.judge import claims_of
from harness.claims.load import load_claims
from harness.claims.view import judged_view
from harness.claims.writeup import check_text
from harness.difference.make import compare_sides
from harness.evidence import RunEvidence
from harness.export.rows import rows
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_run
from harness.places import Places, places
from harness.protocols.grids import RowKey
from harness.records.difference import Decoded
from harness.report.make import write_report
from harness.verify.run import verify

from ..support.mini import environment, make_tree, run_gates  # noqa: TID252 - the tests are no package of that name
from .conftest import freeze_study, write_study

GATES = ("edit_contract", "batch_alignment", "function_scores", "paired_comparison", "observations")


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A small tree without the studies: they lie elsewhere."""
    return make_tree(tmp_path_factory.mktemp("tree") / "tree")


@pytest.fixture(scope="session")
def smoke(tree, frozen):
    """`smoke(kind)`: a smoke session of that kind's study, made once."""
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = run_gates(tree, "-m", "smoke", protocol=str(frozen(kind)))
        return made[kind]

    return make


@pytest.fixture
def copied(smoke, tree, tmp_path):
    """A copy of the Llama run's folder in a tree of its own, for a test to damage."""
    run = smoke("llama").folder
    target = tmp_path / "tree/reports" / run.parent.name / run.name
    shutil.copytree(run, target)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copyfile(tree / name, tmp_path / "tree" / name)
    for name in ("gates", "fixtures", "snapshots"):
        (tmp_path / "tree" / name).symlink_to(tree / name, target_is_directory=True)
    return target


@pytest.mark.parametrize("kind", ["llama", "qwen2", "mixtral"])
def test_a_smoke_session_passes(smoke, kind):
    """Dense, without BOS, with experts: every row of every gate holds."""
    session = smoke(kind)
    assert session.code == 0, session.output[-3000:]
    gates = {gate["id"]: (gate["passed"], gate["registered"]) for gate in session.audit["gates"]}
    assert all(passed == registered > 0 for passed, registered in gates.values())
    assert set(GATES) <= set(gates)


@pytest.fixture(scope="session")
def formal(tree, frozen):
    """A formal session of the Qwen2 study. Read only."""
    named = ("--run", "reports/qwen2-study/formal-1")
    return run_gates(tree, "-m", "formal", *named, protocol=str(frozen("qwen2")))


def test_a_formal_session_passes_and_verifies(tree, formal):
    """A tied model with layers on disk, a fresh process, a claim that holds or doesn't: and the folder verifies."""
    session = formal
    assert session.code == 0, session.output[-3000:]
    gates = {gate["id"]: gate["passed"] for gate in session.audit["gates"]}
    assert gates["placement_equivalence"] == 8
    assert gates["independent_replay"] == 8
    verification = verify(session.folder, Places(tree))
    assert [one for one in verification.lines if one.state in ("fails", "not checkable")] == []
    claims = {
        one["id"]: one["status"] for one in json.loads((session.folder / "claims.json").read_bytes())["permitted"]
    }
    assert set(claims) == {"account", "replay", "at-least-t-plain"}
    assert (claims["account"], claims["replay"]) == ("SUPPORTED", "SUPPORTED")
    listed = json.loads((session.folder / "claims.json").read_bytes())["differences"]
    assert {one["registered"] for one in listed if one["kind"] == "ours"} <= {"a choice of its author"}


def test_a_run_needs_nothing_of_the_folder_it_came_from(copied, tmp_path):
    """Verified, claimed, reported and exported in a fresh process that knows no folder of an author's."""
    root = tmp_path / "tree"
    for verb in ("verify", "claims", "report"):
        done = subprocess.run(
            [sys.executable, "-m", "harness", verb, str(copied)],
            cwd=root, env=environment(root), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_result_is_accepted_and_compared_by_a_process_that_knows_no_study(formal, tree, tmp_path):
    """Frozen, and held against the run beside it: by that run's own copy of the protocol, else by a refusal."""
    root = tmp_path / "tree"
    run = root / formal.folder.relative_to(tree)
    shutil.copytree(formal.folder, run)
    (root / "fixtures").symlink_to(tree / "fixtures", target_is_directory=True)

    def verb(*words):
        command = [sys.executable, "-m", "harness", *map(str, words)]
        return subprocess.run(
            command, cwd=root, env=environment(root), capture_output=True, text=True, check=False
        )  # fmt: skip

    done = verb("snapshots", "accept", run)
    assert (done.returncode, done.stderr) == (0, "")
    frozen_at = root / "snapshots" / run.parent.name
    assert f"in {frozen_at}/formal" in done.stdout
    done = verb("compare", frozen_at, run)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(frozen_at, root / "snapshots" / "again")
    done = verb("compare", frozen_at, root / "snapshots" / "again")
    assert done.returncode == 2
    assert "or name an author's own in HARNESS_PROTOCOLS" in done.stderr


def test_two_runs_are_compared_and_a_token_is_decoded(copied, smoke):
    """What functions gave and an expected text are no reason for a difference; a changed token is shown as text."""
    run = smoke("llama").folder
    assert compare_sides(copied, run, tree=Places(copied.parents[2])).facts == ()

    def other_token(evidence):
        cell = evidence["cells"][0]
        cell["generated_ids"][1] = 30 if cell["generated_ids"][1] != 30 else 31
        cell["generated_sha256"] = ids_sha256(cell["generated_ids"])

    for path in copied.glob("audit.json*"):
        path.unlink()
    reseal(copied, other_token)
    record = compare_sides(copied, run, tree=Places(copied.parents[2]))
    (cell,) = [one for one in record.cells if not one.equal]
    assert cell.found.parting.step == 1
    assert isinstance(cell.found.parting.a.text, Decoded)


def test_the_copy_is_held_to_the_protocols_digest(copied, tmp_path):
    """One field of the kept protocol.toml, resealed or not, and nothing is read by it."""
    kept = copied / "protocol" / copied.parent.name / "protocol.toml"
    kept.write_bytes(kept.read_bytes().replace(b"max_new_tokens = 9", b"max_new_tokens = 8"))
    states = {one.state for one in verify(copied, Places(tmp_path / "tree")).lines}
    assert "fails" in states


def test_a_row_says_what_its_judge_said(smoke, tree):
    """Exact judges and functions in ledger, statistics, table and page."""
    view = judged_view(smoke("llama").folder, Places(tree))
    table = {(one["source_id"], one["condition"]): one for one in rows(view)}
    for row in view.ledger.cells:
        cell = table[row.source_id, row.condition]
        assert (cell["judge"], cell["judge_outcome"]) == (row.answer.judge, row.answer.outcome)
        assert cell["fixed_budget_success"] is row.answer.success
    assert {row.answer.judge for row in view.ledger.cells} == {"exact", "function"}
    page = write_report(smoke("llama").folder, Places(tree)).read_text(encoding="utf-8")
    assert "Text judges and functions" in page
    assert f"<p>{view.loaded.protocol.title}</p>" in page
    (smoke("llama").folder / "report.html").unlink()


def rewrite(path, change):
    """Change a JSON record and write it canonically."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(canonical_bytes(content))
    return content


def reseal(run, change):
    """Change the first journal's evidence, give it its digest, and take away what follows from the journals."""

    def seal(journal):
        change(journal["evidence"])
        journal["evidence_sha256"] = digest(journal["evidence"])

    rewrite(sorted((run / "journal").glob("*.json"))[0], seal)
    for name in ("run.json", "ledger.json", "statistics.json"):
        (run / name).unlink()


def judge_again(run, *arguments):
    """A session over the run's folder in its own tree."""
    return run_gates(run.parents[2], "-m", "smoke", "--run", str(run), *arguments, protocol=None)


def edited_cell(evidence):
    """The second condition of a unit."""
    return evidence["cells"][1], evidence["edited"][1]


def other_position(evidence):
    """The record puts the edit elsewhere."""
    edited_cell(evidence)[1]["edits"][0]["position"] += 1


def other_put(evidence):
    """The record says another put ID."""
    edited_cell(evidence)[1]["edits"][0]["put"] = [5]


def no_edit(evidence):
    """The record hides the edit."""
    edited_cell(evidence)[1]["edits"] = []


def other_round_trip(evidence):
    """The record says that the text gives other IDs."""
    edited_cell(evidence)[1]["round_trip"] = not edited_cell(evidence)[1]["round_trip"]


def other_pairs(evidence):
    """The cell's own edits, ID by ID, are others."""
    edited_cell(evidence)[0]["edits"] = []


def other_prompt(evidence):
    """Another ID in the prompt."""
    edited_cell(evidence)[0]["prompt_ids"][2] += 1


@pytest.mark.parametrize("change", [other_position, other_put, no_edit, other_round_trip, other_pairs, other_prompt])
def test_an_edit_that_is_not_the_registered_one_fails(copied, frozen, change):
    """Resealed, so that only the gate over prompts can tell."""
    reseal(copied, change)
    session = judge_again(
        copied, "--inputs", str(frozen("llama") / "inputs"), "--checkpoint", str(frozen("llama") / "checkpoint")
    )
    assert session.code != 0
    failed = {gate["id"] for gate in session.audit["gates"] if gate["passed"] < gate["registered"]}
    assert "edit_contract" in failed, session.output[-2000:]


def test_a_padding_that_is_not_the_rows_fails(copied, frozen):
    """The gate over a batch's alignment, for rows of any length."""

    def change(evidence):
        evidence["cells"][0]["left_padding"] += 1

    reseal(copied, change)
    session = judge_again(
        copied, "--inputs", str(frozen("llama") / "inputs"), "--checkpoint", str(frozen("llama") / "checkpoint")
    )
    failed = {gate["id"] for gate in session.audit["gates"] if gate["passed"] < gate["registered"]}
    assert "batch_alignment" in failed


def other_value(scores):
    """The function is said to have given the other truth value."""
    for one in scores:
        if one["outcome"] == "returned":
            one["value"] = "false" if one["value"] == "true" else "true"


def lost(scores):
    """A score is missing."""
    del scores[0]


def other_source(scores):
    """A score is said to be another source's."""
    scores[0]["source_sha256"] = "0" * 64


@pytest.mark.parametrize("change", [other_value, lost, other_source])
def test_a_score_that_the_function_does_not_give_fails(copied, frozen, change):
    """The function is asked again where scores are judged."""
    rewrite(copied / "scores.json", change)
    for name in ("run.json", "ledger.json", "statistics.json"):
        (copied / name).unlink()
    session = judge_again(
        copied, "--inputs", str(frozen("llama") / "inputs"), "--checkpoint", str(frozen("llama") / "checkpoint")
    )
    assert session.code != 0
    failed = {gate["id"] for gate in session.audit["gates"] if gate["passed"] < gate["registered"]}
    assert "function_scores" in failed, session.output[-2000:]


def test_expected_texts_are_those_of_the_inputs(copied, frozen, tmp_path):
    """Altered in every record alike, they would make each cell of an exact judge a success."""
    folder, loaded = RunFolder(copied), judged_view(copied, Places(tmp_path / "tree")).loaded
    row = RowKey(None, "run")

    def found():
        evidence = RunEvidence(loaded, folder, inputs=(frozen("llama") / "inputs",))
        return list(assembled_run(evidence, row))

    assert not any("expected text" in one for one in found())
    rewrite(copied / "answers.json", lambda answers: answers.update(dict.fromkeys(answers, "other")))
    for name in ("run.json", "ledger.json", "statistics.json"):
        (copied / name).unlink()
    close_run(folder, loaded)
    assert any("sources whose expected text isn't the registered one" in one for one in found())


def test_an_altered_module_starts_no_run(tree, answers_for, tmp_path):
    """Its digest is registered: not one cell is judged by another."""
    folder = write_study(tmp_path, answers_for("llama", id="altered-study"))
    freeze_study(folder)
    (folder / "score.py").write_text("def score(text, gold):\n    return True\n", encoding="utf-8")
    session = run_gates(tree, "-m", "smoke", protocol=str(folder))
    assert (session.code != 0, session.run) == (True, None)
    assert "score.py: bytes: expected" in session.output


def test_a_function_that_remembers_is_found_out(tree, answers_for, tmp_path):
    """Asked in the other order it says something else."""
    folder = tmp_path / "stateful-study"
    folder.mkdir()
    lines = "seen = []\n\n\ndef score(text, gold):\n    seen.append(1)\n    return len(seen) == 1\n"
    (folder / "score.py").write_text(lines, encoding="utf-8")
    make_study(answers_for("llama", id="stateful-study"), folder, places())
    freeze_study(folder)
    session = run_gates(tree, "-m", "smoke", protocol=str(folder))
    failed = {gate["id"] for gate in session.audit["gates"] if gate["passed"] < gate["registered"]}
    assert failed == {"function_scores"}, session.output[-2000:]


def test_a_write_up_is_read_by_the_studys_own_names(smoke, tree):
    """A count of one domain or condition isn't another's."""
    view = judged_view(smoke("llama").folder, Places(tree))
    registration = load_claims(view.loaded)
    groups = {(one.domain, one.condition): one.cells.succeeded for one in view.statistics.groups}
    other, own = groups["qa", ""], groups["t", ""]
    assert other.count != own.count
    claims = claims_of(view, registration)

    def found(text):
        return [one.what for one in check_text(text, view, claims, registration)]

    assert found(f"In the domain qa {other.count} of {other.of} cells succeeded within the budget.") == []
    assert found(f"In the domain qa {own.count} of {own.of} cells succeeded within the budget.") == ["figure"]
    one = groups["t", "plain"]
    assert found(f"Under plain {one.count} of {one.of} cells of t succeeded within the budget.") == []
    assert found(f"Under plain {one.of + 1} of {one.of + 2} cells of t succeeded within the budget.") == ["figure"]
