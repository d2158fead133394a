"""The tests' own conftest: nothing is skipped, and what needs files or an engine is named as not run without them."""

import shutil
from pathlib import Path

import pytest
from pregate_support.mini import PROJECT, run_pytest

MARKED = '''
"""One test of each kind."""
import pytest

@pytest.mark.inputs
def test_needs_files():
    pass

@pytest.mark.docker
def test_needs_an_engine():
    pass

@pytest.mark.docker
@pytest.mark.inputs
def test_needs_both():
    pass

def test_needs_none():
    pass
'''


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize(
    ("env", "passed", "named"),
    [
        ({}, 1, {"HARNESS_INPUTS": 2, "HARNESS_SANDBOX_IMAGE": 1}),
        ({"HARNESS_INPUTS": "somewhere", "HARNESS_SANDBOX_IMAGE": ""}, 2, {"HARNESS_SANDBOX_IMAGE": 2}),
        ({"HARNESS_INPUTS": "somewhere", "HARNESS_SANDBOX_IMAGE": "one"}, 4, {}),
    ],
)
def test_tests_that_lack_something_are_named(
    tmp_path: Path, env: dict[str, str], passed: int, named: dict[str, int], workers: tuple[str, ...]
) -> None:
    """Without the variable the marked tests are deselected and listed with their number; with it they run."""
    for name in ("tests/conftest.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(PROJECT / name, tmp_path / name)
    shutil.copytree(PROJECT / "tests/support", tmp_path / "tests/support")
    (tmp_path / "tests/test_marked.py").write_text(MARKED)
    code, output = run_pytest(tmp_path, "tests", *workers, env=env)
    assert code == 0, output
    assert f"{passed} passed" in output
    assert output.count("tests not run") == len(named)
    sections = output.split("not run: needs ")[1:]
    assert {one.split()[0]: one.count("test_marked.py::test_needs_") for one in sections} == named
    assert all(f"{count} tests not run" in output for count in named.values())
    assert "skipped" not in output
