"""What is checked before a digest is written: claims, denominators, prompts that fit, model files; and where."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from pregate_support.revising import PROTOCOL, amended, nano_tree, propose
from typer.testing import CliRunner

from harness.__main__ import app
from harness.claims.load import check_claims, load_claims
from harness.claims.status import holds, reachable, status
from harness.cli.freeze import freeze_protocol
from harness.cli.freezing import NO_CLAIMS, NO_CONFIG, Named, named_folder
from harness.errors import HarnessError, ModelError, ProtocolError
from harness.model.context import context_of
from harness.places import Places
from harness.protocols.fit import check_fit
from harness.protocols.load import load_line, load_protocol
from harness.records.base import decode_json
from harness.records.claims import AtLeast, GateResult, Reported, Whole
from harness.records.ledger import Count
from harness.records.verbs import AmendedProtocol, FrozenProtocol

replace = msgspec.structs.replace
WRITTEN = ("manifest.json", "FILES.sha256", "CANONICAL.sha256", "PROMPTS.sha256")


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Places:
    """The tree in use, with one protocol that was frozen and of which nothing was made."""
    made = nano_tree(tmp_path / "tree")
    monkeypatch.setenv("HARNESS_ROOT", str(made.root))
    return made


@pytest.fixture
def folder(tree) -> Path:
    """The protocol's folder."""
    return tree.protocols / PROTOCOL


def freeze(*words):
    """The record of a freeze, or the error that ended it."""
    done = CliRunner().invoke(app, ["freeze", *map(str, words), "--json"])
    if done.exit_code != 0:
        return done.stderr
    return decode_json(done.stdout_bytes, FrozenProtocol, where="stdout", error=ProtocolError, todo="")


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace a text that must be there, once."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_freezing_says_what_it_checked(tree, folder):
    """Claims, inputs, model files and context, each with its number; the same bytes as before."""
    before = {name: (folder / name).read_bytes() for name in WRITTEN}
    made = freeze(PROTOCOL)
    checks = made.checks
    assert (checks.claims, checks.inputs, checks.inputs_of) == (2, 4, 4)
    assert (checks.checkpoint_files, checks.checkpoint_files_of, checks.checkpoint_owed) == (5, 5, ())
    assert (checks.longest, checks.context) == (152 + 128, 2048)
    assert made.protocol_digest == load_protocol(PROTOCOL, tree).digest
    assert {name: (folder / name).read_bytes() for name in WRITTEN} == before
    assert not (folder / "PROTOCOL.sha256").exists()


def test_the_plain_form_says_the_same(tree):
    """A line each."""
    lines = CliRunner().invoke(app, ["freeze", PROTOCOL]).stdout.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == [
        "claims",
        "inputs",
        "model files",
        "context",
        "timestamp owed",
    ]


def test_a_folder_is_named_by_its_path(tree, folder, tmp_path):
    """Within another tree it is that tree's; anywhere else an author's own, under an ID that the tree in use hasn't."""
    assert freeze(folder).protocol == PROTOCOL
    other = nano_tree(tmp_path / "other")
    assert named_folder(str(other.protocols / PROTOCOL), tree).tree == other
    taken = shutil.copytree(folder, tmp_path / "study" / PROTOCOL)
    assert "a folder with a name that no other protocol has" in freeze(taken)
    alone = shutil.copytree(folder, tmp_path / "study/alone")
    assert named_folder(str(alone), tree) == Named(alone, tree.with_studies((alone,)))
    for name in WRITTEN:
        (alone / name).unlink()
    rewrite(alone / "protocol.toml", f'id = "{PROTOCOL}"', 'id = "alone"')
    (alone / "claims.toml").unlink()
    assert freeze(alone).protocol == "alone"
    assert load_line(alone, tree)[-1].manifest.sources == load_protocol(PROTOCOL, tree).manifest.sources
    assert "expected one of nano-behavior, or a folder with protocol.toml" in freeze(tmp_path / "nothing")


def test_a_folder_has_the_protocols_name(tree, folder, tmp_path):
    """A copy under another name is another protocol, or none."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert f"id: expected copy, found {PROTOCOL}" in freeze(copy)


@pytest.mark.parametrize("why", ["revision", "anchor"])
def test_a_bound_digest_is_not_frozen_anew(why, tree, folder):
    """A revision or an anchor speaks of the digest that is there."""
    if why == "revision":
        amended(tree, "Second title")
    else:
        (folder / "anchor").mkdir()
    assert "and no revision or anchor" in freeze(PROTOCOL)


def test_without_claims_it_is_said(tree, folder):
    """They are apart from the digest and may come later; until then no conclusion is checked."""
    (folder / "claims.toml").unlink()
    checks = freeze(PROTOCOL).checks
    assert (checks.claims, checks.claims_note) == (0, NO_CLAIMS)


def test_claims_that_disagree_freeze_nothing(tree, folder):
    """They are read before anything is written."""
    rewrite(folder / "claims.toml", 'id = "probe"', 'id = "proof"')
    rewrite(folder / "protocol.toml", "Greedy behaviour of nano", "Greedy behaviour of the nano")
    before = {name: (folder / name).read_bytes() for name in WRITTEN}
    assert "claims.toml: permitted: expected" in freeze(PROTOCOL)
    assert {name: (folder / name).read_bytes() for name in WRITTEN} == before


def test_a_wrong_denominator_freezes_nothing(tree, folder):
    """A gate's count is its grid's."""
    rewrite(folder / "protocol.toml", "count = 128 }", "count = 127 }")
    assert "count: expected 128, found 127" in freeze(PROTOCOL)


def test_a_model_file_that_is_not_the_profiles_freezes_nothing(tree, folder, tmp_path):
    """Each that is here is hashed."""
    checkpoint = shutil.copytree(tree.models / "nano/checkpoint", tmp_path / "checkpoint")
    (checkpoint / "generation_config.json").write_text("{}")
    assert "generation_config.json: expected d25ba9fa" in freeze(PROTOCOL, "--checkpoint", checkpoint)
    (checkpoint / "generation_config.json").unlink()
    assert freeze(PROTOCOL, "--checkpoint", checkpoint).checks.checkpoint_files == 4


def test_prompts_and_budget_fit_the_model(tree):
    """Longest prompt and new tokens of each grid, within what config.json says."""
    loaded = load_protocol(PROTOCOL, tree)
    assert check_fit(loaded.protocol, loaded.manifest, 280) == 280
    with pytest.raises(
        ProtocolError, match=r"grids\.formal\.max_new_tokens: expected at most 279 tokens in all, found"
    ):
        check_fit(loaded.protocol, loaded.manifest, 279)
    grids = loaded.protocol.grids | {"smoke": replace(loaded.protocol.grids["smoke"], max_new_tokens=0)}
    with pytest.raises(ProtocolError, match=r"grids\.smoke\.max_new_tokens: expected 1 or more, found 0"):
        check_fit(replace(loaded.protocol, grids=grids), loaded.manifest, None)


def test_a_grid_that_cannot_fit_freezes_nothing(tree, folder):
    """By the config of the model that is here."""
    path = folder / "protocol.toml"
    path.write_text(path.read_text("utf-8").replace("max_new_tokens = 128", "max_new_tokens = 2000"), "utf-8")
    assert "expected at most 2048 tokens in all" in freeze(PROTOCOL)


def test_a_context_that_nobody_says_is_not_checked(tree, folder, tmp_path):
    """And it is said so."""
    checkpoint = shutil.copytree(tree.models / "nano/checkpoint", tmp_path / "checkpoint")
    (checkpoint / "config.json").unlink()
    checks = freeze(PROTOCOL, "--checkpoint", checkpoint).checks
    assert (checks.context, checks.context_note) == (0, NO_CONFIG)


@pytest.mark.parametrize("data", [b"{}", b"[]", b'{"max_position_embeddings": "2048"}'])
def test_a_config_that_says_no_length(data, tmp_path):
    """Nothing is guessed."""
    (tmp_path / "config.json").write_bytes(data)
    assert context_of(tmp_path) is None
    (tmp_path / "config.json").write_bytes(b"{")
    with pytest.raises(ModelError, match="expected JSON"):
        context_of(tmp_path)


def test_amend_is_a_verb(tree, folder):
    """Its record, and in plain words what existed."""
    propose(tree, "Second title")
    done = CliRunner().invoke(app, ["amend", PROTOCOL, "--reason", "clearer", "--json"])
    made = decode_json(done.stdout_bytes, AmendedProtocol, where="stdout", error=ProtocolError, todo="")
    assert made.protocol_digest == load_protocol(PROTOCOL, tree).digest
    assert (made.revision.reason, made.revision.outputs_existed, made.checks.claims) == ("clearer", False, 2)
    propose(tree, "Third title")
    (tree.reports / PROTOCOL / "formal-1").mkdir(parents=True)
    lines = CliRunner().invoke(app, ["amend", PROTOCOL, "--reason", "clearer still"]).stdout.splitlines()
    assert lines[0].startswith(f"{PROTOCOL}: revision 2, protocol digest ")
    assert any(line.startswith("1 outputs existed, by looking into reports/") for line in lines)
    assert lines[-1] == f"run\treports/{PROTOCOL}/formal-1\tunreadable"


STATES = {
    "all reached": (True, [(4, 4)], [True], "SUPPORTED"),
    "a row short": (True, [(4, 4), (3, 4)], [True], "REFUTED"),
    "a figure short": (True, [(4, 4)], [True, False], "REFUTED"),
    "not judged": (False, [(4, 4)], [True], "NOT CHECKED"),
}


@pytest.mark.parametrize("case", STATES)
def test_the_state_of_a_claim(case):
    """Whole gates and reached figures, and nothing else."""
    judged, rows, figures, expected = STATES[case]
    gates = [GateResult(id="g", passed=passed, registered=of) for passed, of in rows]
    assert status(judged=judged, gates=gates, figures=figures) == expected


@pytest.mark.parametrize(
    ("threshold", "count", "of", "expected"),
    [
        (Whole(), 4, 4, True), (Whole(), 3, 4, False), (Whole(), 0, 0, False),
        (AtLeast(n=2), 2, 4, True), (AtLeast(n=2), 1, 4, False), (Reported(), 0, 4, True),
    ],
)  # fmt: skip
def test_a_threshold(threshold, count, of, expected):
    """Reached or not."""
    assert holds(threshold, Count(count=count, of=of)) is expected


@pytest.fixture
def claims(tree):
    """(protocol, registration) of the tree."""
    loaded = load_protocol(PROTOCOL, tree)
    return loaded, load_claims(loaded)


def test_every_claim_can_be_supported_and_refuted(claims):
    """There are counts for both within the denominators."""
    loaded, registration = claims
    for rule in registration.rules.permitted:
        assert reachable(loaded, rule, registration.sources) == {"SUPPORTED", "REFUTED"}


def changed(rules, **fields):
    """The registration with fields of its first claim changed."""
    return replace(rules, permitted=(replace(rules.permitted[0], **fields), *rules.permitted[1:]))


def test_a_claim_that_cannot_fail_is_refused(claims, monkeypatch):
    """Figures that are only reported, and gates without a row: nothing could ever refute it."""
    loaded, registration = claims
    figures = tuple(replace(one, threshold=Reported()) for one in registration.rules.permitted[0].figures)
    rules = changed(registration.rules, figures=figures)
    check_claims("claims.toml", loaded, rules, registration.sources)  # a gate can still fail
    monkeypatch.setattr("harness.claims.status.gate_rows", lambda *_: ())
    with pytest.raises(
        ProtocolError, match="counts that support the claim and counts that refute it, found none for REFUTED"
    ):
        check_claims("claims.toml", loaded, rules, registration.sources)


def test_a_claim_that_cannot_hold_is_refused(claims):
    """A threshold beyond the denominator; the load refuses it with its range, and no count reaches it."""
    loaded, registration = claims
    first = registration.rules.permitted[0]
    figures = (replace(first.figures[0], threshold=AtLeast(n=129)), *first.figures[1:])
    rules = changed(registration.rules, figures=figures)
    assert reachable(loaded, rules.permitted[0], registration.sources) == {"REFUTED"}
    with pytest.raises(HarnessError, match="at_least from 1 to 128"):
        check_claims("claims.toml", loaded, rules, registration.sources)


def test_freeze_protocol_gives_what_a_run_loads(tree):
    """The function behind the verb."""
    made = freeze_protocol(PROTOCOL, [], checkpoint=None, tree=tree)
    assert made == load_protocol(PROTOCOL, tree)
    assert re.fullmatch("[0-9a-f]{64}", made.digest)
    assert json.loads((made.folder / "manifest.json").read_bytes())["protocol"] == PROTOCOL
