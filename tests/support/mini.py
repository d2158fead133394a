"""A small copy of the project's tree, and sessions over it as subprocesses. Knows pytest's command line and no verdict.

Protocol `mini-behavior` is `nano-behavior` with two domains, one source each and a few tokens; all counts follow.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cli.freeze import freeze_protocol
from harness.errors import ProtocolError
from harness.places import Places
from harness.protocols.grids import gate_rows, unit_keys
from harness.protocols.load import read_profile
from harness.records.base import convert
from harness.records.protocol import AnyProtocol

PROJECT = Path(__file__).resolve().parents[2]
MINI = "mini-behavior"
DOMAINS = ("code", "math")
TOKENS = {"smoke": 8, "formal": 12, "long_repro": 12}
TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Result:
    """What a session left: exit code, output, and the run folder it was given or chose."""

    code: int
    output: str
    run: Path | None

    @property
    def junit(self) -> Path:
        """The session's JUnit file."""
        return self._file("junit.xml")

    @property
    def audit(self) -> dict[str, Any]:
        """The session's audit record."""
        content: dict[str, Any] = json.loads(self._file("audit.json").read_bytes())
        return content

    def _file(self, name: str) -> Path:
        if self.run is None:
            raise RuntimeError(f"the session left no run folder: {self.output}")
        return self.run / name


def make_tree(root: Path, **changes: Any) -> Path:
    """A tree with the project's gates, its nano model and pools, and the frozen protocol `mini-behavior`.

    `changes` replace top-level fields of protocol.toml. The model's files are copied once, beside the tree, and linked.
    """
    _copy_model(root.with_name(f"{root.name}-checkpoint"))
    root.mkdir(parents=True)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copyfile(PROJECT / name, root / name)
    shutil.copytree(PROJECT / "gates", root / "gates", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "fixtures/nano/pools", root / "fixtures/nano/pools")
    model = root / "fixtures/models/nano"
    model.mkdir(parents=True)
    shutil.copyfile(PROJECT / "fixtures/models/nano/profile.toml", model / "profile.toml")
    (model / "checkpoint").symlink_to(root.with_name(f"{root.name}-checkpoint"), target_is_directory=True)
    (root / "snapshots").mkdir()
    (root / "reports").mkdir()
    add_protocol(root, **changes)
    return root


def add_protocol(root: Path, protocol_id: str = MINI, **changes: Any) -> None:
    """Write and freeze another small protocol in the tree."""
    folder = root / "fixtures/protocols" / protocol_id
    folder.mkdir(parents=True)
    content = _mini(PROJECT / "fixtures/protocols/nano-behavior/protocol.toml", root) | {"id": protocol_id} | changes
    (folder / "protocol.toml").write_text(_toml(content), encoding="utf-8")
    freeze_protocol(protocol_id, [], checkpoint=None, tree=Places(root))


def copy_tree(tree: Path, target: Path) -> Path:
    """The tree with its runs and snapshots; the model's files stay linked."""
    shutil.copytree(tree, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    return target


def run_gates(
    tree: Path,
    *arguments: str,
    protocol: str | None = MINI,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """`python -m pytest gates ARGUMENTS --protocol mini-behavior` in the tree, and the run folder it used or made."""
    reports = tree / "reports"
    before = set(reports.glob("*/*"))
    named = [] if protocol is None else ["--protocol", protocol]
    code, output = run_pytest(tree, "gates", *arguments, *named, env=env, cwd=cwd)
    made = [
        path
        for path in set(reports.glob("*/*")) - before
        if not path.name.startswith("smoke") or "formal" not in arguments
    ]
    given = [arguments[at + 1] for at, one in enumerate(arguments[:-1]) if one == "--run"]
    run = Path(tree, given[0]) if given else (sorted(made)[0] if made else None)
    return Result(code, output, run)


def run_pytest(
    tree: Path, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    """(exit code, output) of `python -m pytest ARGUMENTS` with the tree as HARNESS_ROOT."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=cwd or tree,
        env=environment(tree, env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=TIMEOUT_S,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def environment(tree: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a session over the tree: nothing of the outer session's reaches it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "HARNESS_"))}
    # Threads that wait without spinning: on a busy machine a two-thread variant would take a minute.
    return kept | {"HARNESS_ROOT": str(tree), "OMP_WAIT_POLICY": "PASSIVE"} | dict(extra or {})


def _copy_model(target: Path) -> None:
    if not target.exists():
        shutil.copytree(PROJECT / "fixtures/models/nano/checkpoint", target)


def _mini(path: Path, root: Path) -> dict[str, Any]:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    content["registered_id"] = "pregate-mini-special-token-behavior-v1"
    content["title"] = "Two sources of nano, for tests of the harness"
    content["domains"] = [one for one in content["domains"] if one["name"] in DOMAINS]
    used = {one["input"] for one in content["domains"]}
    content["inputs"] = [one for one in content["inputs"] if one["name"] in used]
    for name, grid in content["grids"].items():
        grid |= {"per_domain": 1, "max_new_tokens": TOKENS[name]}
    _count(content, root)
    return content


def _count(content: dict[str, Any], root: Path) -> None:
    protocol = convert(content, AnyProtocol, where="mini", error=ProtocolError, todo="")
    profile = read_profile(root / "fixtures/models/nano/profile.toml")
    sources = {(name, 0): name for name in DOMAINS}
    for gate, plain in zip(protocol.gates, content["gates"], strict=True):
        for at in plain["tiers"].values():
            at["count"] = len(gate_rows(protocol, profile, gate, unit_keys(protocol, sources, at["grid"], DOMAINS)))


def _toml(content: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_value(value)}\n" for name, value in content.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)
