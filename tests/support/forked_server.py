"""A program: an interpreter that has imported what it is told, off which processes are forked for whoever asks.

`python forked_server.py LISTENING MODULE...`, LISTENING the descriptor of a Unix socket that is bound and listens; a
module may be followed by `:FUNCTION:WORD`, a call by which it makes a table that it keeps. Who
connects hands over a case as a line of JSON and the descriptors for its streams, reads the process's ID and then its
exit code. A fork is left alone by its asker's end, as a child is by its parent's: the process between them ends then,
so that a fork which watches its parent sees it go.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "PYTORCH_", "CUDA", "CUBLAS")
# Of the installed plugins some are refused by pytest once a library has imported them; these are what gates need.
PLUGINS = ("-p", "xdist.plugin", "-p", "syrupy")
MESSAGE = 1 << 16
WORKER = [sys.executable, "-u", "-c"]  # how execnet starts one of xdist's workers, before the code that it is told


def read_at_start(environment):
    """The variables that an interpreter or a library reads when it starts; the search path can be given to a fork."""
    named = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    return {name: value for name, value in named.items() if name != "PYTHONPATH"}


def case_of(module, arguments, *, cwd, environment, servers=()):
    """`python -m MODULE ARGUMENTS`, or `python -c CODE` where the module is `-c`.

    `servers`: addresses for what it starts itself, each with what it started under.
    """
    pytest = module == "pytest"
    return {
        "module": module,
        "arguments": [*arguments, *(PLUGINS if pytest else ())],
        "cwd": str(cwd),
        "env": {**environment, **({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if pytest else {})},
        "path": search_path(environment),
        "servers": [*servers],
    }


def search_path(environment):
    """The folders of PYTHONPATH."""
    return [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]


class Forked:
    """A process forked off a server, with what is used of `subprocess.Popen`."""

    stdin = stdout = None  # a worker's

    def __init__(self, address, case, *streams):
        """Ask for it; `case`: see `case_of`. `streams`: its output's descriptor, or those of all three."""
        self.args, self.returncode = case["arguments"], None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        socket.send_fds(self._connection, [json.dumps(case).encode() + b"\n"], streams)
        self._answers = self._connection.makefile("rb")
        self.pid = int(self._answers.readline())

    def poll(self):
        """The exit code, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout=None):
        """The exit code once it has ended."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def kill(self):
        """End it at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, _=None, timeout=None):
        """Nothing is said to it and its output isn't read here; it has ended when this returns."""
        self.wait(timeout)
        return None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()


def patched(real, servers):
    """`subprocess.Popen` that forks the harness's children and xdist's workers where a server's fork is the same."""

    class Popen(real):
        def __new__(cls, command, **options):
            address = address_for(command, options, servers)
            if address is None:
                return super().__new__(cls)
            if is_worker(command, options):
                return worker(address, command[3:], servers)
            cwd = options.get("cwd") or Path.cwd()
            case = case_of(command[2], command[3:], cwd=cwd, environment=options["env"], servers=servers)
            return Forked(address, case, options["stdout"].fileno())

    return Popen


def address_for(command, options, servers):
    """The server for a command; None for any but `generate`, smoke sessions and workers, and where none serves it."""
    if not is_worker(command, options):
        ours = isinstance(command, list) and command[:2] == [sys.executable, "-m"]
        if not ours or (command[2:4] != ["harness", "generate"] and command[2] != "pytest"):
            return None
        if options.get("stderr") != subprocess.STDOUT or options.get("stdin") != subprocess.DEVNULL:
            return None
    wanted = read_at_start(options.get("env", os.environ))
    return next((address for address, start in servers if start == wanted), None)


def is_worker(command, options):
    """Whether execnet starts a worker: one that is told over pipes what it is to be, in this process's environment."""
    piped = options == {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return piped and isinstance(command, list) and command[:3] == WORKER


def worker(address, code, servers):
    """A worker of xdist's, forked; its other ends of the pipes are closed here, so that its end is seen."""
    case = case_of("-c", code, cwd=Path.cwd(), environment=os.environ, servers=servers)
    (told, tell), (hear, said) = os.pipe(), os.pipe()
    forked = Forked(address, case, told, said, 2)
    os.close(told), os.close(said)
    forked.stdin, forked.stdout = open(tell, "wb"), open(hear, "rb")  # noqa: PTH123, SIM115 - descriptors, as a Popen's
    return forked


def serve(listening):
    """Fork one process for each that asks, which forks what was asked for, until whoever started this is gone."""
    signal.signal(signal.SIGCHLD, reap)
    while listening in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            return attend(connection)
        connection.close()
    sys.exit()


def reap(*_):
    """Take note of those that ended, so that their processor time is counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def attend(connection):
    """The case, in the process that is to be it; the process that waits for it doesn't return."""
    data, streams, _, _ = socket.recv_fds(connection, MESSAGE, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(MESSAGE)
    if (child := os.fork()) == 0:
        connection.close()
        return json.loads(data), streams
    for one in streams:
        os.close(one)
    connection.sendall(b"%d\n" % child)
    ended = os.pidfd_open(child)
    if ended in select.select([ended, connection], [], [])[0]:
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def become(case, streams):
    """The files, environment, folder and search path of a fresh `python -m MODULE ARGUMENTS`, which is then run."""
    if len(streams) == 1:
        streams = [os.open(os.devnull, os.O_RDONLY), *streams, os.dup(*streams)]
    for at, one in enumerate(streams):
        os.dup2(one, at)
        os.close(one)
    os.chdir(case["cwd"])
    os.environ.clear()
    os.environ.update(case["env"])
    sys.path[:] = [case["cwd"], *case["path"], *sys.path[1:]]
    subprocess.Popen = patched(subprocess.Popen, case["servers"])
    if case["module"] == "pytest":
        import pytest

        sys.argv[:] = [pytest.__file__.replace("__init__", "__main__"), *case["arguments"]]
        sys.exit(pytest.main(case["arguments"]))
    if case["module"] == "-c":
        sys.argv[:] = ["-c"]
        sys.exit(exec(case["arguments"][0], {"__name__": "__main__"}))
    sys.argv[:] = [case["module"], *case["arguments"]]
    runpy.run_module(case["module"], run_name="__main__", alter_sys=True)


def main():
    """Import, then serve."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        module, *call = name.split(":")
        imported = importlib.import_module(module)
        if call:
            getattr(imported, call[0])(call[1])
    import pytest  # noqa: F401 - what a session is

    gc.freeze()
    become(*serve(listening))


if __name__ == "__main__":
    main()
