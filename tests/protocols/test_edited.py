"""A protocol that was edited without a revision is refused by everything that names it, with the same words."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pregate_support.mini import PROJECT, environment
from pregate_support.revising import PROTOCOL, amended, nano_tree, propose, put_attempt, put_results, put_run
from typer.testing import CliRunner

from harness.__main__ import app
from harness.errors import ProtocolError
from harness.places import Places
from harness.protocols.freeze import write_frozen
from harness.protocols.load import load_protocol, read_protocol, read_registration

OTHER = "a" * 64
PUT = {"run": put_run, "attempt": put_attempt, "results": put_results}
WHERE = {
    "run": f"reports/{PROTOCOL}/formal-1",
    "attempt": f"reports/{PROTOCOL}/attempts.jsonl: formal-1",
    "results": f"snapshots/{PROTOCOL}/formal",
}


@pytest.fixture
def tree(tmp_path: Path) -> Places:
    """One frozen protocol that was never amended."""
    return nano_tree(tmp_path / "tree")


def edit(tree: Places, *, sealed: bool) -> None:
    """Another title in place; sealed: with manifest and digest files that agree, as if it had been frozen so."""
    folder = tree.protocols / PROTOCOL
    shutil.copy(propose(tree, "Edited"), folder / "protocol.toml")
    shutil.rmtree(folder / "amendment")
    if sealed:
        loaded = load_protocol(PROTOCOL)
        write_frozen(folder, read_protocol(folder / "protocol.toml"), loaded.manifest, profile=loaded.profile)


@pytest.mark.parametrize("kind", PUT)
def test_what_was_made_under_another_digest_is_found(kind, tree):
    """A run, an entered attempt or frozen results: where, expected, found and what to do."""
    PUT[kind](tree, OTHER)
    with pytest.raises(ProtocolError) as raised:
        load_protocol(PROTOCOL, tree)
    assert raised.value.where == f"protocol {PROTOCOL}: digest in force, and of {WHERE[kind]}"
    assert raised.value.expected == OTHER
    assert raised.value.found == load_protocol(PROTOCOL).digest
    assert "python -m harness amend" in raised.value.todo


@pytest.mark.parametrize("kind", PUT)
def test_what_was_made_under_a_digest_of_the_line_is_no_fault(kind, tree):
    """Under the one in force or one that it superseded."""
    first = load_protocol(PROTOCOL, tree)
    PUT[kind](tree, first.digest)
    assert load_protocol(PROTOCOL, tree) == first
    second = amended(tree, "Second title")
    assert load_protocol(PROTOCOL, tree) == second


def test_results_of_a_revision_are_looked_at_too(tree):
    """They lie in a folder of their own."""
    amended(tree, "Second title")
    put_results(tree, OTHER, f"{PROTOCOL}@0001")
    with pytest.raises(ProtocolError, match=f"snapshots/{PROTOCOL}@0001/formal"):
        load_protocol(PROTOCOL, tree)


def test_a_folder_that_says_no_digest_is_no_edit(tree):
    """A run that is being made, or a damaged one: other checks name it."""
    (tree.reports / PROTOCOL / "formal-1").mkdir(parents=True)
    load_protocol(PROTOCOL, tree)


def test_a_frozen_protocol_without_its_digests_is_no_draft(tree):
    """A draft is read as it is; where something was made of it, it isn't one."""
    folder = tree.protocols / PROTOCOL
    for path in (*folder.glob("*.sha256"), folder / "manifest.json"):
        path.unlink()
    assert read_registration(PROTOCOL, tree).id == PROTOCOL
    put_run(tree, OTHER)
    with pytest.raises(ProtocolError, match=r"expected digests, as reports/.* has, found none"):
        read_registration(PROTOCOL, tree)


VERBS = {
    "inputs verify": ("inputs", "verify", "{pools}", "--protocol", PROTOCOL),
    "inputs fetch": ("inputs", "fetch", "{pools}", "--protocol", PROTOCOL),
    "prompts": ("prompts", PROTOCOL),
    "amend": ("amend", PROTOCOL, "--reason", "why"),
    "anchor": ("anchor", PROTOCOL),
    "anchor --request": ("anchor", PROTOCOL, "--request"),
}


@pytest.mark.parametrize("sealed", [False, True], ids=["bytes", "sealed"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_names_a_protocol_refuses_it(verb, sealed, tree, monkeypatch):
    """Edited bytes are seen by their digests; with new digests, by what was made under the old ones."""
    put_run(tree, load_protocol(PROTOCOL).digest)
    edit(tree, sealed=sealed)
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    words = [one.format(pools=tree.embedded_inputs) for one in VERBS[verb]]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    message = f"digest in force, and of {WHERE['run']}" if sealed else "protocol.toml: bytes: expected"
    assert message in done.stderr
    assert "python -m harness amend" in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_verbs_take_it_unedited(verb, tree, monkeypatch):
    """The control: with the same run beside it no verb speaks of an edit."""
    put_run(tree, load_protocol(PROTOCOL).digest)
    propose(tree, "Another")
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    done = CliRunner().invoke(app, [one.format(pools=tree.embedded_inputs) for one in VERBS[verb]])
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("sealed", [False, True], ids=["bytes", "sealed"])
def test_freeze_refuses_what_something_was_made_of(sealed, tree, monkeypatch):
    """It isn't the way around amend."""
    put_run(tree, load_protocol(PROTOCOL).digest)
    edit(tree, sealed=sealed)
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    done = CliRunner().invoke(app, ["freeze", PROTOCOL])
    assert done.exit_code == 1
    assert "expected no snapshot and no run before freezing" in done.stderr
    assert f"amend {PROTOCOL}" in done.stderr


@pytest.mark.parametrize("tier", ["smoke", "formal", "replay"])
@pytest.mark.parametrize("sealed", [False, True], ids=["bytes", "sealed"])
def test_a_session_refuses_it(sealed, tier, tree):
    """Before anything is collected, whatever the tier."""
    put_run(tree, load_protocol(PROTOCOL).digest)
    edit(tree, sealed=sealed)
    (tree.root / "gates").symlink_to(PROJECT / "gates")
    (tree.root / "conftest.py").symlink_to(PROJECT / "conftest.py")
    (tree.root / "pyproject.toml").symlink_to(PROJECT / "pyproject.toml")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "gates", "-m", tier, "--protocol", PROTOCOL],
        cwd=tree.root, env=environment(tree.root), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    message = f"digest in force, and of {WHERE['run']}" if sealed else "protocol.toml: bytes: expected"
    assert message in done.stderr
