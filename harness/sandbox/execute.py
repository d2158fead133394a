"""Executes candidates against tasks, each in a fresh container under the contract (R05 6).

The composition of the package: an engine that was proved fit by `opening`, containers, the checker's payload, and the
record that comes out. It knows no cache and no run folder.
"""

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from docker.errors import APIError

from harness.errors import SandboxError
from harness.records.sandbox import Execution, LimitsInForce, SandboxContract, Task
from harness.sandbox.client import Client, LostError, engine_answers
from harness.sandbox.container import Container, Order, remove
from harness.sandbox.contract import LABEL
from harness.sandbox.opening import Opened, find_image, lost_error, probe
from harness.sandbox.payload import Ran, payload, record
from harness.sandbox.verdict import Ending

Key = TypeVar("Key")
WORKERS = min(2 * (os.cpu_count() or 1), 8)  # containers at a time; an engine's own work keeps the CPUs busy
CLOSE_S = 120.0  # how long containers may take to be removed at the end


def open_engine(contract: SandboxContract, *, image: str | None, workers: int = WORKERS) -> "Engine":
    """An engine that answers, with an image of its own that has a Python, both proved by a probe container.

    `image`: name or ID. Under a RegisteredImage none means the registered one; another one is taken as it is and
    `Engine.registered` is then false: whether that is allowed is the caller's decision. Under a RecordedImage it is
    needed. `workers`: containers at a time. Raises SandboxError: no engine answers, the image isn't there (nothing is
    ever pulled), it has no python3 fit for the checker, or a flag of the contract isn't put in force.
    """
    client = Client()
    try:
        opened = probe(client, contract, find_image(client, contract, image))
    except BaseException:  # whatever it is, the connections are closed
        client.close()
        raise
    return Engine(client, contract, opened, workers)


class Engine:
    """An engine and an image under one contract. A context manager: leaving it leaves no container.

    `image_id`: the engine's ID of the image ("sha256:..."). `python`: implementation and version, as the probe printed
    them ("CPython 3.11.2"). `registered`: the image is the contract's registered digest. `limits`: what was in force
    for the probe container. `harness_sha256`: the digest of the program that judges inside the container.
    """

    def __init__(self, client: Client, contract: SandboxContract, opened: Opened, workers: int) -> None:
        self.contract = contract
        self.image_id = opened.image_id
        self.python = opened.python
        self.registered = opened.registered
        self.limits: LimitsInForce = opened.limits
        self.harness_sha256 = opened.harness_sha256
        self._program = opened.program
        self._client = client
        self._order = Order(image_id=opened.image_id, contract=contract, owner=secrets.token_hex(8))
        self._workers = workers
        self._removals = ThreadPoolExecutor(1, thread_name_prefix="sandbox-remove")
        self._running: set[Container] = set()
        self._lock = threading.Lock()
        self._lost: SandboxError | None = None
        self._closed = self._abandoning = False

    @property
    def label(self) -> str:
        """The label that every container of this object carries, as a filter of the engine's."""
        return f"{LABEL}={self._order.owner}"

    def execute(self, program: str, task: Task) -> Execution:
        """Run one program against one task.

        An engine that goes away meanwhile gives `infrastructure`, no verdict. Raises SandboxError if it was lost
        before, or where a flag of the contract isn't in force.
        """
        self._require()
        begun = time.monotonic_ns()
        nonce = secrets.token_hex(32)
        ending, limits, container = self._run(payload(program, task, nonce, self.contract.wall_timeout_ms))
        if ending.lost:
            self._look()
        total_ns = time.monotonic_ns() - begun
        return record(self, program, task, Ran(container, nonce, ending, limits, total_ns))

    def execute_many(self, jobs: Iterable[tuple[Key, str, Task]]) -> Iterator[tuple[Key, Execution]]:
        """(key, program, task) as (key, execution), in order, a few containers at a time.

        An engine that goes away gives `infrastructure` for what was in it, then a SandboxError for what follows.
        """
        window: deque[tuple[Key, Future[Execution]]] = deque()
        try:
            with ThreadPoolExecutor(self._workers, thread_name_prefix="sandbox") as pool:
                yield from self._through(pool, window, jobs)
        finally:
            self._abandoning = False  # the pool is empty: nobody is left who was to stop
        self._require()

    def close(self) -> None:
        """Remove every container of this engine object. Quiet where the engine is gone.

        Raises SandboxError for one that the engine doesn't end.
        """
        with self._lock:
            self._closed = True
        self._removals.shutdown(wait=True)
        until = time.monotonic() + CLOSE_S
        while (left := self._left()) and time.monotonic() < until:
            gone = [remove(self._client, one) for one in left]
            if not all(gone):
                time.sleep(1)
        self._client.close()
        if left:
            raise SandboxError(
                f"containers with the label {self.label}",
                expected="all removed",
                found=f"{len(left)} that the engine doesn't end: {', '.join(one[:12] for one in left)}",
                todo="Remove them by hand: docker rm --force.",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _through(
        self,
        pool: ThreadPoolExecutor,
        window: "deque[tuple[Key, Future[Execution]]]",
        jobs: Iterable[tuple[Key, str, Task]],
    ) -> Iterator[tuple[Key, Execution]]:
        """All jobs until the engine is lost, a few ahead of whoever takes the results."""
        try:
            for key, program, task in jobs:
                if self._lost is not None:
                    break
                window.append((key, pool.submit(self.execute, program, task)))
                if len(window) > 2 * self._workers:
                    yield _first(window)
            while window:
                yield _first(window)
        finally:
            self._abandon(window)

    def _run(self, data: bytes) -> tuple[Ending, LimitsInForce, str]:
        """One container from creation to removal: how it ended, the limits it ran under, and its ID (none: empty)."""
        limits, container = self.limits, None
        try:
            container = Container.create(self._client, self._order)
            limits = container.limits
            self._add(container)
            container.start(self._program)
            return container.converse(data, self.contract.wall_timeout_ms / 1000), limits, container.id
        except LostError as lost:
            return _lost(str(lost)), limits, container.id if container else ""
        except APIError:  # it answers, and refuses
            return _lost("engine_refused"), limits, container.id if container else ""
        finally:
            if container is not None:
                self._done(container)

    def _add(self, container: Container) -> None:
        """Count it among the running. LostError once there is nobody to wait for it: it isn't started any more."""
        with self._lock:
            if self._closed or self._abandoning:
                raise LostError("abandoned")
            self._running.add(container)

    def _done(self, container: Container) -> None:
        with self._lock:
            self._running.discard(container)
        container.hang_up()
        try:
            self._removals.submit(remove, self._client, container.id)
        except RuntimeError:  # closed meanwhile
            remove(self._client, container.id)

    def _left(self) -> list[str]:
        try:
            with engine_answers():
                found = self._client.api.containers(all=True, quiet=True, filters={"label": self.label})
        except (LostError, APIError):  # the engine is gone, in whichever way: nothing can be removed
            return []
        return [one["Id"] for one in found]

    def _abandon(self, window: "deque[tuple[Key, Future[Execution]]]") -> None:
        """What nobody waits for any more: jobs not begun are dropped, running containers ended."""
        if not any(not future.done() for _, future in window):
            return
        for _, future in window:
            future.cancel()
        with self._lock:  # whoever has created and isn't in the set yet looks at the flag before starting
            self._abandoning = True
            running = tuple(self._running)
        for container in running:
            remove(self._client, container.id)

    def _require(self) -> None:
        if self._closed:
            raise RuntimeError("the engine object is closed")
        if self._lost is not None:
            raise self._lost

    def _look(self) -> None:
        """After a loss: is the engine there, with the image? Otherwise nothing more is begun."""
        if (error := lost_error(self._client, self.image_id)) is not None:
            self._lost = error


def _lost(why: str) -> Ending:
    return Ending(b"", exit_code=None, oom_killed=False, overdue=False, lost=why)


def _first(window: "deque[tuple[Key, Future[Execution]]]") -> tuple[Key, Execution]:
    """The oldest job's result; it leaves the window only once it is there."""
    key, future = window[0]
    found = future.result()
    window.popleft()
    return key, found
