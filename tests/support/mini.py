"""A small copy of the project's tree, and sessions over it as subprocesses. Knows pytest's command line and no verdict.

Protocol `mini-behavior` is `nano-behavior` with two domains, one source each and a few tokens; all counts follow.
`mini-completion` is `nano-completion` over the same two sources, its baseline an accepted run of `mini-behavior`; its
code pool is a copy in which every test carries TEST_MARK. `mini-depth` is `nano-depth` over these sources and baseline.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.canon import sha256_hex
from harness.cli.freeze import freeze_protocol
from harness.errors import ProtocolError
from harness.places import Places
from harness.protocols.grids import gate_rows, unit_keys
from harness.protocols.load import load_protocol, read_profile
from harness.records.base import convert
from harness.records.protocol import AnyProtocol
from harness.snapshots.store import accept, frozen_folder

from .forked import with_libraries

PROJECT = Path(__file__).resolve().parents[2]
MINI = "mini-behavior"
DOMAINS = ("code", "math")
TOKENS = {"smoke": 8, "formal": 12, "long_repro": 12}
COMPLETION = "mini-completion"
DEPTH = "mini-depth"
BUDGET = 76  # tokens; nano's code cells end by themselves within it, its mathematics is cut
TEST_MARK = "SEALEDTESTTEXT"
TIMEOUT_S = 900
SHOWN = 8000  # characters of a session's output


@dataclass(frozen=True, slots=True)
class Result:
    """What a session left: exit code, output, and the run folder it was given or chose."""

    code: int
    output: str
    run: Path | None

    @property
    def junit(self) -> Path:
        """The session's JUnit file."""
        return self.folder / "junit.xml"

    @property
    def audit(self) -> dict[str, Any]:
        """The session's audit record."""
        content: dict[str, Any] = json.loads((self.folder / "audit.json").read_bytes())
        return content

    @property
    def folder(self) -> Path:
        """The run folder; misuse where the session left none."""
        if self.run is None:
            raise RuntimeError(f"the session left no run folder: {self.output}")
        return self.run


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
    content = _mini(
        PROJECT / "fixtures/protocols/nano-behavior/protocol.toml",
        root,
        TOKENS,
        {"registered_id": "pregate-mini-special-token-behavior-v1"},
    )
    _write(root, content | {"id": protocol_id} | changes)


def make_completion_tree(behavior_run: Path, target: Path, **changes: Any) -> Path:
    """A copy of a behaviour run's tree in which that run is accepted and the baseline of the frozen `mini-completion`.

    `changes` replace top-level fields of its protocol.toml.
    """
    add_completion(_accepted_copy(behavior_run, target), **changes)
    return target


def make_depth_tree(behavior_run: Path, target: Path, **changes: Any) -> Path:
    """The same with the frozen `mini-depth`."""
    add_depth(_accepted_copy(behavior_run, target), **changes)
    return target


def _accepted_copy(behavior_run: Path, target: Path) -> Path:
    tree = behavior_run.parents[2]
    accept(copy_tree(tree, target) / behavior_run.relative_to(tree), Places(target))
    return target


def add_completion(root: Path, protocol_id: str = COMPLETION, *, family: str = "nano", **changes: Any) -> None:
    """Write and freeze another small completion protocol in a tree in which `mini-behavior` was accepted.

    Its sandbox is that of the `family`'s completion protocol, so that a registered image can be had too.
    """
    content = _mini(
        PROJECT / "fixtures/protocols/nano-completion/protocol.toml",
        root,
        dict.fromkeys(("smoke", "formal", "independent"), BUDGET),
        {"registered_id": "pregate-mini-completion-v1", "baseline": accepted_baseline(root)},
    )
    other = PROJECT / f"fixtures/protocols/{family}-completion/protocol.toml"
    content["sandbox"] = tomllib.loads(other.read_text(encoding="utf-8"))["sandbox"]
    _seal_tests(root, next(one for one in content["inputs"] if one["name"] == "nano-code"))
    _write(root, content | {"id": protocol_id} | changes)


def add_depth(root: Path, protocol_id: str = DEPTH, **changes: Any) -> None:
    """Write and freeze another small depth protocol in a tree in which `mini-behavior` was accepted."""
    content = _mini(
        PROJECT / "fixtures/protocols/nano-depth/protocol.toml",
        root,
        dict.fromkeys(("smoke", "formal", "replay"), 0),
        {"registered_id": "pregate-mini-depth-v1", "baseline": accepted_baseline(root)},
    )
    _write(root, content | {"id": protocol_id} | changes)


def accepted_baseline(root: Path) -> dict[str, str]:
    """The accepted run of `mini-behavior`, as a protocol names it."""
    index = frozen_folder(MINI, Places(root)) / "index.json"
    return {
        "state": "frozen",
        "protocol": MINI,
        "protocol_digest": load_protocol(MINI, Places(root)).digest,
        "run_sha256": json.loads(index.read_bytes())["run_sha256"],
        "index_sha256": sha256_hex(index.read_bytes()),
    }


def copy_tree(tree: Path, target: Path, *, without: str | None = None) -> Path:
    """The tree with its runs (but those of a protocol `without`) and snapshots; the model's files stay linked."""

    def left_out(folder: str, names: list[str]) -> set[str]:
        caches = {name for name in names if name in ("__pycache__", ".pytest_cache")}
        return caches | ({without} & {*names} if Path(folder) == tree / "reports" and without else set())

    shutil.copytree(tree, target, symlinks=True, ignore=left_out)
    return target


def run_gates(
    tree: Path,
    *arguments: str,
    protocol: str | None = MINI,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """`python -m pytest gates ARGUMENTS --protocol mini-behavior` in the tree, and the run folder it used or made.

    Forked off an interpreter that has the libraries (see `forked`) wherever a fork is the same. The end of its
    output is printed, so that a test that fails shows it.
    """
    reports = tree / "reports"
    before = set(reports.glob("*/*"))
    named = [] if protocol is None else ["--protocol", protocol]
    code, output = _run_forked(tree, "gates", *arguments, *named, env=env, cwd=cwd)
    print(output[-SHOWN:])
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
    """(exit code, output) of `python -m pytest ARGUMENTS` with the tree as HARNESS_ROOT, in a fresh interpreter."""
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


def _run_forked(
    tree: Path, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    whole = environment(tree, env)
    forks = with_libraries(whole)
    if not forks.serves(whole):
        return run_pytest(tree, *arguments, env=env, cwd=cwd)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        code = forks.run(arguments, cwd=cwd or tree, environment=whole, output=output, timeout_s=TIMEOUT_S)
        return code, output.read_bytes().decode("utf-8", "replace")


def environment(tree: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a session over the tree: nothing of the outer session's reaches it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "HARNESS_"))}
    # Threads that wait without spinning: on a busy machine a two-thread variant would take a minute.
    own = {"HARNESS_ROOT": str(tree), "OMP_WAIT_POLICY": "PASSIVE"} | dict(extra or {})
    # The session imports the harness of these tests, wherever another one is installed.
    planted = [own["PYTHONPATH"]] if "PYTHONPATH" in own else []
    return kept | own | {"PYTHONPATH": os.pathsep.join([*planted, str(PROJECT)])}


def _copy_model(target: Path) -> None:
    if not target.exists():
        shutil.copytree(PROJECT / "fixtures/models/nano/checkpoint", target)


def _mini(
    path: Path, root: Path, tokens: Mapping[str, int], fields: Mapping[str, Any], *, ranks: int = 1
) -> dict[str, Any]:
    content = tomllib.loads(path.read_text(encoding="utf-8")) | fields
    content["title"] = "Two sources of nano, for tests of the harness"
    content["domains"] = [one for one in content["domains"] if one["name"] in DOMAINS]
    used = {one["input"] for one in content["domains"]}
    content["inputs"] = [one for one in content["inputs"] if one["name"] in used]
    for name, grid in content["grids"].items():
        grid |= {"per_domain": ranks, "max_new_tokens": tokens[name]}
    _count(content, root)
    return content


def _write(root: Path, content: Mapping[str, Any]) -> None:
    folder = root / "fixtures/protocols" / content["id"]
    folder.mkdir(parents=True)
    (folder / "protocol.toml").write_text(_toml(content), encoding="utf-8")
    freeze_protocol(content["id"], [root / "fixtures/nano/pools"], checkpoint=None, tree=Places(root))


def _seal_tests(root: Path, registered: dict[str, Any]) -> None:
    """A second code pool, found by its own digest: every test holds TEST_MARK, as a comment and as a message."""
    pools = root / "fixtures/nano/pools"
    tasks = [json.loads(line) for line in (pools / "code.jsonl").read_text(encoding="utf-8").splitlines()]
    for task in tasks:
        task["test"] = f"# {TEST_MARK}\n{task['test']}assert check, '{TEST_MARK}'\n"
    data = "".join(f"{json.dumps(task)}\n" for task in tasks).encode()
    (pools / "code-sealed.jsonl").write_bytes(data)
    registered |= {"file_name": "code-sealed.jsonl", "digest": {"state": "frozen", "sha256": sha256_hex(data)}}


def _count(content: dict[str, Any], root: Path) -> None:
    protocol = convert(content, AnyProtocol, where="mini", error=ProtocolError, todo="")
    profile = read_profile(root / "fixtures/models/nano/profile.toml")
    ranks = max(grid.per_domain for grid in protocol.grids.values())
    sources = {(name, rank): f"{name}-{rank}" for name in DOMAINS for rank in range(ranks)}
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
