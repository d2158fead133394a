"""Where the fixed folders are, and what names another tree."""

from pathlib import Path

import pytest

import harness
from harness.errors import ProtocolError
from harness.places import OF_A_RUN, STUDIES, Places, include, places, places_of_run
from harness.protocols.folders import named_protocol, protocol_ids

PROJECT = Path(harness.__file__).resolve().parents[1]


def test_without_a_name_it_is_the_projects_own_tree(monkeypatch):
    """The tree that the package lies in."""
    monkeypatch.delenv("HARNESS_ROOT", raising=False)
    assert places() == Places(PROJECT)


def test_a_named_tree_is_resolved(monkeypatch, tmp_path):
    """HARNESS_ROOT, also where it is relative: a child that changes folder sees the same tree."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_ROOT", ".")
    assert places() == Places(tmp_path.resolve())


def test_an_empty_name_is_no_name(monkeypatch):
    """An empty variable doesn't mean the current folder."""
    monkeypatch.setenv("HARNESS_ROOT", "")
    assert places() == Places(PROJECT)


@pytest.mark.parametrize("name", ["protocols", "models", "embedded_inputs", "gates"])
def test_a_folder_of_frozen_inputs_exists(name):
    """The project's tree has what its places name."""
    assert getattr(Places(PROJECT), name).is_dir()


@pytest.mark.parametrize("name", ["protocols", "models", "embedded_inputs", "gates", "snapshots", "reports"])
def test_every_place_lies_in_the_tree(name, tmp_path):
    """No place reaches out of a copied tree."""
    assert getattr(Places(tmp_path), name).is_relative_to(tmp_path)


def author(folder, name="mine"):
    """An author's folder with a protocol.toml."""
    (folder / name).mkdir(parents=True)
    (folder / name / "protocol.toml").write_text("", encoding="utf-8")
    return folder / name


def test_an_authors_folder_answers_to_its_name(tmp_path):
    """By name; the tree's own protocol of that name comes first; a name that nobody has is the tree's to miss."""
    own = author(tmp_path / "elsewhere")
    tree = Places(tmp_path / "tree").with_studies((own, own))
    assert tree.studies == (own,)
    assert tree.protocol("mine") == own
    assert tree.protocol("other") == tree.protocols / "other"
    first = author(tree.protocols)
    assert tree.protocol("mine") == first


def test_named_folders_reach_other_processes(monkeypatch, tmp_path):
    """HARNESS_PROTOCOLS, resolved, each once, added to what was named before."""
    monkeypatch.setenv(STUDIES, str(tmp_path / "a"))
    include((tmp_path / "b", tmp_path / "a"))
    assert places().studies == (tmp_path / "a", tmp_path / "b")


def test_a_run_has_the_protocol_that_it_keeps(tmp_path):
    """And so has a part of it; what is named already comes first."""
    kept = author(tmp_path / "run" / OF_A_RUN)
    assert places_of_run(tmp_path / "run", Places(tmp_path)).studies == (kept,)
    assert places_of_run(tmp_path / "run/replay", Places(tmp_path)).studies == (kept,)
    other = author(tmp_path / "named")
    tree = places_of_run(tmp_path / "run", Places(tmp_path, (other,)))
    assert tree.protocol("mine") == other


def test_a_word_is_an_id_or_a_folder(tmp_path):
    """A folder with a protocol.toml names its protocol; anything else is taken for an ID."""
    own, tree = author(tmp_path / "elsewhere"), Places(tmp_path / "tree")
    name, seen = named_protocol(str(own), tree)
    assert (name, seen.protocol(name)) == ("mine", own)
    assert protocol_ids(seen) == ("mine",)
    assert named_protocol("other", tree) == ("other", tree)
    assert named_protocol(str(tmp_path), tree) == (str(tmp_path), tree)


@pytest.mark.parametrize("where", ["tree", "named"])
def test_a_folder_whose_name_is_taken_is_refused(tmp_path, where):
    """Two protocols of one name would share runs and results."""
    own, tree = author(tmp_path / "elsewhere"), Places(tmp_path / "tree")
    if where == "tree":
        author(tree.protocols)
    else:
        tree = tree.with_studies((author(tmp_path / "named"),))
    with pytest.raises(ProtocolError, match="a folder with a name that no other protocol has"):
        named_protocol(str(own), tree)
