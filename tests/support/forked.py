"""Sessions forked off an interpreter that has imported what is slow to import, so that each costs its own work only.

A forked session is a process with its own files, environment, folder and search path, and it ends as an interpreter
ends. So are its smoke run, the parts that it has made apart and xdist's workers: processes of their own, with the hash
seed that they ask for. Whatever a session that isn't forked starts is a fresh interpreter, as everywhere. What an
interpreter or a library reads when it starts can't be given to a fork: see `serves`. Forks that ask for no hash seed
share one; workers with different ones are those of the sessions in fresh interpreters (`plugin/test_devices.py`).
"""

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.run.child import another_hash_seed

from .forked_server import Forked, case_of, read_at_start, search_path

SERVER = Path(__file__).with_name("forked_server.py")
PROJECT = SERVER.parents[2]
LIBRARIES = (
    "numpy", "torch", "transformers.models.deepseek_v2.modeling_deepseek_v2", "tokenizers",
    "transformers.conversion_mapping:get_checkpoint_conversion_mapping:deepseek_v2",
    "typer._adapters", "typer._click.decorators", "rich.console", "rich.table", "rich.panel",
    "harness.inputs.sources", "harness.snapshots.judgements", "harness.snapshots.baseline", "harness.ledgers.close",
    "harness.claims.judge", "harness.prompts.build",
    "harness.claims.writeup", "harness.verify.attest", "harness.difference.make", "harness.explain.make",
    *(f"harness.checks.{path.stem}" for path in sorted((PROJECT / "harness/checks").glob("[a-z]*.py"))),
)  # fmt: skip
"""Of the harness what reads and judges alone. What makes a run, and the plugin, are imported by each session: what is
planted there is met as in a fresh interpreter."""


class Server:
    """An interpreter with `modules` imported, started under `environment`."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self.start = read_at_start(environment)
        self._folder = tempfile.TemporaryDirectory(prefix="pregate-forks-")
        self.address = f"{self._folder.name}/socket"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.address)
            listening.listen()
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(listening.fileno()), *modules],
                env={**environment},
                stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                stdout=subprocess.DEVNULL,
                pass_fds=[listening.fileno()],
                start_new_session=True,
            )

    def close(self) -> None:
        """End it, and what was forked off it and still runs."""
        with self._process, self._folder:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)


class Forks:
    """Sessions off one interpreter with `modules` imported. `environment` is what that starts under.

    `children`: whether what a session starts to generate, its smoke session and its workers are forked too, wherever a
    fork is the same. A child has another hash seed than its session, and so comes off an interpreter of its own.
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str], *, children: bool = False) -> None:
        self._servers = [Server(modules, environment)]
        if children:
            seed = another_hash_seed(environment.get("PYTHONHASHSEED", ""))
            self._servers.append(Server(modules, {**environment, "PYTHONHASHSEED": seed}))
        self._children = [(one.address, one.start) for one in self._servers] if children else []

    def serves(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork is what a fresh interpreter under this environment would be.

        Not so where variables differ that are read when an interpreter or a library starts, nor where a folder of
        PYTHONPATH plants a `sitecustomize`.
        """
        planted = any(Path(folder, "sitecustomize.py").exists() for folder in search_path(environment))
        return not planted and self._server(environment) is not None

    def run(
        self, arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], output: Path, timeout_s: float
    ) -> int:
        """The exit code of `python -m pytest ARGUMENTS`; the negative signal where one ended it. Output to a file."""
        session = self.start("pytest", arguments, cwd=cwd, environment=environment, output=output)
        try:
            return session.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.close()
            raise

    def start(
        self, module: str, arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], output: Path
    ) -> Forked:
        """`python -m MODULE ARGUMENTS`, begun; with what is used of a Popen. Output to a file."""
        case = case_of(module, arguments, cwd=cwd, environment=environment, servers=self._children)
        with output.open("wb") as stream:
            return Forked((self._server(environment) or self._servers[0]).address, case, stream.fileno())

    def _server(self, environment: Mapping[str, str]) -> Server | None:
        wanted = read_at_start(environment)
        return next((one for one in self._servers if one.start == wanted), None)

    def close(self) -> None:
        """End the interpreters, and a session that is still running with them."""
        for one in self._servers:
            one.close()


_LIBRARIES: list[Forks] = []


def with_libraries(environment: Mapping[str, str]) -> Forks:
    """A test process's driver with `LIBRARIES`, started at the first call under that call's environment."""
    if not _LIBRARIES:
        own = {**environment, "PYTHONPATH": str(PROJECT)}
        _LIBRARIES.append(Forks(LIBRARIES, own, children=True))
        atexit.register(_LIBRARIES[0].close)
    return _LIBRARIES[0]
