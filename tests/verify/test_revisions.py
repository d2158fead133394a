"""A run of a protocol that was amended since verifies as before, its page shows the chain, and no edit gets through."""

import json
import shutil

import pytest
from pregate_support.authority import make_authority
from pregate_support.mini import COMPLETION, MINI, add_completion
from pregate_support.revising import amended, put_results
from typer.testing import CliRunner

from harness.__main__ import app
from harness.canon import canonical_bytes
from harness.claims.view import judged_view
from harness.errors import HarnessError
from harness.places import Places
from harness.protocols.load import load_line, load_protocol
from harness.protocols.outputs import outputs_of
from harness.report.make import report_bytes
from harness.verify.attest import attest
from harness.verify.run import verify
from harness.verify.timestamp import keep, request_for

from .conftest import add_claims


@pytest.fixture
def place(tree, run) -> Places:
    """The tree, mended after the test, with the run in it."""
    return Places(tree)


def lines(run, place, step):
    """(state, where, found) of a step."""
    found = verify(run, place)
    return found.verdict, [(one.state, one.where, one.found) for one in found.lines if one.step == step]


def amend(place, title, reason):
    """One more revision of the run's protocol."""
    return amended(place, title, reason=reason, protocol=COMPLETION)


def test_a_protocol_that_was_never_amended(run, place):
    """Both steps say that there is nothing, and nothing fails."""
    verdict, revisions = lines(run, place, "revisions")
    assert verdict == "holds"
    assert revisions == [("none", f"protocol {COMPLETION}: revisions", "the protocol was never amended")]
    _, timestamp = lines(run, place, "timestamp")
    assert [state for state, _, _ in timestamp] == ["none"]
    assert "timestamp owed" in timestamp[0][2]


def test_a_run_stays_valid_under_the_digest_that_was_superseded(run, place):
    """Every step holds as before; where the run stands and each revision is said; the run was found as an output."""
    own = json.loads((run / "audit.json").read_bytes())["protocol_digest"]
    second = amend(place, "Second", "the first title was unclear")
    amend(place, "Third", "so was the second")
    verdict, found = lines(run, place, "revisions")
    assert verdict == "holds"
    assert found[0][2] == (
        "a chain of 2; the run was made under the protocol as it was frozen first, superseded since; "
        "revision 2 is in force"
    )
    assert [where for _, where, _ in found[1:]] == [
        f"protocol {COMPLETION}: revisions/{one}" for one in ("0001", "0002")
    ]
    assert found[1][2].endswith("outputs existed: the first title was unclear")
    assert f"reports/{COMPLETION}/{run.name}" in {one.where for one in second.history[0].outputs}
    assert load_protocol(COMPLETION, place, own).digest == own


def test_its_page_shows_the_chain_and_stays_valid(run, place):
    """A page that was written before an amendment keeps its bytes; one that is written after it shows the revision."""
    (run / "report.html").write_bytes(report_bytes(judged_view(run, place), place))
    amend(place, "Second", "the first title was unclear")
    assert verify(run, place).verdict == "holds"
    page = report_bytes(judged_view(run, place), place).decode()
    assert '<meta name="history" content="00">' in page
    for words in ("the first title was unclear", "timestamp owed", "which revision 1 has superseded since"):
        assert words in page
    (run / "report.html").write_text(page)
    assert verify(run, place).verdict == "holds"
    shown = page.replace('name="history" content="00"', 'name="history" content="000"')
    (run / "report.html").write_text(shown)
    verdict, found = lines(run, place, "derived")
    assert (verdict, found[-1][0]) == ("not checkable", "not checkable")
    (run / "report.html").write_text(page.replace("the first title was unclear", "an improvement"))
    assert verify(run, place).verdict == "fails"


def test_every_page_says_that_the_timestamp_is_owed(run, place):
    """And, once there is a token, what it says, without verifying it."""
    page = report_bytes(judged_view(run, place), place)
    assert b"Timestamp owed: no authority has stamped this protocol digest" in page
    assert b'<meta name="history" content="0">' in page


@pytest.mark.openssl
def test_an_anchor_that_comes_later_changes_no_page(run, place, tmp_path):
    """It shows in the next one, and in verify."""
    (run / "report.html").write_bytes(report_bytes(judged_view(run, place), place))
    authority, loaded = make_authority(tmp_path / "tsa"), load_protocol(COMPLETION, place)
    keep(loaded, authority.answer(request_for(loaded)), authority.root.read_bytes())
    verdict, found = lines(run, place, "timestamp")
    assert (verdict, [state for state, _, _ in found]) == ("holds", ["holds"])
    page = report_bytes(judged_view(run, place), place)
    assert b'<meta name="history" content="1">' in page
    assert b"as anchor.json says; the token is verified by" in page
    (run / "report.html").write_bytes(page)
    shutil.rmtree(loaded.folder / "anchor")
    verdict, found = lines(run, place, "derived")
    assert (verdict, found[-1][0]) == ("not checkable", "not checkable")


@pytest.mark.openssl
def test_a_token_that_does_not_hold_fails_the_verification(run, place, tmp_path):
    """Unlike one that is owed."""
    authority, loaded = make_authority(tmp_path / "tsa"), load_protocol(COMPLETION, place)
    keep(loaded, authority.answer(request_for(loaded)), authority.root.read_bytes())
    other = make_authority(tmp_path / "other")
    named = verify(run, place, authority=other.root.read_bytes())
    assert (named.verdict, [one.step for one in named.lines if one.state == "fails"]) == ("fails", ["timestamp"])
    words = ["verify", str(run), "--authority", str(other.root)]
    assert CliRunner().invoke(app, words, env={"HARNESS_ROOT": str(place.root)}).exit_code == 1
    words[-1] = str(tmp_path / "nothing")
    assert CliRunner().invoke(app, words, env={"HARNESS_ROOT": str(place.root)}).exit_code == 2


BROKEN = {
    "altered": lambda at: (at / "0001/revision.json").write_bytes(
        canonical_bytes(json.loads((at / "0001/revision.json").read_bytes()) | {"reason": "another"})
    ),
    "the first dropped": lambda at: shutil.rmtree(at / "0001"),
    "the last dropped": lambda at: shutil.rmtree(at / "0002"),
    "all dropped": shutil.rmtree,
    "reordered": lambda at: [
        (at / "0001").rename(at / "kept"), (at / "0002").rename(at / "0001"), (at / "kept").rename(at / "0002"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_chain_fails(case, run, place):
    """Altered, dropped, reordered: verify names the file."""
    amend(place, "Second", "one")
    folder = amend(place, "Third", "two").folder
    BROKEN[case](folder / "revisions")
    found = verify(run, place)
    assert found.verdict == "fails"
    assert [one.step for one in found.lines if one.state == "fails"] == ["protocol"]


def test_all_of_a_chain_dropped_with_its_digest_is_found_by_the_runs(run, place):
    """The files of the last revision as if they had been frozen first: the runs are of another digest."""
    folder = amend(place, "Second", "one").folder
    shutil.rmtree(folder / "revisions")
    (folder / "PROTOCOL.sha256").unlink()
    found = verify(run, place)
    (failing,) = [one for one in found.lines if one.state == "fails"]
    assert (failing.step, "python -m harness amend" in failing.todo) == ("protocol", True)


VERBS = {
    "verify": ("verify", "{run}"),
    "claims": ("claims", "{run}"),
    "report": ("report", "{run}"),
    "export": ("export", "{run}", "--to", "csv", "--out", "{scratch}/cells.csv"),
    "attest": ("attest", "{run}"),
    "compare": ("compare", "{run}", "{smoke}"),
    "accept": ("snapshots", "accept", "{run}"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_reads_a_run_refuses_an_edited_protocol(verb, run, place, tmp_path, monkeypatch):
    """The protocol frozen anew under another title, as if nothing had been made of it."""
    folder = place.protocols / COMPLETION
    shutil.copytree(folder, tmp_path / "kept")
    reports = place.reports.rename(tmp_path / "reports")
    try:
        shutil.rmtree(folder)
        add_completion(place.root, title="Edited")
        add_claims(place.root, COMPLETION, "completion")
    finally:
        reports.rename(place.reports)
    monkeypatch.setenv("HARNESS_ROOT", str(place.root))
    smoke = run.with_name(json.loads((run / "smoke.json").read_bytes())["run_id"])
    words = [one.format(run=run, smoke=smoke, scratch=tmp_path) for one in VERBS[verb]]
    done = CliRunner().invoke(app, words)
    assert done.exit_code not in (0, None)
    assert "digest in force, and of reports/" in done.output


def test_an_attestation_outlives_an_amendment(run, place):
    """Its configuration names the files by the names that they had, and they are still to be had."""
    attest(run, place)
    before = lines(run, place, "attestation")
    amend(place, "Second", "one")
    assert lines(run, place, "attestation") == before
    assert before[0] == "holds"
    assert before[1][0][0] == "holds"


def test_a_pinned_baseline_outlives_an_amendment_of_its_protocol(run, place):
    """The run's protocol pins results of another one by digest, which stay where they are."""
    second = amended(place, "Second", protocol=MINI)
    assert second.history[0].outputs_existed
    assert (place.snapshots / MINI / "formal/index.json").is_file()
    assert verify(run, place).verdict == "holds"


def test_results_of_a_revision_have_a_folder_of_their_own(run, place):
    """Accepted results of the old digest stay where attestations name them, and are still held against its runs."""
    second = amend(place, "Second", "one")
    assert second.results == f"{COMPLETION}@0001"
    put_results(place, second.digest, second.results)
    assert f"snapshots/{COMPLETION}@0001/formal" in {one.where for one in outputs_of(COMPLETION, place)}
    assert [one.results for one in load_line(second.folder, place)] == [COMPLETION, f"{COMPLETION}@0001"]
    assert verify(run, place).verdict == "holds"
    put_results(place, "0" * 64, second.results)
    with pytest.raises(HarnessError, match=f"snapshots/{COMPLETION}@0001/formal"):
        load_protocol(COMPLETION, place)
