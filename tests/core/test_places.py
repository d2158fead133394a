"""Where the fixed folders are, and what names another tree."""

from pathlib import Path

import pytest

import harness
from harness.places import Places, places

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
