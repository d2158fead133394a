"""Collecting gates needs no model library, whatever the tier; judging a run that is there needs no torch."""

import ast
from pathlib import Path

import pytest
from pregate_support.fixtures import tree_of
from pregate_support.mini import MINI, run_pytest

HEAVY = ("torch", "transformers", "tokenizers", "pyarrow", "accelerate", "safetensors")
PLUGIN = f'''
"""Prints which heavy libraries were loaded."""
import sys

def pytest_unconfigure(config):
    print("LOADED", [name for name in {HEAVY!r} if name in sys.modules])
'''


def test_judging_loads_no_torch(fresh_run: Path, tmp_path: Path) -> None:
    """A session over a finished run passes and loads no torch; one that generates first sets what torch reads then."""
    (tmp_path / "seen.py").write_text(PLUGIN)
    named = ("--protocol", MINI, "--run", str(fresh_run))
    code, output = run_pytest(
        tree_of(fresh_run), "gates", "-m", "formal", "-p", "seen", *named, env={"PYTHONPATH": str(tmp_path)}
    )
    assert code == 0, output
    (loaded,) = [line for line in output.splitlines() if line.startswith("LOADED")]
    assert not {"torch", "transformers", "accelerate", "safetensors"} & {
        *ast.literal_eval(loaded.removeprefix("LOADED "))
    }


@pytest.mark.parametrize(
    ("arguments", "protocols"),
    [
        ((), (MINI,)),
        (("-m", "formal"), (MINI,)),
        (("--port",), (MINI,)),
    ],
)
def test_collecting_loads_no_model_library(
    mini_tree: Path, tmp_path: Path, arguments: tuple[str, ...], protocols: tuple[str, ...]
) -> None:
    """`--collect-only` exits 0, lists rows of every gate and leaves torch and its companions alone."""
    (tmp_path / "seen.py").write_text(PLUGIN)
    named = [word for one in protocols for word in ("--protocol", one)]
    code, output = run_pytest(
        mini_tree, "gates/", "--collect-only", "-q", "-p", "seen", *named, *arguments, env={"PYTHONPATH": str(tmp_path)}
    )
    assert code == 0, output
    assert "LOADED []" in output
    assert "test_threads_and_workers_change_nothing[mini-behavior-formal-threads-2:" in output
