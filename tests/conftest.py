"""The harness's own tests: one hypothesis profile, shared fixtures, and no skips.

Tests marked `inputs` need the registered data files, tests marked `docker` a container engine and its image, tests
marked `cuda` a GPU, tests marked `browser` a chromium, tests marked `smollm2` the converted checkpoint; without
HARNESS_INPUTS, HARNESS_SANDBOX_IMAGE, HARNESS_CUDA, HARNESS_BROWSER or HARNESS_SMOLLM2 they are deselected and listed
as not run. So are tests marked `ssh_keygen` or `openssl` where that program isn't on the path.
"""

import gc
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

try:
    from hypothesis import settings
except ModuleNotFoundError:  # an environment for runs alone; asked for help there, pytest reads this file all the same
    settings = None

NOT_RUN = pytest.StashKey[dict[str, list[str]]]()
NEEDS = {
    "inputs": "HARNESS_INPUTS",
    "docker": "HARNESS_SANDBOX_IMAGE",
    "cuda": "HARNESS_CUDA",
    "browser": "HARNESS_BROWSER",
    "smollm2": "HARNESS_SMOLLM2",
}
PROGRAMS = {"ssh_keygen": "ssh-keygen", "openssl": "openssl"}
SUPPORT = Path(__file__).parent / "support"

if settings is not None:
    settings.register_profile("pregate", deadline=None, derandomize=True, database=None, print_blob=False)
    settings.load_profile("pregate")


def pytest_configure(config: pytest.Config) -> None:
    """Register the shared fixtures; one error where the tests' own packages aren't installed."""
    if settings is None:
        if config.option.help or config.option.version:
            return
        raise pytest.UsageError("the harness's own tests need the extra dev: run `make test`, or name gates/.")
    config.stash[NOT_RUN] = {}
    _keep_bytecode(config)
    config.pluginmanager.register(_support("fixtures"), "support-fixtures")


def _keep_bytecode(config: pytest.Config) -> None:
    """Where no bytecode may be written beside the sources, the many child interpreters share a folder that goes again.

    Else each would compile all of the harness. Workers inherit the variables, set before they start.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        folder = tempfile.mkdtemp(prefix="pregate-bytecode-")
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """No garbage is looked for among sixteen thousand tests while they are made, nor among them afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what needs something that isn't there; a test that lacks two things is listed under the first.

    What is left begins with the files that take longest (see `order`).
    """
    missing = {marker: name for marker, name in NEEDS.items() if not os.environ.get(name)}
    missing |= {marker: name for marker, name in PROGRAMS.items() if shutil.which(name) is None}
    for marker, name in missing.items():
        without = {item: None for item in items if item.get_closest_marker(marker) is not None}
        config.stash[NOT_RUN][name] = [item.nodeid for item in without]
        config.hook.pytest_deselected(items=[*without])
        items[:] = [item for item in items if item not in without]
    items[:] = _support("order").longest_first(items, SUPPORT.parent)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its lists to the controller, which collects nothing itself."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["not_run"] = session.config.stash[NOT_RUN]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """All workers collect the same, so the last one's lists stand for all."""
    node.config.stash[NOT_RUN] = getattr(node, "workeroutput", {}).get("not_run", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what was not run."""
    for variable, names in config.stash[NOT_RUN].items():
        if names:
            terminalreporter.section(f"not run: needs {variable}")
            for name in names:
                terminalreporter.write_line(name)
            terminalreporter.write_line(f"{len(names)} tests not run")


def _support(name: str) -> ModuleType:
    """A module of `tests/support`."""
    return importlib.import_module(f"pregate_support.{name}")


def _package() -> None:
    """`tests/support` as the package `pregate_support`: importlib mode leaves no folder on the path."""
    if "pregate_support" not in sys.modules:
        package = importlib.util.module_from_spec(
            importlib.util.spec_from_loader("pregate_support", loader=None, is_package=True)
        )
        package.__path__ = [str(SUPPORT)]
        sys.modules["pregate_support"] = package


_package()  # on import: the conftest of a folder that is named on the command line is read before `pytest_configure`
