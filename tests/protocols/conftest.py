"""A copy of one frozen protocol that tests may damage."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.canon import sha256_hex
from harness.places import Places, places
from harness.protocols.load import LoadedProtocol, load_protocol

PROTOCOL, PROFILE = "deepseek-behavior", "deepseek-v2-lite-chat"


@pytest.fixture
def tree(tmp_path: Path) -> Places:
    """A tree with the one protocol and its profile."""
    copy = Places(tmp_path)
    shutil.copytree(places().protocols / PROTOCOL, copy.protocols / PROTOCOL)
    copy.models.joinpath(PROFILE).mkdir(parents=True)
    shutil.copy(places().models / PROFILE / "profile.toml", copy.models / PROFILE / "profile.toml")
    return copy


@pytest.fixture
def folder(tree: Places) -> Path:
    """The protocol's folder in that tree."""
    return tree.protocols / PROTOCOL


@pytest.fixture
def swap() -> Callable[[Path, str, str], None]:
    """Replaces a text that must occur in a file, once."""

    def do(path: Path, old: str, new: str) -> None:
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")

    return do


@pytest.fixture
def seal() -> Callable[[Path], None]:
    """Makes FILES.sha256 agree with the bytes again, so that a deeper check is reached."""

    def do(folder: Path) -> None:
        names = ("manifest.json", "protocol.toml")
        lines = [f"{sha256_hex((folder / name).read_bytes())}  {name}\n" for name in names]
        (folder / "FILES.sha256").write_text("".join(lines), "ascii")

    return do


@pytest.fixture
def loaded() -> LoadedProtocol:
    """The undamaged protocol."""
    return load_protocol(PROTOCOL)
