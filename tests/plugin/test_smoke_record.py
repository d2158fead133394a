"""The smoke record that a formal run stands on: a passed, unaltered one of the same kind, or a new one."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from pregate_support.fixtures import tree_of
from pregate_support.mini import MINI

from harness.canon import sha256_hex
from harness.errors import SessionError
from harness.journal.folder import RunFolder
from harness.places import Places
from harness.protocols.load import load_protocol
from harness.run import smoke
from harness.run.request import Options, make_request
from harness.run.smoke import SmokeCall, passed_smoke

NOTHING = Options(checkpoint=None, inputs=(), gpu_memory=None, cpu_memory=None, port=False)


class AskedError(Exception):
    """A new smoke run was asked for."""


def find(run: Path, monkeypatch: pytest.MonkeyPatch, *, port: bool = False) -> RunFolder:
    """The folder of the record that a new formal run beside `run` would stand on."""

    def ask(*_: Any) -> None:
        raise AskedError

    tree = Places(tree_of(run))
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    monkeypatch.setattr(smoke, "_run_smoke", ask)
    loaded = load_protocol(MINI, tree)
    formal = RunFolder(run.with_name("formal-new"))
    call = SmokeCall(
        make_request(loaded, "formal", "formal-new", dataclasses.replace(NOTHING, port=port), tree),
        tree,
        None,
        None,
        "none",
    )
    return passed_smoke(loaded, formal, call)[1]


def smoke_of(run: Path) -> Path:
    """The smoke run beside a formal run."""
    return run.parent / str(json.loads((run / "smoke.json").read_bytes())["run_id"])


def test_a_passed_smoke_run_serves_again(fresh_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken, and noted in the formal run by its digests."""
    found = find(fresh_run, monkeypatch)
    assert found.path == smoke_of(fresh_run)
    noted = json.loads((fresh_run.with_name("formal-new") / "smoke.json").read_bytes())
    assert noted["audit_sha256"] == sha256_hex(found.file("audit.json").read_bytes())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("passed", False),
        ("protocol_digest", "0" * 64),
        ("tier", "formal"),
        ("port", True),
    ],
)
def test_another_smoke_run_does_not_serve(
    fresh_run: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: object
) -> None:
    """A record that says otherwise, even with its digest mended, leads to a new smoke run."""
    path = smoke_of(fresh_run) / "audit.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {name: change}))
    path.with_name("audit.json.sha256").write_text(f"{sha256_hex(path.read_bytes())}  audit.json\n")
    with pytest.raises(AskedError):
        find(fresh_run, monkeypatch)


@pytest.mark.parametrize(
    ("field", "serves"),
    [
        ("software.torch", True),
        ("checkpoint", True),
        ("checkpoint.model.safetensors", True),
        ("placement.nano-disk", True),
        ("placement", False),
        ("domains.math", False),
        ("sandbox.image", False),
    ],
)
def test_a_ports_smoke_run_serves_by_what_was_asked_for(
    fresh_run: Path, monkeypatch: pytest.MonkeyPatch, field: str, *, serves: bool
) -> None:
    """What is read back from a model isn't known yet: the environment stands for it, and the gate compares it later."""
    path = smoke_of(fresh_run) / "audit.json"
    deviations = [{"field": field, "registered": "one", "actual": "another"}]
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"port": True, "deviations": deviations}))
    path.with_name("audit.json.sha256").write_text(f"{sha256_hex(path.read_bytes())}  audit.json\n")
    if serves:
        assert find(fresh_run, monkeypatch, port=True).path == path.parent
    else:
        with pytest.raises(AskedError):
            find(fresh_run, monkeypatch, port=True)


def test_an_altered_record_does_not_serve(fresh_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its detached digest doesn't hold."""
    path = smoke_of(fresh_run) / "audit.json"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(AskedError):
        find(fresh_run, monkeypatch)


def test_a_failed_smoke_session_stops_the_formal_one(fresh_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the exit code, the end of its log and where the whole log is."""
    tree = Places(tree_of(fresh_run))
    monkeypatch.setenv("HARNESS_ROOT", str(tree.root))
    (tree.gates / "conftest.py").write_text("raise SystemExit('broken')\n")
    smoke_of(fresh_run).rename(tree.root / "elsewhere")
    loaded = load_protocol(MINI, tree)
    call = SmokeCall(
        make_request(loaded, "formal", "formal-new", NOTHING, tree),
        tree,
        None,
        None,
        "none",
    )
    with pytest.raises(SessionError, match=r"expected all smoke gates passed, found exit code .*broken.*session\.log"):
        passed_smoke(loaded, RunFolder(fresh_run.with_name("formal-new")), call)
    assert not (fresh_run.with_name("formal-new") / "smoke.json").exists()
