"""The folder that all actors of a run write in: one a run, empty ones go, and only such a folder is ever removed."""

import tempfile

import pytest

from harness.cluster import apart
from harness.cluster.apart import folder_of, inside, new_name, remove


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_with_its_process(folders):
    """Temporary folders are made in it meanwhile, and where they were afterwards; another process's stays."""
    name = new_name()
    whole = folder_of(name)
    with inside(name) as folder, tempfile.TemporaryDirectory() as made:
        assert (folder.parent, whole.stat().st_mode & 0o777) == (whole, 0o700)
        assert made.startswith(f"{folder}/")
        tempfile.mkdtemp()  # as a library leaves one
    assert (list(folders.iterdir()), tempfile.tempdir) == ([], str(folders))
    (whole / "another").mkdir(parents=True)
    with inside(name):
        pass
    assert [path.name for path in whole.iterdir()] == ["another"]


def test_what_is_left_is_removed(folders):
    """Whatever is in it; and where nothing is left, nothing is wrong."""
    name, other = new_name(), new_name()
    for one in (name, other):
        (folder_of(one) / "pregate-units-x" / "journal").mkdir(parents=True)
    assert (remove(name), remove(name)) == (True, True)
    assert list(folders.iterdir()) == [folder_of(other)]


def test_what_cannot_be_removed_is_not_tried_for_ever(monkeypatch):
    """It is said."""
    monkeypatch.setattr(apart, "PAUSE_S", 0)
    monkeypatch.setattr(apart.shutil, "rmtree", lambda *given, **named: None)
    name = new_name()
    folder_of(name).mkdir()
    assert not remove(name)


@pytest.mark.parametrize("name", ["", "..", "pregate-actors-", "pregate-actors-" + "0" * 31 + "/", "x"])
def test_no_other_folder_is_removed(name, folders):
    """A name is made by new_name, or isn't one."""
    with pytest.raises(RuntimeError, match="no name of a run's actors"):
        remove(name)
    assert folders.is_dir()
