"""Where the source of an author's function lies: beside protocol.toml, by its dotted name."""

from pathlib import Path


def module_file(folder: Path, module: str) -> Path:
    """`folder/a/b.py` for the module `a.b`."""
    return folder.joinpath(*module.split(".")).with_suffix(".py")
