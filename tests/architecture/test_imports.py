"""Imports point one way, and everything below the waist judges a run where no model can be imported."""

import os
import subprocess
import sys

import pytest

MODEL = ("torch", "transformers", "accelerate", "safetensors", "docker")
ALL = (*MODEL, "tokenizers", "pyarrow")
BELOW = (
    "errors", "files", "places", "canon", "records", "selection", "protocols", "tapes", "journal", "compare",
    "evaluate", "ledgers", "evidence", "snapshots", "checks", "claims", "verify", "difference", "explain",
)  # fmt: skip
JUDGE = """
import importlib, importlib.abc, pkgutil, sys
from pathlib import Path

absent, below, run, judged = {absent!r}, {below!r}, Path({run!r}), {judged!r}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ImportError(f"{{name}} can't be imported here")

sys.meta_path.insert(0, Absent())
for name in below:
    module = importlib.import_module(f"harness.{{name}}")
    for one in pkgutil.iter_modules(getattr(module, "__path__", [])):
        importlib.import_module(f"harness.{{name}}.{{one.name}}")

import harness.checks
from harness.evidence import RunEvidence, guarded
from harness.journal.folder import RunFolder
from harness.ledgers.close import close_run
from harness.places import Places
from harness.protocols.grids import gate_rows
from harness.protocols.load import load_protocol

loaded = load_protocol(run.parent.name, Places(run.parents[2]))
folder = RunFolder(run)
for name in ("run.json", "ledger.json", "statistics.json"):
    folder.file(name).rename(folder.file(f"{{name}}.first"))
close_run(folder, loaded)
for name in ("run.json", "ledger.json", "statistics.json"):
    if folder.file(name).read_bytes() != folder.file(f"{{name}}.first").read_bytes():
        raise SystemExit(f"{{name}} was regenerated with other bytes")
names = [one.name for one in pkgutil.iter_modules(harness.checks.__path__)]
checks = [importlib.import_module(f"harness.checks.{{name}}") for name in names]
evidence, rows = RunEvidence(loaded, folder), 0
for gate in loaded.protocol.gates:
    if gate.reach != "run" or not judged:
        continue
    check = next(getattr(one, gate.id) for one in checks if hasattr(one, gate.id))
    for row in gate_rows(loaded.protocol, loaded.profile, gate, evidence.keys):
        rows += 1
        if found := guarded(check, evidence, row):
            raise SystemExit(f"{{gate.id}}: {{found}}")
if set(absent) & set(sys.modules):
    raise SystemExit("something absent is loaded")
print(rows)
"""


def python(*arguments, cwd, root=None):
    """A fresh interpreter's exit code and output; `root` names the tree in use."""
    environment = os.environ | ({"HARNESS_ROOT": str(root)} if root is not None else {})
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def judge(run, *, absent, judged, cwd):
    """Judge a run in a fresh interpreter where some packages can't be imported."""
    program = JUDGE.format(absent=absent, below=BELOW, run=str(run), judged=judged)
    return python("-c", program, cwd=cwd, root=run.parents[2])


def test_imports_keep_their_contracts(project):
    """import-linter over pyproject.toml: layers, torch, pytest, docker, and what lies below the waist."""
    program = "from importlinter.cli import lint_imports_command as lint; lint()"
    code, output = python("-c", program, "--no-cache", cwd=project)
    assert code == 0, output
    assert "0 broken" in output


def test_a_run_is_judged_without_a_model(fresh_run, project):
    """Run, ledger and statistics are made again byte for byte and every gate over the run holds, without torch."""
    code, output = judge(fresh_run, absent=MODEL, judged=True, cwd=project)
    assert code == 0, output
    assert int(output.split()[-1]) > 0


def test_a_run_is_closed_without_a_tokenizer(fresh_run, project):
    """Everything below the waist is imported and the run is closed again, without tokenizers and data readers too."""
    code, output = judge(fresh_run, absent=ALL, judged=False, cwd=project)
    assert code == 0, output


def test_the_judge_sees_a_fault(fresh_run, project):
    """The control: one altered length, and the same program fails by name."""
    path = next((fresh_run / "journal").glob("*.json"))
    path.write_bytes(path.read_bytes().replace(b'"length":', b'"length":1', 1))
    code, output = judge(fresh_run, absent=MODEL, judged=True, cwd=project)
    assert code != 0
    assert "length: expected" in output


@pytest.mark.parametrize(
    "name", ["harness", "harness.run.request", "harness.run.prepare", "harness.plugin", "harness.__main__"]
)
def test_importing_loads_no_model_library(name, project):
    """Help, collection and refusals come before any model code is in the process."""
    program = f"import sys, {name}; print(sorted(set({ALL!r}) & set(sys.modules)))"
    code, output = python("-c", program, cwd=project)
    assert (code, output.strip()) == (0, "[]")
