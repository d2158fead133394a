"""An author's own folder has revisions as a protocol of the tree has: what they keep, and what a run's copy knows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.__main__ import app
from harness.cli.freezing import named_folder
from harness.errors import ComparisonError, ProtocolError
from harness.model.identity import digests_of_a_run
from harness.places import STUDIES, Places, places_of_run
from harness.protocols.freeze import write_frozen
from harness.protocols.load import load_line, load_protocol, read_profile, read_protocol
from harness.rerun.conditions import Checkpoints
from harness.verify.run import verify

from ..support.mini import environment, make_tree, run_gates  # noqa: TID252 - the tests are no package of that name
from .conftest import freeze_study, write_study

ID = "revised-study"
TITLE = b'title = "A study of a tiny model"'


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """A small tree without the study, which lies elsewhere."""
    return Places(make_tree(tmp_path_factory.mktemp("tree") / "tree"))


def cli(tree: Places, *words: str) -> subprocess.CompletedProcess[str]:
    """A verb in a process of its own over the tree."""
    command = [sys.executable, "-m", "harness", *words]
    env = environment(tree.root)
    return subprocess.run(command, cwd=tree.root, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def study(tree, answers_for, tmp_path_factory) -> Path:
    """A frozen study with a run of it in the tree, then amended: its title is another."""
    folder = write_study(tmp_path_factory.mktemp("studies"), answers_for("llama", id=ID))
    freeze_study(folder)
    session = run_gates(tree.root, "-m", "smoke", "--run", f"reports/{ID}/smoke-1", protocol=str(folder))
    assert session.code == 0, session.output[-3000:]
    (folder / "amendment").mkdir()
    text = (folder / "protocol.toml").read_bytes()
    assert TITLE in text
    (folder / "amendment/protocol.toml").write_bytes(text.replace(TITLE, b'title = "Another title"'))
    done = cli(tree, "amend", str(folder), "--reason", "a clearer title", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["revision"]["outputs_existed"] is True
    return folder


@pytest.fixture
def run(tree, study) -> Path:
    """The run that was made before the amendment."""
    assert (study / "revisions").is_dir()
    return tree.reports / ID / "smoke-1"


def test_what_an_author_gave_stays_where_it_is(study):
    """Inputs and the link to the checkpoint; a revision has every other file, the profile among them."""
    assert (study / "checkpoint").is_symlink()
    assert sorted(path.name for path in (study / "inputs").iterdir()) == ["qa.csv", "t.jsonl"]
    kept = {path.name for path in (study / "revisions/0001").iterdir()}
    assert {"protocol.toml", "manifest.json", "profile.toml", "score.py", "claims.toml", "revision.json"} <= kept
    assert not {"inputs", "checkpoint"} & kept
    assert not (study / "amendment").exists()
    assert sorted(path.name for path in study.parent.iterdir()) == [ID]


def test_a_run_of_the_superseded_study_verifies(tree, study, run):
    """By the author's folder, which says what superseded it; and by the copy in the run, which knows of none."""
    later = "by the copy that the run keeps"
    for places, said, by_copy in ((tree.with_studies((study,)), "superseded since", 0), (tree, "never amended", 1)):
        made = verify(run, places)
        assert sum(later in one.found for one in made.lines if one.step == "revisions") == by_copy
        assert [one for one in made.lines if one.state in ("fails", "not checkable")] == []
        assert any(said in one.found for one in made.lines if one.step == "revisions")


def test_a_session_runs_the_study_in_force(tree, study):
    """Its run keeps the revisions too, and verifies by them alone."""
    session = run_gates(tree.root, "-m", "smoke", "--run", f"reports/{ID}/smoke-2", protocol=str(study))
    assert session.code == 0, session.output[-3000:]
    assert (session.folder / f"protocol/{ID}/revisions/0001/revision.json").is_file()
    made = verify(session.folder, tree)
    assert [one for one in made.lines if one.state in ("fails", "not checkable")] == []
    assert any("revision 1, in force" in one.found for one in made.lines)


@pytest.mark.parametrize("of_a_run", [False, True], ids=["folder", "copy"])
def test_a_study_that_was_edited_without_a_revision_is_refused(tree, study, run, tmp_path, of_a_run):
    """Its digest files written anew: an author's folder by the runs of its ID, a run's copy by that run."""
    if of_a_run:
        copied = shutil.copytree(run, tmp_path / "elsewhere/smoke-1")
        folder, seen = copied / f"protocol/{ID}", places_of_run(copied, tree)
    else:
        folder = shutil.copytree(study / "revisions/0001", tmp_path / ID)
        seen = tree.with_studies((folder,))
    before = load_line(folder, seen, looks=False)[-1]
    path = folder / "protocol.toml"
    path.write_bytes(path.read_bytes().replace(TITLE, b'title = "Edited"'))
    write_frozen(folder, read_protocol(path), before.manifest, profile=read_profile(folder / "profile.toml"))
    with pytest.raises(ProtocolError, match="edited without a revision"):
        load_protocol(ID, seen)


@pytest.mark.parametrize("verb", ["freeze", "amend", "anchor"])
def test_a_runs_copy_is_not_frozen_amended_or_anchored(tree, run, monkeypatch, verb):
    """It is evidence of what the run was made by."""
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    monkeypatch.delenv(STUDIES, raising=False)
    words = ["--reason", "none"] if verb == "amend" else []
    done = CliRunner().invoke(app, [verb, str(run / f"protocol/{ID}"), *words])
    assert done.exit_code == 1
    assert "the copy that a run keeps" in done.stderr


def test_what_is_given_is_not_amended(tree, study):
    """A new input file gets a name of its own beside the old one, which a superseded protocol may need."""
    (study / "amendment/inputs").mkdir(parents=True)
    shutil.copyfile(study / "protocol.toml", study / "amendment/protocol.toml")
    try:
        done = cli(tree, "amend", str(study), "--reason", "other inputs")
    finally:
        shutil.rmtree(study / "amendment")
    assert done.returncode == 1
    assert "files that an author writes, found inputs" in done.stderr


def test_a_frozen_study_is_anchored_by_its_folder(tree, study):
    """Owed, and said."""
    assert named_folder(str(study), tree).folder == study
    done = cli(tree, "anchor", str(study))
    assert (done.returncode, "timestamp owed" in done.stdout) == (0, True), done.stderr


def test_a_budget_beyond_the_context_is_not_frozen(answers_for, tmp_path):
    """The context is that of the checkpoint beside the study."""
    folder = write_study(tmp_path, answers_for("llama", id="long-study"))
    path = folder / "protocol.toml"
    path.write_bytes(path.read_bytes().replace(b"max_new_tokens = 9", b"max_new_tokens = 2040"))
    with pytest.raises(ProtocolError, match="at most 2048 tokens in all"):
        freeze_study(folder)
    assert not (folder / "manifest.json").exists()


@pytest.mark.parametrize("number", [0, 1], ids=["superseded", "in force"])
def test_a_step_is_made_again_with_the_checkpoint_beside_the_study(tree, study, number):
    """Superseded or not; a run's copy has no weights, so its checkpoint is one to be named."""
    loaded = load_line(study, tree.with_studies((study,)))[number]
    wanted = digests_of_a_run(loaded.profile, study / "checkpoint").items()
    assert Checkpoints(()).find(loaded, wanted) == (study / "checkpoint").resolve()
    copy = load_protocol(ID, places_of_run(tree.reports / ID / "smoke-1", tree))
    with pytest.raises(ComparisonError, match="--checkpoint DIR"):
        Checkpoints(()).find(copy, wanted)


def test_a_run_that_the_revision_did_not_find_is_said(tree, study, run):
    """Of another name than any that was found when the study was amended: later, elsewhere, or out of sight."""
    late = shutil.copytree(run, run.with_name("late-1"))
    made = verify(late, tree.with_studies((study,)))
    said = [one.found for one in made.lines if one.step == "revisions"]
    assert any("revision 1 found no output of this name" in one for one in said)
    seen = [one.found for one in verify(run, tree.with_studies((study,))).lines if one.step == "revisions"]
    assert not any("found no output" in one for one in seen)
    shutil.rmtree(late)


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_units_are_made_of_an_authors_folder(tree, study, engine):
    """`run DIR` lands them and keeps the protocol, here or by workers elsewhere, which are told of the folder; the
    command that it says judges what lies there.
    """
    folder = tree.reports / ID / f"smoke-{engine}"
    done = cli(tree, "run", str(study), "--tier", "smoke", "--run", str(folder), "--engine", engine)
    assert done.returncode == 0, done.stderr
    assert (folder / f"protocol/{ID}/PROTOCOL.sha256").is_file()
    assert done.stdout.strip() == f"python -m pytest gates/ -m smoke --protocol {study} --run {folder}"
    session = run_gates(tree.root, "-m", "smoke", "--run", str(folder), protocol=str(study))
    assert session.code == 0, session.output[-3000:]
