"""The tests' own conftest: nothing is skipped, and what needs the registered files is named as not run without them."""

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

def test_needs_none():
    pass
'''


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize(
    ("env", "counts", "named"),
    [
        ({}, "1 passed, 1 deselected", True),
        ({"HARNESS_INPUTS": ""}, "1 passed, 1 deselected", True),
        ({"HARNESS_INPUTS": "somewhere"}, "2 passed", False),
    ],
)
def test_tests_without_their_input_files_are_named(
    tmp_path: Path, env: dict[str, str], counts: str, named: bool, workers: tuple[str, ...]
) -> None:
    """Without HARNESS_INPUTS the marked tests are deselected and listed with their number; with it they run."""
    for name in ("tests/conftest.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(PROJECT / name, tmp_path / name)
    shutil.copytree(PROJECT / "tests/support", tmp_path / "tests/support")
    (tmp_path / "tests/test_marked.py").write_text(MARKED)
    code, output = run_pytest(tmp_path, "tests", *workers, env=env)
    assert code == 0, output
    assert counts.split(",", maxsplit=1)[0] in output if workers else counts in output
    assert ("1 tests not run" in output and "test_marked.py::test_needs_files\n" in output) is named
    assert "skipped" not in output
