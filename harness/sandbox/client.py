"""Talking to the engine: one connection a thread, and every way of not answering as one of two things.

LostError: the engine, or a container in it, went away; whoever runs a candidate makes `infrastructure` of it.
SandboxError: there was nothing to talk to. It knows no contract and no candidate.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import APIError, DockerException, NotFound
from docker.utils import kwargs_from_env
from requests.exceptions import RequestException

from harness.errors import SandboxError

ANSWER_S = 60  # how long an engine may take for one answer; starts under load take a second or two


class LostError(Exception):
    """The engine or the container went away. `str()` is one fixed word."""


class Client:
    """An engine's address, and a connection for each thread that uses it."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[docker.APIClient] = []
        self._lock = threading.Lock()
        self.version = self._api_version()

    @property
    def api(self) -> docker.APIClient:
        """The calling thread's connection."""
        found: docker.APIClient | None = getattr(self._local, "api", None)
        if found is None:
            found = _connect(self.version)
            with self._lock:
                self._all.append(found)
            self._local.api = found
        return found

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            for one in self._all:
                one.close()
            self._all.clear()

    def _api_version(self) -> str:
        try:
            _knock()
            api = _connect("auto")
        except (DockerException, RequestException, OSError) as error:
            raise _no_engine(error) from error
        try:
            return str(api.api_version)
        finally:
            api.close()


def _connect(version: str) -> docker.APIClient:
    return docker.APIClient(version=version, timeout=ANSWER_S, **kwargs_from_env())


def _knock() -> None:
    """Try a local engine's socket: the SDK leaves its own unclosed where nobody is there."""
    address = os.environ.get("DOCKER_HOST") or DEFAULT_UNIX_SOCKET.replace("http+unix", "unix")
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as plug:
            plug.connect(address.removeprefix("unix://"))


def _no_engine(error: BaseException) -> SandboxError:
    return SandboxError(
        f"container engine at {os.environ.get('DOCKER_HOST') or 'the default socket (DOCKER_HOST is not set)'}",
        expected="an engine that answers",
        found=first_line(error),
        todo="Start dockerd, or name a running engine in DOCKER_HOST.",
    )


def first_line(error: BaseException) -> str:
    """An error's first line, short: an engine's messages can be pages."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


@contextmanager
def engine_answers() -> Iterator[None]:
    """What an engine that went away raises inside becomes LostError; an engine's refusal stays its own error."""
    try:
        yield
    except NotFound as error:
        raise LostError("container_lost") from error
    except APIError:
        raise
    except (DockerException, RequestException, OSError) as error:
        raise LostError("engine_lost") from error
