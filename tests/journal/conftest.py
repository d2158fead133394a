"""One real run folder of the mini protocol, read only, and tools to alter a journal's JSON leaf by leaf.

A depth run's folder is made by hand (`tests/support/traces.py`).
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pregate_support.traces import land_traces

from harness.canon import digest
from harness.journal.folder import RunFolder, journals
from harness.places import Places
from harness.protocols.load import LoadedProtocol, load_protocol

Leaf = tuple[str | int, ...]


@dataclass(frozen=True)
class Altered:
    """A journal's plain content, and a place to write altered copies of it."""

    content: dict[str, Any]
    path: Path

    def leaves(self, prefix: Leaf) -> Iterator[Leaf]:
        """Paths of all numbers, texts and truth values below a prefix; `"*"` stands for every index."""
        yield from _leaves(self.content, (), prefix)

    def write(self, leaf: Leaf, *, signed: bool = False) -> Path:
        """A copy with another value at one leaf; `signed`: with an evidence digest that fits again."""
        altered = json.loads(json.dumps(self.content))
        holder = altered
        for step in leaf[:-1]:
            holder = holder[step]
        holder[leaf[-1]] = other(holder[leaf[-1]])
        if signed:
            altered["evidence_sha256"] = digest(altered["evidence"])
        self.path.write_text(json.dumps(altered), encoding="utf-8")
        return self.path


def other(value: Any) -> Any:
    """Another value of the same kind; hex digests stay hex."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value + 0.5
        case str() if value and value[-1] in "0123456789abcdef":
            return value[:-1] + ("0" if value[-1] != "0" else "1")
        case str():
            return f"{value}x"
    raise NotImplementedError(f"no other value for {value!r}")


def _leaves(value: Any, at: Leaf, prefix: Leaf) -> Iterator[Leaf]:
    if prefix:
        steps = range(len(value)) if prefix[0] == "*" else (prefix[0],)
        for step in steps:
            yield from _leaves(value[step], (*at, step), prefix[1:])
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*at, name), ())
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*at, index), ())
    else:
        yield at


@pytest.fixture(scope="session")
def loaded(formal_run) -> LoadedProtocol:
    """The mini protocol of the run's tree."""
    return load_protocol(formal_run.parent.name, Places(formal_run.parents[2]))


@pytest.fixture
def folder(fresh_run) -> RunFolder:
    """A copy of the run, to be damaged."""
    return RunFolder(fresh_run)


@pytest.fixture
def altered(formal_run, tmp_path) -> Altered:
    """The first journal of the run."""
    first = next(journals(RunFolder(formal_run)))
    return Altered(json.loads(first.read_bytes()), tmp_path / first.name)


@pytest.fixture(scope="session")
def alterable() -> type[Altered]:
    """`alterable(content, path)`, for tests that can't import this file."""
    return Altered


@pytest.fixture(scope="session")
def depth() -> LoadedProtocol:
    """The nano depth protocol of this tree."""
    return load_protocol("nano-depth")


@pytest.fixture(scope="session")
def landed(depth, tmp_path_factory) -> RunFolder:
    """A depth run's smoke grid, made by hand, not yet closed. Read only."""
    return land_traces(tmp_path_factory.mktemp("traces") / "run", depth)


@pytest.fixture
def traced(landed, tmp_path) -> RunFolder:
    """A copy of it, to be damaged."""
    shutil.copytree(landed.path, tmp_path / "traced")
    return RunFolder(tmp_path / "traced")
