"""The end of a session: claims.json beside the audit record, made anew by each, and refused where it can't be right."""

from pregate_support.mini import MINI

from harness.canon import canonical_bytes
from harness.claims.judge import claims_of
from harness.claims.load import load_claims
from harness.claims.view import judged_view
from harness.places import Places
from harness.verify.run import verify

from .conftest import add_claims


def test_a_session_leaves_the_runs_claims(fresh_run, run_mini):
    """Written after the audit record, which doesn't list it; the folder verifies, with its earlier judgement."""
    tree = fresh_run.parents[2]
    add_claims(tree, MINI, "behavior")
    (fresh_run / "claims.json").write_text("an earlier session's")
    done = run_mini(tree, "-m", "formal", "--run", str(fresh_run))
    assert done.code == 0, done.output
    view = judged_view(fresh_run, Places(tree))
    made = canonical_bytes(claims_of(view, load_claims(view.loaded)))
    assert (fresh_run / "claims.json").read_bytes() == made
    assert "claims.json" not in view.audit.files
    found = verify(fresh_run, Places(tree))
    assert found.verdict == "holds", found.lines
    assert {("judgements", "holds"), ("derived", "holds")} <= {(one.step, one.state) for one in found.lines}


def test_a_registration_that_contradicts_itself_is_refused_first(fresh_run, run_mini):
    """Nothing is judged under claims that don't agree with their protocol, and the earlier record stays."""
    tree = fresh_run.parents[2]
    add_claims(tree, MINI, "behavior")
    path = tree / "fixtures/protocols" / MINI / "claims.toml"
    path.write_text(path.read_text().replace('id = "eos-better"', 'id = "eos-worse"'))
    before = (fresh_run / "audit.json").read_bytes()
    done = run_mini(tree, "-m", "formal", "--run", str(fresh_run))
    assert done.code != 0
    assert "prohibited: expected" in done.output
    assert (fresh_run / "audit.json").read_bytes() == before
