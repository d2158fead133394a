"""Sessions forked off an interpreter that has imported what is slow to import, so that each costs its own work only.

A forked session is a process with its own files, environment, folder and search path, and it ends as an interpreter
ends. What it starts itself isn't forked: smoke runs, parts made apart and xdist's workers are fresh interpreters, as
everywhere. What an interpreter or a library reads when it starts can't be given to a fork: see `serves`.
"""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DRIVER = """
import gc, importlib, json, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import pytest
asked, replies = os.dup(0), os.dup(1)
gc.freeze()
for line in open(asked, "rb", closefd=False):
    case = json.loads(line)
    child = os.fork()
    if child == 0:
        nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(case["output"], os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(nothing, 0), os.dup2(output, 1), os.dup2(output, 2)
        for one in (nothing, output, asked, replies):
            os.close(one)
        os.chdir(case["cwd"])
        os.environ.clear()
        os.environ.update(case["env"])
        sys.path[:] = [case["cwd"], *case["path"], *sys.path[1:]]
        sys.argv[:] = [pytest.__file__.replace("__init__", "__main__"), *case["arguments"]]
        sys.exit(pytest.main(case["arguments"]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(replies, b"%d\\n" % code)
"""
# Libraries alone: what is planted before the harness is imported is met as in a fresh interpreter.
LIBRARIES = ("numpy", "torch", "transformers.models.deepseek_v2.modeling_deepseek_v2")
PLUGINS = ("-p", "xdist.plugin", "-p", "syrupy")
READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "PYTORCH_", "CUDA", "CUBLAS")


class Forks:
    """Sessions off one interpreter with `modules` imported. `environment` is what that starts under."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._start = _read_at_start(environment)
        self._driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *modules],
            env={**environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def serves(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is what a fresh interpreter under this environment would be.

        Not so where variables differ that are read when an interpreter or a library starts, nor where a folder of
        PYTHONPATH plants a `sitecustomize`.
        """
        planted = any(Path(folder, "sitecustomize.py").exists() for folder in _search_path(environment))
        return not planted and _read_at_start(environment) == self._start

    def run(
        self, arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], output: Path, timeout_s: float
    ) -> int:
        """The exit code of `python -m pytest ARGUMENTS`; the negative signal where one ended it. Output to a file."""
        case = {
            "arguments": [*arguments],
            "cwd": str(cwd),
            "env": {**environment},
            "path": _search_path(environment),
            "output": str(output),
        }
        if self._driver.stdin is None or self._driver.stdout is None:
            raise RuntimeError("the driver was started with pipes")
        self._driver.stdin.write(json.dumps(case).encode() + b"\n")
        self._driver.stdin.flush()
        answered, _, _ = select.select([self._driver.stdout], [], [], timeout_s)
        if not answered:
            self.close()
            raise subprocess.TimeoutExpired(["pytest", *arguments], timeout_s)
        answer = self._driver.stdout.readline()
        if not answer:
            raise RuntimeError(f"the driver ended before its session: exit code {self._driver.wait()}")
        return int(answer)

    def close(self) -> None:
        """End the driver, and a session that is still running with it."""
        with self._driver:
            if self._driver.poll() is None:
                os.killpg(self._driver.pid, signal.SIGKILL)


_LIBRARIES: list[Forks] = []


def with_libraries(environment: Mapping[str, str]) -> Forks:
    """A test process's driver with `LIBRARIES`, started at the first call under that call's environment."""
    if not _LIBRARIES:
        own = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        _LIBRARIES.append(Forks(LIBRARIES, own))
        atexit.register(_LIBRARIES[0].close)
    return _LIBRARIES[0]


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    named = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    return {name: value for name, value in named.items() if name != "PYTHONPATH"}


def _search_path(environment: Mapping[str, str]) -> list[str]:
    return [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
