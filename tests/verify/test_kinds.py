"""A trace and its replay: the kind whose parts hold digests instead of tokens."""

import json

from harness.canon import canonical_bytes, digest
from harness.places import Places
from harness.verify.run import verify


def failing(run):
    """Verdict and the failing lines."""
    found = verify(run, Places(run.parents[2]))
    return found.verdict, {(one.step, one.where) for one in found.lines if one.state not in {"holds", "none"}}


def test_a_trace_holds_and_a_digest_in_its_replay_is_found(fresh_depth):
    """The replay's journal is made to agree with itself, and its records with it: the gate over it says so."""
    assert failing(fresh_depth) == ("holds", set())
    path = sorted((fresh_depth / "replay/journal").glob("*.json"))[0]
    journal = json.loads(path.read_bytes())
    journal["evidence"]["cells"][0]["hidden"][2]["full"]["sha256"] = "0" * 64
    journal["evidence_sha256"] = digest(journal["evidence"])
    path.write_bytes(canonical_bytes(journal))
    run = json.loads((fresh_depth / "replay/run.json").read_bytes())
    unit = next(one for one in run["units"] if one["source_id"] == journal["evidence"]["source_id"])
    unit["cells"] = journal["evidence"]["cells"]
    (fresh_depth / "replay/run.json").write_bytes(canonical_bytes(run))
    verdict, lines = failing(fresh_depth)
    assert verdict == "fails"
    assert ("files", f"replay/journal/{path.name}") in lines
    assert {("apart", "gate replay_hidden"), ("apart", "gate replay_sources")} <= lines
    assert ("apart", "gate replay_routes") not in lines
