"""Collecting gates needs no model library, whatever the tier, and works without one."""

from pathlib import Path

import pytest
from pregate_support.mini import MINI, run_pytest

HEAVY = ("torch", "transformers", "tokenizers", "pyarrow", "accelerate", "safetensors")
PLUGIN = f'''
"""Prints which heavy libraries were loaded."""
import sys

def pytest_unconfigure(config):
    print("LOADED", [name for name in {HEAVY!r} if name in sys.modules])
'''


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
