"""Source files of the harness, parsed once."""

import ast
from pathlib import Path

import pytest

import harness

PACKAGE = Path(harness.__file__).resolve().parent
PROJECT = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
GATES = sorted((PROJECT / "gates").glob("*.py"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case a module of harness/, or one a file of gates/."""
    for name, paths in (("module", MODULES), ("gate_file", GATES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [pytest.param(path, id=path.relative_to(PROJECT).as_posix()) for path in paths])


@pytest.fixture(scope="session")
def parse():
    """`parse(path)`: the syntax tree of a file."""
    return lambda path: ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def project() -> Path:
    """The project's root."""
    return PROJECT
