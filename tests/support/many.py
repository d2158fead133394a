"""Many gate sessions from one interpreter: each is forked off after the slow imports, so that it costs its work only.

Only the plugins that the harness needs are loaded; sessions with all installed ones are `run_gates`'.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .mini import TIMEOUT_S, environment

DRIVER = """
import importlib, json, os, sys
for name in ("msgspec", "pytest", "numpy", "rich", "tokenizers", "harness.run.request", "harness.ledgers.close"):
    importlib.import_module(name)
import pytest
for case in json.loads(sys.stdin.read()):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        output = os.open(case["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1), os.dup2(output, 2)
        os.chdir(case["cwd"])
        os.environ.update(case["env"])
        code = int(pytest.main(case["arguments"]))
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    for source, target in case["keep"]:
        if os.path.exists(source):
            os.replace(source, target)
"""
PLUGINS = ("-p", "xdist.plugin", "-p", "syrupy")


@dataclass(frozen=True, slots=True)
class Case:
    """One session: pytest's arguments, and what its environment adds."""

    arguments: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code and output; `kept` is the folder that holds the files that were kept of the session."""

    code: int
    output: str
    kept: Path

    @property
    def errors(self) -> list[str]:
        """The lines in which pytest refuses."""
        return [line for line in self.output.splitlines() if line.startswith("ERROR: ")]


def run_many(tree: Path, cases: Mapping[str, Case], scratch: Path, *, keep: Sequence[Path] = ()) -> dict[str, Outcome]:
    """Run every case over the tree, in order; after each, the files of `keep` that are there move to its `kept`."""
    folders = [scratch / str(number) for number in range(len(cases))]
    for folder in folders:
        folder.mkdir()
    plain = [_plain(tree, case, folder, keep) for case, folder in zip(cases.values(), folders, strict=True)]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(plain),
        cwd=tree,
        env=environment(tree, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    codes = [json.loads(line) for line in done.stdout.splitlines()]
    if len(codes) != len(plain):
        raise RuntimeError(f"the driver ended early: {done.stderr[-2000:]}")
    return {
        name: Outcome(code, (folder / "output.txt").read_text("utf-8", "replace"), folder)
        for name, code, folder in zip(cases, codes, folders, strict=True)
    }


def _plain(tree: Path, case: Case, folder: Path, keep: Sequence[Path]) -> dict[str, Any]:
    return {
        "arguments": [*case.arguments, *PLUGINS],
        "env": dict(case.env),
        "cwd": str(case.cwd or tree),
        "output": str(folder / "output.txt"),
        "keep": [[str(one), str(folder / one.name)] for one in keep],
    }
