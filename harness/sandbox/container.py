"""One container's life: created, inspected, attached, started, spoken to, ended, removed. Never used twice.

Bytes in, bytes out: it knows lines, deadlines and the engine's word on how a container ended, and no outcome.
"""

import socket
import time
from dataclasses import dataclass
from typing import Any, Self

from docker.errors import APIError

from harness.records.sandbox import LimitsInForce, SandboxContract
from harness.sandbox.bundle import COMMAND, prefixed
from harness.sandbox.client import Client, LostError, engine_answers
from harness.sandbox.contract import container_settings, host_settings, limits_in_force, require_in_force
from harness.sandbox.verdict import LINES_LIMIT, READY, STARTED, Ending

START_S = 120.0  # from start to the first line, and from the payload to the second
GRACE_S = 5.0  # after the deadline, for a checker that hardly gets a turn
EXIT_S = 20  # from the end of what it says to its end
AFTERMATH_S = 0.5
REMOVALS = 3
STDOUT = 1
LINES = 3  # all that a checker says
CHECKERS_OWN = (0, 1, 2)  # exit codes


class OverdueError(Exception):
    """A container said nothing more in its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What every container of an engine object has in common. `owner`: the label's value."""

    image_id: str
    contract: SandboxContract
    owner: str


class Container:
    """A created container under limits that were read back."""

    def __init__(self, client: Client, container_id: str, limits: LimitsInForce) -> None:
        self.id = container_id
        self.limits = limits
        self._client = client
        self._stream: Any = None
        self._unread = bytearray()
        self._said = bytearray()

    @classmethod
    def create(cls, client: Client, order: Order) -> Self:
        """Create and inspect. Raises SandboxError where a flag isn't in force, LostError, and the engine's refusals."""
        api = client.api
        with engine_answers():
            host = api.create_host_config(**host_settings(order.contract))
            settings = container_settings(order.contract, list(COMMAND), order.owner)
            made: str = api.create_container(order.image_id, host_config=host, **settings)["Id"]
        try:
            with engine_answers():
                limits = limits_in_force(api.inspect_container(made))
            require_in_force(order.contract, limits)
        except BaseException:  # an interrupt too leaves no container behind
            remove(client, made)
            raise
        return cls(client, made, limits)

    def start(self, program: bytes) -> None:
        """Attach, so that nothing it says is lost, start, and send the program that it runs.

        Raises LostError and the engine's refusals.
        """
        api = self._client.api
        with engine_answers():
            self._stream = api.attach_socket(self.id, params={"stdin": 1, "stdout": 1, "stream": 1})
            api.start(self.id)
        try:
            self._send(prefixed(program))
        except OverdueError:
            raise LostError("engine_lost") from None

    def converse(self, payload: bytes, deadline_s: float) -> Ending:
        """Hand the payload over when the container is ready, and hear it out. Raises LostError."""
        try:
            self._hear_out(payload, deadline_s)
        except OverdueError:
            self.kill()
            return Ending(bytes(self._said), exit_code=None, oom_killed=self._oom_killed(), overdue=True, lost="")
        return self._ending()

    def kill(self) -> None:
        """End it now, as far as that can be had: it may have ended, or take longer than an engine waits for it."""
        try:
            with engine_answers():
                self._client.api.kill(self.id)
        except (LostError, APIError):
            return

    def hang_up(self) -> None:
        """Close the stream: a container that still waits for its payload ends by itself."""
        if self._stream is not None:
            self._stream._sock.close()
            self._stream.close()

    def _hear_out(self, payload: bytes, deadline_s: float) -> None:
        limit, sent, started = time.monotonic() + START_S, False, False
        while self._hear(limit):
            lines = bytes(self._said).split(b"\n")[:-1]
            if not sent and READY in lines:
                limit, sent = time.monotonic() + START_S, True
                self._send(payload)
            if not started and STARTED in lines:
                limit, started = time.monotonic() + deadline_s + GRACE_S, True
            if len(lines) == LINES:
                return

    def _hear(self, limit: float) -> bool:
        """Some more of what it says; false at the end, or where it says more than a checker would."""
        data = self._receive(limit)
        self._unread += data
        while len(self._unread) >= 8:
            size = int.from_bytes(self._unread[4:8], "big")
            if len(self._unread) < 8 + size or len(self._said) > LINES_LIMIT:
                break
            if self._unread[0] == STDOUT:
                self._said += self._unread[8 : 8 + size]
            del self._unread[: 8 + size]
        return bool(data) and max(len(self._said), len(self._unread)) <= LINES_LIMIT

    def _receive(self, limit: float) -> bytes:
        plug: socket.socket = self._stream._sock
        left = limit - time.monotonic()
        if left <= 0:
            raise OverdueError
        plug.settimeout(left)
        try:
            return plug.recv(1 << 16)
        except TimeoutError:
            raise OverdueError from None
        except OSError:  # how an engine closes a stream isn't news: the container's state is
            return b""

    def _send(self, payload: bytes) -> None:
        plug: socket.socket = self._stream._sock
        plug.settimeout(START_S)
        try:
            plug.sendall(payload)
        except TimeoutError:
            raise OverdueError from None
        except OSError:  # it has ended: what it said and its state tell why
            return

    def _ending(self) -> Ending:
        """How it ended, once it has: asked after the end of the stream, so there is little to wait for."""
        if len(self._said) > LINES_LIMIT or len(self._unread) > LINES_LIMIT:
            self.kill()
        code = self._exit_code()
        if code is not None and code not in CHECKERS_OWN:
            time.sleep(AFTERMATH_S)  # a container that somebody is removing is lost, not dead: then it is gone by now
        oom = code != 0 and self._oom_killed()
        return Ending(bytes(self._said), exit_code=code, oom_killed=oom, overdue=code is None, lost="")

    def _exit_code(self) -> int | None:
        """None where it had to be killed: with an engine that answers, not ending in time is its own doing."""
        try:
            with engine_answers():
                return int(self._client.api.wait(self.id, timeout=EXIT_S)["StatusCode"])
        except LostError as lost:
            if str(lost) != "engine_lost":
                raise
        with engine_answers():
            state = self._client.api.inspect_container(self.id)["State"]
        if not state["Running"]:
            return int(state["ExitCode"])
        self.kill()
        return None

    def _oom_killed(self) -> bool:
        with engine_answers():
            return bool(self._client.api.inspect_container(self.id)["State"]["OOMKilled"])


def remove(client: Client, container_id: str) -> bool:
    """Remove a container, running or not; whether it is gone, by a look and not by the engine's word.

    An engine gives up on one that takes long to end, and answers before it has.
    """
    for _ in range(REMOVALS):
        try:
            with engine_answers():
                client.api.remove_container(container_id, force=True)
        except LostError as lost:
            return str(lost) == "container_lost"
        except APIError:
            pass  # it is asked again
        if is_gone(client, container_id):
            return True
        time.sleep(AFTERMATH_S)
    return False


def is_gone(client: Client, container_id: str) -> bool:
    """Whether the engine knows no such container; false where it doesn't say."""
    try:
        with engine_answers():
            client.api.inspect_container(container_id)
    except LostError as lost:
        return str(lost) == "container_lost"
    except APIError:
        return False
    return False
